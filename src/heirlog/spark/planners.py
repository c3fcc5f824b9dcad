"""The process that plans a stream, forked from one that has PySpark loaded.

Spark starts a new Python for each streaming query, and a third of a second passes until it has imported PySpark,
PyArrow and this package. A session on this machine starts a process of its own that imports them while Java starts, and
then:

    Spark            runs the launcher of `interpreter.py`, as for every Python process
    the launcher     runs `planner_client.py` if Spark wants a planner: a Python without imports, which is quick
    the client       sends its environment and its standard files through a socket, and waits
    our process      forks; the child takes both over and is the planner
    either ends      the other one ends: Spark ends the client where it would have ended the planner

Where there is no such process, or it does not listen any more, the client runs the planner itself, as Spark would have.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

from heirlog.spark import scratch

MODULE = "pyspark.sql.streaming.python_streaming_source_runner"
"""What Spark runs as a planner."""
CLIENT = Path(__file__).with_name("planner_client.py")
_END_TIMEOUT_S = 10.0
_FILES = 3
"""Standard input, output and errors."""


def address() -> Path:
    """The socket of this process's planners."""
    return scratch.folder() / "planners"


@functools.cache
def start() -> subprocess.Popen[bytes] | None:
    """Begin to load what planners import, in a process that ends with this one. None if there can be no socket."""
    # as Spark sets it for its Python processes
    environment = {"PYTHONHASHSEED": "0", **os.environ}
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(address()))
        except OSError:
            # the path of the temporary directory is too long
            return None
        # a client that comes before the imports are done waits here
        listener.listen()
        server = subprocess.Popen(
            [sys.executable, "-u", "-m", __name__, str(listener.fileno())],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            # Ctrl-C is for the user's program
            start_new_session=True,
        )
    atexit.register(_end, server, os.getpid())
    return server


def _end(server: subprocess.Popen[bytes], owner: int) -> None:
    # a process that was forked from the owner exits as well
    if os.getpid() != owner:
        return
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def main(descriptor: int) -> None:
    """Fork a planner for each client of this socket, until standard input ends."""
    with socket.socket(fileno=descriptor) as listener:
        importlib.import_module(MODULE)
        importlib.import_module("heirlog.spark.source")
        # a planner runs it as the main program
        del sys.modules[MODULE]
        gc.freeze()
        signal.signal(signal.SIGCHLD, _reap)
        while True:
            readable, _, _ = select.select([sys.stdin, listener], [], [])
            if sys.stdin in readable:
                return
            connection, _ = listener.accept()
            if not os.fork():
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _plan(connection)


def _reap(number: int, frame: FrameType | None) -> None:
    """Planners that have ended."""
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            return


def _plan(connection: socket.socket) -> None:
    header, files, _, _ = socket.recv_fds(connection, struct.calcsize("I"), _FILES)
    with connection.makefile("rb") as stream:
        environment, arguments, folder = marshal.loads(stream.read(*struct.unpack("I", header)))
    connection.sendall(b"+")
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    added = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place not in sys.path]
    sys.path[1:1] = filter(None, added)
    sys.argv = arguments
    threading.Thread(target=_end_with, args=[connection], daemon=True).start()
    try:
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
    except ConnectionError:
        # Spark has closed the connection, as it does when the query stops
        sys.exit(1)


def _end_with(connection: socket.socket) -> None:
    connection.recv(1)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
