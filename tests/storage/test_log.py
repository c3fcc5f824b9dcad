from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.logs import DIR, batch, contents, open_log, placed
from storage.memory_files import MemoryFile, MemoryFiles

from heirlog.protocol.batch import HEADER_SIZE, crc_matches, decode_records, encode_batch, read_header, walk
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.storage.cleaning.swap import CLEANED_SUFFIX
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import LogError, OffsetOutsideLog, UnexpectedAppendOffset
from heirlog.storage.log import Log
from heirlog.storage.log_listener import LogListener
from heirlog.storage.segment import Segment


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def assert_refused(log, records, code: ErrorCode) -> None:
    before = log.log_end_offset
    with pytest.raises(KafkaError) as raised:
        log.append_as_leader(records, 0, 0)
    assert raised.value.code == code
    assert log.log_end_offset == before == len(contents(log))


def test_a_leader_gives_offset_and_epoch(files: MemoryFiles) -> None:
    log = open_log(files)
    first = log.append_as_leader(batch("a", "b"), 3, 1000)
    second = log.append_as_leader(memoryview(batch("c")), 4, 1000)
    assert (first.first_offset, first.last_offset, first.append_time_ms, first.duplicate) == (0, 1, -1, False)
    assert (second.first_offset, second.last_offset) == (2, 2)
    assert contents(log) == [(0, "a"), (1, "b"), (2, "c")]
    assert log.epochs.entries == [(3, 0), (4, 2)]
    data = log.read(0, 1000, 3).regions[0].read()
    assert [(h.leader_epoch, crc_matches(data, p, h)) for p, h in walk(data)] == [(3, True), (4, True)]


def test_log_append_time_is_the_brokers_and_the_crc_stays_valid(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(log_append_time=True))
    assert log.append_as_leader(batch("a", timestamp_ms=5), 0, 777).append_time_ms == 777
    data = log.read(0, 1000, 1).regions[0].read()
    assert crc_matches(data, 0, read_header(data))
    assert decode_records(data)[0].timestamp_ms == 777


