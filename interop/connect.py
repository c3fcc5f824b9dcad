"""Kafka Connect 4.2, distributed, with exactly-once source support: workers are killed (SIGKILL) while a file is read.

Two workers run the file source. Its records and the offsets in the file up to them are written in one transaction, so
under read_committed each line is in the topic once, whichever worker is killed, and a broker after it. Without the
transactions the lines between the last committed offset and the kill would be there twice.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jars
from clients import HERE
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import free_ports

PLACE = jars.CACHE / "connect-jars"
LINES = 6000
PER_TRANSACTION = 20
UNREAD = 200
"""Lines behind the last one: the file source keeps what it has read beyond a batch until the file grows again."""
PATIENCE_S = 120.0
TOPIC = "lines"


class Worker:
    def __init__(self, bootstrap: str, directory: Path, number: int) -> None:
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self._output = directory / f"worker-{number}.out"
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "listeners": f"http://{self.address}",
            "rest.advertised.host.name": "127.0.0.1",
            "exactly.once.source.support": "enabled",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.topic": "connect-offsets",
            "offset.storage.partitions": 3,
            "config.storage.topic": "connect-configs",
            "status.storage.topic": "connect-status",
            "status.storage.partitions": 1,
            "plugin.discovery": "service_load",
            # of a worker that was killed: its task moves at once when the group has noticed
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 1000,
            "scheduled.rebalance.max.delay.ms": 0,
        }
        path = directory / f"worker-{number}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
        command = ["java", "-Xmx384m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{PLACE}/*"]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, "org.apache.kafka.connect.cli.ConnectDistributed", str(path)], stdout=output, stderr=output
            )

    def ask(self, path: str, given: dict[str, Any] | None = None) -> Any:
        """What the worker answers; None while it cannot."""
        assert self._process.poll() is None, f"a worker ended by itself:\n{self._output.read_text()[-3000:]}"
        data = None if given is None else json.dumps(given).encode()
        request = urllib.request.Request(
            f"http://{self.address}{path}", data, {"Content-Type": "application/json"}, method="PUT" if data else "GET"
        )
        try:
            with urllib.request.urlopen(request, timeout=10.0) as answer:
                return json.load(answer)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def _killed_at_the_end() -> Iterator[list[Worker]]:
    workers: list[Worker] = []
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()


def check() -> str:
    jars.need("java", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    jars.resolved(HERE / "connect-pom.xml", PLACE, HERE / "connect-jars.sha256")
    with (
        Cluster(nodes=3, ledger=False) as running,
        tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory,
        _killed_at_the_end() as workers,
    ):
        return _play(running, Path(directory), workers)


def _play(running: Cluster, directory: Path, workers: list[Worker]) -> str:
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(PATIENCE_S)
    workers += [Worker(running.bootstrap_servers, directory, number) for number in (1, 2)]
    file = directory / "lines.txt"
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(file),
        "topic": TOPIC,
        "batch.size": str(PER_TRANSACTION),
        "exactly.once.support": "required",
    }
    reader = Reader(running.bootstrap_servers)
    part = LINES // 3
    _write(file, range(part))
    _until(lambda: workers[0].ask("/connectors/file/config", config), "an answer to the new connector")
    reader.read_until(part // 2)
    at = _worker_of_task(workers)
    workers.pop(at).kill()
    killed_at = len(reader.values)
    _write(file, range(part, 2 * part))
    reader.read_until(2 * part - part // 2)
    broker = running.leader(TOPIC)
    running.kill(broker)
    _write(file, range(2 * part, LINES + UNREAD))
    reader.read_until(2 * part)
    running.start(broker)
    running.wait_until_ready()
    reader.read_until(LINES)
    reader.read_on()
    expected = [f"line {number}" for number in range(len(reader.values))]
    twice = len(reader.values) - len(set(reader.values))
    assert reader.values == expected, f"{len(reader.values)} lines, {twice} of them twice"
    assert reader.transactions > LINES // PER_TRANSACTION, f"only {reader.transactions} offsets are markers"
    return f"{LINES} lines once each and in order; the worker of the task killed at line {killed_at}, then a leader"


class Reader:
    """Reads committed records of the topic."""

    def __init__(self, bootstrap: str) -> None:
        self.values: list[str] = []
        self.end = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])

    @property
    def transactions(self) -> int:
        """Offsets that are no committed record: a marker each, and aborted records."""
        return self.end - len(self.values)

    def read_until(self, lines: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.values) < lines:
            assert time.monotonic() < deadline, f"{len(self.values)} of {lines} lines are in the topic"
            self._read(0.2)

    def read_on(self) -> None:
        """What comes after the last one, if anything does."""
        self._read(2.0)

    def _read(self, timeout_s: float) -> None:
        for message in self._consumer.consume(500, timeout=timeout_s):
            value, offset = message.value(), message.offset()
            if message.error() is None and value is not None and offset is not None:
                self.values.append(value.decode())
                self.end = offset + 1


def _write(file: Path, numbers: range) -> None:
    with file.open("a") as output:
        output.writelines(f"line {number}\n" for number in numbers)


def _worker_of_task(workers: list[Worker]) -> int:
    """The place in the list of the worker that runs the task."""

    def running() -> Any:
        status = workers[0].ask("/connectors/file/status")
        return [task["worker_id"] for task in status["tasks"] if task["state"] == "RUNNING"] if status else None

    (found,) = _until(running, "a running task")
    return [worker.address for worker in workers].index(found)


def _until(ask: Any, what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"{what} within {PATIENCE_S:g} s"
        time.sleep(0.2)
    return answer
