"""Files and directories that are complete and flushed or do not exist, and locks that end with their process.

A file is written in its directory under a name that readers of tables skip (it begins with a dot), flushed, and
renamed; then its directory is flushed. A kill leaves at most that other file, which the next attempt overwrites.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from heirlog.spark.pipeline.spec import PipelineError


def sync_file(path: Path) -> None:
    with open(path, "rb") as handle:
        os.fsync(handle.fileno())


def sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(place: Path) -> None:
    """Flush `place` and every file and directory below it."""
    for folder, _, files in os.walk(place, topdown=False):
        for name in files:
            sync_file(Path(folder, name))
        sync_directory(Path(folder))


def unfinished(file: Path) -> Path:
    """The name under which `file` is written before the rename."""
    return file.with_name(f".{file.name}.new")


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """What the block writes becomes `file`, flushed, when the block ends without an error."""
    with open(unfinished(file), "wb") as handle:
        yield handle
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(unfinished(file), file)
    sync_directory(file.parent)


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    """Write an object, indented, because users read these files."""
    with replacing(file) as handle:
        handle.write(json.dumps(value, indent=1).encode())


def read_json(file: Path) -> dict[str, Any]:
    """The object in `file`, empty where there is no such file."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    assert isinstance(found, dict)
    return found


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Locks `place` for this run or compaction while the block runs, with a file next to it. Raises PipelineError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.parent / f".{place.name}.lock", "w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"another run or compaction works on {place}: wait for it, or stop it first") from None
        yield
