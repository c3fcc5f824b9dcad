"""A log with transactions against a plain model of the same batches, through everything that changes a log."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.logs import DIR, open_log
from storage.memory_files import MemoryFiles
from storage.transactional import (
    ABORT,
    COMMIT,
    Entry,
    committed_values,
    data,
    end,
    last_stable_offset,
    put,
    read_committed,
    transactions_of,
)

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import LogError
from heirlog.storage.log import Log
from heirlog.storage.producers import NO_TRANSACTION, ProducerStateManager, snapshot_offsets
from heirlog.storage.recovery import at_once, rebuild_producers
from heirlog.storage.transaction_index import AbortedTransaction

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, retention_ms=-1)


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def log(files: MemoryFiles) -> Log:
    return open_log(files, CONFIG)


def unstable(log: Log, high_watermark: int) -> int | None:
    log.producers.transactions.high_watermark_moved(high_watermark)
    return log.producers.transactions.first_unstable_offset


def test_an_open_transaction_holds_the_last_stable_offset_until_its_marker_is_replicated(log: Log) -> None:
    put(log, data(0, 7), data(1, 8), end(2, 7, COMMIT))
    assert unstable(log, 2) == 0
    assert unstable(log, 3) == 1
    put(log, end(3, 8, ABORT))
    assert unstable(log, 3) == 1
    assert unstable(log, 4) is None


def test_an_aborted_transaction_is_found_by_every_range_that_touches_it(log: Log) -> None:
    put(log, data(0, 7), data(1, 8, count=2), data(3, 7, 1), end(4, 7, ABORT), end(5, 8, ABORT))
    seven, eight = AbortedTransaction(7, 0, 4, 1), AbortedTransaction(8, 1, 5, 6)
    assert log.aborted_transactions(0, 6) == [seven, eight]
    assert log.aborted_transactions(5, 6) == [eight]
    assert log.aborted_transactions(0, 1) == [seven]
    assert log.aborted_transactions(6, 9) == []


def test_a_marker_without_data_writes_no_entry_and_remembers_the_coordinator(log: Log) -> None:
    put(log, end(0, 7, TransactionMarker(commit=False, coordinator_epoch=5), epoch=3))
    state = log.producers.producers[7]
    assert (state.epoch, state.coordinator_epoch, state.transaction_start, list(state.batches)) == (3, 5, -1, [])
    assert log.aborted_transactions(0, 1) == []


def test_a_leader_writes_the_marker_that_a_coordinator_sends(log: Log) -> None:
    put(log, data(0, 7))
    appended = log.append_marker(ABORT, 7, 0, 0, leader_epoch=0, wall_ms=50)
    assert (appended.first_offset, appended.last_offset) == (1, 1)
    assert log.aborted_transactions(0, 2) == [AbortedTransaction(7, 0, 1, 2)]
    assert log.producers.producers[7].last_timestamp == 50


def test_a_batch_outside_of_the_open_transaction_of_its_producer_is_refused(log: Log) -> None:
    put(log, data(0, 7))
    plain = Entry(0, 0, 7, 0, 1, values=("x",))
    with pytest.raises(LogError) as refused:
        log.append_as_leader(plain.encode(), 0, 0)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    put(log, end(1, 7, COMMIT))
    assert log.append_as_leader(plain.encode(), 0, 0).first_offset == 2


def test_the_index_file_is_there_only_where_a_transaction_was_aborted(files: MemoryFiles) -> None:
    log = open_log(files, CONFIG)
    put(log, data(0, 7), end(1, 7, COMMIT))
    log.roll()
    put(log, data(2, 7, 1), end(3, 7, ABORT))
    log.roll()
    assert [name for name in files.list(DIR) if name.endswith(".txnindex")] == [f"{2:020d}.txnindex"]
    data_of_file = files.inodes[f"{DIR}/{2:020d}.txnindex"].data
    assert data_of_file.hex() == "0000" + "".join(f"{n:016x}" for n in (7, 2, 3, 4))


def _cut(data: bytearray) -> None:
    del data[30:]


def _zero_end(data: bytearray) -> None:
    data[-34:] = bytes(34)


def _flip(at: int) -> Callable[[bytearray], None]:
    def flip(data: bytearray) -> None:
        data[at] ^= 1

    return flip


def _double(data: bytearray) -> None:
    data += data[-34:]


def _append_zeros(data: bytearray) -> None:
    data += bytes(34)


@pytest.mark.parametrize(
    "damage",
    [_cut, _zero_end, _double, _append_zeros, _flip(0), _flip(1), _flip(10), _flip(18), _flip(33 - 8 - 1)],
    ids=["cut", "zeros", "twice", "zeros-after", "version", "version-low", "first", "last", "last-in-other-segment"],
)
def test_a_damaged_index_is_made_again_from_the_log(files: MemoryFiles, damage: Callable[[bytearray], None]) -> None:
    log = open_log(files, CONFIG)
    put(log, data(0, 7), end(1, 7, ABORT))
    log.roll()
    put(log, data(2, 8))
    log.finish(lambda error: None)
    files.run()
    log.close()
    damage(files.inodes[f"{DIR}/{0:020d}.txnindex"].data)
    log = open_log(files, CONFIG, clean=True, recovery_point=3)
    assert log.aborted_transactions(0, 3) == [AbortedTransaction(7, 0, 1, 2)]
    assert log.producers.producers[8].transaction_start == 2
    assert len(files.inodes[f"{DIR}/{0:020d}.txnindex"].data) == 34


def test_an_index_that_knows_a_marker_behind_the_log_end_is_made_again(files: MemoryFiles) -> None:
    """The marker rotted away, a start cut the log there, and ended before anything else was written."""
    log = open_log(files, CONFIG)
    put(log, data(0, 7), end(1, 7, COMMIT), data(2, 7, 1), end(3, 7, ABORT))
    log.finish(lambda error: None)
    files.run()
    log.close()
    content = files.inodes[f"{DIR}/{0:020d}.log"].data
    del content[-len(end(3, 7, ABORT).encode()) :]
    log = open_log(files, CONFIG, clean=True, recovery_point=4)
    assert log.log_end_offset == 3 and log.aborted_transactions(0, 3) == []
    put(log, end(3, 7, ABORT))
    log.finish(lambda error: None)
    files.run()
    log.close()
    log = open_log(files, CONFIG, clean=True, recovery_point=4)
    assert log.aborted_transactions(0, 4) == [AbortedTransaction(7, 2, 3, 4)]
    assert len(files.inodes[f"{DIR}/{0:020d}.txnindex"].data) == 34


def test_the_start_of_an_open_transaction_may_be_deleted(files: MemoryFiles, log: Log) -> None:
    put(log, data(0, 7), data(1, 8))
    log.roll()
    put(log, data(2, 7, 1))
    log.increment_log_start(2)
    log.delete_old_segments(0, 3)
    files.run()
    assert log.segments[0].base_offset == 2
    put(log, end(3, 7, ABORT))
    assert log.aborted_transactions(2, 4) == [AbortedTransaction(7, 0, 3, 1)]
    log = open_log(files, CONFIG)
    assert log.aborted_transactions(2, 4) == [AbortedTransaction(7, 0, 3, 1)]


def test_a_log_that_starts_over_has_no_open_transaction(files: MemoryFiles, log: Log) -> None:
    put(log, data(0, 7), end(1, 7, ABORT), data(2, 7, 1))
    log.flush(lambda error: None)
    files.run()
    log.truncate_fully_and_start_at(10)
    assert unstable(log, 10) is None
    assert (log.producers.producers, log.aborted_transactions(0, 10)) == ({}, [])
    put(log, data(10, 7, 5), end(11, 7, ABORT))
    assert log.aborted_transactions(10, 12) == [AbortedTransaction(7, 10, 11, 12)]


def test_a_flush_that_cannot_write_the_index_fails_and_moves_no_recovery_point(files: MemoryFiles) -> None:
    """Otherwise records of the aborted transaction would count as flushed without what hides them from consumers."""
    log = open_log(files, CONFIG)
    put(log, data(0, 7), end(1, 7, ABORT))
    files.failing_appends.add(".txnindex")
    with pytest.raises(OSError, match="No space left"):
        log.flush(lambda error: None)
    files.run()
    assert log.recovery_point == 0
    files.failing_appends.clear()
    log.flush(lambda error: None)
    files.run()
    assert log.recovery_point == 2


class Machine:
    """A log, and the batches that it should hold."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.log = open_log(self.files, CONFIG)
        self.entries: list[Entry] = []
        self.high_watermark = 0
        self.rebuilt_at = 0
        """Markers below this offset may count as decided before the high watermark has passed them."""
        self.serial = 0

    def stable(self) -> int:
        transactions = self.log.producers.transactions
        transactions.high_watermark_moved(self.high_watermark)
        first = transactions.first_unstable_offset
        if first is None:
            return self.high_watermark
        return min(max(first, self.log.log_start_offset), self.high_watermark)

    def _of(self, producer_id: int) -> tuple[int, int]:
        """The producer's epoch and next sequence, by what the log holds."""
        epoch, sequence = 0, 0
        for entry in self.entries:
            if entry.producer_id == producer_id:
                if entry.epoch != epoch:
                    epoch, sequence = entry.epoch, 0
                if entry.marker is None:
                    sequence = entry.base_sequence + len(entry.values)
        return epoch, sequence

    def _is_open(self, producer_id: int) -> bool:
        return any(one.marker is None and one.producer_id == producer_id for one in transactions_of(self.entries))

    def _append(self, entry: Entry) -> None:
        self.entries.append(entry)
        put(self.log, entry)

    def write(self, producer_id: int, count: int) -> None:
        at = self.log.log_end_offset
        values = tuple(f"v{self.serial + n}" for n in range(count))
        self.serial += count
        if producer_id == 0:
            self._append(Entry(at, at + count - 1, -1, values=values))
            return
        epoch, sequence = self._of(producer_id)
        self._append(Entry(at, at + count - 1, producer_id, epoch, sequence, transactional=True, values=values))

    def end(self, producer_id: int, how: int) -> None:
        """how: bit 0 commits, bit 1 raises the epoch, as under transaction.version 2."""
        marker = COMMIT if how & 1 else ABORT
        epoch, version = self._of(max(producer_id, 1))[0] + (how >> 1), how & 2
        at = self.log.log_end_offset
        self.log.append_marker(marker, max(producer_id, 1), epoch, version, 0, 0)
        self.entries.append(end(at, max(producer_id, 1), marker, epoch=epoch))

    def advance(self, _: int, part: int) -> None:
        before = self.stable()
        ends = [entry.last + 1 for entry in self.entries if entry.last >= self.high_watermark]
        self.high_watermark = max(self.high_watermark, *ends[: len(ends) * part // 3], 0)
        assert self.stable() >= before

    def roll(self, *_: int) -> None:
        self.log.roll()

    def truncate(self, back: int, _: int) -> None:
        ends = [entry.last + 1 for entry in self.entries if entry.last + 1 > self.log.log_start_offset]
        if len(ends) > back:
            self.log.truncate_to(ends[-1 - back])
            self._was_rebuilt()

    def delete(self, _: int, part: int) -> None:
        start = self.log.log_start_offset
        self.log.increment_log_start(start + (self.high_watermark - start) * part // 4)
        self.log.delete_old_segments(0, self.high_watermark)
        self.files.run()

    def flush(self, *_: int) -> None:
        self.log.flush(lambda error: None)
        self.files.run()

    def stop(self, *_: int) -> None:
        self.log.finish(lambda error: None)
        self.files.run()
        self._open(clean=True)

    def crash(self, *_: int) -> None:
        recovery_point = self.log.recovery_point
        self.files.crash()
        self._open(clean=False, recovery_point=recovery_point)

    def _open(self, *, clean: bool, recovery_point: int = 0) -> None:
        start = self.log.log_start_offset
        point = self.log.log_end_offset if clean else recovery_point
        self.log = open_log(self.files, CONFIG, clean=clean, recovery_point=point, log_start_offset=start)
        self._was_rebuilt()

    def _was_rebuilt(self) -> None:
        log_end = self.log.log_end_offset
        self.entries = [entry for entry in self.entries if entry.last < log_end]
        if self.log.segments[0].base_offset == log_end and log_end not in snapshot_offsets(self.files, DIR):
            # nothing of the log was flushed: it restarts at its start offset
            self.entries = []
        self.high_watermark = min(self.high_watermark, log_end)
        self.rebuilt_at = log_end

    def check(self) -> None:
        log, start = self.log, self.log.log_start_offset
        stable = self.stable()
        expected = last_stable_offset(self.entries, self.high_watermark, start)
        if self.high_watermark >= self.rebuilt_at:
            assert stable == expected
        assert expected <= stable <= self.high_watermark
        assert read_committed(log, stable) == committed_values(self.entries, start, stable)
        for producer_id, state in log.producers.producers.items():
            (first,) = [
                one.first
                for one in transactions_of(self.entries)
                if one.marker is None
                if one.producer_id == producer_id
            ] or [NO_TRANSACTION]
            assert (state.epoch, state.transaction_start) == (self._of(producer_id)[0], first)
        decoded = ProducerStateManager.decode(log.producers.encode())
        assert decoded is not None and decoded.encode() == log.producers.encode()

    def check_rebuilt(self) -> None:
        """What is in memory equals what the log says, read from its first batch."""
        log = self.log
        indexes = [[] if s.transaction_index is None else list(s.transaction_index.entries) for s in log.segments]
        if log.segments[0].base_offset == 0:
            for segment in log.segments:
                segment.start_transaction_index()
            nothing = MemoryFiles()
            nothing.mkdirs(DIR)
            states = at_once(rebuild_producers(nothing, DIR, log.segments, 0, log.log_end_offset, trust_absence=False))
            again = [[] if s.transaction_index is None else list(s.transaction_index.entries) for s in log.segments]
            assert again == indexes
            assert _plain(states) == _plain(log.producers)


def _plain(states: ProducerStateManager) -> dict[int, tuple[object, ...]]:
    return {
        producer_id: (
            state.epoch,
            state.coordinator_epoch,
            state.transaction_start,
            state.batches[-1].last_sequence if state.batches else None,
        )
        for producer_id, state in states.producers.items()
    }


STEPS = st.sampled_from(
    ["write"] * 8 + ["end"] * 5 + ["advance"] * 3 + ["roll", "truncate", "delete", "flush", "stop", "crash"]
)


def test_a_transaction_is_not_open_for_ever_where_its_marker_was_lost_with_the_deleted_records(
    files: MemoryFiles,
) -> None:
    """The log restarts at its start offset, and the snapshot of the segment that was lost is from before that."""
    log = open_log(files, CONFIG)
    put(log, data(0, 7))
    log.roll()
    put(log, end(1, 7, COMMIT), data(2, 8), end(3, 8, COMMIT))
    log.increment_log_start(3)
    log.delete_old_segments(0, 4)
    files.run()
    assert snapshot_offsets(files, DIR) == [1]
    files.crash()
    log = open_log(files, CONFIG, clean=False, recovery_point=0, log_start_offset=3)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert unstable(log, 3) is None


def test_a_transaction_stays_open_after_a_clean_stop_if_the_only_snapshot_is_damaged(files: MemoryFiles) -> None:
    log = open_log(files, CONFIG)
    put(log, data(0, 7), data(1, 8), end(2, 8, COMMIT))
    log.finish(lambda error: None)
    files.run()
    (path,) = [path for path in files.inodes if path.endswith(".snapshot")]
    files.inodes[path].data[-1] ^= 1
    again = open_log(files, CONFIG, clean=True)
    assert unstable(again, 3) == 0
    assert set(again.producers.producers) == {7, 8}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 3), st.integers(1, 3)), max_size=60))
def test_readers_of_committed_records_see_what_the_model_says(steps: list[tuple[str, int, int]]) -> None:
    machine = Machine()
    for name, first, second in steps:
        getattr(machine, name)(first, second)
        machine.check()
    machine.check_rebuilt()
