"""The folder for a drill's picture and verdict.

    --out not given    drill-NAME here, or drill-NAME-2 and so on: no drill overwrites what another one has left
    --out given        a new or an empty folder, or that of an earlier drill, whose files are replaced

It is created before the drill begins, so that ten minutes are not played for a folder that cannot be created.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

from heirlog.drill.observe import DrillFailure

PICTURE, VERDICT = "timeline.svg", "verdict.json"
EVIDENCE = ("faults.json", "history.jsonl", "node-*.log", "metadata-*")
"""Of a chaos drill that failed."""


def created(default: str, given: Path | None) -> Path:
    """The absolute path of an empty folder, or of one whose earlier drill is removed. Raises DrillFailure."""
    try:
        if given is None:
            return _first_free(default)
        folder = given.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise DrillFailure(f"{given} is read-only: name another folder with --out")
        if any(folder.iterdir()):
            if not (folder / VERDICT).exists():
                raise DrillFailure(f"{given} holds files that are not of a drill: name a new folder with --out")
            _empty(folder)
        return folder
    except OSError as error:
        raise DrillFailure(
            f"{given or default} cannot be created ({error.strerror}): name another folder with --out"
        ) from error


def has_verdict(folder: Path) -> bool:
    return (folder / VERDICT).exists()


def remove_if_empty(folder: Path) -> None:
    """After a drill that has left nothing."""
    with suppress(OSError):
        folder.rmdir()


def remove(folder: Path) -> None:
    """With what a drill has written there, which has not ended: it can write nothing more."""
    with suppress(OSError):
        _empty(folder)
    remove_if_empty(folder)


def _first_free(default: str) -> Path:
    for number in count(1):
        folder = Path(default if number == 1 else f"{default}-{number}").absolute()
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError("there are more numbers than folders")


def _empty(folder: Path) -> None:
    for pattern in (PICTURE, VERDICT, *EVIDENCE):
        for path in folder.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
