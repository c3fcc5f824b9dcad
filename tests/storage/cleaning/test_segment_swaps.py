from __future__ import annotations

import pytest
from storage.logs import DIR, placed
from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import walk
from heirlog.storage.cleaning.segment_swaps import SegmentSwaps
from heirlog.storage.cleaning.swap import CLEANED_SUFFIX
from heirlog.storage.log_segments import LogSegments
from heirlog.storage.partition_directory import PartitionDirectory
from heirlog.storage.segment import Segment


class Cleaned:
    """Segments at 0, 10 and 20 (active), of ten records each; the first two are rewritten as one with three."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.files.mkdirs(DIR)
        self.old = [self._segment(0), self._segment(10)]
        self.segments = LogSegments([*self.old, self._segment(20)])
        self.rewritten = self._segment(0, CLEANED_SUFFIX, records=3)
        for file in self.rewritten.write_indexes(CLEANED_SUFFIX):
            file.close()
        self.directory = PartitionDirectory(self.files, DIR)
        self.swaps = SegmentSwaps(self.directory, self.segments)

    def _segment(self, base_offset: int, suffix: str = "", records: int = 10) -> Segment:
        made = Segment.create(self.files, DIR, base_offset, suffix)
        for offset in range(base_offset, base_offset + records):
            data = placed(offset, 0, "x")
            made.append(data, [header for _, header in walk(data)], 4096)
        return made

    def logs(self) -> list[str]:
        """Names of `.log` files, each without leading zeros."""
        return [name.lstrip("0") or "0" for name in self.files.list(DIR) if ".log" in name]

    def directory_is_changed(self) -> bool:
        before = len(self.files.operations)
        self.directory.flush(lambda: lambda error: None)
        return f"sync {DIR}" in self.files.operations[before:]


@pytest.fixture
def cleaned() -> Cleaned:
    return Cleaned()


def test_a_prepared_swap_counts_on_disk_and_is_not_read(cleaned: Cleaned) -> None:
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    assert cleaned.segments.all[:2] == cleaned.old
    assert cleaned.logs() == [".log", ".log.swap", "10.log", "20.log"]


def test_after_the_takeover_reads_find_the_new_segment_and_the_old_files_stay(cleaned: Cleaned) -> None:
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    cleaned.swaps.take_over()
    assert [segment.base_offset for segment in cleaned.segments.all] == [0, 20]
    assert cleaned.segments.closed_at(15) == (cleaned.rewritten, 20)
    assert cleaned.logs() == [".log.deleted", ".log.swap", "10.log.deleted", "20.log"]


def test_a_complete_swap_has_the_final_names_and_the_old_files_go_on_request(cleaned: Cleaned) -> None:
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    remove = cleaned.swaps.take_over()
    cleaned.swaps.complete()
    assert cleaned.logs() == [".log", ".log.deleted", "10.log.deleted", "20.log"]
    remove()
    assert cleaned.logs() == [".log", "20.log"]
    before = len(cleaned.files.operations)
    remove()
    assert len(cleaned.files.operations) == before, "a second request finds nothing to remove"


def test_settling_abandons_a_swap_that_is_not_read_yet(cleaned: Cleaned) -> None:
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    cleaned.swaps.settle()
    assert cleaned.segments.all[:2] == cleaned.old
    assert cleaned.logs() == [".log", "10.log", "20.log"]
    assert cleaned.directory_is_changed()


def test_settling_completes_a_swap_that_is_read_already(cleaned: Cleaned) -> None:
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    cleaned.swaps.take_over()
    cleaned.swaps.settle()
    assert cleaned.segments.all[0] is cleaned.rewritten
    assert cleaned.logs() == [".log", ".log.deleted", "10.log.deleted", "20.log"]
    assert cleaned.directory_is_changed()


def test_without_a_swap_there_is_nothing_to_settle(cleaned: Cleaned) -> None:
    cleaned.swaps.settle()
    assert not cleaned.directory_is_changed() and cleaned.files.operations == []
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    cleaned.swaps.take_over()
    cleaned.swaps.complete()
    cleaned.swaps.settle()
    assert not cleaned.directory_is_changed(), "a complete swap is synced by the log cleaner"


def test_a_detached_log_leaves_the_swap_to_the_next_loading(cleaned: Cleaned) -> None:
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    cleaned.swaps.detach()
    before = len(cleaned.files.operations)
    cleaned.swaps.settle()
    assert len(cleaned.files.operations) == before
    assert cleaned.logs() == [".log", ".log.swap", "10.log", "20.log"]


def test_after_the_log_was_closed_the_old_files_are_not_removed(cleaned: Cleaned) -> None:
    cleaned.swaps.prepare(cleaned.old, cleaned.rewritten)
    remove = cleaned.swaps.take_over()
    cleaned.swaps.complete()
    cleaned.swaps.close()
    remove()
    assert cleaned.logs() == [".log", ".log.deleted", "10.log.deleted", "20.log"]
