"""Which process holds the lock of a file, as far as the system says it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

LOCKS: Final = Path("/proc/locks")
"""Of Linux: `1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF`, with the device in hexadecimal and the inode."""


def of_holder(path: Path) -> str:
    """` (process 4711)` for an error; empty where the system does not say it, such as on macOS."""
    try:
        lines = LOCKS.read_text(encoding="ascii").splitlines()
        status = path.stat()
    except (OSError, UnicodeDecodeError):
        return ""
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:
        words = line.split()
        if "FLOCK" in words and wanted in words:
            # 0 is a process of another container
            holder = words[words.index(wanted) - 1]
            return f" (process {holder})" if holder.isdecimal() and int(holder) else ""
    return ""
