"""Fetch: what consumers may see, what followers report, and how much one answer holds."""

from __future__ import annotations

import pytest

from heirlog.metadata.state import UNASSIGNED_DIRECTORY
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest
from heirlog.protocol.types import BrokerId

from .fakes import TOPIC_IDS, Rig, answer_of, batch, context, state
from .fetches import data_of, leader, records_of


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
