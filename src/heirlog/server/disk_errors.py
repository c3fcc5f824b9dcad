"""Errors of a disk as an operator needs them: what failed, at which file, and what to do about it.

The kernel's error of a write to an open file does not name the file. A node that ends because of one says no more than
what the error says.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SPACE: Final = "free space there, and start the node again"
_PERMISSION: Final = "let the user that the node runs as read and write there, and start the node again"
_DESCRIPTORS: Final = "raise the limit of open files (ulimit -n), and start the node again"
ADVICE: Final = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), and start the node again",
    errno.EROFS: "find out why the file system is read-only (often a fault of its disk), and start the node again",
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EMFILE: _DESCRIPTORS,
    errno.ENFILE: _DESCRIPTORS,
    errno.EIO: "check the disk",
}
"""What helps against an error; the others are of files that are missing, or of calls that are wrong."""


class DiskError(OSError):
    """An error of the operating system, with the file's name and advice."""

    def __str__(self) -> str:
        return f"{super().__str__()} ({ADVICE[self.errno or 0]})"


def with_advice(error: OSError, path: str) -> OSError:
    """The error with the name of the file, unless it has one, and with advice, if there is any."""
    filename, second = error.filename or path, error.filename2
    if error.errno in ADVICE:
        return DiskError(error.errno, error.strerror, filename, None, second)
    return error if error.filename or error.errno is None else OSError(error.errno, error.strerror, filename)


@contextmanager
def advised(path: str) -> Iterator[None]:
    """Errors of a call that names `path`, or a path below it, get advice."""
    try:
        yield
    except OSError as error:
        raise with_advice(error, path) from None
