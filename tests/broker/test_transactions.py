"""Transactions in a partition: what consumers of committed records see, and what is said of the producers."""

from __future__ import annotations

from typing import Any

from heirlog.broker.list_offsets import offset_for
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager_metrics import LATE_TRANSACTION_BUFFER_MS, count_replicas, late_since_ms
from heirlog.metadata.survey import at_once
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeProducersRequest, WriteTxnMarkersRequest
from heirlog.protocol.transaction_marker import TransactionMarker, encode_marker

from .fakes import Rig, answer_of, batch, state
from .test_fetch import data_of, records_of

READ_COMMITTED = 1
COMMIT, ABORT = (
    TransactionMarker(commit=True, coordinator_epoch=3),
    TransactionMarker(commit=False, coordinator_epoch=3),
)


def leading(replicas: list[int] | None = None) -> tuple[Rig, Partition]:
    rig = Rig().started()
    return rig, rig.show(state(replicas or [1]))


def write(rig: Rig, partition: Partition, producer_id: int, count: int = 1, sequence: int = 0) -> None:
    """A batch in a transaction: no client can send one yet, so it comes as if a former leader had written it."""
    transactional = batch(
        count,
        base_offset=partition.log.log_end_offset,
        leader_epoch=5,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    partition.log.append_as_follower(transactional, 5)
    partition.advance_high_watermark(rig.env.now_ms())


def end(rig: Rig, partition: Partition, producer_id: int, marker: TransactionMarker) -> None:
    watermark = partition.high_watermark
    partition.append_marker(marker, producer_id, 0, 0, rig.env.wall_ms(), rig.env.now_ms())
    rig.broker.replicas.log_grew(partition, watermark, rig.env.wall_ms())


def aborted_of(result: Any) -> list[tuple[int, int]] | None:
    found = data_of(result).aborted_transactions
    return None if found is None else [(one.producer_id, one.first_offset) for one in found]


def test_committed_records_are_read_up_to_the_first_open_transaction() -> None:
    rig, partition = leading()
    rig.produce(1, batch(2))
    write(rig, partition, 7)
    rig.produce(1, batch(1))
    found = rig.fetch(0, isolation_level=READ_COMMITTED)
    assert records_of(found) == [0, 1]
    assert (data_of(found).high_watermark, data_of(found).last_stable_offset) == (4, 2)
    assert aborted_of(found) == []
    everything = rig.fetch(0)
    assert records_of(everything) == [0, 1, 2, 3]
    assert data_of(everything).last_stable_offset == 2 and aborted_of(everything) is None
    assert records_of(rig.fetch(2, isolation_level=READ_COMMITTED)) == []
    assert records_of(rig.fetch(4, isolation_level=READ_COMMITTED)) == []


def test_a_long_poll_of_committed_records_ends_with_the_marker() -> None:
    for session_epoch in (-1, 0):
        rig, partition = leading()
        write(rig, partition, 7, 2)
        result = rig.fetch(0, isolation_level=READ_COMMITTED, max_wait_ms=500, session_epoch=session_epoch)
        assert isinstance(result, Pending)
        rig.produce(1, batch(1))
        rig.env.advance(1)
        assert answer_of(result) is None
        end(rig, partition, 7, ABORT)
        rig.env.advance(1)
        assert records_of(result) == [0, 1, 2, 3]
        assert aborted_of(result) == [(7, 0)]


def test_a_fetch_of_nothing_but_aborted_records_is_answered_and_moves_on() -> None:
    """Also if the first of them is larger than what the consumer asked for."""
    rig, partition = leading()
    for number in range(5):
        write(rig, partition, 7, 40, sequence=40 * number)
    end(rig, partition, 7, ABORT)
    rig.produce(1, batch(1))
    offset, pieces = 0, 0
    while offset < partition.high_watermark:
        found = rig.fetch(offset, isolation_level=READ_COMMITTED, max_bytes=100, partition_max_bytes=100)
        read = records_of(found)
        assert read[0] == offset
        assert aborted_of(found) == ([(7, 0)] if offset <= 200 else [])
        offset, pieces = read[-1] + 1, pieces + 1
    assert (offset, pieces) == (202, 7)


def test_a_marker_decides_once_its_offset_is_replicated() -> None:
    rig, partition = leading([1, 2])
    write(rig, partition, 7)
    rig.fetch(1, replica=2)
    end(rig, partition, 7, COMMIT)
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
    found = rig.fetch(2, replica=2)
    assert (data_of(found).high_watermark, data_of(found).last_stable_offset) == (2, 2)


def test_a_session_that_turns_to_uncommitted_records_gets_those_that_it_was_not_shown() -> None:
    rig, partition = leading()
    write(rig, partition, 7)
    first = rig.fetch(0, isolation_level=READ_COMMITTED, session_epoch=0)
    assert records_of(first) == []
    session = first.session_id
    empty = rig.fetch(0, isolation_level=READ_COMMITTED, session_id=session, session_epoch=1)
    assert empty.responses == []
    rig.fetch(0, isolation_level=READ_COMMITTED, session_id=session, session_epoch=2)
    assert records_of(rig.fetch(0, isolation_level=0, session_id=session, session_epoch=3)) == [0]


def test_a_follower_keeps_the_same_transactions_as_its_leader() -> None:
    rig = Rig().started()
    partition = rig.show(state([1, 2], leader=2))
    transactional = batch(1, leader_epoch=5, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append_from_leader(transactional + batch(1, base_offset=1, leader_epoch=5), 5)
    partition.follow(2, 0)
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 0)
    partition.append_from_leader(encode_marker(ABORT, 7, 0, 2, 5, 0), 5)
    assert partition.last_stable_offset == 0
    partition.follow(3, 0)
    assert partition.last_stable_offset == 3
    partition.truncate_to(1)
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)


