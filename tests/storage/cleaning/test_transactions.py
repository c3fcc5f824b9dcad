"""Compaction of a log with transactions: readers of committed records see the same, and no marker goes too early."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.cleaning.compacting import batches, compact, keyed, plain
from storage.logs import DIR, open_log
from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import Record
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log
from heirlog.storage.recovery import at_once, rebuild_producers
from heirlog.storage.transaction_index import AbortedTransaction

CONFIG = LogConfig(segment_bytes=100_000, compact=True, delete_retention_ms=500, min_cleanable_dirty_ratio=0.0)


class World:
    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.log: Log = open_log(self.files, CONFIG)
        self.sequences: dict[int, int] = {}
        self.wall_ms = 10_000

    def write(self, producer_id: int, *pairs: tuple[str, str | None]) -> None:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + len(pairs)
        at = self.log.log_end_offset
        batch = keyed(
            *pairs,
            base_offset=at,
            leader_epoch=0,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        self.log.append_as_follower(batch, 0)

    def end(self, producer_id: int, *, commit: bool) -> None:
        self.log.append_marker(TransactionMarker(commit, 0), producer_id, 0, 0, 0, self.wall_ms)

    def write_plain(self, *pairs: tuple[str, str | None]) -> None:
        """Without a transaction."""
        self.log.append_as_leader(keyed(*pairs), 0, 0)

    def compact(self, later_ms: int = 0, capacity: int = 1000) -> None:
        """Everything before the active segment, below the last stable offset. capacity: keys that one pass looks at."""
        self.wall_ms += later_ms
        self.log.roll()
        self.log.flush(lambda error: None)
        self.files.run()
        compact(self.files, self.log, self.wall_ms, capacity)

    def compact_later(self) -> None:
        """A pass that sets horizons, and one after them. Something new is there for each, so that there is one."""
        for _ in range(2):
            self.write_plain(("tick", "t"))
            self.compact(later_ms=600)

    def kinds(self) -> list[tuple[int, str]]:
        """Each batch with something to say: its offset, and what it is."""
        found = []
        for header, records in batches(self.log):
            if header.is_control:
                found.append((header.base_offset, "marker" if records else "empty marker"))
            elif header.producer_id >= 0:
                found.append((header.base_offset, "records" if records else "empty"))
        return found

    def committed(self) -> list[Record]:
        """The records that a consumer of committed records gets, as Apache Kafka's filters them."""
        log = self.log
        aborted = log.aborted_transactions(0, log.log_end_offset)
        found = []
        for header, records in batches(log):
            if not header.is_control and not any(
                one.producer_id == header.producer_id and one.first_offset <= header.base_offset < one.last_offset
                for one in aborted
                if header.is_transactional
            ):
                found += records
        return found

    def final(self) -> dict[bytes | None, bytes]:
        values = {record.key: record.value for record in self.committed()}
        return {key: value for key, value in values.items() if value is not None}

    def open_transactions(self) -> dict[int, int]:
        """From the first batch on, as a restart without a snapshot finds them."""
        nothing = MemoryFiles()
        nothing.mkdirs(DIR)
        log = self.log
        states = at_once(
            rebuild_producers(nothing, DIR, log.segments, 1 << 60, log.log_end_offset, trust_absence=False)
        )
        found = states.producers.items()
        return {producer_id: state.transaction_start for producer_id, state in found if state.transaction_start >= 0}


def test_records_of_an_aborted_transaction_go_at_once_and_hide_nothing() -> None:
    world = World()
    world.write(7, ("a", "committed"))
    world.end(7, commit=True)
    world.write(8, ("a", "aborted"), ("b", "aborted"))
    world.end(8, commit=False)
    world.write(9, ("z", "1"))
    world.end(9, commit=True)
    world.compact()
    assert plain(world.committed()) == [(0, "a", "committed"), (5, "z", "1")]
    assert (2, "empty") in world.kinds(), "the producer's last sequence"
    assert world.log.aborted_transactions(0, 9) == [AbortedTransaction(8, 2, 4, 5)]


