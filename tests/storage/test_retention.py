from __future__ import annotations

from dataclasses import replace

import pytest
from storage.logs import DIR, batch, contents, open_log
from storage.memory_files import MemoryFiles

from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log

CONFIG = LogConfig(segment_bytes=200, retention_ms=-1, retention_bytes=-1)


def filled(files: MemoryFiles, config: LogConfig, count: int = 6) -> Log:
    """Two records per segment, at 0, 10, 20 ... ms."""
    log = open_log(files, config)
    for i in range(count):
        log.append_as_leader(batch("v", timestamp_ms=10 * i), 0, 0)
    files.run()
    assert log.segment_count == count // 2
    return log


def segments(files: MemoryFiles) -> list[int]:
    return [int(name[:-4]) for name in files.list(DIR) if name.endswith(".log")]


def test_segments_whose_newest_record_is_too_old_go() -> None:
    files = MemoryFiles()
    log = filled(files, replace(CONFIG, retention_ms=100))
    assert log.delete_old_segments(130, 6) == 1
    files.run()
    assert (log.log_start_offset, segments(files)) == (2, [2, 4])
    assert log.epochs.entries == [(0, 2)]


def test_segments_go_while_the_rest_is_still_large_enough() -> None:
    files = MemoryFiles()
    log = filled(files, CONFIG)
    size = log.size_bytes // 3
    log.config = replace(CONFIG, retention_bytes=2 * size)
    assert log.delete_old_segments(0, 6) == 1
    log.config = replace(CONFIG, retention_bytes=size + 1)
    assert log.delete_old_segments(0, 6) == 0


def test_nothing_above_the_high_watermark_goes() -> None:
    log = filled(MemoryFiles(), replace(CONFIG, retention_ms=0))
    assert log.delete_old_segments(10_000, 3) == 1
    assert log.log_start_offset == 2


def test_an_active_segment_that_is_too_old_is_rolled_and_goes_too() -> None:
    files = MemoryFiles()
    log = filled(files, replace(CONFIG, retention_ms=0))
    assert log.delete_old_segments(10_000, 6) == 3
    files.run()
    assert (log.log_start_offset, log.log_end_offset, segments(files)) == (6, 6, [6])
    assert log.append_as_leader(batch("x"), 0, 0).first_offset == 6
    assert log.delete_old_segments(10_000, 6) == 0


def test_segments_below_the_log_start_go_whatever_retention_says() -> None:
    files = MemoryFiles()
    log = filled(files, replace(CONFIG, delete_enabled=False, retention_ms=0))
    assert log.delete_old_segments(10_000, 6) == 0
    log.increment_log_start(5)
    assert log.delete_old_segments(10_000, 6) == 2
    files.run()
    assert segments(files) == [4] and [o for o, _ in contents(log)] == [5]


def test_records_without_timestamps_are_as_old_as_their_file() -> None:
    files = MemoryFiles()
    files.wall_ms = 1000
    log = open_log(files, replace(CONFIG, retention_ms=100))
    for _ in range(3):
        log.append_as_leader(batch("v", timestamp_ms=-1), 0, 1000)
    assert log.delete_old_segments(1100, 3) == 0
    assert log.delete_old_segments(1101, 3) == 2


def test_one_segment_is_unlinked_at_a_time_so_that_no_crash_leaves_a_hole() -> None:
    files = MemoryFiles()
    log = filled(files, replace(CONFIG, retention_ms=0))
    log.delete_old_segments(10_000, 4)
    assert segments(files) == [2, 4]
    files.run()
    assert segments(files) == [4]


def test_a_region_read_before_the_deletion_stays_readable() -> None:
    files = MemoryFiles()
    log = filled(files, replace(CONFIG, retention_ms=0))
    region = log.read(0, 1000, 6).regions[0]
    log.delete_old_segments(10_000, 6)
    assert len(region.read()) == region.size


@pytest.mark.parametrize("steps", range(6))
def test_retention_interrupted_by_a_crash_leaves_a_log_without_a_hole(steps: int) -> None:
    files = MemoryFiles()
    log = filled(files, replace(CONFIG, retention_ms=0))
    log.flush(lambda error: None)
    files.run()
    log.delete_old_segments(10_000, 4)
    for _ in range(min(steps, len(files.pending))):
        files.pending.pop(0)()
    files.crash()
    again = open_log(files, CONFIG, recovery_point=6, log_start_offset=4)
    assert again.log_start_offset == 4 and [o for o, _ in contents(again)] == [4, 5]
