from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storage.logs import DIR, batch, contents, open_log
from storage.memory_files import MemoryFiles

from heirlog.storage.config import LogConfig
from heirlog.storage.errors import DamagedLog
from heirlog.storage.log import Log

SMALL = LogConfig(segment_bytes=220, index_interval_bytes=60)


def filled(files: MemoryFiles, values: str, config: LogConfig = SMALL) -> Log:
    log = open_log(files, config)
    for i, value in enumerate(values):
        log.append_as_leader(batch(value, producer_id=1, producer_epoch=0, base_sequence=i), i // 4, 0)
    return log


def expected(values: str) -> list[tuple[int, str]]:
    return list(enumerate(values))


def test_a_clean_stop_keeps_everything_without_reading_the_records() -> None:
    files = MemoryFiles()
    log = filled(files, "abcdefgh")
    log.finish(lambda error: None)
    files.run()
    epochs, producers = log.epochs.entries, log.producers.encode()
    files.crash()
    again = open_log(files, SMALL, clean=True)
    assert contents(again) == expected("abcdefgh")
    assert (again.recovery_point, again.epochs.entries) == (8, epochs)
    assert again.producers.encode() == producers
    assert again.append_as_leader(batch("i"), 9, 0).first_offset == 8


@pytest.mark.parametrize("cut", range(1, 80))
def test_a_tail_torn_at_any_byte_is_cut_at_the_last_whole_batch(cut: int) -> None:
    files = MemoryFiles()
    filled(files, "abcd", LogConfig())
    inode = files.inodes[f"{DIR}/{0:020d}.log"]
    last = len(inode.data) // 4
    if cut > last:
        return
    del inode.data[-cut:]
    files.crash(lambda flushed, written: written)
    log = open_log(files)
    assert contents(log) == expected("abc")
    assert len(inode.data) == 3 * last
    assert log.producers.producers[1].batches[-1].last_sequence == 2


def test_a_damaged_batch_drops_what_follows_it_in_later_segments_too() -> None:
    files = MemoryFiles()
    filled(files, "abcdefgh")
    files.run()
    logs = sorted(path for path in files.inodes if path.endswith(".log"))
    assert len(logs) > 2
    files.inodes[logs[1]].data[-1] ^= 1
    log = open_log(files, SMALL, recovery_point=0)
    got = contents(log)
    assert got == expected("abcdefgh")[: len(got)] and 3 <= len(got) < 6
    assert [path for path in sorted(files.inodes) if path.endswith(".log")] == logs[:2]
    assert log.epochs.entries == [(0, 0), (1, 4)][: 1 + (len(got) > 4)]


def test_segments_below_the_recovery_point_are_not_read_again() -> None:
    files = MemoryFiles()
    filled(files, "abcdefgh")
    files.run()
    first = min(path for path in files.inodes if path.endswith(".log"))
    files.inodes[first].data[70] ^= 1  # a record: below the recovery point only headers are looked at
    log = open_log(files, SMALL, recovery_point=8)
    assert log.log_end_offset == 8


def test_a_segment_that_ends_before_the_next_begins_cuts_the_log_even_below_the_recovery_point() -> None:
    files = MemoryFiles()
    filled(files, "abcdefgh")
    files.run()
    first = files.inodes[min(path for path in files.inodes if path.endswith(".log"))]
    del first.data[-10:]
    log = open_log(files, SMALL, recovery_point=8)
    got = contents(log)
    assert got == expected("abcdefgh")[: len(got)] and 0 < len(got) < 4


def test_damage_that_shows_only_when_trusted_segments_are_read_makes_recovery_read_them_all() -> None:
    files = MemoryFiles()
    log = filled(files, "abcdefgh")
    log.finish(lambda error: None)
    files.run()
    logs = sorted(path for path in files.inodes if path.endswith(".log"))
    files.inodes[logs[1]].data[8:12] = b"\0\0\0\1"  # an absurd length; a clean stop reads only the last segment
    del files.inodes[f"{DIR}/leader-epoch-checkpoint"]  # and the epochs have to be learned from the batches
    files.crash(lambda flushed, written: written)
    got = contents(open_log(files, SMALL, clean=True, recovery_point=8))
    assert got == expected("abcdefgh")[: len(got)] and 0 < len(got) < 8


def test_records_of_an_older_epoch_behind_newer_ones_are_not_believed() -> None:
    files = MemoryFiles()
    log = filled(files, "ab", LogConfig())
    old = bytes(batch("stale", base_offset=3, leader_epoch=0))
    log.append_as_leader(batch("c"), 5, 0)
    files.inodes[f"{DIR}/{0:020d}.log"].data += old
    assert contents(open_log(files)) == expected("abc")


def test_a_missing_or_inconsistent_index_is_rebuilt_after_a_clean_stop() -> None:
    files = MemoryFiles()
    log = filled(files, "abcdefgh")
    log.finish(lambda error: None)
    files.run()
    whole = {p: bytes(i.data) for p, i in files.inodes.items() if p.endswith(("index",))}
    assert any(whole.values())
    for n, path in enumerate(sorted(whole)):
        if n % 2:
            del files.inodes[path]
        else:
            files.inodes[path].data[:] = b"\x00" * 40  # what Kafka's preallocation leaves after an unclean stop
    again = open_log(files, SMALL, clean=True)
    assert contents(again) == expected("abcdefgh")
    assert again.offset_for_timestamp(0, 8) is not None


def test_an_index_without_its_log_is_removed() -> None:
    files = MemoryFiles()
    filled(files, "a").finish(lambda error: None)
    files.run()
    files.open(f"{DIR}/{77:020d}.index", create=True)
    open_log(files)
    assert not files.exists(f"{DIR}/{77:020d}.index")


def test_a_log_that_ends_below_its_start_begins_again_at_the_start() -> None:
    files = MemoryFiles()
    filled(files, "abc", LogConfig())
    log = open_log(files, log_start_offset=10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)
    assert log.append_as_leader(batch("x"), 7, 0).first_offset == 10


def test_epochs_are_learned_again_from_the_batches_when_their_file_is_lost() -> None:
    files = MemoryFiles()
    filled(files, "abcdefgh", LogConfig())
    files.inodes.pop(f"{DIR}/leader-epoch-checkpoint", None)
    files.crash(lambda flushed, written: written)
    assert open_log(files).epochs.entries == [(0, 0), (1, 4)]


def test_an_entry_of_a_truncated_epoch_in_a_stale_file_does_not_come_back() -> None:
    files = MemoryFiles()
    log = filled(files, "abc", LogConfig())
    log.epochs.assign(7, 3)
    files.run()
    stale = bytes(files.inodes[f"{DIR}/leader-epoch-checkpoint"].data)
    assert b"7 3" in stale
    log.truncate_to(2)
    for value in "cde":
        log.append_as_leader(batch(value), 0, 0)
    files.run()
    files.inodes[f"{DIR}/leader-epoch-checkpoint"].data[:] = stale
    assert open_log(files).epochs.entries == [(0, 0)]


def test_a_torn_producer_snapshot_costs_only_a_longer_read() -> None:
    files = MemoryFiles()
    log = filled(files, "abcdefgh")
    files.run()
    state = log.producers.producers[1].batches[-1]
    for path, inode in files.inodes.items():
        if path.endswith(".snapshot"):
            del inode.data[-3:]
    assert open_log(files, SMALL, recovery_point=8).producers.producers[1].batches[-1] == state


operation = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("follow"), st.integers(1, 3)),
    st.tuples(st.just("truncate"), st.floats(0, 1)),
    st.tuples(st.just("flush"), st.integers(0, 3)),
    st.tuples(st.just("run"), st.integers(1, 6)),
    st.tuples(st.just("roll"), st.just(0)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("crash"), st.floats(0, 1)),
)


