"""A command's output of bytes, which knows at any signal whether all of them were written."""

from __future__ import annotations

import os

from heirlog.cli.interrupts import Interrupts


class Output:
    """is_written: whether everything that was given to `write` is written."""

    def __init__(self, descriptor: int, interrupts: Interrupts) -> None:
        self.interrupts = interrupts
        self.is_written = True
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Raises KeyboardInterrupt, also after the last byte; OSError, such as BrokenPipeError."""
        sizes: list[int] = []
        left = memoryview(data)
        self.is_written = not left
        try:
            while left:
                with self.interrupts.allowed():
                    # `extend` keeps what `os.write` returned before Python can look for a signal
                    sizes.extend(map(os.write, (self._descriptor,), (left,)))
                left = left[sizes[-1] :]
        finally:
            self.is_written = sum(sizes) == len(data)
