"""Two costs that a Spark worker saves: garbage collection after each task, and a delay before each task.

After each task Spark's worker collects all garbage before it takes the next one. That visits all objects that PySpark,
PyArrow and numba have loaded: 40 ms and more, and a micro-batch has several tasks per core. Objects that exist after
the first task, when the kernels have run, stay for the life of the process, so the collector is set to skip them. This
is done only once; otherwise garbage of later tasks would stay as well.

Before each task Spark's JVM sends the function to run and then, as a second small packet, its input. Its socket holds
the second packet back until the first one is acknowledged (Nagle's algorithm), and Linux delays an acknowledgement by
up to 40 ms to send it with other data. Between the two packets the worker unpickles the function, and the object in it
sends the acknowledgement. Unix domain sockets have no such delay, but Spark uses them only if
spark.python.unix.domain.socket.enabled is set.
"""

from __future__ import annotations

import functools
import gc
import os
import socket
import stat
from typing import Any

from pyspark import TaskContext

_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""Linux only; elsewhere the delay is the system's setting."""
_HIGHEST = 16
"""The first TCP connection among the files of a worker is Spark's."""


class SentToWorkers:
    """An object that Spark pickles for its workers."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        acknowledge()
        self.__dict__.update(state)


def acknowledge() -> None:
    """Call this when a task begins. Outside a task it does nothing, because the process belongs to the user."""
    if _QUICK_ACK is None or TaskContext.get() is None:
        return
    for descriptor in range(3, _HIGHEST):
        if _acknowledged(descriptor, _QUICK_ACK):
            return


def _acknowledged(descriptor: int, quick_ack: int) -> bool:
    """Whether this is a TCP connection."""
    if not _is_socket(descriptor):
        return False
    is_blocking = os.get_blocking(descriptor)
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError:
        return False
    try:
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
            return False
        connection.setsockopt(socket.IPPROTO_TCP, quick_ack, 1)
    except OSError:
        # the system knows the option but does not support it: the task only begins later
        return False
    finally:
        connection.detach()
        # if a user's function has set a default timeout for sockets, our object made Spark's connection non-blocking
        os.set_blocking(descriptor, is_blocking)
    return True


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


@functools.cache
def settle() -> None:
    """Call this at the end of a task. Outside a task it does nothing, because the process belongs to the user."""
    if TaskContext.get() is not None:
        gc.freeze()
