"""How the C library treats memory that is freed: glibc gives it back to the system too soon.

A large frame is received into a buffer of its own, which is freed when the answer is sent. By default glibc returns
such a buffer to the system at once, and the next frame gets new pages, each of which the kernel has to clear and enter
at its first use. For batches of 1 MB that was a quarter of a broker's CPU time. Now a node keeps `KEPT_BYTES` of what
it has freed, and gives back what is above that once it is as much again. Where the C library is another one, nothing
changes.

Start-up needs far more memory than an idle node; what is free then goes back once.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

KEPT_BYTES = 16 * 1024 * 1024
LARGEST_KEPT_BYTES = 8 * 1024 * 1024
"""Larger buffers always go back: they are rare."""

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # of malloc.h


def keep_freed_memory() -> None:
    with suppress(OSError, AttributeError):  # no glibc
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * KEPT_BYTES)
        libc.mallopt(_M_TOP_PAD, KEPT_BYTES)
        libc.mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
