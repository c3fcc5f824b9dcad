"""Whether the directories of a node's configuration are still those that it has opened.

Files that are open can be used after their directory was renamed or removed, or something else was mounted in its
place. Without this a node would continue, and acknowledge records that its next start does not find; its checkpoints
would go to the directory that has taken the place. The descriptor of a directory says which one it was.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

LOOK_AGAIN_S: Final = 2.0


class DirectoryWatch:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, paths: Iterable[str], on_replaced: Callable[[str, OSError], None]
    ) -> None:
        """paths: those that are no directories are ignored. on_replaced: called once for each."""
        self._loop = loop
        self._on_replaced = on_replaced
        self._opened: dict[str, int] = {}
        self._next: asyncio.TimerHandle | None = None
        for path in paths:
            with suppress(OSError):  # the node knows what to say about it
                self._opened[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def look(self) -> None:
        """Now, and then again and again until `stop`."""
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop.call_later(LOOK_AGAIN_S, self.look)
        for path in list(self._opened):
            error = self._error_of(path)
            if error is not None:
                os.close(self._opened.pop(path))
                self._on_replaced(path, error)

    def _error_of(self, path: str) -> OSError | None:
        try:
            found = os.stat(path)
        except OSError as error:
            return error
        if os.path.samestat(found, os.fstat(self._opened[path])):
            return None
        return OSError(errno.ESTALE, "another directory has taken the place of the one that this node has opened", path)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
        for descriptor in self._opened.values():
            os.close(descriptor)
        self._opened.clear()
