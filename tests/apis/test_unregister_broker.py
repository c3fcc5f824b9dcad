"""UnregisterBroker through a controller: brokers that leave, unknown ones, and clients without permission."""

from __future__ import annotations

from apis.guarded import C_DENIED, CLUSTER, Guarded
from controller.cluster import heartbeat, leading
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UnregisterBrokerRequest


def test_a_broker_leaves_once_and_an_unknown_one_is_refused_with_a_message() -> None:
    harness = leading()
    heartbeat(harness, 3, want_fence=True)
    answers = [harness.ask("unregister_broker", UnregisterBrokerRequest(broker_id=3), 0) for _ in range(2)]
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED]
    assert answers[1].error_message
    assert sorted(harness.controller.image.brokers) == [1, 2]


def test_a_controller_that_is_not_active_refuses() -> None:
    answer = Harness().ask("unregister_broker", UnregisterBrokerRequest(broker_id=3), 0)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER and answer.error_message


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    request = UnregisterBrokerRequest(broker_id=77)
    assert node.ask(request).error_code == C_DENIED
    node.allow(AclOperation.ALTER, CLUSTER)
    assert node.ask(request).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
