"""AssignReplicasToDirs as a handler: directories of replicas, and senders that must not say it."""

from __future__ import annotations

from apis.guarded import C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.cluster import assign, create, epoch_of, heartbeat, leading, register, state_of
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AssignReplicasToDirsRequest
from heirlog.testing.conformance.controller_layer import directory


def test_replicas_are_where_their_broker_says_and_the_rest_is_refused_one_by_one() -> None:
    harness = leading(brokers=0)
    register(harness, 1, log_dirs=[directory(1, 0), directory(1, 1)])
    heartbeat(harness, 1)
    create(harness, partitions=2, factor=1)
    assert assign(harness, 1, directory(1, 1), 0, 9) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert state_of(harness, partition=0).directory_of(1) == directory(1, 1)  # type: ignore[arg-type]
    assert assign(harness, 1, directory(1, 0), 0, topic="none") == ["UNKNOWN_TOPIC_ID"]


def test_a_broker_says_it_of_its_own_replicas_in_its_own_epoch() -> None:
    harness = leading(brokers=2)
    create(harness, factor=1)
    (other,) = {1, 2} - set(state_of(harness).replicas)
    assert assign(harness, other, directory(other, 0), 0) == ["NOT_LEADER_OR_FOLLOWER"]
    assert assign(harness, 1, directory(1, 0), 0, epoch=epoch_of(harness, 1) + 1) == "STALE_BROKER_EPOCH"


def test_a_controller_that_is_not_active_refuses() -> None:
    answer = Harness().ask("assign_replicas_to_dirs", AssignReplicasToDirsRequest(broker_id=1), 0)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_may_say_it(node: Guarded) -> None:
    request = AssignReplicasToDirsRequest(broker_id=77)
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.STALE_BROKER_EPOCH