def test_a_marker_goes_after_the_horizon_that_the_first_pass_without_its_data_sets() -> None:
    world = World()
    world.write(7, ("a", "1"))
    world.end(7, commit=True)
    world.write(7, ("a", "2"))
    world.end(7, commit=False)
    world.write(7, ("a", "3"))
    world.end(7, commit=True)
    world.compact()
    assert world.kinds() == [(1, "marker"), (3, "marker"), (4, "records"), (5, "marker")]
    assert len(world.log.aborted_transactions(0, 9)) == 1
    world.write(7, ("b", "1"))
    world.end(7, commit=True)
    world.compact()
    horizons = {header.base_offset: header.delete_horizon_ms for header, _ in batches(world.log) if header.is_control}
    assert horizons == {1: 10_500, 3: 10_500, 5: None, 7: None}
    assert world.log.aborted_transactions(0, 9) == []
    world.write(7, ("c", "1"))
    world.compact(later_ms=499)
    assert [offset for offset, kind in world.kinds() if kind == "marker"] == [1, 3, 5, 7]
    world.end(7, commit=True)
    world.compact(later_ms=1)
    assert [offset for offset, kind in world.kinds() if kind == "marker"] == [5, 7, 9]


def test_the_marker_of_a_producer_that_wrote_nothing_else_keeps_its_epoch() -> None:
    world = World()
    world.log.append_marker(TransactionMarker(commit=False, coordinator_epoch=0), 7, 3, 0, 0, 0)
    for _ in range(3):
        world.write(8, ("a", "1"))
        world.end(8, commit=True)
        world.compact(later_ms=600)
    header, _ = batches(world.log)[0]
    assert (header.base_offset, header.is_control, header.producer_epoch) == (0, True, 3)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_may_span_segments(commit: bool) -> None:
    world = World()
    world.write(7, ("a", "1"))
    world.log.roll()
    world.write(7, ("b", "1"))
    world.log.roll()
    world.end(7, commit=commit)
    world.write(8, ("a", "2"))
    world.end(8, commit=True)
    aborted = [] if commit else [AbortedTransaction(7, 0, 2, 3)]
    for _ in range(2):
        world.compact()
        assert (world.final()[b"a"], world.final().get(b"b")) == (b"2", b"1" if commit else None)
        assert world.log.aborted_transactions(0, 99) == aborted
        assert world.open_transactions() == {}
        world.write_plain(("tick", "t"))


def test_a_commit_stays_as_long_as_an_empty_batch_of_its_transaction() -> None:
    world = World()
    world.write(1, ("a", "1"), ("b", "1"))
    world.log.roll()
    world.write(2, ("a", "2"), ("b", "2"))
    world.end(2, commit=True)
    world.log.roll()
    world.write_plain(("a", "3"), ("b", "3"))
    world.end(1, commit=True)
    both_are_empty = [(0, "empty"), (2, "empty"), (4, "marker"), (7, "marker")]
    world.compact(later_ms=600)
    assert world.kinds() == both_are_empty
    world.compact_later()
    assert world.kinds() == both_are_empty, "they still have the last sequences"
    world.write(2, ("c", "1"))
    at = world.log.log_end_offset - 1
    world.end(2, commit=True)
    world.compact(later_ms=600)
    newer = [(at, "records"), (at + 1, "marker")]
    assert world.kinds() == [(0, "empty"), (4, "marker"), (7, "marker"), *newer]
    world.compact_later()
    assert world.kinds() == [(0, "empty"), (7, "marker"), *newer]


def test_an_abort_stays_as_long_as_an_empty_batch_of_its_transaction() -> None:
    world = World()
    world.write(1, ("a", "1"), ("b", "1"))
    world.end(1, commit=False)
    in_index = [AbortedTransaction(1, 0, 2, 3)]
    world.compact(later_ms=600)
    for _ in range(2):
        assert (world.kinds(), world.final()) == ([(0, "empty"), (2, "marker")], world.final())
        assert world.log.aborted_transactions(0, 99) == in_index
        assert b"a" not in world.final()
        world.compact_later()
    world.write(1, ("c", "1"))
    at = world.log.log_end_offset - 1
    world.end(1, commit=True)
    world.compact(later_ms=600)
    newer = [(at, "records"), (at + 1, "marker")]
    assert world.kinds() == [(2, "marker"), *newer], "its batch was there at the begin of the pass"
    assert world.log.aborted_transactions(0, 99) == in_index
    world.compact_later()
    assert world.kinds() == newer
    assert world.log.aborted_transactions(0, 99) == []


