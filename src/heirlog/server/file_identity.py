"""Which file or directory is at a path: see `heirlog.env.Files.identity`.

    device, inode       another file has other numbers, but the number of a removed inode is soon used again
    generation          so file systems count how often (ext4, XFS, Btrfs). Others do not tell; then the time of the
                        last change of the inode, which no copy can keep, stands for it. It changes with the owner, too
    sequence of the     Linux counts the disks that were attached since its start. A volume that was detached and
    disk                attached again mostly has the device number that it had

A volume that is mounted again without having been detached keeps all of them: unmounting has written what was not
flushed. They also stay if the volume itself is put back to an older state (a snapshot of LVM, ZFS or a storage system).
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from contextlib import suppress

_GET_GENERATION = 0x80087601 if sys.maxsize > 1 << 32 else 0x80047601
"""FS_IOC_GETVERSION of Linux."""


def file_identity(path: str) -> str:
    """Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = os.fstat(descriptor)
        generation = _generation(descriptor)
    finally:
        os.close(descriptor)
    if generation is None and not stat.S_ISDIR(found.st_mode):
        # that of a directory changes with each entry
        generation = found.st_ctime_ns
    return f"{found.st_dev}/{_disk_sequence(found.st_dev)}/{found.st_ino}/{generation or 0}"


def _generation(descriptor: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError):
            return int.from_bytes(fcntl.ioctl(descriptor, _GET_GENERATION, bytes(8))[:4], sys.byteorder)
    return None


def _disk_sequence(device: int) -> str:
    """Empty where there is no single disk, and before Linux 5.15."""
    place = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"
    # of a disk, or of the disk of a partition
    for path in (f"{place}/diskseq", f"{place}/../diskseq"):
        with suppress(OSError), open(path, encoding="ascii") as file:
            return file.read().strip()
    return ""
