"""InitializeShareGroupState through a node: what it writes, what is refused, and who may send it."""

from __future__ import annotations

from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded
from apis.shares import NO_TOPIC, code, coordinate_shares, initializing

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode

EXAMPLE = initializing(NO_TOPIC), None


def test_each_initialization_needs_no_lower_epoch_than_the_last(node: Guarded) -> None:
    topic = coordinate_shares(node)
    assert code(node.ask(initializing(topic, "init", epoch=2), principal=ADMIN)) is ErrorCode.NONE
    assert code(node.ask(initializing(topic, "init", epoch=1), principal=ADMIN)) is ErrorCode.FENCED_STATE_EPOCH
    assert code(node.ask(initializing(NO_TOPIC, "init"), principal=ADMIN)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(node.ask(initializing(bytes(16), "init"), principal=ADMIN)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_brokers_may_send_it(node: Guarded) -> None:
    topic = coordinate_shares(node)
    assert code(node.ask(initializing(topic, "denied"))) is C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert code(node.ask(initializing(topic, "denied"))) is ErrorCode.NONE
