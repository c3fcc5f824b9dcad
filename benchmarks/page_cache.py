"""Memory for a load to write to, as a machine has it that has run for a while: full of cached pages of other files.

A virtual machine may give memory back to its host after it was free for a moment (free page reporting), and gets each
page again at the first touch. On one machine that took about 9 µs for each 4 KiB page, which was half of the CPU of a
replicated record: a load that found free memory cost twice as much as the one before, which found pages that had just
held something. Neither says anything about a broker, so all loads find the latter.
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
UNUSUALLY_FREE = 4 * LEFT_FREE


def fill() -> None:
    """Read a file without blocks until hardly any memory is free. It is one pass: nothing, if hardly any is.

    Pages of a file system in memory (tmpfs) that are only read are not kept: with such a folder it says so.
    """
    if sys.platform != "linux":
        return
    file, block = _file(), bytearray(BLOCK)
    missing = max(0, _free_bytes() - LEFT_FREE)
    file.truncate(file.tell() + missing)
    while file.readinto(block):
        pass
    if _free_bytes() > max(missing / 2, UNUSUALLY_FREE):
        print(
            f"memory stays free, perhaps since {tempfile.gettempdir()} is in memory, too: a load may pay for each page "
            "that it uses. Set TMPDIR to a folder on a disk",
            file=sys.stderr,
        )


@cache
def _file() -> FileIO:
    """Open until this process ends: with the file its pages would go."""
    return tempfile.TemporaryFile(buffering=0)


def _free_bytes() -> int:
    found = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
    return int(found["MemFree"].split()[0]) * 1024