def test_batches_that_all_begin_at_sequence_0_go_but_for_the_last() -> None:
    """As a group coordinator writes offsets."""
    world = World()
    for key in "ab":
        world.sequences.clear()
        world.write(1, (key, "1"))
        world.end(1, commit=True)
    world.write_plain(("a", "2"), ("b", "2"))
    world.compact(later_ms=600)
    assert world.kinds() == [(1, "marker"), (2, "empty"), (3, "marker")]
    world.compact_later()
    assert world.kinds() == [(2, "empty"), (3, "marker")]


def test_a_key_that_looks_like_that_of_a_marker_replaces_no_marker() -> None:
    world = World()
    world.write(1, ("a", "1"))
    world.end(1, commit=True)
    # version 0, type COMMIT
    world.write(2, ("\0\0\0\1", "1"))
    world.end(2, commit=True)
    world.compact(later_ms=600)
    assert world.kinds() == [(0, "records"), (1, "marker"), (2, "records"), (3, "marker")]
    world.compact_later()
    assert world.kinds() == [(0, "records"), (1, "marker"), (2, "records"), (3, "marker")]


def test_passes_that_have_no_room_for_all_keys_keep_what_aborted_batches_need() -> None:
    """Batches as in testMultiPassSegmentCleaningWithAbortedTransactions of Apache Kafka, four keys a pass."""
    world = World()
    one, two = 1, 2
    world.write(one, ("1", "x"), ("2", "x"))
    world.write(two, ("2", "x"), ("3", "x"))
    world.write(one, ("3", "x"), ("4", "x"))
    world.end(one, commit=True)
    world.end(two, commit=True)
    world.write(one, ("2", "aborted"), ("3", "aborted"))
    world.end(one, commit=False)
    world.write(two, ("4", "aborted"), ("5", "aborted"))
    world.write(one, ("5", "y"), ("6", "y"))
    world.end(one, commit=True)
    world.end(two, commit=False)
    world.write(two, ("6", "z"), ("7", "z"))
    world.end(two, commit=True)
    final = {b"%d" % key: value for key, value in enumerate((b"x", b"x", b"x", b"x", b"y", b"z", b"z"), 1)}
    assert world.final() == final
    seen = []
    for _ in range(7):
        world.compact(capacity=4)
        assert {key: value for key, value in world.final().items() if key != b"tick"} == final
        assert world.open_transactions() == {}
        aborts = [offset for offset, _ in world.kinds() if offset in (10, 16)]
        seen.append((len(world.log.aborted_transactions(0, 99)), aborts))
        world.write_plain(("tick", "t"))
        world.wall_ms += 600
    assert seen[0] == (2, [10, 16]), "the first pass does not come so far"
    assert seen == sorted(seen, reverse=True) and seen[-1] == (0, [])


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.integers(1, 3),
            st.lists(
                st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "2", "3", None])), min_size=1, max_size=3
            ),
        ),
        st.tuples(st.just("end"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("compact"), st.just(0), st.sampled_from([0, 300, 600])),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_passes_change_no_final_value_and_open_no_transaction(steps: list[tuple[str, int, object]]) -> None:
    world = World()
    opened: dict[int, int] = {}
    for name, producer_id, what in steps:
        if name == "write":
            opened.setdefault(producer_id, world.log.log_end_offset)
            world.write(producer_id, *what)  # type: ignore[misc]
        elif name == "end":
            opened.pop(producer_id, None)
            world.end(producer_id, commit=bool(what))
        elif not opened:
            before = world.final()
            world.compact(later_ms=int(what))  # type: ignore[call-overload]
            assert world.final() == before
            for segment in world.log.segments[:-1]:
                entries = [] if segment.transaction_index is None else segment.transaction_index.entries
                markers = {entry.last_offset for entry in entries}
                assert markers <= {h.base_offset for _, h in segment.headers_from(0) if h.is_control}
        assert world.open_transactions() == opened
