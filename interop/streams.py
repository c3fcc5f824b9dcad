"""Kafka Streams 4.2: a word count with exactly_once_v2, while an instance and brokers are killed (SIGKILL).

Two instances count the words of lines that are written meanwhile. Each change of a count is a record, so under
read_committed the counts of a word are 1, 2, 3 ... up to the truth, in this order: a line that was lost or counted
twice, and a change of an aborted transaction, would all be seen.

    a quarter of the lines    an instance is killed, and another one started
    half                      the coordinator of the instances' transactions is killed, later it returns
    three quarters            the leader of a partition of the counts is killed, later it returns
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jars
from clients import HERE, VENV, java_command, output_of
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.testing import Cluster

PLACE = jars.CACHE / "streams-jars"
ARTIFACTS = ("org.apache.kafka:kafka-streams:4.2.0",)
LINES = 1600
WORDS_PER_LINE = 4
VOCABULARY = [f"word-{number}" for number in range(60)]
PARTITIONS = 3
PATIENCE_S = 120.0
SEED = 16


class Counted:
    """What a consumer of committed records has read of the counts, in the order of their offsets."""

    def __init__(self, bootstrap: str) -> None:
        self.counts: dict[str, list[int]] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition("counts", index, 0) for index in range(PARTITIONS)])

    def wait_for(self, words: int) -> None:
        """Read until so many changes of counts are there."""
        deadline = time.monotonic() + PATIENCE_S
        while sum(map(len, self.counts.values())) < words:
            assert time.monotonic() < deadline, f"{sum(map(len, self.counts.values()))} of {words} words are counted"
            self.read(0.2)

    def read(self, timeout_s: float) -> None:
        for message in self._consumer.consume(500, timeout=timeout_s):
            if message.error() is None:
                word, count = message.key(), message.value()
                assert word is not None and count is not None
                self.counts.setdefault(word.decode(), []).append(int(count))

    def close(self) -> None:
        self._consumer.close()


class Instances:
    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self.running: list[subprocess.Popen[bytes]] = []
        self.started = 0

    def start(self) -> None:
        self.started += 1
        place = self._directory / f"instance-{self.started}"
        place.mkdir()
        command = java_command("WordCount", self._bootstrap, str(place / "state"), more_jars=PLACE)
        with (place / "output").open("wb") as output:
            self.running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output))

    def kill(self) -> None:
        """SIGKILL for the oldest one."""
        instance = self.running.pop(0)
        instance.kill()
        instance.wait()

    def stop(self) -> None:
        """Close those that run, as an operator does. Raises AssertionError for one that ended by itself."""
        for instance in self.running:
            assert instance.poll() is None, f"an instance ended by itself:\n{self.output()}"
            assert instance.stdin is not None
            instance.stdin.close()
        for instance in self.running:
            assert instance.wait(PATIENCE_S) == 0, f"an instance did not stop:\n{self.output()}"

    def output(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in sorted(self._directory.glob("*/output")))


@contextmanager
def instances(bootstrap: str) -> Iterator[Instances]:
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        held = Instances(bootstrap, Path(directory))
        try:
            yield held
        finally:
            for instance in held.running:
                instance.kill()
                instance.wait()


def check() -> str:
    jars.fetch()
    jars.fetch_single(ARTIFACTS, PLACE, HERE / "streams-jars.sha256")
    with Cluster(nodes=3, ledger=False) as running:
        servers = running.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for future in admin.create_topics([NewTopic(topic, PARTITIONS, 3) for topic in ("lines", "counts")]).values():
            future.result(PATIENCE_S)
        with instances(servers) as held:
            truth, killed = _play(running, held)
    return f"{sum(truth.values())} words in {LINES} lines counted once each; {killed}"


def _play(running: Cluster, held: Instances) -> tuple[Counter[str], str]:
    chance = random.Random(SEED)
    lines = [" ".join(chance.choices(VOCABULARY, k=WORDS_PER_LINE)) for _ in range(LINES)]
    counted = Counted(running.bootstrap_servers)
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "enable.idempotence": True, "log_level": 0})
    held.start()
    held.start()
    step, down = LINES // 8, 0
    for number in range(8):
        for line in lines[number * step : (number + 1) * step]:
            producer.produce("lines", line.encode())
        assert producer.flush(PATIENCE_S) == 0
        if number == 2:
            held.kill()
            held.start()
        elif number in (4, 6):
            down = _coordinator(running) if number == 4 else running.leader("counts")
            running.kill(down)
        # what was written just now is still being counted
        counted.wait_for(number * step * WORDS_PER_LINE)
        if number in (4, 6):
            running.start(down)
            running.wait_until_ready()
    truth = Counter(word for line in lines for word in line.split())
    counted.wait_for(sum(truth.values()))
    held.stop()
    counted.read(1.0)
    counted.close()
    wrong = {
        word: f"{len(seen)} counts up to {max(seen)} instead of {truth[word]}"
        for word, seen in counted.counts.items()
        if seen != list(range(1, truth[word] + 1))
    }
    assert not wrong, f"of {len(wrong)} words the counts are not 1, 2, 3 ...: {wrong}"
    assert counted.counts.keys() == truth.keys(), f"not counted: {truth.keys() - counted.counts.keys()}"
    return truth, f"{held.started} instances, one of them killed, and two brokers"


def _coordinator(running: Cluster) -> int:
    """The broker that coordinates the transactions of an instance."""
    listed = output_of([str(VENV / "heirlog"), "transactions", "list", "--json", "-b", running.bootstrap_servers])
    return int(json.loads(listed)[-1]["coordinator"])
