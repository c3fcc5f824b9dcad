from __future__ import annotations

import pytest
from storage.memory_files import MemoryFiles

from heirlog.storage.atomic import AtomicFile, read_file, replace_file


def test_content_is_flushed_before_it_gets_its_name_and_the_directory_synced_after() -> None:
    files = MemoryFiles()
    results: list[OSError | None] = []
    AtomicFile(files, "/d", "f").write(b"x", results.append)
    files.run()
    assert files.operations == ["flush f.tmp", "rename f.tmp f", "sync /d"]
    assert results == [None] and read_file(files, "/d/f") == b"x"


def test_only_the_newest_of_several_waiting_writes_is_written_and_all_are_answered() -> None:
    files = MemoryFiles()
    results: list[str] = []
    file = AtomicFile(files, "/d", "f")
    for name in "abc":
        file.write(name.encode(), lambda error, name=name: results.append(name))
    files.run()
    assert results == ["a", "b", "c"]
    assert files.operations.count("flush f.tmp") == 2
    assert read_file(files, "/d/f") == b"c"


def test_a_failed_flush_keeps_the_old_content_and_answers_everybody() -> None:
    files = MemoryFiles()
    file = AtomicFile(files, "/d", "f")
    file.write(b"old", lambda error: None)
    files.run()
    files.flush_error = OSError(5, "Input/output error")
    results: list[OSError | None] = []
    file.write(b"new", results.append)
    file.write(b"newer", results.append)
    files.run()
    assert results == [files.flush_error] * 2
    assert read_file(files, "/d/f") == b"old"


def test_a_temporary_file_that_cannot_be_written_raises_at_once() -> None:
    files = MemoryFiles()
    files.failing_appends.add(".tmp")
    with pytest.raises(OSError):
        AtomicFile(files, "/d", "f").write(b"x", lambda error: None)


def test_a_closed_file_carries_nothing_on() -> None:
    files = MemoryFiles()
    results: list[OSError | None] = []
    file = AtomicFile(files, "/d", "f")
    file.write(b"x", results.append)
    file.close()
    files.run()
    assert results == [] and read_file(files, "/d/f") is None


def test_durable_says_whether_something_is_on_its_way() -> None:
    files = MemoryFiles()
    file = AtomicFile(files, "/d", "f")
    assert file.durable
    file.write(b"x", lambda error: None)
    results: list[OSError | None] = []
    file.when_durable(results.append)
    assert not file.durable
    files.run()
    assert file.durable and results == [None]


def test_a_file_is_replaced_once_in_the_same_order() -> None:
    files = MemoryFiles()
    results: list[OSError | None] = []
    replace_file(files, "/d", "f", [b"ab", b"c"], results.append, suffix=".part")
    assert results == [] and read_file(files, "/d/f") is None
    files.run()
    assert files.operations == ["flush f.part", "rename f.part f", "sync /d"]
    assert results == [None] and read_file(files, "/d/f") == b"abc"


def test_what_a_crash_left_in_the_temporary_file_does_not_get_into_the_new_one() -> None:
    files = MemoryFiles()
    files.open("/d/f.tmp", create=True).append(b"longer than the new content")
    replace_file(files, "/d", "f", [b"new"], lambda error: None)
    files.run()
    assert read_file(files, "/d/f") == b"new"


def test_a_replacement_whose_flush_fails_leaves_the_old_file() -> None:
    files = MemoryFiles()
    replace_file(files, "/d", "f", [b"old"], lambda error: None)
    files.run()
    files.flush_error = OSError(5, "Input/output error")
    results: list[OSError | None] = []
    replace_file(files, "/d", "f", [b"new"], results.append)
    files.run()
    assert results == [files.flush_error]
    assert read_file(files, "/d/f") == b"old"