class Model:
    """A plain list of batches, and how many of the records a crash may not take."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[str]]] = []

    @property
    def records(self) -> list[tuple[int, str]]:
        return list(enumerate(v for _, values in self.batches for v in values))

    @property
    def epochs(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        offset = 0
        for epoch, values in self.batches:
            if not found or epoch > found[-1][0]:
                found.append((epoch, offset))
            offset += len(values)
        return found

    def cut(self, offset: int) -> None:
        end = sum(len(values) for _, values in self.batches)
        while self.batches and end > offset:
            end -= len(self.batches.pop()[1])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(operation, max_size=40))
def test_any_history_agrees_with_a_list_and_a_crash_keeps_a_prefix_with_all_that_was_flushed(
    operations: list[tuple[str, float]],
) -> None:
    files, model = MemoryFiles(), Model()
    config = LogConfig(segment_bytes=400, index_interval_bytes=150)
    log = open_log(files, config)
    epoch, serial = 0, 0
    for name, argument in operations:
        if name in ("append", "follow"):
            values = [f"v{serial + i}" for i in range(int(argument))]
            serial += len(values)
            if name == "append":
                log.append_as_leader(batch(*values), epoch, 0)
            else:
                data = batch(*values, base_offset=log.log_end_offset, leader_epoch=epoch)
                log.append_as_follower(data, epoch)
            model.batches.append((epoch, values))
        elif name == "truncate":
            at = int(argument * (log.log_end_offset + 1))
            epoch += 1
            log.truncate_to(at)
            model.cut(at)
        elif name == "flush":
            log.flush(lambda error: None)
        elif name == "run":
            for _ in range(min(int(argument), len(files.pending))):
                files.pending.pop(0)()
        elif name == "roll":
            log.roll()
        elif name == "restart":
            log.finish(lambda error: None)
            files.run()
            log = open_log(files, config, clean=True)
        else:
            flushed = log.recovery_point
            files.crash(lambda low, high, part=argument: low + round(part * (high - low)))
            log = open_log(files, config, recovery_point=flushed)
            assert log.log_end_offset >= flushed
            model.cut(log.log_end_offset)
            epoch += 1
        assert contents(log) == model.records
        assert log.log_end_offset == len(model.records)
        assert log.epochs.entries == model.epochs


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 1000)), min_size=1, max_size=60), st.data())
def test_lookups_agree_with_a_linear_scan(batches: list[tuple[int, int]], data: st.DataObject) -> None:
    files = MemoryFiles()
    config = LogConfig(segment_bytes=600, index_interval_bytes=data.draw(st.sampled_from([0, 100, 300])))
    log = open_log(files, config)
    flat: list[tuple[int, int]] = []
    starts: list[int] = []
    for count, timestamp in batches:
        starts.append(len(flat))
        flat += [(len(flat) + i, timestamp) for i in range(count)]
        log.append_as_leader(batch(*["v"] * count, timestamp_ms=timestamp), 0, 0)
    if data.draw(st.booleans()):
        log.finish(lambda error: None)
        files.run()
        log = open_log(files, config, clean=True)
    for _ in range(10):
        offset = data.draw(st.integers(0, len(flat) - 1))
        upto = data.draw(st.integers(offset + 1, len(flat)))
        begin = max(s for s in starts if s <= offset)
        found = log.read(offset, data.draw(st.integers(1, 1000)), upto)
        bound = max((s for s in starts if s <= upto), default=0) if upto < len(flat) else upto
        if bound <= begin:
            assert found.size == 0
        else:
            assert int.from_bytes(found.regions[0].read()[:8], "big") == begin
        timestamp = data.draw(st.integers(0, 1001))
        got = log.offset_for_timestamp(timestamp, upto)
        assert (got and (got.offset, got.timestamp_ms)) == next(
            ((o, t) for o, t in flat[:upto] if t >= timestamp), None
        )
    largest = max(t for _, t in flat)
    top = log.max_timestamp_offset(len(flat))
    assert top is not None
    assert (top.offset, top.timestamp_ms) == next((o, t) for o, t in flat if t == largest)


@pytest.mark.parametrize("jump", [1, 1000, 2**31, 2**40, 2**62])
@pytest.mark.parametrize("recovery_point", [0, 8])
def test_a_batch_whose_base_offset_was_damaged_is_cut_though_its_crc_is_right(jump: int, recovery_point: int) -> None:
    files = MemoryFiles()
    config = LogConfig(index_interval_bytes=1)
    filled(files, "abcdefgh", config)
    files.crash(lambda flushed, written: written)
    (data,) = (inode.data for path, inode in files.inodes.items() if path.endswith(".log"))
    at = 5 * (len(data) // 8)
    data[at : at + 8] = (5 + jump).to_bytes(8, "big")
    log = open_log(files, config, recovery_point=recovery_point)
    assert contents(log) == expected("abcde")
    assert log.append_as_leader(batch("f"), 9, 0).first_offset == 5


def test_a_base_offset_that_no_index_can_name_is_damage_also_after_a_clean_stop() -> None:
    files = MemoryFiles()
    log = filled(files, "abcdefgh", LogConfig())
    log.finish(lambda error: None)
    files.run()
    (path,) = (path for path in files.inodes if path.endswith(".log"))
    data = files.inodes[path].data
    at = 5 * (len(data) // 8)
    data[at : at + 8] = (2**40).to_bytes(8, "big")
    files.unlink(path.replace(".log", ".index"))  # so that it has to be made again
    assert contents(open_log(files, LogConfig(), clean=True)) == expected("abcde")


def test_an_index_that_looks_whole_and_is_wrong_changes_nothing_that_is_read() -> None:
    config = LogConfig(segment_bytes=800, index_interval_bytes=60)
    files = MemoryFiles()
    log = filled(files, "abcdefghijklmnop", config)
    log.finish(lambda error: None)
    files.run()
    path = min(path for path in files.inodes if path.endswith(".index"))
    whole = bytes(files.inodes[path].data)
    assert len(whole) >= 3 * 8
    for at in range(len(whole)):
        for bits in (1, 2, 0x7F):
            files.inodes[path].data[:] = whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :]
            again = open_log(files, config, clean=True, recovery_point=16)
            for offset in range(16):
                assert contents(again, offset) == expected("abcdefghijklmnop")[offset:]
                result = again.read(offset, 200, 16)  # ends at a boundary that is looked up
                assert result.size == sum(len(region.read()) for region in result.regions) > 0
            again.close()


def test_a_damaged_log_is_walked_once_for_its_indexes_and_says_so_ever_after() -> None:
    config = LogConfig(segment_bytes=800, index_interval_bytes=60)
    files = MemoryFiles()
    log = filled(files, "abcdefghijklmnop", config)
    log.finish(lambda error: None)
    files.run()
    path = min(path for path in files.inodes if path.endswith(".log"))
    log = open_log(files, config, clean=True, recovery_point=16)
    files.inodes[path].data[2 * 69 + 16] = 99  # no batch begins with that: damage in what was trusted
    for _ in range(2):
        with pytest.raises(DamagedLog, match="byte 138 is damaged"):
            contents(log, 2)
        assert contents(log, 5) == expected("abcdefghijklmnop")[5:]
