from __future__ import annotations

from typing import Any

import pytest
from storage.logs import DIR, placed
from storage.memory_files import MemoryFile, MemoryFiles

from heirlog.protocol.batch import walk
from heirlog.protocol.types import Uuid
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.log_failure import LogFailure
from heirlog.storage.log_flusher import FLUSHES_AT_ONCE, LogFlusher
from heirlog.storage.log_segments import LogSegments
from heirlog.storage.partition_directory import PartitionDirectory
from heirlog.storage.segment import Segment

DISK_ERROR = OSError(5, "Input/output error")


class ClosableFile(MemoryFile):
    """A file that knows whether it was closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Flushed:
    """A flusher with everything that it flushes: segments at offsets 0, 10 and 20, of ten records each."""

    def __init__(self, recovery_point: int = 0, **given: Any) -> None:
        self.files = MemoryFiles()
        self.files.mkdirs(DIR)
        self.reported: list[OSError] = []
        self.failure = LogFailure(self.reported.append)
        self.epochs = LeaderEpochCache(self.files, DIR, lambda error: None)
        self.epochs.loaded()
        self.directory = PartitionDirectory(self.files, DIR)
        self.segments = LogSegments([self._segment(base) for base in (0, 10, 20)])
        self.results: list[OSError | None] = []
        self.truncations: list[int] = []
        self.flusher = LogFlusher(
            self.directory,
            self.segments,
            self.epochs,
            self.failure,
            recovery_point=recovery_point,
            on_truncated=lambda: self.truncations.append(self.flusher.recovery_point),
            **given,
        )

    def _segment(self, base_offset: int) -> Segment:
        made = Segment.create(self.files, DIR, base_offset)
        for offset in range(base_offset, base_offset + 10):
            data = placed(offset, 0, "x")
            made.append(data, [header for _, header in walk(data)], 4096)
        return made

    def index_file(self, name: str) -> ClosableFile:
        self.files.open(f"{DIR}/{name}", create=True)
        return ClosableFile(self.files, f"{DIR}/{name}", self.files.inodes[f"{DIR}/{name}"])

    def flush(self, log_end_offset: int = 30) -> None:
        self.flusher.flush(log_end_offset, self.results.append)

    def flushed_files(self) -> list[str]:
        """What the disk did since the last call."""
        self.files.run()
        found, self.files.operations = self.files.operations, []
        return found


def logs(*bases: int) -> list[str]:
    return [f"flush {base:020d}.log" for base in bases]


def test_a_flush_covers_the_segments_above_the_recovery_point() -> None:
    flushed = Flushed(recovery_point=15)
    flushed.flush()
    assert flushed.flushed_files() == logs(10, 20)
    flushed.flush()
    assert flushed.flushed_files() == logs(20), "the closed segment is durable now"


def test_the_recovery_point_moves_before_the_caller_is_notified_and_not_earlier() -> None:
    flushed = Flushed()
    seen: list[int] = []
    flushed.flusher.flush(25, lambda error: seen.append(flushed.flusher.recovery_point))
    for _ in range(2):
        flushed.files.pending.pop(0)()
    assert (flushed.flusher.recovery_point, seen) == (0, []), "one of three files is not flushed yet"
    flushed.files.run()
    assert seen == [25]


def test_a_flush_waits_for_epochs_topic_id_and_directories() -> None:
    flushed = Flushed(recovery_point=25)
    flushed.epochs.begin(3, 30)
    flushed.directory.set_topic_id(Uuid(bytes(range(16))), lambda error: None)
    flushed.directory.created()
    flushed.flush()
    steps = 0
    while flushed.files.pending:
        assert flushed.results == [] and flushed.flusher.recovery_point == 25
        flushed.files.pending.pop(0)()
        steps += 1
    assert flushed.results == [None] and flushed.flusher.recovery_point == 30
    # the segment; epochs: temporary file and directory; topic id: file and directory; the directory and its parent
    assert steps == 7


def test_index_files_are_flushed_once_and_then_closed() -> None:
    flushed = Flushed(recovery_point=25)
    index = flushed.index_file("a.index")
    flushed.flusher.add_index_files([index])
    flushed.flush()
    assert not index.is_closed
    assert flushed.flushed_files() == [*logs(20), "flush a.index"]
    assert index.is_closed
    flushed.flush()
    assert flushed.flushed_files() == logs(20)


def test_index_files_of_the_loading_belong_to_the_first_flush() -> None:
    files = Flushed()
    index = files.index_file("a.index")
    flushed = Flushed(recovery_point=25, index_files=[index])
    flushed.flush()
    assert flushed.flushed_files()[0] == logs(20)[0]
    files.files.run()
    assert index.is_closed


def test_closing_gives_back_index_files_that_no_flush_has_taken() -> None:
    flushed = Flushed()
    index = flushed.index_file("a.index")
    flushed.flusher.add_index_files([index])
    flushed.flusher.close()
    assert index.is_closed and flushed.files.pending == []


def test_a_cut_lowers_the_recovery_point_and_reports_it() -> None:
    flushed = Flushed(recovery_point=25)
    flushed.flusher.lower_to(25)
    assert flushed.truncations == [], "nothing below the recovery point is cut"
    flushed.flusher.lower_to(12)
    assert flushed.flusher.recovery_point == 12 and flushed.truncations == [12]


def test_a_cut_lowers_the_target_of_every_flush_under_way() -> None:
    flushed = Flushed()
    flushed.flush(25)
    flushed.flush(30)
    flushed.flusher.lower_to(12)
    flushed.files.run()
    assert flushed.results == [None, None] and flushed.flusher.recovery_point == 12
    assert flushed.truncations == [], "the recovery point was never above the cut"


def test_records_that_are_written_above_a_cut_need_another_flush() -> None:
    flushed, config = Flushed(), LogConfig(flush_messages=1)
    flushed.flush(30)
    flushed.flusher.lower_to(12)
    assert not flushed.flusher.needs_flush(12, config, 0)
    assert flushed.flusher.needs_flush(13, config, 0)


def test_an_older_flush_that_ends_last_does_not_move_the_recovery_point_back() -> None:
    flushed = Flushed(recovery_point=20)
    flushed.flush(25)
    (first,) = flushed.files.pending
    flushed.files.pending.clear()
    flushed.flush(30)
    flushed.files.run()
    first()
    assert flushed.results == [None, None] and flushed.flusher.recovery_point == 30


def test_a_log_that_restarts_counts_as_flushed_up_to_its_start() -> None:
    flushed = Flushed(recovery_point=20)
    flushed.flusher.restart_at(500)
    assert flushed.flusher.recovery_point == 500
    assert not flushed.flusher.needs_flush(500, LogConfig(flush_messages=1), 0)
    assert flushed.flusher.needs_flush(501, LogConfig(flush_messages=1), 0)


@pytest.mark.parametrize("more", [0, 1], ids=["alone", "with another under way"])
def test_the_first_failed_flush_is_final(more: int) -> None:
    flushed = Flushed()
    for _ in range(1 + more):
        flushed.flush()
    flushed.files.flush_error = DISK_ERROR
    flushed.files.run()
    flushed.files.flush_error = None
    assert flushed.results == [DISK_ERROR] * (1 + more)
    assert flushed.reported == [DISK_ERROR] and flushed.failure.error is DISK_ERROR
    assert flushed.flusher.recovery_point == 0
    with pytest.raises(OSError):
        flushed.flush()
    assert flushed.files.pending == []


def test_index_files_of_a_failed_flush_are_closed() -> None:
    flushed = Flushed()
    index = flushed.index_file("a.index")
    flushed.flusher.add_index_files([index])
    flushed.flush()
    flushed.files.flush_error = DISK_ERROR
    flushed.files.run()
    assert index.is_closed


def test_a_detached_log_moves_no_recovery_point_and_notifies_no_caller() -> None:
    flushed = Flushed()
    index = flushed.index_file("a.index")
    flushed.flusher.add_index_files([index])
    flushed.flush()
    flushed.failure.detach()
    flushed.files.run()
    assert flushed.results == [] and flushed.flusher.recovery_point == 0
    assert index.is_closed


def test_a_detached_log_flushes_only_its_records() -> None:
    flushed = Flushed(recovery_point=15)
    flushed.directory.created()
    flushed.epochs.begin(3, 30)
    flushed.failure.detach()
    flushed.flusher.flush_detached(flushed.results.append)
    assert flushed.flushed_files() == logs(10, 20) and flushed.results == [None]


def test_a_flush_is_due_by_the_number_of_offsets_that_none_covers() -> None:
    flushed, config = Flushed(recovery_point=20), LogConfig(flush_messages=10)
    assert not flushed.flusher.needs_flush(29, config, 0)
    assert flushed.flusher.needs_flush(30, config, 0)
    flushed.flush(30)
    assert not flushed.flusher.needs_flush(39, config, 0), "the flush under way covers the others"
    assert flushed.flusher.needs_flush(40, config, 0)


def test_a_flush_is_due_by_the_age_of_what_is_not_flushed() -> None:
    flushed, config = Flushed(recovery_point=20), LogConfig(flush_ms=100)
    assert not flushed.flusher.needs_flush(20, config, 0)
    assert not flushed.flusher.needs_flush(21, config, 1000), "its age counts from here"
    assert not flushed.flusher.needs_flush(22, config, 1099)
    assert flushed.flusher.needs_flush(22, config, 1100)
    flushed.flush(22)
    assert not flushed.flusher.needs_flush(23, config, 1200), "the next one's age counts from here"


def test_a_clock_that_was_set_back_restarts_the_age() -> None:
    flushed, config = Flushed(), LogConfig(flush_ms=100)
    assert not flushed.flusher.needs_flush(1, config, 1_000_000)
    assert not flushed.flusher.needs_flush(1, config, 500)
    assert flushed.flusher.needs_flush(1, config, 600)


def test_no_flush_is_due_while_enough_are_under_way() -> None:
    flushed, config = Flushed(), LogConfig(flush_messages=1)
    for count in range(FLUSHES_AT_ONCE):
        assert flushed.flusher.needs_flush(10 + count, config, 0)
        flushed.flush(10 + count)
    assert not flushed.flusher.needs_flush(30, config, 0)
    flushed.files.run()
    assert flushed.flusher.needs_flush(30, config, 0)
