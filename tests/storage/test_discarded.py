"""What truncations took away: how a copy comes to be, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from storage.logs import DIR, open_log, placed
from storage.memory_files import MemoryFiles

from heirlog.protocol.batch import decode_records, walk
from heirlog.storage.config import LogConfig
from heirlog.storage.discarded import (
    NO_AGE_LIMIT,
    SLICE_BYTES,
    DiscardedCopy,
    DiscardedLimits,
    DiscardedStore,
    parse_file_name,
)
from heirlog.storage.log import Log

PLENTY = DiscardedLimits(max_bytes=1 << 30, min_free_bytes=0, retention_ms=NO_AGE_LIMIT)
FOLDER = f"{DIR}/discarded"


class Disk(MemoryFiles):
    usable = 1 << 40

    def space(self, path: str) -> tuple[int, int]:
        return self.usable, self.usable

    def is_dir(self, path: str) -> bool:
        return path in self.directories


def filled(disk: Disk, upto: int, *, value: str = "v", epoch: int = 4, config: LogConfig | None = None) -> Log:
    log = open_log(disk, config)
    for offset in range(log.log_end_offset, upto):
        log.append_as_follower(placed(offset, epoch, f"{value}{offset}"), epoch)
    disk.run()
    return log


def store(disk: Disk, limits: DiscardedLimits = PLENTY, *dirs: str) -> DiscardedStore:
    return DiscardedStore(disk, "/data", lambda: dirs or (DIR,), limits)


def keep(disk: Disk, log: Log, start: int, where: DiscardedStore, epoch: int = 7) -> DiscardedCopy:
    """Copy from `start` on, as far as there is room."""
    copy = DiscardedCopy(disk, log, start, epoch, where)
    if copy.begin():
        while copy.step():
            pass
        received: list[OSError | None] = []
        copy.finish(received.append)
        disk.run()
        assert len(received) == 1
    return copy


def records(disk: Disk, path: str) -> Iterator[tuple[int, str]]:
    data = bytes(disk.inodes[path].data)
    for position, _ in walk(data):
        for record in decode_records(data, position):
            yield record.offset, (record.value or b"").decode()


def names(disk: Disk) -> list[str]:
    return disk.list(FOLDER) if FOLDER in disk.directories else []


def test_a_range_is_copied_with_its_offsets_under_a_name_that_says_where_it_began_and_which_election_gave_it_up() -> (
    None
):
    disk = Disk()
    copy = keep(disk, filled(disk, 10), 6, store(disk))
    assert names(disk) == ["00000000000000000006.7.log"]
    assert list(records(disk, copy.path)) == [(6, "v6"), (7, "v7"), (8, "v8"), (9, "v9")]
    assert parse_file_name(names(disk)[0]) == (6, 7)


def test_a_range_over_several_segments_and_slices_is_copied_whole() -> None:
    disk = Disk()
    log = filled(disk, 40, value="x" * (SLICE_BYTES // 8), config=LogConfig(segment_bytes=SLICE_BYTES))
    assert log.segment_count > 4
    copy = keep(disk, log, 3, store(disk))
    assert [offset for offset, _ in records(disk, copy.path)] == list(range(3, 40))


def test_the_name_is_given_when_the_bytes_are_durable_and_not_before() -> None:
    disk = Disk()
    copy = DiscardedCopy(disk, filled(disk, 3), 1, 7, store(disk))
    assert copy.begin() and not copy.step()
    copy.finish(lambda error: None)
    assert names(disk) == ["00000000000000000001.7.log.tmp"]
    disk.operations.clear()
    disk.run()
    assert disk.operations == [
        "flush 00000000000000000001.7.log.tmp",
        "rename 00000000000000000001.7.log.tmp 00000000000000000001.7.log",
        f"sync {FOLDER}",
        f"sync {DIR}",
    ]


def test_what_a_stop_left_unnamed_goes_when_the_store_is_read() -> None:
    disk = Disk()
    log = filled(disk, 3)
    copy = DiscardedCopy(disk, log, 1, 7, store(disk))
    assert copy.begin() and not copy.step()
    assert store(disk).kept == [] and names(disk) == []


def test_a_copy_made_again_by_a_log_that_has_lost_its_tail_does_not_replace_the_longer_one() -> None:
    disk = Disk()
    longer = keep(disk, filled(disk, 10), 6, store(disk))
    log = open_log(disk)
    log.truncate_to(8)
    disk.run()
    assert not DiscardedCopy(disk, log, 6, 7, store(disk)).begin()
    assert len(list(records(disk, longer.path))) == 4


def test_a_longer_range_replaces_the_shorter_one_and_counts_once() -> None:
    disk, where = Disk(), None
    log = filled(disk, 8)
    where = store(disk)
    keep(disk, log, 6, where)
    copy = keep(disk, filled(disk, 10), 6, where)
    assert len(list(records(disk, copy.path))) == 4
    assert where.size_bytes == len(disk.inodes[copy.path].data) == store(disk).size_bytes


def test_where_the_limit_is_smaller_the_begin_is_kept() -> None:
    disk = Disk()
    log = filled(disk, 10)
    one = len(placed(0, 4, "v0"))
    copy = keep(disk, log, 2, store(disk, PLENTY._replace(max_bytes=3 * one + 5)))
    assert [offset for offset, _ in records(disk, copy.path)] == [2, 3, 4]
    assert copy.next_offset == 5


def test_the_oldest_go_where_the_limit_is_reached() -> None:
    disk = Disk()
    log = filled(disk, 10)
    one = len(placed(0, 4, "v0"))
    where = store(disk, PLENTY._replace(max_bytes=4 * one))
    for epoch, start in ((7, 8), (8, 8), (9, 7)):
        disk.wall_ms += 1000
        keep(disk, log, start, where, epoch)
    assert names(disk) == ["00000000000000000007.9.log"]
    assert where.size_bytes == 3 * one


def test_nothing_is_copied_into_what_must_stay_free() -> None:
    disk = Disk()
    log = filled(disk, 10)
    one = len(placed(0, 4, "v0"))
    where = store(disk, PLENTY._replace(min_free_bytes=1000))
    disk.usable = 1000 + 2 * one
    copy = keep(disk, log, 2, where)
    assert copy.next_offset == 4
    disk.usable = 1000
    assert not DiscardedCopy(disk, log, 9, 8, where).begin()


def test_a_volume_that_others_fill_meanwhile_ends_the_copy() -> None:
    disk = Disk()
    log = filled(disk, 20, value="x" * (SLICE_BYTES // 4))
    where = store(disk, PLENTY._replace(min_free_bytes=1000))
    copy = DiscardedCopy(disk, log, 0, 7, where)
    assert copy.begin() and copy.step()
    copied = copy.next_offset
    disk.usable = 1000
    assert not copy.step()
    copy.finish(lambda error: None)
    disk.run()
    assert [offset for offset, _ in records(disk, copy.path)] == list(range(copied))


def test_what_copies_under_way_were_promised_nobody_else_gets() -> None:
    disk = Disk()
    log = filled(disk, 10)
    one = len(placed(0, 4, "v0"))
    where = store(disk, PLENTY._replace(max_bytes=3 * one))
    first = DiscardedCopy(disk, log, 8, 7, where)
    assert first.begin()
    second = DiscardedCopy(disk, log, 7, 8, where)
    assert second.begin() and not second.step()
    assert second.next_offset == 8
    first.drop()
    second.drop()
    assert where.size_bytes == 0 and names(disk) == []


def test_a_full_disk_leaves_nothing_behind() -> None:
    disk = Disk()
    log = filled(disk, 3)
    where = store(disk)
    disk.failing_appends = {".tmp"}
    copy = DiscardedCopy(disk, log, 1, 7, where)
    assert copy.begin()
    with pytest.raises(OSError):
        copy.step()
    copy.drop()
    assert names(disk) == [] and where.size_bytes == 0


def test_a_failed_flush_leaves_nothing_behind() -> None:
    disk = Disk()
    log = filled(disk, 3)
    copy = DiscardedCopy(disk, log, 1, 7, store(disk))
    assert copy.begin() and not copy.step()
    disk.flush_error = OSError(5, "Input/output error")
    received: list[OSError | None] = []
    copy.finish(received.append)
    disk.run()
    assert received == [disk.flush_error] and names(disk) == []


def test_files_go_when_they_are_too_old_and_when_their_volume_needs_the_room() -> None:
    disk = Disk()
    log = filled(disk, 10)
    where = store(disk, PLENTY._replace(retention_ms=5000, min_free_bytes=1000))
    for epoch in (7, 8, 9):
        disk.wall_ms += 2000
        keep(disk, log, 5, where, epoch)
    where.trim(disk.wall_ms + 1500)
    assert [name[-5] for name in names(disk)] == ["8", "9"]

    usable = iter([999, 1000])
    disk.space = lambda path: (1 << 40, next(usable))  # type: ignore[method-assign]  # the volume of this test
    where.trim(disk.wall_ms)
    assert [name[-5] for name in names(disk)] == ["9"]


def test_a_deleted_topic_takes_its_folder_along() -> None:
    disk = Disk()
    where = store(disk, PLENTY._replace(retention_ms=1))
    keep(disk, filled(disk, 10), 5, where)
    disk.rmdir(DIR)
    where.trim(10_000)
    assert where.size_bytes == 0


def test_records_that_the_log_no_longer_has_are_not_missed() -> None:
    disk = Disk()
    log = filled(disk, 10)
    log.increment_log_start(7)
    copy = keep(disk, log, 4, store(disk))
    assert next(iter(records(disk, copy.path))) == (7, "v7")
    log.increment_log_start(10)
    assert not DiscardedCopy(disk, log, 4, 8, store(disk)).begin()


@pytest.mark.parametrize("name", ["x.7.log", "00000000000000000006.log", "6.7.log.tmp", "6..log", "notes.txt"])
def test_other_files_are_left_alone(name: str) -> None:
    assert parse_file_name(name) is None


def test_a_log_opens_beside_its_folder() -> None:
    disk = Disk()
    keep(disk, filled(disk, 10), 6, store(disk))
    assert open_log(disk, recovery_point=0).log_end_offset == 10
