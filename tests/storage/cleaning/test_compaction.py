"""A pass over a log against what it should hold by definition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.cleaning.compacting import Pair, batches, compact, keyed, plain, records, records_of
from storage.logs import DIR, open_log
from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import DELETE_HORIZON, InvalidBatch, encode_batch
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log

CONFIG = LogConfig(compact=True, delete_enabled=False, segment_bytes=400, index_interval_bytes=100)


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def log(files: MemoryFiles) -> Log:
    return open_log(files, CONFIG)


def closed(files: MemoryFiles, log: Log) -> None:
    """Let everything so far be compacted."""
    log.roll()
    files.run()


def test_the_last_record_of_each_key_stays_at_its_offset(files: MemoryFiles, log: Log) -> None:
    log.append_as_leader(keyed(("a", "1"), ("b", "1"), ("a", "2")), 0, 0)
    log.append_as_leader(keyed(("c", "1")), 0, 0)
    log.append_as_leader(keyed(("c", "2"), ("b", "2")), 0, 0)
    closed(files, log)
    log.append_as_leader(keyed(("a", "3")), 0, 0)
    compact(files, log)
    assert plain(records(log)) == [(2, "a", "2"), (4, "c", "2"), (5, "b", "2"), (6, "a", "3")]
    assert [(h.base_offset, h.last_offset) for h, _ in batches(log)] == [(0, 2), (3, 3), (4, 5), (6, 6)]
    assert log.first_dirty_offset == 6 and log.log_end_offset == 7


def test_the_active_segment_is_not_touched_and_neither_is_what_is_above_the_watermark(
    files: MemoryFiles, log: Log
) -> None:
    log.append_as_leader(keyed(("a", "1")), 0, 0)
    log.append_as_leader(keyed(("a", "2")), 0, 0)
    assert compact(files, log) is None
    from heirlog.storage.cleaning.plan import plan_of

    closed(files, log)
    assert plan_of(log, 1, 10_000) is None
    assert plan_of(log, 2, 10_000) is not None


def test_what_is_not_flushed_is_not_touched(files: MemoryFiles, log: Log) -> None:
    log.append_as_leader(keyed(("a", "1")), 0, 0)
    log.roll()
    assert compact(files, log) is None
    files.run()
    assert compact(files, log) is not None


def test_a_tombstone_stays_for_delete_retention_after_it_was_first_seen(files: MemoryFiles, log: Log) -> None:
    log.config.delete_retention_ms = 500
    log.append_as_leader(keyed(("a", "1"), ("b", "1"), ("a", None), timestamp_ms=1000), 0, 0)
    closed(files, log)
    compact(files, log, wall_ms=10_000)
    assert plain(records(log)) == [(1, "b", "1"), (2, "a", None)]
    ((header, found),) = batches(log)
    assert header.attributes & DELETE_HORIZON and header.delete_horizon_ms == 10_500
    assert [r.timestamp_ms for r in found] == [1001, 1002] and header.max_timestamp == 1002
    log.append_as_leader(keyed(("c", "1")), 0, 0)
    closed(files, log)
    compact(files, log, wall_ms=10_499)
    assert batches(log)[0][0].delete_horizon_ms == 10_500
    assert plain(records(log)) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    log.append_as_leader(keyed(("c", "2")), 0, 0)
    closed(files, log)
    compact(files, log, wall_ms=10_500)
    assert plain(records(log)) == [(1, "b", "1"), (4, "c", "2")]


def test_records_without_key_go(files: MemoryFiles) -> None:
    log = open_log(files, LogConfig(segment_bytes=400))
    log.append_as_leader(keyed((None, "x"), ("a", "1")), 0, 0)
    closed(files, log)
    compact(files, log)
    assert plain(records(log)) == [(1, "a", "1")]


def test_a_control_batch_that_is_no_transaction_marker_stays(files: MemoryFiles, log: Log) -> None:
    control = encode_batch([(b"\0\0\0\2", b"", (), 0)], control=True)
    log.append_as_follower(control + keyed(("a", "1"), base_offset=1) + keyed(("a", "2"), base_offset=2), 0)
    closed(files, log)
    compact(files, log)
    assert [r.offset for r in records(log)] == [0, 2]


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_is_compressed_again_with_its_codec(files: MemoryFiles, log: Log, codec: int) -> None:
    log.append_as_leader(keyed(("a", "1" * 50), ("b", "1"), ("a", "2"), compression=codec), 0, 0)
    closed(files, log)
    compact(files, log)
    ((header, found),) = batches(log)
    assert header.compression == codec and header.record_count == 2
    assert plain(found) == [(1, "b", "1"), (2, "a", "2")]


def test_a_producers_last_batch_stays_empty_and_its_sequence_is_known_after_a_restart(files: MemoryFiles) -> None:
    log = open_log(files, CONFIG)
    for sequence, value in enumerate(("1", "2")):
        log.append_as_leader(
            keyed(("a", value), producer_id=5, producer_epoch=3, base_sequence=sequence, timestamp_ms=1000), 0, 0
        )
    log.append_as_leader(keyed(("a", "3")), 0, 0)
    closed(files, log)
    compact(files, log)
    assert plain(records(log)) == [(2, "a", "3")]
    filler, empty, _ = (header for header, _ in batches(log))
    assert filler.is_filler and (filler.base_offset, filler.last_offset) == (0, 0)
    assert (empty.producer_id, empty.producer_epoch, empty.last_sequence, empty.record_count) == (5, 3, 1, 0)
    for path in [p for p in files.inodes if p.endswith(".snapshot")]:
        files.unlink(path)
    again = open_log(files, CONFIG)
    assert again.producers.producers[5].batches[-1].last_sequence == 1
    assert (
        again.append_as_leader(keyed(("b", "1"), producer_id=5, producer_epoch=3, base_sequence=2), 0, 0).first_offset
        == 3
    )


def read_by_client(log: Log, offset: int, upto_offset: int) -> list[int]:
    """Offsets of the records in one answer."""
    regions = log.read_for_client(offset, 100, upto_offset).regions
    return [record.offset for region in regions for record in records_of(region.read())]


def test_clients_are_not_given_empty_batches_alone_where_records_follow(files: MemoryFiles, log: Log) -> None:
    for value in "12":
        # a segment each
        log.append_as_leader(keyed(("a", value * 200), ("b", value * 100)), 0, 0)
    log.append_as_leader(keyed(("a", "3" * 200), ("b", "3" * 100)), 0, 0)
    closed(files, log)
    log.append_as_leader(keyed(("c", "1")), 0, 0)
    compact(files, log)
    assert next(header.record_count for header, _ in batches(log)) == 0
    assert read_by_client(log, 0, 7) == read_by_client(log, 1, 7) == [4, 5]
    assert read_by_client(log, 6, 7) == [6]
    # the end comes before any record
    assert log.read_for_client(0, 100, 4).size == log.read(0, 100, 4).size > 0
    assert read_by_client(log, 0, 4) == []


def test_one_filler_for_each_leader_epoch_of_a_run(files: MemoryFiles, log: Log) -> None:
    for epoch in (1, 1, 1, 4, 4, 6):
        log.append_as_leader(keyed(("a", "x")), epoch, 0)
    closed(files, log)
    before = log.epochs.entries
    compact(files, log)
    found = [(h.base_offset, h.last_offset, h.leader_epoch, h.record_count) for h, _ in batches(log)]
    assert found == [(0, 2, 1, 0), (3, 4, 4, 0), (5, 5, 6, 1)]
    files.unlink(f"{DIR}/leader-epoch-checkpoint")
    assert open_log(files, CONFIG).epochs.entries == before


def test_segments_become_one_as_far_as_segment_bytes_allows(files: MemoryFiles, log: Log) -> None:
    for number in range(40):
        log.append_as_leader(keyed((f"k{number % 3}", "x" * 40)), 0, 0)
    closed(files, log)
    before = log.segment_count
    compact(files, log)
    # grouped by their size before the pass, so the next pass finds more that fits together
    log.append_as_leader(keyed(("z", "1")), 0, 0)
    closed(files, log)
    compact(files, log)
    assert log.segment_count < before / 2
    assert sorted(r.offset for r in records(log)) == [37, 38, 39, 40]


def test_a_full_map_ends_the_pass_and_the_next_one_goes_on(files: MemoryFiles, log: Log) -> None:
    for number in range(6):
        log.append_as_leader(keyed((f"k{number}", "1"), (f"k{number}", "2")), 0, 0)
    closed(files, log)
    first = compact(files, log, capacity=2)
    assert first is not None and log.first_dirty_offset == 4 and first.outcome.keys == 2
    assert [r.offset for r in records(log)] == [1, 3, *range(4, 12)]
    while compact(files, log, capacity=2):
        pass
    assert [r.offset for r in records(log)] == [1, 3, 5, 7, 9, 11]


def test_nothing_is_written_where_nothing_changes(files: MemoryFiles, log: Log) -> None:
    log.append_as_leader(keyed(("a", "1"), ("b", "1")), 0, 0)
    closed(files, log)
    segment = log.segments[0]
    done = compact(files, log)
    assert done is not None and done.outcome.groups_unchanged == 1 and log.segments[0] is segment
    assert not [path for path in files.inodes if path.endswith(".cleaned")]


@pytest.mark.parametrize("byte", [-1, 15])
def test_a_damaged_batch_stops_the_pass_and_nothing_goes(files: MemoryFiles, log: Log, byte: int) -> None:
    """Of a record, and of a leader epoch, which no CRC covers."""
    log.append_as_leader(keyed(("a", "1")), 0, 0)
    log.append_as_leader(keyed(("a", "2")), 0, 0)
    closed(files, log)
    inode = files.inodes[f"{DIR}/{0:020d}.log"]
    inode.data[byte] ^= 1
    with pytest.raises(InvalidBatch):
        compact(files, log)
    assert not [path for path in files.inodes if path.endswith((".cleaned", ".swap"))]
    assert log.segments[0].size == len(inode.data)


def test_a_reader_with_an_old_region_goes_on(files: MemoryFiles, log: Log) -> None:
    log.append_as_leader(keyed(("a", "1")), 0, 0)
    log.append_as_leader(keyed(("a", "2")), 0, 0)
    closed(files, log)
    (region,) = log.read(0, 1000, 2).regions
    before = region.read()
    compact(files, log)
    assert region.read() == before


def test_timestamps_are_found_among_what_is_left(files: MemoryFiles, log: Log) -> None:
    for number, key in enumerate("aabb"):
        log.append_as_leader(
            keyed((key, "1"), timestamp_ms=1000 * (4 - number), producer_id=number, producer_epoch=0, base_sequence=0),
            0,
            0,
        )
    closed(files, log)
    compact(files, log)
    found = log.offset_for_timestamp(2500, 4)
    assert found is not None and found.offset == 1 and found.timestamp_ms == 3000
    largest = log.max_timestamp_offset(4)
    assert largest is not None and (largest.offset, largest.timestamp_ms) == (1, 3000)


def test_a_follower_takes_over_where_its_log_ends_within_a_filler(files: MemoryFiles, log: Log) -> None:
    for number in range(5):
        log.append_as_leader(keyed(("a", str(number))), 2, 0)
    closed(files, log)
    follower_files = MemoryFiles()
    follower = open_log(follower_files, CONFIG)
    follower.append_as_follower(log.read(0, 1 << 20, 3).regions[0].read(), 2)
    compact(files, log)
    data = log.read(follower.log_end_offset, 1 << 20, 5).regions[0].read()
    follower.append_as_follower(data, 2)
    assert follower.log_end_offset == 5
    assert plain(records(follower)) == [(0, "a", "0"), (1, "a", "1"), (2, "a", "2"), (4, "a", "4")]
    assert follower.epochs.entries == log.epochs.entries


def test_truncation_gives_the_pass_up_and_lowers_what_is_clean(files: MemoryFiles, log: Log) -> None:
    for number in range(30):
        log.append_as_leader(keyed(("a", str(number))), 0, 0)
    closed(files, log)
    compact(files, log)
    assert log.first_dirty_offset == 30
    cuts = log.cut_count
    log.truncate_to(29)
    assert log.cut_count > cuts and log.first_dirty_offset == log.log_end_offset == 29


# the reference: what a log should hold, by definition

KEYS = st.sampled_from("abcde")
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 9).map(str))), min_size=1, max_size=5),
        st.integers(0, 4),
        st.booleans(),
        st.sampled_from([-1, -1, 1, 2]),
    ),
    min_size=1,
    max_size=12,
)
ROUNDS = st.lists(st.tuples(BATCHES, st.integers(1, 2000), st.sampled_from([1, 2, 1000])), min_size=1, max_size=4)


class Reference:
    """Every record ever written, and when each tombstone was first seen by a pass."""

    def __init__(self) -> None:
        self.written: list[tuple[int, str, str | None]] = []
        self.batch_of: list[int] = []
        self.batches = 0

    def append(self, pairs: list[Pair]) -> None:
        for key, value in pairs:
            assert key is not None
            self.written.append((len(self.written), key, value))
            self.batch_of.append(self.batches)
        self.batches += 1

    def last_of_each_key(self, upto: int) -> Iterator[tuple[int, str, str | None]]:
        last = {key: offset for offset, key, _ in self.written[:upto]}
        yield from (r for r in self.written[:upto] if last[r[1]] == r[0])


@settings(max_examples=150, deadline=None)
@given(ROUNDS)
def test_the_final_value_of_every_key_survives_any_passes_and_the_rest_goes(
    rounds: list[tuple[list[tuple[list[Pair], int, bool, int]], int, int]],
) -> None:
    files = MemoryFiles()
    config = LogConfig(compact=True, segment_bytes=400, index_interval_bytes=100, delete_retention_ms=1000)
    log = open_log(files, config)
    reference = Reference()
    sequences = {1: 0, 2: 0}
    wall_ms = 100_000
    for appended, passed_ms, capacity in rounds:
        for pairs, codec, roll, producer in appended:
            more = {}
            if producer > 0:
                more = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
                sequences[producer] += len(pairs)
            log.append_as_leader(keyed(*pairs, compression=codec, **more), 0, 0)
            reference.append(pairs)
            if roll:
                log.roll()
        closed(files, log)
        wall_ms += passed_ms
        while compact(files, log, wall_ms, capacity):
            pass
        end = log.log_end_offset
        assert end == len(reference.written)
        found = plain(records(log))
        expected = list(reference.last_of_each_key(end))
        # every last record is there, a tombstone perhaps no longer; nothing else is, and nothing twice
        assert [r for r in found if r not in expected] == []
        assert [r for r in expected if r not in found and r[2] is not None] == []
        for header, decoded in batches(log):
            if any(record.value is None for record in decoded):
                assert header.delete_horizon_ms is not None and header.delete_horizon_ms > wall_ms
        states = log.producers.encode()
        for path in [p for p in files.inodes if p.endswith(".snapshot")]:
            files.unlink(path)
        again = open_log(files, config)
        assert plain(records(again)) == found and again.log_end_offset == end
        assert [(p, s.batches[-1].last_sequence) for p, s in sorted(again.producers.producers.items())] == [
            (p, s.batches[-1].last_sequence) for p, s in sorted(log.producers.producers.items())
        ]
        assert states == log.producers.encode()
