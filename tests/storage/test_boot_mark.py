"""Whether the logs of a directory may lack records, from one start to the next."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from storage.logs import batch
from storage.memory_files import MemoryFile, MemoryFiles

from heirlog.protocol.types import BrokerEpoch, Uuid
from heirlog.storage.config import LogConfig
from heirlog.storage.identity import format_directory
from heirlog.storage.log_directory import LogDirectory
from heirlog.storage.recovery import at_once

PATH, FILE = "/data", "/data/.heirlog_boot"
ID = Uuid(bytes(range(16)))


@pytest.fixture
def files() -> MemoryFiles:
    """A directory with a log of one record, that was not stopped yet."""
    files = MemoryFiles()
    format_directory(files, PATH, "cluster", 1, ID, lambda error: None)
    files.run()
    directory = started(files)
    log = directory.create_log("t", 0, ID, LogConfig())
    log.append_as_leader(batch("a"), 0, 0)
    log.flush(lambda error: None)
    files.run()
    return files


def started(files: MemoryFiles) -> LogDirectory:
    directory = loaded(files)
    directory.claim(lambda error: None)
    files.run()
    return directory


def loaded(files: MemoryFiles) -> LogDirectory:
    directory = LogDirectory.open(files, PATH, cluster_id="cluster", node_id=1)
    directory.load_logs(lambda topic: LogConfig(), 0, lambda error: None)
    files.run()
    return directory


def may_lack(directory: LogDirectory) -> bool:
    return directory.logs["t", 0].may_lack_records


def settle(files: MemoryFiles, directory: LogDirectory) -> None:
    """A leader has decided what is committed."""
    directory.logs["t", 0].may_lack_records = False
    directory.write_checkpoints({})
    files.run()


def stop(files: MemoryFiles, directory: LogDirectory) -> None:
    directory.close_cleanly(BrokerEpoch(5), lambda error: None)
    files.run()


def lose_power(files: MemoryFiles) -> None:
    files.crash()
    files.boot_id += "+"


def test_a_killed_process_has_lost_nothing(files: MemoryFiles) -> None:
    files.pending.clear()
    assert not may_lack(started(files))
    assert not may_lack(started(files))


@pytest.mark.parametrize("named", ["other", "none", "torn", "unknown"])
def test_after_another_start_of_the_machine_records_may_be_missing(files: MemoryFiles, named: str) -> None:
    if named == "other":
        lose_power(files)
    elif named == "none":
        files.unlink(FILE)
    elif named == "torn":
        del files.inodes[FILE].data[5:]
    else:
        files.boot_id = ""
    assert may_lack(started(files))


@pytest.mark.parametrize("replaced", [PATH, f"{PATH}/meta.properties"])
def test_another_directory_in_the_place_of_this_one_may_lack_records(files: MemoryFiles, replaced: str) -> None:
    files.identities[replaced] = "of a backup, or a volume that was attached again"
    assert may_lack(started(files))
    settle(files, loaded(files))
    assert not may_lack(started(files))


def test_a_directory_may_move_between_a_clean_stop_and_the_next_start(files: MemoryFiles) -> None:
    stop(files, started(files))
    files.identities[PATH] = "of a new disk"
    directory = started(files)
    assert not may_lack(directory)
    assert not may_lack(started(files))


@pytest.mark.parametrize("is_written_again", [False, True])
def test_after_a_failed_flush_records_may_be_missing(files: MemoryFiles, is_written_again: bool) -> None:
    """In the same start of the machine: the page cache drops what it could not write."""
    directory = started(files)
    log = directory.logs["t", 0]
    log.append_as_leader(batch("b"), 0, 0)
    log.roll()
    files.flush_error = OSError(5, "Input/output error")
    if is_written_again:
        log.may_lack_records = True
        directory.write_checkpoints({})
    files.run()
    files.flush_error = None
    files.run()
    assert directory.failure is not None
    assert not files.exists(FILE)
    assert may_lack(started(files))


def test_a_stop_does_not_wait_for_a_mark_that_was_removed(files: MemoryFiles) -> None:
    directory = started(files)
    directory.logs["t", 0].may_lack_records = True
    stopped: list[OSError | None] = []
    directory.close_cleanly(BrokerEpoch(5), stopped.append)
    error = OSError(5, "Input/output error")
    directory._write_failed(error)
    files.run()
    assert stopped == [error]
    assert not files.exists(f"{PATH}/.kafka_cleanshutdown")


@pytest.mark.parametrize(("newest", "doubts"), [(4, False), (5, False), (6, True)])
def test_a_copy_from_before_a_later_start_may_lack_records(files: MemoryFiles, newest: int, doubts: bool) -> None:
    stop(files, started(files))
    directory = loaded(files)
    directory.doubt_older_copy(BrokerEpoch(newest))
    directory.claim(lambda error: None)
    files.run()
    assert may_lack(directory) is doubts
    assert may_lack(started(files)) is doubts, "also a start later"


def test_a_clean_stop_has_flushed_everything(files: MemoryFiles) -> None:
    stop(files, started(files))
    lose_power(files)
    assert not may_lack(started(files))
    assert json.loads(bytes(files.inodes[FILE].data))["bootId"] == files.boot_id


@pytest.mark.parametrize("ending", ["killed", "killed-before-registration", "stopped", "power-cut"])
def test_it_is_known_until_a_leader_has_decided(files: MemoryFiles, ending: str) -> None:
    lose_power(files)
    directory = loaded(files) if ending == "killed-before-registration" else started(files)
    if ending == "stopped":
        stop(files, directory)
    elif ending == "power-cut":
        lose_power(files)
    again = started(files)
    assert may_lack(again)
    settle(files, again)
    assert not may_lack(started(files))
    stop(files, again)
    assert not may_lack(started(files))


def test_a_clean_stop_waits_until_it_is_stored(files: MemoryFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_power(files)
    directory = started(files)
    directory.logs["t", 0].may_lack_records = False
    flush, slow = files.flush, list[Callable[[], None]]()

    def flush_slowly(file: MemoryFile, on_flushed: Callable[[OSError | None], None]) -> None:
        if file.path.startswith(FILE):
            slow.append(lambda: flush(file, on_flushed))
        else:
            flush(file, on_flushed)

    monkeypatch.setattr(files, "flush", flush_slowly)
    stop(files, directory)
    assert not files.exists(f"{PATH}/.kafka_cleanshutdown")
    slow.pop()()
    files.run()
    assert files.exists(f"{PATH}/.kafka_cleanshutdown") and not may_lack(started(files))


def test_each_log_is_known_by_its_name(files: MemoryFiles) -> None:
    directory = started(files)
    directory.create_log("u", 0, Uuid(bytes(range(16, 32))), LogConfig()).may_lack_records = True
    directory.write_checkpoints({})
    files.run()
    again = started(files)
    assert again.logs["u", 0].may_lack_records and not may_lack(again)


def test_what_recovery_has_cut_may_have_been_committed(files: MemoryFiles) -> None:
    data = files.inodes["/data/t-0/00000000000000000000.log"].data
    data[-1] ^= 1
    assert may_lack(started(files))


@pytest.mark.parametrize("damage", ["cut", "checkpoint"])
def test_a_log_that_is_not_as_the_clean_stop_has_left_it_may_lack_records(files: MemoryFiles, damage: str) -> None:
    """Its high watermark, which a follower knows late, need not show it."""
    stop(files, started(files))
    if damage == "cut":
        del files.inodes["/data/t-0/00000000000000000000.log"].data[:]
    else:
        del files.inodes["/data/recovery-point-offset-checkpoint"].data[:]
    assert may_lack(started(files))
    assert may_lack(started(files)), "also a start later"


def test_a_log_that_was_set_aside_may_lack_records_when_it_comes_back(files: MemoryFiles) -> None:
    directory = started(files)
    directory.set_aside("t", 0)
    again = started(files)
    (stray,) = again.removed.strays
    at_once(again.check_stray(stray, "t", LogConfig(), 0)).close()
    again.removed.checked.append(stray)
    assert again.bring_back(stray, "t", LogConfig(), 0).may_lack_records


def test_a_log_that_lacks_nothing_costs_no_write(files: MemoryFiles) -> None:
    directory = started(files)
    written = len(files.operations)
    directory.write_checkpoints({})
    files.run()
    assert not [each for each in files.operations[written:] if "heirlog_boot" in str(each)]
    stop(files, directory)
    before = bytes(files.inodes[FILE].data)
    started(files)
    assert bytes(files.inodes[FILE].data) == before


def test_where_the_system_has_no_boot_id_a_clean_stop_still_counts(files: MemoryFiles) -> None:
    files.boot_id = ""
    directory = started(files)
    assert may_lack(directory)
    settle(files, directory)
    stop(files, directory)
    assert not may_lack(started(files))
