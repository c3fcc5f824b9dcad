from __future__ import annotations

import pytest
from storage.cleaning.compacting import keyed
from storage.logs import placed
from storage.memory_files import MemoryFiles

from heirlog.env import Region
from heirlog.protocol.batch import HEADER_SIZE
from heirlog.storage.cleaning.records import end_of_empty, filler


def region_of(*batches: bytes) -> Region:
    file = MemoryFiles().open("/f", create=True)
    file.append(b"before")
    for batch in batches:
        file.append(batch)
    return Region(file, len(b"before"), file.size - len(b"before"))


def empty(first: int, last: int) -> bytes:
    return filler(first, last, 0)[0]


def with_a_record_of_header_size(offset: int) -> bytes:
    """A batch with one record, exactly as large as two batches without."""
    found = bytes(placed(offset, 0, "x" * (HEADER_SIZE - 7)))
    assert len(found) == 2 * HEADER_SIZE
    return found


def test_batches_without_records_end_behind_the_last_of_them() -> None:
    assert end_of_empty(region_of(empty(5, 9))) == 10
    assert end_of_empty(region_of(empty(5, 9), empty(10, 30))) == 31


@pytest.mark.parametrize(
    "batches",
    [
        [bytes(keyed(("a", "1")))],
        [with_a_record_of_header_size(0)],
        [empty(0, 4), with_a_record_of_header_size(5)],
        [with_a_record_of_header_size(0), empty(1, 4)],
    ],
    ids=["of another size", "of the size of two headers", "behind an empty batch", "before an empty batch"],
)
def test_a_region_with_a_record_is_not_empty(batches: list[bytes]) -> None:
    assert end_of_empty(region_of(*batches)) is None
