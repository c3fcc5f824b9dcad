"""BrokerHeartbeat as a handler: the state of a broker, its connection, and senders without permission."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from apis.guarded import C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.cluster import epoch_of, heartbeat, leading, register
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import BrokerHeartbeatRequest
from heirlog.testing.conformance.controller_layer import directory


@pytest.mark.parametrize("version", [0, 1])
def test_the_answer_is_the_state_that_the_broker_gets(version: int) -> None:
    harness = leading(brokers=1)
    register(harness, 2)
    epoch = epoch_of(harness, 2)

    def beat(**wants: bool) -> tuple[bool, bool]:
        request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=epoch, current_metadata_offset=1 << 30, **wants)
        answer = harness.ask("broker_heartbeat", request, version)
        assert answer.error_code == ErrorCode.NONE
        return answer.is_fenced, answer.should_shut_down

    assert beat(want_fence=True) == (True, False)
    assert beat() == (False, False)
    assert beat(want_shut_down=True) == (True, True)


def test_version_1_names_directories_that_failed() -> None:
    harness = leading(brokers=1)
    register(harness, 2, log_dirs=[directory(2, 0), directory(2, 1)])
    heartbeat(harness, 2)
    heartbeat(harness, 2, offline_log_dirs=[directory(2, 1)])
    assert harness.controller.image.brokers[2].directories == (directory(2, 0),)  # type: ignore[index]


def test_an_unknown_broker_and_another_epoch_are_refused() -> None:
    harness = leading(brokers=1)
    unknown = harness.ask("broker_heartbeat", BrokerHeartbeatRequest(broker_id=9), 1)
    assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert heartbeat(harness, 1, broker_epoch=epoch_of(harness, 1) + 1).error_code == ErrorCode.STALE_BROKER_EPOCH
    inactive = Harness().ask("broker_heartbeat", BrokerHeartbeatRequest(broker_id=9), 1)
    assert inactive.error_code == ErrorCode.NOT_CONTROLLER


def test_a_broker_whose_connection_closes_is_fenced_after_the_grace() -> None:
    closed: list[Callable[[], None]] = []

    class Connection:
        def when_closed(self, fn: Callable[[], None]) -> None:
            closed.append(fn)

    harness = leading(brokers=1, heirlog_broker_disconnect_grace_ms="500")
    heartbeat(harness, 1, Connection())
    closed[-1]()
    harness.env.advance(499)
    assert not harness.controller.image.brokers[1].fenced  # type: ignore[index]
    harness.env.advance(1)
    assert harness.controller.image.brokers[1].fenced  # type: ignore[index]


def test_only_nodes_may_send_it(node: Guarded) -> None:
    request = BrokerHeartbeatRequest(broker_id=77)
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
