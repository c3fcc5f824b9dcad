"""Fetch: what consumers may see, what followers tell, how long a request waits, and how much one answer holds."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.metadata.state import UNASSIGNED_DIRECTORY
from heirlog.pending import Pending
from heirlog.protocol.batch import decode_records, read_header
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import BrokerId

from .fakes import TOPIC_IDS, Rig, answer_of, batch, context, state


def data_of(result: Any, number: int = 0) -> Any:
    return answer_of(result).responses[0].partitions[number]


def records_of(result: Any, number: int = 0) -> list[int]:
    """Offsets of the records in the answer."""
    view, offsets, position = records_view(data_of(result, number).records), [], 0
    while position < len(view):
        offsets += [record.offset for record in decode_records(view, position)]
        position += read_header(view, position).size
    return offsets


def leader(replicas: list[int] | None = None, **kwargs: Any) -> Rig:
    rig = Rig(**kwargs).started()
    rig.show(state(replicas or [1]))
    return rig


def test_a_consumer_reads_up_to_the_high_watermark() -> None:
    rig = leader([1, 2])
    rig.produce(1, batch())
    rig.produce(1, batch())
    rig.fetch(1, replica=2)
    found = rig.fetch(0)
    assert records_of(found) == [0]
    assert data_of(found).high_watermark == data_of(found).last_stable_offset == 1


def test_a_follower_reads_up_to_the_end_of_the_log() -> None:
    rig = leader([1, 2])
    rig.produce(1, batch(2))
    assert records_of(rig.fetch(0, replica=2)) == [0, 1]


def test_a_follower_learns_in_the_same_answer_what_its_fetch_has_committed() -> None:
    rig = leader([1, 2])
    rig.produce(1, batch(2))
    assert data_of(rig.fetch(2, replica=2)).high_watermark == 2


def test_a_long_poll_ends_when_records_become_visible() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500)
    assert isinstance(result, Pending)
    rig.produce(1)
    assert records_of(result) == [0]


def test_a_long_poll_ends_empty_when_its_time_is_up() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500)
    rig.env.advance(500)
    assert records_of(result) == []


@pytest.mark.parametrize("session_epoch", [-1, 0])
@pytest.mark.parametrize("min_bytes", [1, 10_000])
def test_a_long_poll_whose_look_finds_the_disk_broken_is_answered_once(
    monkeypatch: pytest.MonkeyPatch, session_epoch: int, min_bytes: int
) -> None:
    rig = leader(log_dirs="/data,/more", metadata_log_dir="/metadata")
    partition = rig.broker.replicas.partition((TOPIC_IDS["foo"], 0))
    assert partition is not None
    result = rig.fetch(0, max_wait_ms=500, min_bytes=min_bytes, session_epoch=session_epoch)
    assert isinstance(result, Pending)

    def fail(*_: object) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(partition.log, "read_for_client", fail)
    rig.produce(1)
    assert data_of(result).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_long_poll_waits_for_min_bytes() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500, min_bytes=len(batch()) + 1)
    rig.produce(1)
    assert not result.done
    rig.produce(1)
    assert records_of(result) == [0, 1]


def test_a_followers_long_poll_ends_as_soon_as_the_leader_appends() -> None:
    rig = leader([1, 2])
    result = rig.fetch(0, replica=2, max_wait_ms=500)
    rig.produce(1)
    rig.env.advance(0)
    assert records_of(result) == [0]


def test_what_one_turn_of_the_loop_brings_reaches_a_waiting_follower_in_one_answer() -> None:
    rig = leader([1, 2])
    result = rig.fetch(0, replica=2, max_wait_ms=500)
    rig.produce(1)
    rig.produce(1)
    assert not result.done
    rig.env.advance(0)
    assert records_of(result) == [0, 1]


def test_appends_to_several_partitions_reach_a_waiting_follower_in_one_answer() -> None:
    rig = leader([1, 2])
    rig.show(state([1, 2]), index=1)
    result = rig.fetch(0, replica=2, max_wait_ms=500, partitions=[0, 1])
    rig.produce(1, batch(), batch())
    rig.env.advance(0)
    assert records_of(result, 0) == [0]
    assert records_of(result, 1) == [0]


def test_an_abandoned_long_poll_is_forgotten() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500)
    result.abandon()
    assert len(rig.broker.replicas.delayed.consumer_fetch) == 0


def test_a_long_poll_ends_when_leadership_is_lost() -> None:
    rig = leader([1, 2])
    result = rig.fetch(0, max_wait_ms=500)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    data = data_of(result)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 6)


def test_a_follower_serves_the_debugging_consumer_up_to_its_watermark_and_nobody_else() -> None:
    rig = leader([1, 2])
    rig.produce(1, batch())
    rig.produce(1, batch())
    rig.fetch(1, replica=2)
    rig.show(state([1, 2], leader=2, leader_epoch=6))
    found = rig.fetch(0, replica=-2)
    assert records_of(found) == [0]
    assert data_of(found).high_watermark == 1
    assert data_of(rig.fetch(0)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_offsets_outside_the_log_are_out_of_range() -> None:
    rig = leader()
    assert data_of(rig.fetch(1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_leader_epochs_of_the_client_are_checked() -> None:
    rig = leader()
    assert data_of(rig.fetch(0, leader_epoch=4)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert data_of(rig.fetch(0, leader_epoch=6)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("epoch", [-1, -2, -(2**31)])
def test_a_negative_leader_epoch_is_no_leader_epoch(epoch: int) -> None:
    assert data_of(leader().fetch(0, leader_epoch=epoch)).error_code == ErrorCode.NONE


def test_an_unknown_topic_id_is_named_as_such() -> None:
    assert data_of(leader().fetch(0, topic="baz")).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_follower_that_diverges_is_told_where_and_its_offset_does_not_count() -> None:
    rig = leader([1, 2])
    rig.produce(1, batch(3))
    data = data_of(rig.fetch(2, replica=2, last_fetched_epoch=4))
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (4, 0)
    assert rig.partition().high_watermark == 0
    assert rig.partition().followers[2].log_end_offset == -1


def test_a_fetch_of_a_former_incarnation_does_not_count() -> None:
    rig = leader([1, 2])
    rig.produce(1)
    rig.set_broker(2, epoch=200)
    rig.publish()
    assert data_of(rig.fetch(1, replica=2, replica_epoch=102)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert rig.partition().high_watermark == 0


def test_the_first_batch_comes_even_where_it_is_larger_than_the_limits() -> None:
    rig = leader()
    rig.produce(1, batch(3))
    rig.produce(1, batch(3))
    assert records_of(rig.fetch(0, max_bytes=1, partition_max_bytes=1)) == [0, 1, 2]


def test_where_the_answer_is_full_the_next_one_begins_with_another_partition() -> None:
    rig = leader()
    rig.show(state([1]), index=1)
    rig.produce(1, batch(), batch())
    first = rig.fetch(0, partitions=[0, 1], max_bytes=len(batch()))
    second = rig.fetch(0, partitions=[0, 1], max_bytes=len(batch()))
    assert (records_of(first, 0), records_of(first, 1)) == ([0], [])
    assert (records_of(second, 0), records_of(second, 1)) == ([], [0])


def test_what_is_cut_away_while_a_request_waits_is_not_in_its_answer() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500, min_bytes=1 << 20)
    rig.produce(1)
    rig.produce(1)
    rig.partition().log.truncate_to(1)
    rig.partition().high_watermark = 1
    rig.env.advance(500)
    assert records_of(result) == [0]


def test_an_offset_outside_the_log_is_refused_and_does_not_count_where_the_answer_is_full_already() -> None:
    rig = leader([1, 2])
    second = rig.show(state([1, 2], [1]), index=1)
    rig.produce(1, batch(), batch())
    asked = [FetchRequest.FetchPartition(partition=n, fetch_offset=5 * n, partition_max_bytes=1 << 20) for n in (0, 1)]
    request = FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=102),
        max_bytes=1,
        topics=[FetchRequest.FetchTopic(topic_id=TOPIC_IDS["foo"], topic="foo", partitions=asked)],
    )
    assert data_of(rig.broker.fetch(request, context(17)), 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert second.followers[BrokerId(2)].log_end_offset == -1


def test_a_directory_that_fails_under_a_followers_fetch_fails_its_other_partitions_and_not_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(log_dirs="/data,/more", metadata_log_dir="/metadata").started()
    directory = rig.directories[0].directory_id
    for index in (0, 1):
        rig.show(state([1, 2], directories=(directory, UNASSIGNED_DIRECTORY)), index=index)
    rig.produce(1, batch())

    def fail(*_: object) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(rig.partition(index=0).log, "read", fail)
    response = answer_of(rig.fetch(0, replica=2, partitions=[1, 0], max_wait_ms=500))
    codes = {data.partition_index: data.error_code for data in response.responses[0].partitions}
    assert codes == {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: ErrorCode.KAFKA_STORAGE_ERROR}
