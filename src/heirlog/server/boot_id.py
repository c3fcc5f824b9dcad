"""Which start of this machine it is: see `heirlog.env.Files.boot_id`.

Containers of one host have one boot id, and one page cache.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_LINUX_FILE: Final = "/proc/sys/kernel/random/boot_id"
_MACOS_NAME: Final = b"kern.bootsessionuuid"
_SIZE: Final = 64


def read_boot_id() -> str:
    """Empty where the system does not tell."""
    if sys.platform == "darwin":
        return _on_macos()
    try:
        with open(_LINUX_FILE, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def _on_macos() -> str:
    # only here: loading it takes milliseconds of each start
    import ctypes

    value, size = ctypes.create_string_buffer(_SIZE), ctypes.c_size_t(_SIZE)
    system = ctypes.CDLL(None)
    failed = system.sysctlbyname(_MACOS_NAME, value, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else os.fsdecode(value.value)