def test_deleting_records_of_an_open_transaction_moves_the_last_stable_offset_with_the_log_start() -> None:
    rig, partition = leading()
    write(rig, partition, 7, 3)
    rig.produce(1, batch(2))
    partition.log.increment_log_start(2)
    assert partition.last_stable_offset == 2
    end(rig, partition, 7, COMMIT)
    assert partition.last_stable_offset == partition.high_watermark == 6


def test_the_latest_offset_and_timestamps_end_at_the_last_stable_offset() -> None:
    rig, partition = leading()
    rig.produce(1, batch(2))
    write(rig, partition, 7, 3)
    assert offset_for(partition, -1, -1, False).offset == 5
    assert offset_for(partition, -1, -1, False, read_committed=True).offset == 2
    assert offset_for(partition, -1, -1, True, read_committed=True).offset == 5
    assert offset_for(partition, -2, -1, False, read_committed=True).offset == 0
    late = 1_700_000_000_002
    assert offset_for(partition, late, -1, False).offset == 4
    assert offset_for(partition, late, -1, False, read_committed=True).offset == -1


def test_producers_are_described_with_their_open_transactions() -> None:
    rig, partition = leading()
    write(rig, partition, 7)
    end(rig, partition, 7, ABORT)
    write(rig, partition, 7, 2, sequence=1)
    write(rig, partition, 8)
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name="foo", partition_indexes=[0])]
    )
    found = rig.broker.describe_producers(request).topics[0].partitions[0].active_producers
    assert [(p.producer_id, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset) for p in found] == [
        (7, 2, 3, 2),
        (8, 0, -1, 4),
    ]


def test_the_cleaner_leaves_an_open_transaction_alone() -> None:
    rig = Rig(log_cleaner_backoff_ms="100").started()
    rig.set_config("cleanup.policy", "compact")
    partition = rig.show(state([1]))
    write(rig, partition, 7)
    partition.log.roll()
    rig.produce(1, batch(1))
    rig.env.advance(2000)
    assert not [event for event, _ in rig.env.events if event == "log-compacted"]
    end(rig, partition, 7, COMMIT)
    rig.env.advance(2000)
    assert [event for event, _ in rig.env.events if event == "log-compacted"]


