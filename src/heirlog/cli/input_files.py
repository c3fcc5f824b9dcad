"""Files as a command's input, in the order in which they are named: each as a whole, or its lines.

Both iterate and count as `InputLines` does. Small files are handed out together, so that they make one batch. A file
that cannot be read is found before anything is handed out, unless it disappears meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from heirlog.cli.errors import CommandError
from heirlog.cli.input_lines import LINE_BYTES_MAX, READ_BYTES, InputLines
from heirlog.cli.interrupts import Interrupts


class WholeFiles:
    def __init__(self, paths: Sequence[Path], interrupts: Interrupts) -> None:
        """Raises CommandError."""
        self._paths = paths
        self._interrupts = interrupts
        self._together: list[Path] = []
        for path in paths:
            _refuse_unreadable(path)
            _refuse_large(path, path.stat().st_size)

    @property
    def largest(self) -> Path:
        """Of those that were handed out last."""
        return max(self._together, key=lambda path: path.stat().st_size)

    @property
    def count(self) -> int:
        """Of all files, also those that were not handed out."""
        return len(self._paths)

    def place(self, behind: int) -> str:
        return str(self._together[-behind])

    def __iter__(self) -> Iterator[list[bytes]]:
        """Their bytes. Raises CommandError, and KeyboardInterrupt only while it reads."""
        together: list[bytes] = []
        paths: list[Path] = []
        size = 0
        for path in self._paths:
            content = self._content(path)
            if together and size + len(content) > READ_BYTES:
                self._together = paths
                yield together
                together, paths, size = [], [], 0
            together.append(content)
            paths.append(path)
            size += len(content)
        self._together = paths
        if together:
            yield together

    def _content(self, path: Path) -> bytes:
        try:
            with self._interrupts.allowed():
                content = path.read_bytes()
        except OSError as error:
            raise _unreadable(path, error.strerror) from error
        # a pipe does not have its size before
        _refuse_large(path, len(content))
        return content


class LinesOfFiles:
    def __init__(self, paths: Sequence[Path], interrupts: Interrupts) -> None:
        """Raises CommandError."""
        self._paths = paths
        self._interrupts = interrupts
        self._begun: list[InputLines] = []
        for path in paths:
            _refuse_unreadable(path)

    @property
    def count(self) -> int:
        """Of lines that were read."""
        return sum(lines.count for lines in self._begun)

    def place(self, behind: int) -> str:
        return f"{self._paths[len(self._begun) - 1]} {self._begun[-1].place(behind)}"

    def __iter__(self) -> Iterator[list[bytes]]:
        """As `InputLines`, of one file after the other: the end of a file is the end of a line."""
        for path in self._paths:
            try:
                with self._interrupts.allowed():
                    descriptor = os.open(path, os.O_RDONLY)
            except OSError as error:
                raise _unreadable(path, error.strerror) from error
            try:
                lines = InputLines(descriptor, self._interrupts, str(path))
                self._begun.append(lines)
                yield from lines
            finally:
                os.close(descriptor)


def _refuse_unreadable(path: Path) -> None:
    """Without opening it: what writes to a named pipe would see its reader go. Raises CommandError."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name its files: {path}/*")
    if not path.exists():
        raise _unreadable(path, "there is no such file")
    if not os.access(path, os.R_OK):
        raise _unreadable(path, "permission denied")


def _refuse_large(path: Path, size: int) -> None:
    if size > LINE_BYTES_MAX:
        raise CommandError(
            f"{path} has {size} bytes, more than a record can have ({LINE_BYTES_MAX}): split it, or send each line as "
            "a record with --lines"
        )


def _unreadable(path: Path, why: str | None) -> CommandError:
    return CommandError(f"{path} cannot be read ({why}): name files that you may read")
