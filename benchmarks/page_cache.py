"""Memory for a load to write to, as a machine has it that has run for a while: full of cached pages of other files.

A virtual machine may give memory back to its host after it was free for a moment (free page reporting), and gets each
page again at the first touch. On one machine that took about 9 µs for each 4 KiB page,
which was half of the CPU of a replicated record: a load that found free memory cost twice as much as the one before,
which found pages that had just held something. Neither says anything about a broker, so all loads find the latter.
"""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from io import FileIO
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
BLOCK = 1 << 20
LEFT_FREE = 600 << 20
"""About what the system keeps free itself."""


def fill() -> None:
    """Read a file without blocks until hardly any memory is free. It is one pass: nothing, if hardly any is."""
    if sys.platform != "linux":
        return
    file, block = _file(), bytearray(BLOCK)
    file.truncate(file.tell() + max(0, _free_bytes() - LEFT_FREE))
    while file.readinto(block):
        pass


@cache
def _file() -> FileIO:
    """Open until this process ends: with the file its pages would go."""
    return tempfile.TemporaryFile(buffering=0)


def _free_bytes() -> int:
    found = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
    return int(found["MemFree"].split()[0]) * 1024