def send_markers(rig: Rig, *producer_ids: int, partitions: tuple[int, ...] = (0,)) -> Any:
    Marker, Topic = WriteTxnMarkersRequest.WritableTxnMarker, WriteTxnMarkersRequest.WritableTxnMarkerTopic
    topics = [Topic(name="foo", partition_indexes=list(partitions))]
    markers = [Marker(producer_id=producer_id, transaction_result=True, topics=topics) for producer_id in producer_ids]
    return rig.broker.write_txn_markers(WriteTxnMarkersRequest(markers=markers))


def results(answer: Any) -> list[list[ErrorCode]]:
    return [
        [ErrorCode(part.error_code) for part in marker.topics[0].partitions] for marker in answer_of(answer).markers
    ]


def test_markers_are_answered_once_they_are_committed() -> None:
    rig, partition = leading([1, 2])
    write(rig, partition, 7)
    answer = send_markers(rig, 7, 8)
    rig.fetch(2, replica=2)
    assert answer_of(answer) is None
    rig.fetch(3, replica=2)
    assert results(answer) == [[ErrorCode.NONE], [ErrorCode.NONE]]
    assert partition.last_stable_offset == 3


def test_markers_that_are_not_committed_in_time_or_under_another_leader_say_so() -> None:
    rig, _ = leading([1, 2])
    late = send_markers(rig, 7)
    rig.env.advance(30_000)
    assert results(late) == [[ErrorCode.REQUEST_TIMED_OUT]]
    moved = send_markers(rig, 7)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    assert results(moved) == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]]


def test_a_marker_needs_the_min_isr_and_a_partition_of_this_broker() -> None:
    rig = Rig().started()
    rig.set_config("min.insync.replicas", "2")
    rig.show(state([1, 2], isr=[1]))
    refused = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert results(send_markers(rig, 7, partitions=(0, 5))) == [refused]
    assert rig.partition().log.log_end_offset == 0


def test_a_disk_that_fails_before_a_marker_is_committed_ends_the_wait() -> None:
    rig = Rig(log_dirs="/data,/more", metadata_log_dir="/metadata").started()
    partition = rig.show(state([1, 2]))
    waiting = send_markers(rig, 7)
    rig.broker.replicas.storage_failed(partition, OSError("EIO"))
    rig.env.advance(1)
    assert results(waiting) == [[ErrorCode.KAFKA_STORAGE_ERROR]]
    assert results(send_markers(rig, 7)) == [[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]


def test_a_transaction_that_is_open_for_longer_than_any_producer_may_ask_for_is_late() -> None:
    rig, partition = leading()
    write(rig, partition, 7)
    timestamp_ms = partition.log.producers.producers[7].last_timestamp
    allowed_ms = 900_000 + LATE_TRANSACTION_BUFFER_MS
    late = [
        at_once(count_replicas(rig.broker.replicas, rig.image, at_ms - allowed_ms)).partitions_with_late_transactions
        for at_ms in (timestamp_ms + allowed_ms, timestamp_ms + allowed_ms + 1)
    ]
    assert late == [0, 1]
    partition.log.producers.producers[7].last_timestamp = -1
    found = at_once(count_replicas(rig.broker.replicas, rig.image, timestamp_ms + 1))
    assert found.partitions_with_late_transactions == 0, "records without a time"
    partition.log.producers.producers[7].last_timestamp = timestamp_ms
    assert late_since_ms(rig.broker._static, timestamp_ms + allowed_ms) == timestamp_ms
    end(rig, partition, 7, ABORT)
    found = at_once(count_replicas(rig.broker.replicas, rig.image, timestamp_ms + 1))
    assert found.partitions_with_late_transactions == 0
