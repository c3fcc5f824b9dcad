"""Before a follower cuts what a lossy election gave up, it copies it. With the test as the leader."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.discarded_records import COPIES_AT_ONCE, TIME_LIMIT_MS
from heirlog.metadata.basis import Basis, ElectionBasis
from heirlog.protocol.batch import walk
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchResponse, ListOffsetsResponse
from heirlog.protocol.types import BrokerId, LeaderEpoch

from .fakes import Rig, batch, open_log, state
from .test_replica_fetcher import answer, asked, fetches, taken

FOLDER = "/data/foo-0/discarded"
RECORDS = 10


def lossy(leader_epoch: int = 7) -> ElectionBasis:
    return ElectionBasis(Basis.UNCLEAN, BrokerId(2), LeaderEpoch(leader_epoch))


def follower(**properties: str) -> Rig:
    """It has records of epoch 5; broker 2 was elected on a lossy basis since, in epoch 7."""
    rig = Rig(**properties).started()
    rig.show(state([1, 2], leader=2, leader_epoch=5))
    answer(taken(rig), records=b"".join(batch(1, at, 5) for at in range(RECORDS)))
    rig.show(state([1, 2], [2], leader=2, leader_epoch=7, partition_epoch=2, basis=lossy()))
    answer(taken(rig))
    return rig


def diverge(rig: Rig, end_offset: int, epoch: int = 5) -> None:
    answer(taken(rig), diverging_epoch=FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset))


def kept(rig: Rig, folder: str = FOLDER) -> dict[str, list[int]]:
    """File → offsets of its batches."""
    files = rig.env.files
    found: dict[str, list[int]] = {}
    for name in files.list(folder) if files.is_dir(folder) else []:
        file = files.open(f"{folder}/{name}")
        found[name] = [header.base_offset for _, header in walk(file.pread(file.size, 0), partial_tail=True)]
    return found


def received(rig: Rig) -> list[tuple[str, Any]]:
    return [(event, values["kept_upto"]) for event, values in rig.env.events if event.startswith("discarded-records")]


def end_offset(rig: Rig) -> int:
    return rig.partition().log.log_end_offset


def test_what_a_lossy_election_gave_up_is_copied_and_then_cut() -> None:
    rig = follower()
    diverge(rig, 6)
    assert end_offset(rig) == RECORDS, "first the copy"
    assert not fetches(rig), "nothing is fetched meanwhile"
    rig.env.advance(5)
    assert kept(rig) == {"00000000000000000006.7.log": [6, 7, 8, 9]}
    assert end_offset(rig) == 6
    assert asked(taken(rig)).fetch_offset == 6
    assert received(rig) == [("discarded-records-kept", RECORDS)]
    assert rig.broker.metrics().records_discarded == 4


def test_a_second_cut_in_the_same_epoch_is_another_file() -> None:
    rig = follower()
    diverge(rig, 6)
    rig.env.advance(5)
    diverge(rig, 4)
    rig.env.advance(5)
    assert kept(rig) == {"00000000000000000004.7.log": [4, 5], "00000000000000000006.7.log": [6, 7, 8, 9]}
    assert rig.broker.metrics().records_discarded == 6


def test_a_log_that_has_records_of_the_new_lineage_keeps_nothing() -> None:
    rig = follower()
    answer(taken(rig), records=batch(1, RECORDS, 7))
    diverge(rig, 10, epoch=7)
    assert end_offset(rig) == 10 and kept(rig) == {}
    assert rig.broker.metrics().records_discarded == 0


def test_a_cut_after_a_clean_election_keeps_nothing_and_waits_for_nothing() -> None:
    rig = follower()
    rig.show(state([1, 2], [2], leader=2, leader_epoch=8, partition_epoch=3, basis=lossy(5)))
    answer(taken(rig))
    diverge(rig, 6)
    assert end_offset(rig) == 6 and kept(rig) == {}


def test_switched_off_nothing_is_kept_and_the_loss_is_counted() -> None:
    rig = follower(heirlog_discarded_enable="false")
    diverge(rig, 6)
    assert end_offset(rig) == 6 and kept(rig) == {}
    assert rig.broker.metrics().records_discarded == 4


def test_a_disk_without_room_does_not_stop_the_cut() -> None:
    rig = follower(heirlog_discarded_min_free_bytes=str(1 << 50))
    diverge(rig, 6)
    rig.env.advance(5)
    assert end_offset(rig) == 6 and kept(rig) == {}
    assert received(rig) == [("discarded-records-not-kept", 6)]


@pytest.mark.parametrize("how", ["full", "flush"])
def test_a_failing_copy_does_not_stop_the_cut_and_leaves_nothing(how: str) -> None:
    rig = follower()
    rig.env.disk.break_at(FOLDER, how)
    diverge(rig, 6)
    rig.env.advance(5)
    assert end_offset(rig) == 6 and kept(rig) == {}
    assert received(rig) == [("discarded-records-not-kept", 6)]
    assert not rig.partition().offline


def test_a_disk_that_does_not_answer_holds_the_cut_back_only_so_long() -> None:
    rig = follower()
    rig.env.disk.flush_us = (100 * TIME_LIMIT_MS * 1000, 100 * TIME_LIMIT_MS * 1000 + 1)
    diverge(rig, 6)
    rig.env.advance(TIME_LIMIT_MS - 10)
    assert end_offset(rig) == RECORDS
    rig.env.advance(20)
    assert end_offset(rig) == 6


def test_a_newer_leader_epoch_makes_the_copy_anew() -> None:
    rig = follower()
    diverge(rig, 6)
    rig.show(state([1, 2], [2], leader=2, leader_epoch=8, partition_epoch=3, basis=lossy()))
    rig.env.advance(5)
    answer(taken(rig))
    assert end_offset(rig) == RECORDS, "the cut that was asked for in the older epoch is forgotten"
    diverge(rig, 7)
    rig.env.advance(5)
    assert end_offset(rig) == 7 and kept(rig) == {"00000000000000000007.7.log": [7, 8, 9]}


def test_a_topic_that_is_deleted_meanwhile_ends_the_copy() -> None:
    rig = follower()
    diverge(rig, 6)
    rig.delete_topic()
    rig.publish()
    rig.env.advance(5)
    assert received(rig) == [] and not rig.env.files.exists("/data/foo-0")


def test_a_follower_that_becomes_leader_meanwhile_keeps_its_log() -> None:
    rig = follower()
    diverge(rig, 6)
    rig.show(state([1, 2], [1], leader=1, leader_epoch=8, partition_epoch=3, basis=lossy()))
    rig.env.advance(5)
    assert end_offset(rig) == RECORDS and kept(rig) == {}


def test_a_log_beyond_the_leaders_is_kept_where_the_leader_does_not_know_the_epoch() -> None:
    rig = follower()
    answer(taken(rig), error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    found = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=0, offset=6)
    topic = ListOffsetsResponse.ListOffsetsTopicResponse(name="foo", partitions=[found])
    taken(rig).on_result(ListOffsetsResponse(topics=[topic]))
    rig.env.advance(5)
    assert kept(rig) == {"00000000000000000006.7.log": [6, 7, 8, 9]}
    assert asked(taken(rig)).fetch_offset == 6


def test_only_so_many_copies_are_under_way_and_all_are_made() -> None:
    rig = Rig().started()
    count = 3 * COPIES_AT_ONCE
    for index in range(count):
        rig.set_partition(state([1, 2], leader=2, leader_epoch=5), index=index)
    rig.publish()
    while any(rig.partition(index=index).log.log_end_offset == 0 for index in range(count)):
        sent = taken(rig)
        _answer_all(sent, records=batch(3, 0, 5))
    for index in range(count):
        rig.set_partition(state([1, 2], [2], leader=2, leader_epoch=7, partition_epoch=2, basis=lossy()), index=index)
    rig.publish()
    _answer_all(taken(rig))
    _answer_all(taken(rig), diverging_epoch=FetchResponse.EpochEndOffset(epoch=5, end_offset=0))
    under_way = sum(rig.env.files.is_dir(f"/data/foo-{index}/discarded") for index in range(count))
    rig.env.advance(1)
    assert under_way <= COPIES_AT_ONCE
    rig.env.advance(50)
    assert all(kept(rig, f"/data/foo-{index}/discarded") for index in range(count))
    assert {rig.partition(index=index).log.log_end_offset for index in range(count)} == {0}


def _answer_all(sent: Any, **data: Any) -> None:
    responses = [
        FetchResponse.FetchableTopicResponse(
            topic_id=topic.topic_id,
            partitions=[
                FetchResponse.PartitionData(partition_index=asked.partition, high_watermark=0, **data)
                for asked in topic.partitions
            ],
        )
        for topic in sent.request.topics
    ]
    sent.on_result(FetchResponse(session_id=0, responses=responses))


def test_what_is_kept_goes_with_time() -> None:
    rig = follower(heirlog_discarded_retention_ms="600000")
    diverge(rig, 6)
    rig.env.advance(5)
    assert kept(rig)
    rig.env.advance(1_000_000)
    assert kept(rig) == {}


@pytest.mark.parametrize("steps", range(0, 24, 2))
def test_a_power_cut_at_any_moment_leaves_every_record_in_the_log_or_beside_it(steps: int) -> None:
    rig = follower()
    rig.env.disk.settle()
    diverge(rig, 6)
    for _ in range(steps):
        rig.env.world.step(rig.env.world.now_us + 10_000)
    rig.env.disk.power_cut()
    log = open_log(rig.env)
    in_log = set(range(log.log_start_offset, log.log_end_offset))
    beside = {offset for name, offsets in kept(rig).items() if name.endswith(".log") for offset in offsets}
    assert in_log | beside == set(range(RECORDS))
