"""What a Spark worker pays once instead of with every task, and what it need not wait for.

After each task Spark's worker collects all garbage before it takes the next one. That visits all objects that PySpark,
PyArrow and numba have loaded: 40 ms and more, and a micro-batch has several tasks per core. Objects that exist after
the first task, when the kernels have run, stay for the life of the process, so the collector is set to skip them. This
is done only once; otherwise garbage of later tasks would stay as well.

Before each task Spark's JVM sends what is to be run, and then, as a second small packet, on what. Its socket holds the
second one back until the first is acknowledged (Nagle's algorithm), and Linux lets an acknowledgement wait for 40 ms in
case there is data to go with it. Between the two the worker unpickles what is to be run: the object in it sends the
acknowledgement that is due. Sockets of a file system have no such delay, but Spark uses them only where
spark.python.unix.domain.socket.enabled says so.
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


class Shipped:
    """An object that Spark pickles for its workers."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        acknowledge()
        self.__dict__.update(state)


def acknowledge() -> None:
    """To be called when a task begins. Elsewhere the process is not ours: nothing is done."""
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
        # a system that knows the option and does not have it: the task begins later, no more
        return False
    finally:
        connection.detach()
        # where a user's function gave new sockets a timeout, ours has made Spark's connection one that does not wait
        os.set_blocking(descriptor, is_blocking)
    return True


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


@functools.cache
def settle() -> None:
    """To be called at the end of a task. Elsewhere the process is not ours: nothing is done."""
    if TaskContext.get() is not None:
        gc.freeze()
