"""ReadShareGroupState through a node: what a leader loads, who is fenced by it, and who may send it."""

from __future__ import annotations

from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded
from apis.shares import NO_TOPIC, begin, code, coordinate_shares, initializing, reading, writing

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode

EXAMPLE = reading(NO_TOPIC), None


def test_a_leader_loads_what_was_written_and_an_older_one_is_fenced(node: Guarded) -> None:
    topic = coordinate_shares(node)
    begin(node, topic, "read")
    node.ask(writing(topic, "read"), principal=ADMIN)
    (partition,) = node.ask(reading(topic, "read", 3), principal=ADMIN).results[0].partitions
    (batch,) = partition.state_batches
    assert (partition.error_code, partition.state_epoch, partition.start_offset) == (ErrorCode.NONE, 1, 5)
    assert (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count) == (6, 8, 2, 1)
    assert code(node.ask(reading(topic, "read", 2), principal=ADMIN)) is ErrorCode.FENCED_LEADER_EPOCH
    assert code(node.ask(writing(topic, "read"), principal=ADMIN)) is ErrorCode.FENCED_LEADER_EPOCH


def test_what_was_not_initialized_is_not_read(node: Guarded) -> None:
    topic = coordinate_shares(node)
    assert code(node.ask(reading(topic, "none"), principal=ADMIN)) is ErrorCode.INVALID_REQUEST


def test_only_brokers_may_send_it(node: Guarded) -> None:
    topic = coordinate_shares(node)
    assert code(node.ask(reading(topic, "denied"))) is C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    node.ask(initializing(topic, "denied"))
    assert code(node.ask(reading(topic, "denied"))) is ErrorCode.NONE
