"""Reading a file that a configuration or a client names: a regular one, with a bound, and without waiting.

A pipe, a terminal or a device may keep its reader waiting for ever, or never end. Files of the kernel below /proc and
/sys, such as /proc/kmsg, look like regular ones and do the same; all of those that wait have no size.
"""

from __future__ import annotations

import errno
import os
import stat


def read_bounded(path: str, max_bytes: int) -> bytes:
    """The content, or its first `max_bytes` + 1 bytes. Raises OSError."""
    # without O_NONBLOCK, opening a pipe waits for its writer; O_NOCTTY: a terminal shall not become this process's
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "no file can have this name") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if not status.st_size:
            raise OSError(errno.EINVAL, "it is empty, or a file of the kernel without a size")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes + 1) or b""
    finally:
        os.close(descriptor)
