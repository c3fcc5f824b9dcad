"""Disks of a real node that become full or slow while it runs, on the drill's command.

    drill   DiskSwitch(path).fill(bytes), .slow(...), .repair()
                 |  a shared memory map of the file `path`
    node    FaultyFiles: asks the switch before it writes, reads or flushes

It needs no privileges, unlike a small file system or a throttled device, and works alike on Linux and macOS. What the
kernel does is left out: a write that does not fit fails as a whole (`OsFile` cuts off what the kernel would have
written of it), `statvfs` answers that nothing is free, and a slow disk is a process that sleeps in its calls.
Responses that the kernel sends from a file (`sendfile`) are not slowed down.

Only `heirlog.drill.faulty_node` starts nodes with such disks.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Sequence
from pathlib import Path

from heirlog.env import Buffer
from heirlog.server.flusher import Deliver
from heirlog.server.ledger_files import LedgerFile, LedgerFiles, LedgerGuard

NAME = "disk-switch"
"""Of the file, in the folder of the node."""
UNLIMITED = (1 << 63) - 1
_ROOM, _CALL_US, _FLUSH_US = range(3)
_BYTES = 24


class DiskSwitch:
    """The state of a disk, shared by the drill and the node. A new file is a disk without faults."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(UNLIMITED.to_bytes(8, "little") + bytes(_BYTES - 8))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _BYTES)
        self._cells = memoryview(self._map).cast("Q")

    # for the drill

    def fill(self, room_bytes: int) -> None:
        """The disk is full once this much more was written to it."""
        self._cells[_ROOM] = room_bytes

    def slow(self, call_ms: float, flush_ms: float) -> None:
        """How much longer each read and write takes, and each flush."""
        self._cells[_CALL_US], self._cells[_FLUSH_US] = int(call_ms * 1000), int(flush_ms * 1000)

    def repair(self) -> None:
        self._cells[_ROOM] = UNLIMITED
        self.slow(0, 0)

    @property
    def is_limited(self) -> bool:
        """It is full, or will be."""
        return self._cells[_ROOM] != UNLIMITED

    def close(self) -> None:
        self._cells.release()
        self._map.close()

    # for the node

    @property
    def is_full(self) -> bool:
        return self._cells[_ROOM] == 0

    def take(self, size: int) -> bool:
        """Whether this much fits; from the first write that does not fit, nothing does."""
        room = self._cells[_ROOM]
        if room == UNLIMITED:
            return True
        self._cells[_ROOM] = max(0, room - size)
        return size <= room

    def wait_for_call(self) -> None:
        if self._cells[_CALL_US]:
            time.sleep(self._cells[_CALL_US] / 1e6)

    def wait_for_flush(self) -> None:
        if self._cells[_FLUSH_US]:
            time.sleep(self._cells[_FLUSH_US] / 1e6)


def _no_space(path: str) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


class FaultyFile(LedgerFile):
    __slots__ = ("_switch",)

    def __init__(self, switch: DiskSwitch, guard: LedgerGuard, path: str, fd: int) -> None:
        super().__init__(guard, path, fd)
        self._switch = switch

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        self._switch.wait_for_call()
        parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        if not self._switch.take(sum(len(part) for part in parts)):
            raise _no_space(self.path)
        return super().append(data)

    def pread(self, size: int, position: int) -> bytes:
        self._switch.wait_for_call()
        return super().pread(size, position)

    def flush_now(self) -> OSError | None:
        self._switch.wait_for_flush()
        return super().flush_now()


class FaultyFiles(LedgerFiles):
    def __init__(self, deliver: Deliver, ledger_path: str, switch: DiskSwitch) -> None:
        super().__init__(deliver, ledger_path)
        self._switch = switch

    def _opened(self, guard: LedgerGuard, path: str, fd: int) -> LedgerFile:
        return FaultyFile(self._switch, guard, path, fd)

    def open(self, path: str, create: bool = False) -> LedgerFile:
        if create and self._switch.is_full and not os.path.lexists(path):
            raise _no_space(path)
        found = super().open(path, create)
        assert isinstance(found, LedgerFile)
        return found

    def mkdirs(self, path: str) -> None:
        if self._switch.is_full and not os.path.isdir(path):
            raise _no_space(path)
        super().mkdirs(path)

    def space(self, path: str) -> tuple[int, int]:
        total, free = super().space(path)
        return total, 0 if self._switch.is_full else free
