from __future__ import annotations

import pytest
from storage.logs import DIR, batch, contents, open_log
from storage.memory_files import MemoryFile, MemoryFiles

from heirlog.storage.checkpoints import render_checkpoint
from heirlog.storage.cleaning.records import filler
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LEADER_EPOCH_CHECKPOINT
from heirlog.storage.errors import DamagedLog
from heirlog.storage.log import Log
from heirlog.storage.log_listener import LogListener
from heirlog.storage.log_loader import load_log
from heirlog.storage.recovery import CLOSED, SLICE_BYTES, LastStop, at_once

SMALL = LogConfig(segment_bytes=220, index_interval_bytes=60)
DISK_ERROR = OSError(5, "Input/output error")


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def filled(files: MemoryFiles, values: str) -> Log:
    log = open_log(files, SMALL)
    for i, value in enumerate(values):
        log.append_as_leader(batch(value, producer_id=1, producer_epoch=0, base_sequence=i), i // 4, 0)
    return log


def stopped_cleanly(files: MemoryFiles, values: str) -> None:
    log = filled(files, values)
    log.finish(lambda error: None)
    files.run()
    log.close()
    files.operations.clear()


def flushed_by(files: MemoryFiles, log: Log) -> list[str]:
    files.operations.clear()
    log.flush(lambda error: None)
    files.run()
    return sorted(files.operations)


def test_an_empty_directory_becomes_an_empty_log_whose_directory_counts_as_new(files: MemoryFiles) -> None:
    log = open_log(files, clean=True)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point, log.segment_count) == (0, 0, 0, 1)
    assert flushed_by(files, log) == [f"flush {0:020d}.log", "sync /data", f"sync {DIR}"]


def test_after_a_clean_stop_everything_counts_as_flushed(files: MemoryFiles) -> None:
    stopped_cleanly(files, "abcdefgh")
    log = open_log(files, SMALL, clean=True, recovery_point=3)
    assert (log.recovery_point, log.scanned_from, log.cut_bytes) == (8, 8, 0)
    assert not log.needs_flush(0) and flushed_by(files, log) == [f"flush {6:020d}.log"]


@pytest.mark.parametrize(("zeros", "end"), [(False, 4), (True, 5)])
def test_a_closed_segment_without_its_end_is_noticed_after_a_clean_stop(
    files: MemoryFiles, zeros: bool, end: int
) -> None:
    stopped_cleanly(files, "abcdefgh")
    file = files.open(f"{DIR}/{3:020d}.log")
    size = file.size
    file.truncate(size - 70)
    if zeros:
        file.append(bytes(70))
    log = open_log(files, SMALL, clean=True, recovery_point=8)
    assert (log.log_end_offset, "".join(value for _, value in contents(log))) == (end, "abcde"[:end])


def test_a_bit_that_flipped_after_a_clean_stop_is_found_by_the_first_read_and_cut_by_the_next_start(
    files: MemoryFiles,
) -> None:
    stopped_cleanly(files, "abcdefgh")
    path = f"{DIR}/{3:020d}.log"
    files.inodes[path].data[-1] ^= 1
    log = open_log(files, SMALL, clean=True, recovery_point=8)
    assert "".join(value for _, value in contents(log, 6)) == "gh" and log.read(0, 1000, 5).size
    with pytest.raises(DamagedLog, match="is damaged") as found:
        contents(log)
    assert (found.value.base_offset, found.value.filename) == (3, path)
    log.distrust(found.value.base_offset)
    assert flushed_by(files, log) and log.recovery_point == 3, "no flush may hide it from the next start"
    log.close()
    again = open_log(files, SMALL, recovery_point=log.recovery_point)
    assert (again.log_end_offset, "".join(value for _, value in contents(again))) == (5, "abcde")


@pytest.mark.parametrize("at", [7, 15])
def test_a_flipped_bit_in_an_offset_or_an_epoch_is_found_though_no_crc_covers_it(files: MemoryFiles, at: int) -> None:
    stopped_cleanly(files, "abcdefgh")
    size = len(files.inodes[f"{DIR}/{0:020d}.log"].data) // 3
    files.inodes[f"{DIR}/{0:020d}.log"].data[size + at] ^= 2
    log = open_log(files, SMALL, clean=True, recovery_point=8)
    with pytest.raises(DamagedLog):
        contents(log)


