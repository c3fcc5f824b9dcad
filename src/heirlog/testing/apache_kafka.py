"""A node of Apache Kafka, from a directory of its jars: what heirlog is measured and compared with.

    written --format--> formatted --start--> running --stop, kill--> ended, and may be started again

It has a folder of its own, with its server.properties, and prints into node.log there.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from heirlog.local.layout import HOST
from heirlog.local.ready import known_brokers

CLUSTER_ID: Final = "q1Sh-9_ISia_zwGINzRvyQ"
READY_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.05
# Java reads its arguments in the encoding of the locale
_ENVIRONMENT: Final = {"LC_ALL": "C.UTF-8"}


class ApacheKafkaError(Exception):
    """A node did not do what it was asked to do. The message has its last output."""


def free_ports(count: int) -> list[int]:
    """A port that is free at this moment, for programs that cannot share a port with a process that reserves it."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def write_properties(home: Path, properties: Mapping[str, object]) -> None:
    """The folder of a node."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


class ApacheKafkaNode:
    """As a context manager it is started by `with`, and ended by leaving it."""

    def __init__(self, home: Path, jars: Path, jvm: Sequence[str] = ()) -> None:
        """jvm: options, such as the heap."""
        self._home = home
        self._jvm = jvm
        self._classpath = f"{jars}/*"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self.kill()

    @property
    def pid(self) -> int | None:
        """None: it does not run."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def format(self, *options: str) -> None:
        """Its log directories, by Kafka's storage tool. Raises ApacheKafkaError."""
        tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", self._properties, *options]
        done = subprocess.run(
            ["java", "-cp", self._classpath, *tool],
            capture_output=True,
            text=True,
            cwd=self._home,
            env={**os.environ, **_ENVIRONMENT},
        )
        if done.returncode:
            raise ApacheKafkaError(f"Apache Kafka's storage tool refused: {done.stdout[-1000:]}{done.stderr[-1000:]}")

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                ["java", *self._jvm, "-cp", self._classpath, "kafka.Kafka", self._properties],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._home,
            )

    def wait_until_it_knows(self, brokers: Collection[int], address: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Until it names these brokers in a Metadata answer. address: its own. Raises ApacheKafkaError."""
        deadline = time.monotonic() + timeout_s
        while not set(brokers) <= known_brokers(address):
            if self.pid is None or time.monotonic() > deadline:
                said = self._log.read_text(errors="replace")[-2000:]
                raise ApacheKafkaError(f"Apache Kafka at {address} did not become ready; it said: {said}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """A clean stop, if it runs."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """If it runs."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(STOP_TIMEOUT_S)

    @property
    def _properties(self) -> str:
        return str(self._home / "server.properties")

    @property
    def _log(self) -> Path:
        return self._home / "node.log"
