"""Transactions with so many partitions that a request, or a record, has no room for all of them."""

from __future__ import annotations

import pytest

from heirlog.broker.transactions.marker_sender import PARTITIONS_PER_REQUEST
from heirlog.protocol.errors import ErrorCode

from ..fakes import state
from .test_coordinator import TRANSACTIONS, added, code, producer
from .test_transaction_version import Levelled


def test_no_request_has_more_markers_than_its_limit() -> None:
    rig = Levelled()
    total = 2 * PARTITIONS_PER_REQUEST + 1
    for index in range(2, total):
        rig.set_partition(state([2], leader=2, leader_epoch=0), "foo", index)
    rig.publish()
    me = producer(rig.init())
    assert set(added(rig.add(me, *range(total)))) == {"NONE"}
    rig.end(me)
    written: list[int] = []
    while rig.markers_in_flight():
        assert rig.state_name == "PrepareCommit"
        refused = {f"foo_{index}": ErrorCode.NOT_ENOUGH_REPLICAS for index in (0, total - 1) if not written}
        (marker,) = rig.answer_markers(**refused).markers
        sent = [index for topic in marker.topics for index in topic.partition_indexes]
        assert len(sent) <= PARTITIONS_PER_REQUEST
        written += [index for index in sent if f"foo_{index}" not in refused]
        rig.env.advance(0 if rig.markers_in_flight() else 100)
    assert rig.state_name == "CompleteCommit"
    assert sorted(written) == list(range(total))


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("used_up", [False, True])
def test_what_is_accepted_can_be_ended(level: int, used_up: bool) -> None:
    """The record of the outcome is longer than that of the open transaction."""
    for max_bytes in range(600, 604):
        rig = Levelled()
        rig.level(level)
        rig.set_config("max.message.bytes", str(max_bytes), TRANSACTIONS)
        for index in range(2, 200):
            rig.set_partition(state([2], leader=2, leader_epoch=0), "foo", index)
        rig.publish()
        me = rig.used_up() if used_up else producer(rig.init())
        refused = next(index for index in range(200) if added(rig.add(me, index)) != ["NONE"])
        assert added(rig.add(me, refused)) == ["UNKNOWN_SERVER_ERROR"], "as on Apache Kafka"
        rig.level(2)
        assert code(rig.end(me, v=5 if level == 2 else 4)) == "NONE", (max_bytes, refused)
        rig.answer_markers()
        assert rig.state_name == "CompleteCommit"
