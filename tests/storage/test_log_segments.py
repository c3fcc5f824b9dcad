from __future__ import annotations

import pytest
from storage.logs import DIR, placed
from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import walk
from heirlog.storage.log_segments import LogSegments
from heirlog.storage.segment import Segment


@pytest.fixture
def files() -> MemoryFiles:
    made = MemoryFiles()
    made.mkdirs(DIR)
    return made


def segment(files: MemoryFiles, base_offset: int, records: int = 0) -> Segment:
    made = Segment.create(files, DIR, base_offset)
    for offset in range(base_offset, base_offset + records):
        data = placed(offset, 0, "x")
        made.append(data, [header for _, header in walk(data)], 4096)
    return made


def three(files: MemoryFiles) -> LogSegments:
    """Of 40, 55 and 5 records."""
    return LogSegments([segment(files, 0, 40), segment(files, 40, 55), segment(files, 95, 5)])


def bases(segments: LogSegments) -> list[int]:
    """Base offsets, as the list and the lookup by offset agree on them."""
    found = [each.base_offset for each in segments.all]
    assert [segments.place_of(base) for base in found] == list(range(len(found)))
    assert segments.active is segments.all[-1]
    return found


def test_an_offset_belongs_to_the_last_segment_that_begins_at_or_below_it(files: MemoryFiles) -> None:
    segments = three(files)
    assert [segments.place_of(offset) for offset in (-1, 0, 39, 40, 94, 95, 1000)] == [-1, 0, 0, 1, 1, 2, 2]
    assert [segments.closed_at(offset) for offset in (0, 39, 40, 94)] == [
        (segments.all[0], 40),
        (segments.all[0], 40),
        (segments.all[1], 95),
        (segments.all[1], 95),
    ]


def test_records_from_an_offset_on_are_in_its_segment_and_all_later_ones(files: MemoryFiles) -> None:
    segments = three(files)
    assert segments.from_offset(39) == segments.all
    assert segments.from_offset(40) == segments.all[1:]
    assert segments.from_offset(200) == segments.all[2:]
    assert segments.from_offset(-1) == segments.all, "below the oldest segment all of them count"


def test_the_size_is_that_of_all_files(files: MemoryFiles) -> None:
    assert three(files).size_bytes == 100 * len(placed(0, 0, "x")) == sum(len(i.data) for i in files.inodes.values())


def test_an_added_segment_is_the_active_one(files: MemoryFiles) -> None:
    segments = three(files)
    before = segments.all
    segments.add(segment(files, 100))
    assert bases(segments) == [0, 40, 95, 100]
    assert len(before) == 3, "a list that a reader walks through does not change"


def test_dropped_segments_are_unlinked_the_newest_first(files: MemoryFiles) -> None:
    segments = three(files)
    segments.drop_from(1)
    assert bases(segments) == [0]
    assert files.operations == [f"unlink {95:020d}.log", f"unlink {40:020d}.log"]
    assert files.list(DIR) == [f"{0:020d}.log"]


def test_nothing_is_dropped_behind_the_active_segment(files: MemoryFiles) -> None:
    segments = three(files)
    segments.drop_from(3)
    assert bases(segments) == [0, 40, 95] and files.operations == []


def test_after_all_segments_were_dropped_the_next_one_begins_at_any_offset(files: MemoryFiles) -> None:
    segments = three(files)
    segments.drop_from(0)
    segments.add(segment(files, 7))
    assert bases(segments) == [7] and files.list(DIR) == [f"{7:020d}.log"]


def test_the_oldest_segments_are_removed_from_the_list_and_not_from_the_disk(files: MemoryFiles) -> None:
    segments = three(files)
    removed = segments.remove_oldest(2)
    assert [each.base_offset for each in removed] == [0, 40] and bases(segments) == [95]
    assert len(files.list(DIR)) == 3


def test_a_rewritten_segment_takes_the_place_of_its_neighbours(files: MemoryFiles) -> None:
    segments = three(files)
    rewritten = segment(files, 0, 10)
    segments.replace(segments.all[:2], rewritten)
    assert bases(segments) == [0, 95] and segments.closed_at(50) == (rewritten, 95)


def test_a_single_segment_in_the_middle_can_be_replaced(files: MemoryFiles) -> None:
    segments = three(files)
    rewritten = segment(files, 40, 10)
    first, middle, last = segments.all
    segments.replace([middle], rewritten)
    assert segments.all == [first, rewritten, last] and bases(segments) == [0, 40, 95]
