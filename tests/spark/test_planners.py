from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from patience import eventually

from heirlog.spark import interpreter, planners

SECRET = "of this test"


class Planner(NamedTuple):
    client: subprocess.Popen[bytes]
    """What Spark takes for the planner."""
    process: psutil.Process
    connection: socket.socket


@contextmanager
def started(program: list[str], folder: Path, **environment: str) -> Iterator[Planner]:
    """As Spark starts it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        given = {
            "PYTHON_WORKER_FACTORY_PORT": str(listener.getsockname()[1]),
            "PYTHON_WORKER_FACTORY_SECRET": SECRET,
            **environment,
        }
        command = [*program, "-m", planners.MODULE]
        with subprocess.Popen(command, env={**os.environ, **given}, cwd=folder, stderr=subprocess.PIPE) as client:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as stream:
                assert stream.read(4 + len(SECRET)) == struct.pack("!I", len(SECRET)) + SECRET.encode()
                connection.sendall(struct.pack("!I", 2) + b"ok")
                (pid,) = struct.unpack("!I", stream.read(4))
                try:
                    yield Planner(client, psutil.Process(pid), connection)
                finally:
                    client.kill()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> psutil.Process:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    started = planners.start()
    assert started is not None
    return psutil.Process(started.pid)


def test_a_planner_is_forked_with_the_environment_and_folder_that_spark_gave(
    server: psutil.Process, tmp_path: Path
) -> None:
    with started([interpreter.program()], tmp_path, GIVEN="here") as planner:
        assert planner.process.ppid() == server.pid
        assert planner.process.cwd() == str(tmp_path)
        assert planner.process.pid != planner.client.pid


def test_a_planner_ends_with_the_process_that_spark_ends(server: psutil.Process, tmp_path: Path) -> None:
    with started([interpreter.program()], tmp_path) as planner:
        planner.client.terminate()
        eventually(lambda: not planner.process.is_running(), "the planner's end")
        eventually(lambda: not server.children(), "a server without planners")


def test_a_planner_whose_query_stops_ends_without_a_word(server: psutil.Process, tmp_path: Path) -> None:
    with started([interpreter.program()], tmp_path) as planner:
        planner.connection.shutdown(socket.SHUT_RDWR)
        assert planner.client.stderr is not None
        assert planner.client.stderr.read() == b""
        eventually(lambda: not planner.process.is_running(), "the planner's end")
        planner.client.wait(60)


def test_without_a_process_to_fork_from_a_planner_starts_as_spark_would_start_it(tmp_path: Path) -> None:
    program = [sys.executable, "-I", "-S", str(planners.CLIENT), str(tmp_path / "nothing listens here")]
    with started(program, tmp_path) as planner:
        assert planner.process.pid == planner.client.pid


def test_a_planner_that_the_process_cannot_fork_starts_as_spark_would_start_it(tmp_path: Path) -> None:
    place = tmp_path / "planners"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        program = [sys.executable, "-I", "-S", str(planners.CLIENT), str(place), "-c", "print('here')"]
        with subprocess.Popen(program, stdout=subprocess.PIPE) as client:
            listener.accept()[0].close()
            assert client.communicate(timeout=60)[0] == b"here\n"


def test_the_process_to_fork_from_ends_with_the_program() -> None:
    program = "from heirlog.spark import planners; print(planners.start().pid)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert not psutil.pid_exists(int(ended.stdout))
