from __future__ import annotations

import pytest
from storage.logs import batch
from storage.memory_files import MemoryFiles

from heirlog.protocol.types import Uuid
from heirlog.storage.config import LogConfig
from heirlog.storage.directory_checkpoints import DirectoryCheckpoints
from heirlog.storage.directory_names import DELETE_SUFFIX, STRAY_SUFFIX
from heirlog.storage.log import Log
from heirlog.storage.log_loader import load_log
from heirlog.storage.recovery import CLOSED, at_once
from heirlog.storage.removed_logs import RemovedLogs, Stray

PATH = "/data"
TOPIC_ID = Uuid(bytes(range(16)))
DISK_ERROR = OSError(5, "Input/output error")


class Directory:
    """A log directory, as far as its removed logs need one."""

    def __init__(self, files: MemoryFiles) -> None:
        files.mkdirs(PATH)
        self.files = files
        self.logs: dict[tuple[str, int], Log] = {}
        self.errors: list[OSError] = []
        self.checkpoints = DirectoryCheckpoints(files, PATH, self.logs, self._done)
        self.removed = RemovedLogs(files, PATH, self.checkpoints, self._done)

    def _done(self, error: OSError | None) -> None:
        if error is not None:
            self.errors.append(error)

    def log(self, topic: str = "t", *, in_checkpoints: bool = True) -> Log:
        """A new log with one record."""
        path = f"{PATH}/{topic}-0"
        self.files.mkdirs(path)
        log = self.logs[topic, 0] = at_once(load_log(self.files, path, topic, 0, LogConfig(), CLOSED, wall_ms=0))
        log.set_topic_id(TOPIC_ID)
        log.append_as_leader(batch("a"), 0, 0)
        log.flush(lambda error: None)
        self.files.run()
        if in_checkpoints:
            self.checkpoints.write({(topic, 0): 1}, lambda error: None)
            self.files.run()
        return log

    def take_out(self, topic: str = "t") -> Log:
        log = self.logs.pop((topic, 0))
        log.detach()
        return log

    def names(self) -> list[str]:
        """Names of directories, each without its hex digits."""
        found = [name for name in self.files.list(PATH) if self.files.is_dir(f"{PATH}/{name}")]
        return [name.partition(".")[0] + "-" + name.rpartition("-")[2] if "." in name else name for name in found]

    def checkpoint(self) -> bytes:
        return bytes(self.files.inodes[f"{PATH}/recovery-point-offset-checkpoint"].data)


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def directory(files: MemoryFiles) -> Directory:
    return Directory(files)


def again(directory: Directory, *, stopped_cleanly: bool = False) -> Directory:
    """The directory as the next incarnation opens it."""
    directory.files.run()
    found = Directory(directory.files)
    names = directory.files.list(PATH)
    found.removed.found_deleted(names, stopped_cleanly=stopped_cleanly)
    for name in names:
        if name.endswith(STRAY_SUFFIX):
            found.removed.found_stray(name)
    return found


def test_a_deletion_frees_the_name_at_once_and_removes_the_files_on_request(directory: Directory) -> None:
    directory.log()
    remove = directory.removed.delete(directory.take_out())
    assert directory.names() == ["t-0-delete"]
    directory.files.run()
    assert directory.names() == ["t-0-delete"] and directory.checkpoint() == b"0\n0\n"
    remove()
    assert directory.names() == []


def test_the_files_stay_until_no_checkpoint_names_the_log(directory: Directory) -> None:
    directory.log()
    directory.removed.delete(directory.take_out())()
    assert directory.names() == ["t-0-delete"] and directory.checkpoint().rstrip() == b"0\n1\nt 0 1"
    directory.files.run()
    assert directory.names() == [] and directory.checkpoint() == b"0\n0\n"


def test_a_log_that_no_checkpoint_names_goes_at_once(directory: Directory) -> None:
    directory.log(in_checkpoints=False)
    directory.removed.delete(directory.take_out())()
    assert directory.names() == []


def test_a_checkpoint_that_cannot_be_written_keeps_the_files(directory: Directory) -> None:
    directory.log()
    remove = directory.removed.delete(directory.take_out())
    directory.files.flush_error = DISK_ERROR
    directory.files.run()
    remove()
    assert directory.names() == ["t-0-delete"] and DISK_ERROR in directory.errors


