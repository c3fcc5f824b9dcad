from __future__ import annotations

from storage.memory_files import MemoryFiles

from heirlog.storage.epochs import LeaderEpochCache


def cache(files: MemoryFiles, *entries: tuple[int, int]) -> LeaderEpochCache:
    files.mkdirs("/d")
    epochs = LeaderEpochCache(files, "/d", lambda error: None)
    epochs.loaded()
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def test_the_end_of_an_epoch_is_the_start_of_the_next_known_one() -> None:
    epochs = cache(MemoryFiles(), (2, 5), (4, 9))
    ends = [epochs.end_offset_for(e, 12) for e in (-1, 0, 1, 2, 3, 4, 5)]
    assert ends == [(-1, -1), (0, 5), (1, 5), (2, 9), (2, 9), (4, 12), (-1, -1)]
    assert cache(MemoryFiles()).end_offset_for(0, 12) == (-1, -1)


def test_the_log_start_moves_the_first_epoch() -> None:
    # K053: epochs 0, 2, 3; the log start moves into epoch 2
    epochs = cache(MemoryFiles(), (0, 0), (2, 5), (3, 8))
    epochs.truncate_from_start(6)
    assert epochs.entries == [(2, 6), (3, 8)]
    assert epochs.end_offset_for(0, 17) == (0, 6)
    epochs.truncate_from_start(3)
    assert epochs.entries == [(2, 6), (3, 8)]


def test_an_entry_that_contradicts_later_ones_replaces_them() -> None:
    epochs = cache(MemoryFiles(), (1, 0), (2, 10), (3, 20))
    epochs.assign(4, 10)
    assert epochs.entries == [(1, 0), (4, 10)]


def test_an_epoch_that_began_earlier_is_not_moved() -> None:
    epochs = cache(MemoryFiles(), (1, 0), (2, 10))
    epochs.assign(2, 15)
    assert epochs.entries == [(1, 0), (2, 10)]


def test_truncation_forgets_epochs_that_begin_at_or_above_the_cut() -> None:
    epochs = cache(MemoryFiles(), (1, 0), (2, 10), (3, 20))
    epochs.truncate_from_end(10)
    assert epochs.entries == [(1, 0)]
    assert [epochs.epoch_for_offset(o) for o in (0, 50)] == [1, 1]


def test_the_file_is_kafkas_text_and_comes_back() -> None:
    files = MemoryFiles()
    epochs = cache(files, (1, 0), (2, 10))
    assert not epochs.durable
    files.run()
    assert epochs.durable
    assert bytes(files.inodes["/d/leader-epoch-checkpoint"].data).rstrip() == b"0\n2\n1 0\n2 10"
    assert cache(files).entries == [(1, 0), (2, 10)]


def test_many_changes_in_a_row_are_written_as_two_files() -> None:
    files = MemoryFiles()
    cache(files, *((e, e) for e in range(10)))
    files.run()
    assert [o for o in files.operations if o.startswith("rename")] == [
        "rename leader-epoch-checkpoint.tmp leader-epoch-checkpoint"
    ] * 2
    assert cache(files).latest == 9


def test_the_epoch_that_a_leader_begins_is_written_with_the_next_flush() -> None:
    files = MemoryFiles()
    epochs = cache(files)
    epochs.begin(3, 0)
    files.run()
    assert epochs.entries == [(3, 0)] and not epochs.durable
    assert cache(files).entries == [], "nothing was written"
    received: list[OSError | None] = []
    epochs.when_durable(received.append)
    files.run()
    assert received == [None] and epochs.durable
    assert cache(files).entries == [(3, 0)]
    epochs.begin(3, 5)
    assert epochs.durable, "the same epoch is no news"


def test_any_other_change_writes_the_epoch_that_a_leader_began_too() -> None:
    files = MemoryFiles()
    epochs = cache(files, (1, 0))
    epochs.begin(2, 4)
    epochs.assign(3, 8)
    files.run()
    assert epochs.durable
    assert cache(files).entries == [(1, 0), (2, 4), (3, 8)]


def test_who_flushes_is_told_that_the_file_cannot_be_written() -> None:
    files = MemoryFiles()
    epochs = cache(files)
    epochs.begin(3, 0)
    files.failing_appends.add("leader-epoch-checkpoint.tmp")
    received: list[OSError | None] = []
    epochs.when_durable(received.append)
    assert [type(error) for error in received] == [OSError]


def test_an_unreadable_file_counts_as_empty() -> None:
    files = MemoryFiles()
    files.mkdirs("/d")
    for content in (b"", b"1\n0\n", b"0\n2\n1 0\n", b"0\n1\n1 x\n", b"\xff\xfe", b"0\n1\n1 2 3\n"):
        file = files.open("/d/leader-epoch-checkpoint", create=True)
        file.truncate(0)
        file.append(content)
        assert cache(files).entries == []
