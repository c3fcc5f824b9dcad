"""The lines of a command's input, and how many of them were read: also where a signal ends the command."""

from __future__ import annotations

import os
from collections.abc import Iterator

from heirlog.cli.errors import CommandError
from heirlog.cli.interrupts import Interrupts

READ_BYTES = 256 * 1024
"""Of the input at once; well below message.max.bytes, so that a batch made of it is accepted."""
LINE_BYTES_MAX = 100 * 1024 * 1024
"""Default of the brokers' socket.request.max.bytes."""


class InputLines:
    """Iterates once over the whole lines that each read completes; at the end, what has no line feed is a line.

    Iterating raises CommandError for an input that cannot be read and for a line that no request can carry, and
    KeyboardInterrupt only while it waits for input.
    """

    def __init__(self, descriptor: int, interrupts: Interrupts, name: str = "standard input") -> None:
        self._descriptor = descriptor
        self._interrupts = interrupts
        self._name = name
        self._handed_out = 0
        self._rest = bytearray()
        """The beginning of a line."""
        self._chunks: list[bytes] = []
        """What was read after it, at most one chunk."""

    @property
    def count(self) -> int:
        """Lines that were read: also those that were not handed out, and one of which only the beginning was read."""
        unsplit = bytes(self._rest) + b"".join(self._chunks)
        begun = unsplit != b"" and not unsplit.endswith(b"\n")
        return self._handed_out + unsplit.count(b"\n") + begun

    def place(self, behind: int) -> str:
        """behind: how far before the end of what was handed out; 1 is the last line."""
        return f"line {self._handed_out - behind + 1}"

    def __iter__(self) -> Iterator[list[bytes]]:
        """Their bytes, without line feeds."""
        while chunk := self._read():
            *lines, last = chunk.split(b"\n")
            if lines:
                lines[0] = bytes(self._rest) + lines[0]
                self._rest.clear()
            self._handed_out += len(lines)
            self._rest += last
            self._chunks.clear()
            if lines:
                yield lines
            if len(self._rest) > LINE_BYTES_MAX:
                raise CommandError(
                    f"a line is longer than {LINE_BYTES_MAX} bytes, the largest size of a record: split it"
                )
        if self._rest:
            line = bytes(self._rest)
            self._rest.clear()
            self._handed_out += 1
            yield [line]

    def _read(self) -> bytes:
        try:
            with self._interrupts.allowed():
                # `extend` keeps what `os.read` returned before Python can look for a signal. With an assignment,
                # a signal between the two would lose lines that are no longer in the pipe
                self._chunks.extend(map(os.read, (self._descriptor,), (READ_BYTES,)))
        except OSError as error:
            raise CommandError(f"{self._name} cannot be read ({error.strerror}): give a file or a pipe") from error
        return self._chunks[0]