@pytest.mark.parametrize("bytes_max", [1, 150])
@pytest.mark.parametrize("flip", [1, 2, 64])
def test_a_wrong_offset_is_found_also_by_a_reader_of_few_batches_at_a_time(
    files: MemoryFiles, flip: int, bytes_max: int
) -> None:
    stopped_cleanly(files, "abcdefgh")
    data = files.inodes[f"{DIR}/{0:020d}.log"].data
    data[len(data) // 3 + 7] ^= flip
    log = open_log(files, SMALL, clean=True, recovery_point=8)
    assert log.read(0, 1, 8).size, "what is before it can be read"
    for _ in range(2):
        with pytest.raises(DamagedLog):
            log.read(1, bytes_max, 8)


@pytest.mark.parametrize(("at", "flip"), [(0, 64), (8, 1), (9, 1), (23, 64)])
@pytest.mark.parametrize("upto_offset", [2, 3, 4, 5])
@pytest.mark.parametrize("bytes_max", [1, 1000])
def test_a_damaged_header_is_not_taken_for_the_end_of_what_may_be_read(
    files: MemoryFiles, at: int, flip: int, upto_offset: int, bytes_max: int
) -> None:
    log = open_log(files)
    for value in "abcdefgh":
        log.append_as_leader(batch(value), 0, 0)
    log.finish(lambda error: None)
    log.close()
    data = files.inodes[f"{DIR}/{0:020d}.log"].data
    size = len(data) // 8
    log = open_log(files, clean=True, recovery_point=8)
    data[size + at] ^= flip
    for _ in range(2):
        with pytest.raises(DamagedLog):
            log.read(1, bytes_max, upto_offset)


@pytest.mark.parametrize("segment_bytes", [220, 10_000])
@pytest.mark.parametrize("clean", [True, False])
def test_a_sound_log_is_never_called_damaged_whatever_is_asked_for(
    files: MemoryFiles, segment_bytes: int, clean: bool
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=60)
    log = open_log(files, config)
    for i, values in enumerate(("a", "bcd", "ef", "g", "hijk", "l", "mn")):
        log.append_as_leader(batch(*values), i // 3, 0)
    log.append_as_follower(filler(14, 20, 2)[0], 2)
    log.finish(lambda error: None)
    files.run()
    log.close()
    first_of = [0, 1, 1, 1, 4, 4, 6, 7, 7, 7, 7, 11, 12, 12, *[14] * 7, 21]
    for bytes_max in (1, 150, 1000):
        log = open_log(files, config, clean=clean, recovery_point=21, log_start_offset=2)
        log.append_as_leader(batch("z"), 2, 0)
        for offset in (*range(2, 22), 2, 3):
            for upto_offset in range(offset + 1, 23):
                is_inside = upto_offset < 22 and first_of[upto_offset] == first_of[offset]
                assert (log.read(offset, bytes_max, upto_offset).size == 0) == is_inside
        for segment in log.segments:
            segment.distrust_indexes()
        log.truncate_to(21)
        log.finish(lambda error: None)
        files.run()
        log.close()


def test_a_wrong_index_is_no_damage_of_the_log(files: MemoryFiles) -> None:
    stopped_cleanly(files, "abcdefgh")
    index = files.inodes[f"{DIR}/{0:020d}.index"].data
    index[7] ^= 8
    log = open_log(files, SMALL, clean=True, recovery_point=8)
    assert "".join(value for _, value in contents(log)) == "abcdefgh"


def test_what_was_appended_or_scanned_is_not_checked_again(files: MemoryFiles) -> None:
    stopped_cleanly(files, "abcdefgh")
    log = open_log(files, SMALL)
    assert [segment.unchecked.end for segment in log.segments] == [0, 0, 0]
    log.append_as_leader(batch("i"), 2, 0)
    assert log.segments[-1].unchecked.end == 0


def test_after_an_unclean_stop_what_was_read_is_to_be_flushed_with_its_indexes(files: MemoryFiles) -> None:
    filled(files, "abcdefgh")
    files.run()
    log = open_log(files, SMALL, recovery_point=4)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert (log.recovery_point, log.scanned_from) == (3, 3)
    assert flushed_by(files, log) == [
        f"flush {3:020d}.index",
        f"flush {3:020d}.log",
        f"flush {3:020d}.timeindex",
        f"flush {6:020d}.log",
        "sync /data",
        f"sync {DIR}",
    ]


def test_the_recovery_point_is_not_above_what_was_read(files: MemoryFiles) -> None:
    filled(files, "abcdefgh")
    files.run()
    assert open_log(files, SMALL, recovery_point=5).recovery_point == 3, "the whole segment of offset 5 is read"
    assert open_log(files, SMALL, recovery_point=100).recovery_point == 6, "the active segment is always read"


class TrackingFiles(MemoryFiles):
    """Knows which files are open."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[TrackedFile] = []

    def open(self, path: str, create: bool = False) -> MemoryFile:
        super().open(path, create)
        self.opened.append(TrackedFile(self, path, self.inodes[path]))
        return self.opened[-1]


class TrackedFile(MemoryFile):
    disk: TrackingFiles

    def close(self) -> None:
        if self in self.disk.opened:
            self.disk.opened.remove(self)


def damaged_where_only_the_producers_are_read(files: MemoryFiles) -> None:
    """A clean stop, its snapshot lost, and a header damaged to which no index leads: offset 6 of segment 6."""
    stopped_cleanly(files, "abcdefgh")
    files.unlink(f"{DIR}/{8:020d}.snapshot")
    files.inodes[f"{DIR}/{6:020d}.log"].data[16] = 99


def test_damage_in_trusted_files_is_repaired_in_a_second_attempt(files: MemoryFiles) -> None:
    damaged_where_only_the_producers_are_read(files)
    log = open_log(files, SMALL, clean=True, recovery_point=8)
    assert contents(log) == list(enumerate("abcdef"))
    assert (log.recovery_point, log.scanned_from) == (0, 0), "nothing is trusted any more"
    assert log.cut_bytes == 2 * len(batch("g"))
    assert log.append_as_leader(batch("z"), 9, 0).first_offset == 6


@pytest.mark.parametrize("flush_error", [None, DISK_ERROR])
def test_the_first_attempt_closes_its_files_and_writes_and_reports_nothing_more(flush_error: OSError | None) -> None:
    files = TrackingFiles()
    damaged_where_only_the_producers_are_read(files)
    # the last epoch is above the log end, so each attempt removes it and writes the file
    entries = render_checkpoint([(0, 0), (1, 4), (9, 100)])
    files.inodes[f"{DIR}/{LEADER_EPOCH_CHECKPOINT}"].data[:] = entries
    files.flush_error = flush_error
    assert files.opened == []
    reported: list[OSError | None] = []
    log = open_log(files, SMALL, clean=True, recovery_point=8, listener=LogListener(on_failure=reported.append))
    files.run()
    assert log.failure.error is flush_error
    assert reported == ([] if flush_error is None else [flush_error]), "by the second attempt"
    logs = [file.path for file in files.opened if file.path.endswith(".log")]
    assert logs == [segment.log.path for segment in log.segments]
    log.close()
    assert files.opened == []


def test_a_long_log_is_read_in_slices() -> None:
    files = MemoryFiles()
    config = LogConfig(max_message_bytes=2 * SLICE_BYTES)
    log = open_log(files, config)
    for _ in range(3):
        log.append_as_leader(batch("x" * SLICE_BYTES), 0, 0)
    slices = load_log(files, DIR, "t", 0, config, LastStop(), wall_ms=0)
    pauses = 0
    while True:
        try:
            next(slices)
            pauses += 1
        except StopIteration as end:
            assert end.value.log_end_offset == 3 and pauses >= 3
            return


def test_without_checkpoints_every_record_is_read_and_after_a_clean_stop_none() -> None:
    files = MemoryFiles()
    log = open_log(files)
    log.append_as_leader(batch("a", "b"), 0, 0)
    log.close()
    for last_stop, scanned_from in ((LastStop(), 0), (CLOSED, 2), (LastStop(clean=True, log_start_offset=1), 2)):
        loaded = at_once(load_log(files, DIR, "t", 0, LogConfig(), last_stop, wall_ms=0))
        assert (loaded.scanned_from, loaded.log_end_offset) == (scanned_from, 2)
        assert loaded.log_start_offset == last_stop.log_start_offset
        loaded.close()
