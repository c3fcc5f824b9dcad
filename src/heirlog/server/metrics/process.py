"""The process, under the names that prometheus-client gives on Linux.

Not by its own collector, which lists every open file: a broker has some ten thousand, and the kernel knows the number.
Where there is no /proc (macOS), CPU time and the limit of open files are all that is shown.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

from heirlog.server.metrics.family import Family, counter, gauge

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = resource.getpagesize()
SELF = "/proc/self/"
FILES_OF = SELF + "fd"
SCHEDULED = "/proc/thread-self/schedstat"
HAS_PROC = os.path.exists(SELF + "stat")
HAS_SCHEDULED = os.path.exists(SCHEDULED)
STARTED_FIELD = 21
"""Of /proc/self/stat, counted from 0: ticks from the machine's start to the process's."""


def families() -> Iterator[Family | None]:
    times = os.times()
    yield counter("process_cpu_seconds_total", "User and system CPU time spent in seconds.", times.user + times.system)
    yield gauge(
        "process_max_fds",
        "Maximum number of open file descriptors.",
        resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )
    if not HAS_PROC:
        return
    virtual, resident = _memory_pages()
    yield gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", virtual * PAGE_BYTES)
    yield gauge("process_resident_memory_bytes", "Resident memory size in bytes.", resident * PAGE_BYTES)
    yield gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", _started_s())
    yield gauge("process_open_fds", "Number of open file descriptors.", open_files())


def open_files() -> int:
    """Kernels before 6.2 do not tell the number but by listing them."""
    return os.stat(FILES_OF).st_size or len(os.listdir(FILES_OF))


def _memory_pages() -> tuple[int, int]:
    virtual, resident = _read("statm").split()[:2]
    return int(virtual), int(resident)


def _started_s() -> float:
    # the command's name, in parentheses, may hold spaces
    fields = _read("stat").rpartition(")")[2].split()
    ticks = int(fields[STARTED_FIELD - 2])
    return _booted_s() + ticks / TICKS_PER_S


def started_monotonic_s() -> float:
    """When the process began, on the clock of `time.monotonic`; the current time if that is unknown."""
    return time.monotonic() - (time.time() - _started_s() if HAS_PROC else 0)


def busy_s() -> float:
    """How long the thread that asks has run, or had work and no CPU: another process had it, or a container's limit."""
    return time.thread_time() + _waited_for_cpu_s()


def _waited_for_cpu_s() -> float:
    """0 where the kernel does not count it."""
    if not HAS_SCHEDULED:
        return 0.0
    with open(SCHEDULED, encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9


def _booted_s() -> float:
    with open("/proc/stat", encoding="ascii") as file:
        return next(float(line.split()[1]) for line in file if line.startswith("btime "))


def _read(name: str) -> str:
    with open(SELF + name, encoding="utf-8", errors="replace") as file:
        return file.read()
