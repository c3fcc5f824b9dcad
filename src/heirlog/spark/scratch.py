"""Temporary files of this process's Spark, all in one folder; the next session removes what killed ones left.

    <temporary directory>/heirlog-spark-k3x1/lock     held by the process that made the folder, for as long as it lives
    <temporary directory>/heirlog-spark-k3x1/...      what Spark's JVM, its block manager and our wrappers keep there

A process removes its folder when it exits. A killed process cannot, and neither can its JVM if that was killed too.
Then Spark's own folders would stay in the temporary directory forever. Only folders of this name and of this user whose
lock is free are removed: the process that held the lock has ended.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "heirlog-spark-"
LOCK = "lock"
REMOVED_MAX = 100
"""Folders that one start removes at most, so that the user does not wait long."""
MIN_AGE_S = 60.0
"""A folder without a lock file is being created at this moment, unless it is older than this."""


@functools.cache
def folder() -> Path:
    """This process's folder."""
    remove_leftovers()
    while True:
        made = Path(tempfile.mkdtemp(prefix=PREFIX))
        if _locked(made):
            break
    atexit.register(_remove, made, os.getpid())
    return made


def remove_leftovers() -> None:
    """Folders of processes that ended without removing them."""
    removed = 0
    for entry in os.scandir(tempfile.gettempdir()):
        if removed == REMOVED_MAX:
            return
        if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False) and _owner_has_ended(entry):
            shutil.rmtree(entry.path, ignore_errors=True)
            removed += 1


def _owner_has_ended(entry: os.DirEntry[str]) -> bool:
    try:
        if entry.stat(follow_symlinks=False).st_uid != os.getuid():
            return False
        descriptor = os.open(os.path.join(entry.path, LOCK), os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _is_old(entry)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _is_old(entry: os.DirEntry[str]) -> bool:
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > MIN_AGE_S
    except FileNotFoundError:
        return False


def _locked(made: Path) -> bool:
    """Hold the lock until this process ends. False if another process took the new folder for an abandoned one."""
    try:
        descriptor = os.open(made / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return os.path.samestat(os.fstat(descriptor), os.stat(made / LOCK))
    except FileNotFoundError:
        return False


def _remove(made: Path, owner: int) -> None:
    # a process that was forked from the owner exits as well
    if os.getpid() == owner:
        shutil.rmtree(made, ignore_errors=True)
