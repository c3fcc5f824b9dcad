from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from heirlog.server.directory_watch import LOOK_AGAIN_S, DirectoryWatch


def renamed(path: Path) -> None:
    path.rename(path.with_name("away"))


def replaced_by_an_empty_one(path: Path) -> None:
    renamed(path)
    path.mkdir()


def replaced_by_a_copy(path: Path) -> None:
    renamed(path)
    shutil.copytree(path.with_name("away"), path)


def replaced_by_a_file(path: Path) -> None:
    renamed(path)
    path.write_bytes(b"")


def removed(path: Path) -> None:
    shutil.rmtree(path)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (renamed, errno.ENOENT),
        (removed, errno.ENOENT),
        (replaced_by_an_empty_one, errno.ESTALE),
        (replaced_by_a_copy, errno.ESTALE),
        (replaced_by_a_file, errno.ESTALE),
    ],
)
def test_a_directory_that_is_not_at_its_path_any_more_is_reported_once(
    tmp_path: Path, change: Callable[[Path], None], error: int
) -> None:
    paths = [tmp_path / "kept", tmp_path / "lost", tmp_path / "never"]
    for path in paths[:2]:
        path.mkdir()
        (path / "file").write_bytes(b"content")
    found: list[tuple[str, int | None]] = []
    before = len(os.listdir("/dev/fd"))

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        watch = DirectoryWatch(loop, map(str, paths), lambda path, why: found.append((path, why.errno)))
        watch.look()
        # what is in it may change
        (paths[0] / "more").write_bytes(b"")
        (paths[1] / "file").unlink()
        watch.look()
        assert found == []
        change(paths[1])
        watch.look()
        watch.look()
        timers = [timer for timer in loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        assert len(timers) == 1 and timers[0].when() - loop.time() <= LOOK_AGAIN_S, "one at a time"
        watch.stop()
        assert timers[0].cancelled()
        assert len(os.listdir("/dev/fd")) <= before + 3, "no descriptor but those of the loop is left"

    asyncio.run(scenario())
    assert found == [(str(paths[1]), error)]