def test_what_a_producer_may_not_write_is_refused_with_kafkas_code(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(max_message_bytes=1000))
    log.append_as_leader(batch("a"), 0, 0)
    damaged = batch("a")
    damaged[-1] ^= 1
    wrong_count = batch("a", "b")
    wrong_count[57:61] = (3).to_bytes(4, "big")
    from crc32c import crc32c

    wrong_count[17:21] = crc32c(wrong_count[21:]).to_bytes(4, "big")
    old = batch("a")
    old[16] = 1
    assert_refused(log, damaged, ErrorCode.CORRUPT_MESSAGE)
    assert_refused(log, batch("a")[:-1], ErrorCode.INVALID_RECORD)
    assert_refused(log, batch("x" * 1000), ErrorCode.MESSAGE_TOO_LARGE)
    assert_refused(log, wrong_count, ErrorCode.INVALID_RECORD)
    assert_refused(log, old, ErrorCode.INVALID_RECORD)
    assert_refused(log, bytearray(), ErrorCode.INVALID_RECORD)
    assert_refused(log, batch("a", control=True), ErrorCode.INVALID_RECORD)
    assert_refused(log, batch("a") + batch("b"), ErrorCode.INVALID_RECORD)
    assert_refused(log, batch("a", base_offset=7), ErrorCode.INVALID_RECORD)
    assert_refused(log, batch("a", producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD)
    assert_refused(log, batch("a", transactional=True), ErrorCode.INVALID_RECORD)
    unverified = batch("a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    assert_refused(log, unverified, ErrorCode.INVALID_TXN_STATE)


def test_a_batch_larger_than_a_segment_is_refused(files: MemoryFiles) -> None:
    assert_refused(open_log(files, LogConfig(segment_bytes=100)), batch("x" * 200), ErrorCode.RECORD_LIST_TOO_LARGE)


def test_a_repeated_batch_answers_with_the_originals_offsets(files: MemoryFiles) -> None:
    log = open_log(files)
    for sequence in range(6):
        log.append_as_leader(
            batch("a", timestamp_ms=sequence, producer_id=9, producer_epoch=0, base_sequence=sequence), 0, 0
        )
    again = log.append_as_leader(batch("a", timestamp_ms=3, producer_id=9, producer_epoch=0, base_sequence=3), 0, 0)
    assert (again.first_offset, again.last_offset, again.append_time_ms, again.duplicate) == (3, 3, 3, True)
    assert log.log_end_offset == 6
    assert_refused(
        log, batch("a", producer_id=9, producer_epoch=0, base_sequence=0), ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    )


def test_a_follower_keeps_offsets_and_epochs(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_follower(placed(0, 2, "a") + placed(1, 5, "b", "c"), 5)
    assert log.epochs.entries == [(2, 0), (5, 1)]
    assert contents(log) == [(0, "a"), (1, "b"), (2, "c")]


def test_a_follower_takes_no_batch_of_a_later_epoch_than_it_fetched_with(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_follower(placed(0, 2, "a") + placed(1, 3, "b"), 2)
    assert contents(log) == [(0, "a")]
    log.append_as_follower(placed(1, 3, "b"), 2)
    assert log.log_end_offset == 1


def test_a_follower_leaves_out_a_batch_that_was_cut_off(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_follower((placed(0, 0, "a") + placed(1, 0, "b"))[:-1], 0)
    assert contents(log) == [(0, "a")]


def test_a_gap_or_a_wrong_crc_leaves_a_followers_log_as_it_was(files: MemoryFiles) -> None:
    log = open_log(files)
    damaged = placed(1, 0, "b")
    damaged[-1] ^= 1
    with pytest.raises(LogError):
        log.append_as_follower(placed(0, 0, "a") + damaged, 0)
    with pytest.raises(UnexpectedAppendOffset):
        log.append_as_follower(placed(3, 0, "a"), 0)
    assert log.log_end_offset == 0 and contents(log) == []


def test_a_follower_refuses_a_batch_whose_epoch_goes_back_because_no_crc_covers_it(files: MemoryFiles) -> None:
    log = open_log(files)
    with pytest.raises(LogError, match="epoch 1, after one of epoch 2"):
        log.append_as_follower(placed(0, 2, "a") + placed(1, 1, "b"), 5)
    log.append_as_follower(placed(0, 2, "a"), 5)
    with pytest.raises(LogError, match="epoch 0, after one of epoch 2"):
        log.append_as_follower(placed(1, 0, "b"), 5)
    assert contents(log) == [(0, "a")]


def test_a_follower_that_led_and_appended_nothing_takes_records_of_an_earlier_epoch(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_follower(placed(0, 2, "a"), 5)
    log.epochs.begin(4, 1)
    log.append_as_follower(placed(1, 3, "b"), 5)
    assert contents(log) == [(0, "a"), (1, "b")]


def test_a_failed_write_leaves_nothing(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_leader(batch("a", producer_id=1, producer_epoch=0, base_sequence=0), 0, 0)
    files.failing_appends.add(".log")
    retry = batch("b", producer_id=1, producer_epoch=0, base_sequence=1)
    with pytest.raises(OSError):
        log.append_as_leader(bytearray(retry), 0, 0)
    files.failing_appends.clear()
    assert contents(log) == [(0, "a")]
    assert log.append_as_leader(retry, 0, 0).first_offset == 1


def test_reads_are_whole_batches_within_both_bounds(files: MemoryFiles) -> None:
    log = open_log(files)
    for value in "abcd":
        log.append_as_leader(batch(value, value), 0, 0)
    size = len(batch("a", "a"))
    assert log.read(3, 10_000, 8).regions[0].position == size
    assert log.read(0, 10_000, 6).size == 3 * size
    assert log.read(0, 2 * size + 1, 8).size == 2 * size
    assert log.read(2, 1, 8).size == size
    assert log.read(2, 1, 8, min_one=False).size == 0
    assert log.read(8, 100, 8).size == 0
    assert log.read(6, 100, 4).size == 0
    for outside in (-1, 9):
        with pytest.raises(OffsetOutsideLog):
            log.read(outside, 100, 8)


def test_segments_roll_by_size_and_are_named_after_their_base_offset(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(segment_bytes=200))
    for value in "abcde":
        log.append_as_leader(batch(value), 0, 0)
    names = files.list(DIR)
    assert [n for n in names if n.endswith(".log")] == [
        "00000000000000000000.log",
        "00000000000000000002.log",
        "00000000000000000004.log",
    ]
    assert "00000000000000000000.index" in names and "00000000000000000002.timeindex" in names
    assert "00000000000000000004.snapshot" in names
    assert contents(log) == [(i, v) for i, v in enumerate("abcde")]


def test_segments_roll_by_the_time_of_their_first_batch(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(segment_ms=100))
    log.append_as_leader(batch("a", timestamp_ms=1000), 0, 0)
    log.append_as_leader(batch("b", timestamp_ms=1100), 0, 0)
    assert log.segment_count == 1
    log.append_as_leader(batch("c", timestamp_ms=1101), 0, 0)
    assert log.segment_count == 2


def test_an_idle_segment_rolls_in_wall_time(files: MemoryFiles) -> None:
    files.wall_ms = 50
    log = open_log(files, LogConfig(segment_ms=100))
    log.append_as_leader(batch("a"), 0, 50)
    log.maybe_roll(150)
    assert log.segment_count == 1
    log.maybe_roll(151)
    assert log.segment_count == 2
    log.maybe_roll(1000)
    assert log.segment_count == 2, "an empty segment is not rolled"


def test_a_full_index_rolls_the_segment(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(segment_index_bytes=16, index_interval_bytes=0))
    for value in "abcde":
        log.append_as_leader(batch(value), 0, 0)
    assert log.segment_count > 1
    assert contents(log) == [(i, v) for i, v in enumerate("abcde")]


def test_rolling_flushes_what_was_closed(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(segment_bytes=200))
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    assert log.recovery_point == 0
    files.run()
    assert log.recovery_point == 2


def test_the_recovery_point_moves_only_when_the_flush_is_done(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_leader(batch("a"), 0, 0)
    results: list[OSError | None] = []
    log.flush(results.append)
    log.append_as_leader(batch("b"), 0, 0)
    assert (log.flushed_offset, results) == (0, [])
    files.run()
    assert (log.flushed_offset, results) == (1, [None])


def test_a_truncation_during_a_flush_keeps_the_recovery_point_below_the_cut(files: MemoryFiles) -> None:
    log = open_log(files)
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    files.run()
    log.flush(lambda error: None)
    flush_done = files.pending[:]
    files.pending.clear()
    log.truncate_to(1)
    log.append_as_leader(batch("z"), 1, 0)
    for done in flush_done:
        done()
    assert log.recovery_point <= 1


def test_a_failed_flush_is_reported_and_never_tried_again(files: MemoryFiles) -> None:
    received: list[OSError] = []
    log = open_log(files, listener=LogListener(on_failure=received.append))
    log.append_as_leader(batch("a"), 0, 0)
    files.run()
    files.flush_error = OSError(5, "Input/output error")
    results: list[OSError | None] = []
    log.flush(results.append)
    files.run()
    files.flush_error = None
    assert results == received == [log.failure.error]
    assert log.recovery_point == 0
    with pytest.raises(OSError):
        log.flush(results.append)
    with pytest.raises(OSError):
        log.append_as_leader(batch("b"), 0, 0)


def test_flush_is_due_by_messages_or_by_time(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(flush_messages=3, flush_ms=100))
    assert not log.needs_flush(0)
    log.append_as_leader(batch("a", "b"), 0, 0)
    assert not log.needs_flush(1000)
    assert log.needs_flush(1100)
    log.append_as_leader(batch("c"), 0, 0)
    assert log.needs_flush(1001)
    log.flush(lambda error: None)
    assert not log.needs_flush(5000)


def test_truncation_cuts_records_epochs_and_producers(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(segment_bytes=300))
    for i, value in enumerate("abcdefgh"):
        log.append_as_leader(batch(value, producer_id=1, producer_epoch=0, base_sequence=i), i // 3, 0)
    log.truncate_to(4)
    assert contents(log) == [(i, v) for i, v in enumerate("abcd")]
    assert log.epochs.entries == [(0, 0), (1, 3)]
    assert log.producers.producers[1].batches[-1].last_sequence == 3
    assert log.append_as_leader(batch("x", producer_id=1, producer_epoch=0, base_sequence=4), 9, 0).first_offset == 4
    assert contents(log)[-1] == (4, "x")


def test_truncation_inside_a_batch_takes_the_whole_batch(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_leader(batch("a"), 0, 0)
    log.append_as_leader(batch("b", "c", "d"), 0, 0)
    log.truncate_to(2)
    assert contents(log) == [(0, "a")]


def test_truncation_at_or_above_the_end_does_nothing(files: MemoryFiles) -> None:
    log = open_log(files)
    log.append_as_leader(batch("a"), 0, 0)
    log.truncate_to(1)
    log.truncate_to(5)
    assert contents(log) == [(0, "a")]


class Ordered(MemoryFiles):
    """Notes writes and cuts of files among the other operations."""

    def open(self, path: str, create: bool = False) -> MemoryFile:
        super().open(path, create)
        return OrderedFile(self, path, self.inodes[path])


class OrderedFile(MemoryFile):
    def append(self, data: Any) -> int:
        if not self.path.endswith((".index", ".timeindex")):
            self.disk.operations.append(f"append {self.path.rpartition('/')[2]}")
        return super().append(data)

    def truncate(self, size: int) -> None:
        if self.path.endswith(".log"):
            self.disk.operations.append(f"truncate {self.path.rpartition('/')[2]}")
        super().truncate(size)


def test_an_epoch_is_entered_before_its_records_are_written() -> None:
    files = Ordered()
    log = open_log(files)
    files.operations.clear()
    log.append_as_leader(batch("a"), 3, 0)
    log.append_as_leader(batch("b"), 3, 0)
    appended = ["append leader-epoch-checkpoint.tmp", f"append {0:020d}.log", f"append {0:020d}.log"]
    assert files.operations == appended


def open_ordered(files: MemoryFiles, config: LogConfig) -> Log:
    """Of six records in epochs 0 to 5, all of them flushed; it notes when the recovery point goes back."""
    log = open_log(
        files,
        config,
        listener=LogListener(on_truncated=lambda: files.operations.append(f"recovery point {log.recovery_point}")),
    )
    for epoch, value in enumerate("abcdef"):
        log.append_as_leader(batch(value), epoch, 0)
    files.run()
    log.flush(lambda error: None)
    files.run()
    assert log.recovery_point == 6
    files.operations.clear()
    return log


def test_a_truncation_lowers_the_recovery_point_and_removes_epochs_before_it_cuts() -> None:
    files = Ordered()
    log = open_ordered(files, LogConfig(segment_bytes=200))
    log.truncate_to(1)
    assert files.operations == [
        "recovery point 1",
        "append leader-epoch-checkpoint.tmp",
        f"unlink {4:020d}.log",
        f"unlink {2:020d}.log",
        f"unlink {2:020d}.index",
        f"unlink {2:020d}.timeindex",
        f"truncate {0:020d}.log",
        f"unlink {2:020d}.snapshot",
        f"unlink {4:020d}.snapshot",
        f"sync {DIR}",
    ]


def test_a_restart_lowers_the_recovery_point_before_it_removes_records() -> None:
    files = Ordered()
    log = open_ordered(files, LogConfig(segment_bytes=200))
    log.increment_log_start(3)
    files.run()
    files.operations.clear()
    log.truncate_to(2)
    assert files.operations == [
        "recovery point 2",
        "append leader-epoch-checkpoint.tmp",
        f"unlink {4:020d}.log",
        f"unlink {2:020d}.log",
        f"unlink {2:020d}.index",
        f"unlink {2:020d}.timeindex",
        f"unlink {0:020d}.log",
        f"unlink {0:020d}.index",
        f"unlink {0:020d}.timeindex",
        f"unlink {2:020d}.snapshot",
        f"unlink {4:020d}.snapshot",
        f"sync {DIR}",
    ]
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (2, 2, 2)


def test_a_truncation_settles_the_log_cleaners_swap_before_anything_else() -> None:
    files = Ordered()
    log = open_ordered(files, LogConfig(segment_bytes=200))
    rewritten = Segment.create(files, DIR, 0, CLEANED_SUFFIX)
    for file in rewritten.write_indexes(CLEANED_SUFFIX):
        file.close()
    log.swaps.prepare(log.segments[:1], rewritten)
    cuts = log.cut_count
    files.operations.clear()
    log.truncate_to(1)
    swapped = [f"unlink {0:020d}{suffix}.swap" for suffix in (".log", ".timeindex", ".index")]
    assert files.operations[:4] == [*swapped, "recovery point 1"]
    assert log.cut_count == cuts + 1


def test_starting_over_leaves_an_empty_log_at_the_new_offset(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(segment_bytes=150))
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (100, 100, [])
    assert log.append_as_leader(batch("x"), 1, 0).first_offset == 100
    assert [n for n in files.list(DIR) if n.endswith(".log")] == ["00000000000000000100.log"]
    files.run()
    assert log.recovery_point == 100


def test_the_end_of_each_epoch_is_answered_as_kafka_does(files: MemoryFiles) -> None:
    log = open_log(files)
    for epoch, count in ((0, 5), (2, 3), (3, 2)):
        for _ in range(count):
            log.append_as_leader(batch("a"), epoch, 0)
    assert [log.end_offset_for_epoch(e) for e in (-1, 0, 1, 2, 3, 4)] == [
        (-1, -1),
        (0, 5),
        (0, 5),
        (2, 8),
        (3, 10),
        (-1, -1),
    ]
    log.increment_log_start(6)
    assert log.end_offset_for_epoch(0) == (0, 6)


def test_the_log_start_only_moves_up_and_not_beyond_the_end(files: MemoryFiles) -> None:
    log = open_log(files)
    for value in "abc":
        log.append_as_leader(batch(value), 0, 0)
    log.increment_log_start(2)
    log.increment_log_start(1)
    assert log.log_start_offset == 2
    with pytest.raises(OffsetOutsideLog):
        log.increment_log_start(4)
    with pytest.raises(OffsetOutsideLog):
        log.read(1, 100, 3)


def with_body(body: bytes, count: int) -> bytearray:
    """A batch with these bytes for records, and everything in its header as that needs."""
    buf = batch(*["v"] * count)
    del buf[HEADER_SIZE:]
    buf += body
    buf[8:12] = (len(buf) - 12).to_bytes(4, "big")
    buf[17:21] = crc32c(memoryview(buf)[21:]).to_bytes(4, "big")
    return buf


ONE, TWO = b"\x0e\x00\x00\x00\x01\x02v\x00", b"\x0e\x00\x00\x02\x01\x02v\x00"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (ONE[:-1], 1),
        (ONE + b"\x00", 1),
        (ONE, 2),
        (ONE + TWO, 1),
        (ONE + b"\x0e\x00\x00\x04\x01\x02v\x00", 2),
        (b"\x0e\x00\x00\x01\x01\x02v\x00" + TWO, 2),
        (b"\x10" + ONE[1:], 1),
        (b"\x0c" + ONE[1:], 1),
        (b"\x0d" + ONE[1:], 1),
        (b"\xff\xff\xff\xff\x0f" + ONE[1:], 1),
        (b"\x80" * 11, 1),
        (ONE[:5] + b"\x04v\x00", 1),
        (ONE[:5] + b"\xfe\xff\xff\xff\x0f\x00", 1),
        (ONE[:7] + b"\x02", 1),
        (bytes(7), 1),
        (b"", 1),
        (ONE, 2_000_000),
    ],
)
def test_records_that_are_not_what_they_say_are_refused_and_nothing_is_appended(
    files: MemoryFiles, body: bytes, count: int
) -> None:
    log = open_log(files)
    damaged = with_body(body, min(count, 3))
    if count > 3:
        damaged[23:27], damaged[57:61] = (count - 1).to_bytes(4, "big"), count.to_bytes(4, "big")
        damaged[17:21] = crc32c(memoryview(damaged)[21:]).to_bytes(4, "big")
    with pytest.raises(LogError) as refused:
        log.append_as_leader(damaged, 0, 0)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0
    assert log.append_as_leader(with_body(ONE + TWO, 2), 0, 0).first_offset == 0


@pytest.mark.parametrize("body", [ONE + ONE, TWO + ONE])
def test_records_whose_offsets_are_not_their_places_in_the_batch_are_stored_as_they_are(
    files: MemoryFiles, body: bytes
) -> None:
    log = open_log(files)
    assert log.append_as_leader(with_body(body, 2), 0, 0).last_offset == 1
    assert log.log_end_offset == 2
    assert log.read(0, 1000, 2).regions[0].read()[HEADER_SIZE:] == body


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=300),
            st.none() | st.binary(max_size=300),
            st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=200)), max_size=70).map(tuple),
            st.integers(0, 2**50),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_whatever_a_producer_can_encode_is_taken(records: Any) -> None:
    log = open_log(MemoryFiles(), LogConfig(timestamp_after_max_ms=2**62))
    assert log.append_as_leader(encode_batch(records), 0, 2**50).last_offset == len(records) - 1
