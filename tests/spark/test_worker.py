from __future__ import annotations

import gc
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest
from pyspark import TaskContext

from heirlog.spark import worker


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    worker.settle.cache_clear()
    yield
    gc.unfreeze()
    TaskContext._setTaskContext(None)
    worker.settle.cache_clear()


class Left:
    """A cycle, which only the collector can end."""

    def __init__(self) -> None:
        self.itself = self


def test_what_the_first_task_loaded_is_passed_over_and_what_later_ones_leave_is_collected() -> None:
    TaskContext._setTaskContext(TaskContext())
    loaded = Left()
    worker.settle()
    later = Left()
    worker.settle()
    first, second = weakref.ref(loaded), weakref.ref(later)
    del loaded, later
    gc.collect()
    assert first() is not None
    assert second() is None


def test_a_process_that_runs_no_task_keeps_its_collector() -> None:
    worker.settle()
    assert gc.get_freeze_count() == 0


_TASK = """
import pickle, socket
listener = socket.create_server(("127.0.0.1", 0))
jvm = socket.create_connection(listener.getsockname())
sparks, _ = listener.accept()
for one in (jvm, sparks):
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
import os
import sys
jvm = jvm.dup()
statistics = socket.socket(type=socket.SOCK_DGRAM)
os.dup2(statistics.fileno(), 3)
os.dup2(sparks.fileno(), 4)  # the first connection, as in a worker
socket.setdefaulttimeout(9)
from pyspark import TaskContext
from heirlog.spark.options import read_options
from heirlog.spark.source import HeirlogReader, spark_schema
options = read_options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "a"}, streaming=False)
shipped = pickle.dumps(HeirlogReader(options, spark_schema(options.columns)))
if sys.argv[1] == "task":
    TaskContext._setTaskContext(TaskContext())
pickle.loads(shipped)
print([one.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) for one in (sparks, jvm)], os.get_blocking(4))
"""


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="the delay is Linux's; its runs of make test have it")
@pytest.mark.parametrize(("process", "at_once"), [("task", [1, 0]), ("plan", [0, 0])])
def test_what_spark_sends_before_a_task_is_acknowledged_as_the_reader_is_unpickled(
    process: str, at_once: list[int]
) -> None:
    """Whatever other sockets there are, and whatever a user's function gave new ones as their timeout."""
    received = subprocess.run([sys.executable, "-c", _TASK, process], capture_output=True, text=True, check=True)
    assert received.stdout == f"{at_once} True\n"