def test_a_log_set_aside_is_flushed_and_keeps_its_files_and_its_name_is_marked_as_deleted(directory: Directory) -> None:
    log = directory.log()
    log.append_as_leader(batch("b"), 0, 0)
    path = directory.removed.set_aside(directory.take_out())
    assert directory.names() == ["t-0-delete", "t-0-stray"]
    directory.files.run()
    assert directory.names() == ["t-0-stray"], "the mark goes when no checkpoint names the log any more"
    inode = directory.files.inodes[f"{path}/{0:020d}.log"]
    assert inode.flushed == len(inode.data) == 2 * len(batch("a"))


def test_the_next_start_finds_what_was_set_aside(directory: Directory) -> None:
    directory.log()
    path = directory.removed.set_aside(directory.take_out())
    assert again(directory).removed.strays == [Stray(path.rpartition("/")[2], TOPIC_ID, 0)]


def test_a_directory_without_a_topic_id_or_of_another_name_is_no_stray(directory: Directory) -> None:
    directory.log()
    path = directory.removed.set_aside(directory.take_out())
    directory.files.run()
    directory.files.rename(path, f"{PATH}/t-0.0123-stray")
    directory.files.mkdirs(f"{PATH}/t-0.{'0' * 32}-stray")
    assert again(directory).removed.strays == []


def test_a_stray_that_was_checked_gets_its_name_back(directory: Directory) -> None:
    directory.log()
    directory.removed.set_aside(directory.take_out())
    found = again(directory)
    (stray,) = found.removed.strays
    found.removed.checked.append(stray)
    found.files.operations.clear()
    assert found.removed.take_back(stray, "t") == f"{PATH}/t-0"
    assert found.names() == ["t-0"] and found.files.operations[-1] == f"sync {PATH}"
    assert (found.removed.strays, found.removed.checked) == ([], [])


@pytest.mark.parametrize(("stopped_cleanly", "recovery_point"), [(True, 1), (False, 0)])
def test_after_an_unclean_stop_checkpoints_of_a_deleted_log_do_not_count(
    directory: Directory, stopped_cleanly: bool, recovery_point: int
) -> None:
    directory.log()
    directory.removed.delete(directory.take_out())
    directory.files.crash()
    found = again(directory, stopped_cleanly=stopped_cleanly)
    assert found.checkpoints.found(("t", 0)).recovery_point == recovery_point


def test_the_next_claim_writes_checkpoints_and_then_removes_what_was_deleted(directory: Directory) -> None:
    directory.log()
    directory.removed.delete(directory.take_out())
    directory.files.crash()
    found = again(directory)
    results: list[OSError | None] = []
    found.removed.finish_deletions(results.append)
    assert (found.names(), results) == (["t-0-delete"], [])
    found.files.run()
    assert (found.names(), results) == ([], [None]) and found.checkpoint() == b"0\n0\n"


def test_a_log_that_an_operator_removed_is_forgotten_at_the_next_claim(directory: Directory) -> None:
    directory.log()
    directory.files.rmdir(f"{PATH}/t-0")
    found = again(directory)
    found.removed.finish_deletions(lambda error: None)
    found.files.run()
    assert found.checkpoint() == b"0\n0\n"


def test_a_claim_without_deleted_logs_writes_nothing(directory: Directory) -> None:
    directory.files.operations.clear()
    results: list[OSError | None] = []
    directory.removed.finish_deletions(results.append)
    assert results == [None] and directory.files.operations == []


def test_a_claim_whose_checkpoints_fail_removes_nothing(directory: Directory) -> None:
    directory.log()
    directory.removed.delete(directory.take_out())
    directory.files.crash()
    found = again(directory)
    found.files.flush_error = DISK_ERROR
    results: list[OSError | None] = []
    found.removed.finish_deletions(results.append)
    found.files.run()
    assert results == [DISK_ERROR] and found.names() == ["t-0-delete"]
    assert [name for name in found.files.list(PATH) if name.endswith(DELETE_SUFFIX)]
