"""The file that a node of a local cluster writes what it says to, with a bound: `node.log`, older parts in `node.log.1`
to `node.log.3`.

The node renames it itself, between two lines: the process that started it cannot, because the node holds the file open.
"""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import Final

PART_BYTES: Final = 16 * 1024 * 1024
OLDER_PARTS: Final = 3
STDOUT, STDERR = 1, 2


class NodeLog(io.TextIOBase):
    """sys.stderr of such a node. What native code writes to descriptors 1 and 2 goes to the same file."""

    def __init__(self, path: str, part_bytes: int = PART_BYTES) -> None:
        """Raises OSError."""
        self._path = path
        self._part_bytes = part_bytes
        self._open()

    def write(self, text: str) -> int:
        """Raises OSError, such as for a full disk."""
        left = text.encode(errors="backslashreplace")
        self._size += len(left)
        while left:
            left = left[os.write(STDERR, left) :]
        if self._size >= self._part_bytes and text.endswith("\n"):
            self._begin_anew()
        return len(text)

    def _begin_anew(self) -> None:
        # where a file cannot be renamed or made, the lines go to the end of the present one
        with suppress(OSError):
            for number in range(OLDER_PARTS, 0, -1):
                older = self._path if number == 1 else f"{self._path}.{number - 1}"
                with suppress(FileNotFoundError):
                    os.replace(older, f"{self._path}.{number}")
        self._size = 0
        with suppress(OSError):
            self._open()

    def _open(self) -> None:
        opened = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(opened).st_size
        for descriptor in (STDOUT, STDERR):
            os.dup2(opened, descriptor)
        os.close(opened)
