"""A share group of Apache Kafka's Java client against heirlog, while a broker is killed.

Every record is delivered at least once, none after its acceptance was answered, and none more often than the limit.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable

import jars
from clients import java_command

from heirlog.blocking import Client
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import IncrementalAlterConfigsRequest
from heirlog.testing import Cluster

PROGRAM = "ShareClient"
GROUP, TOPIC = "shared", "work"
RECORDS, PARTITIONS = 3000, 2
COUNT_LIMIT = 5
LIMIT_S = 40
LATE_S = 1.0
"""A line may be printed later than that of another member, by so much on a busy machine."""


class Member:
    """A running program, with its lines and when they came."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.strip()))

    def finish(self) -> None:
        # not `communicate`, which would take lines of the output away from the reader
        assert self.process.stdin is not None and self.process.stderr is not None
        self.process.stdin.write("\n")
        self.process.stdin.close()
        problems = self.process.stderr.read()
        self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        assert self.lines and self.lines[-1][1] == "done", f"the member ended with: {problems[-3000:]}"


def check() -> str:
    jars.fetch()
    with Cluster(nodes=3, ledger=False) as running:
        running.create_topic(TOPIC, partitions=PARTITIONS)
        with Client(running.bootstrap_servers) as client:
            _begin_at_the_earliest(client)
            for partition in range(PARTITIONS):
                for first in range(0, RECORDS // PARTITIONS, 50):
                    values = [(None, b"%d" % number, (), 0) for number in range(first, first + 50)]
                    client.produce(TOPIC, partition, encode_batch(values))
        members = [Member(java_command(PROGRAM, running.bootstrap_servers, GROUP, TOPIC, str(seed))) for seed in (1, 2)]
        try:
            _wait(lambda: _count(members, "got") > RECORDS // 4, members)
            running.kill(running.brokers[1])
            _wait(lambda: _count(members, "got") > RECORDS // 2, members)
            running.start(running.brokers[1])
            _wait(lambda: len(_delivered(members)) == RECORDS, members)
            for member in members:
                member.finish()
        finally:
            for member in members:
                member.process.kill()
        return _judge(members)


def _begin_at_the_earliest(client: Client) -> None:
    R = IncrementalAlterConfigsRequest
    change = R.AlterableConfig(name="share.auto.offset.reset", value="earliest")
    (answer,) = client.send_to_any(
        R(resources=[R.AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=[change])])
    ).responses
    assert answer.error_code == 0, answer.error_message


def _wait(done: Callable[[], bool], members: list[Member]) -> None:
    end = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < end, f"{len(_delivered(members))} of {RECORDS} delivered after {LIMIT_S} s"
        time.sleep(0.1)


def _words(members: list[Member]) -> list[tuple[float, list[str]]]:
    return sorted((at, line.split()) for member in members for at, line in list(member.lines))


def _count(members: list[Member], word: str) -> int:
    return sum(words[0] == word for _, words in _words(members))


def _delivered(members: list[Member]) -> set[tuple[str, str]]:
    return {(words[1], words[2]) for _, words in _words(members) if words[0] == "got"}


def _judge(members: list[Member]) -> str:
    finished: dict[tuple[str, str], float] = {}
    again = 0
    counts: Counter[int] = Counter()
    for at, words in _words(members):
        if words[0] == "got":
            record = words[1], words[2]
            assert record not in finished or at < finished[record] + LATE_S, f"{record} came after it was finished"
            count = int(words[3])
            assert 1 <= count <= COUNT_LIMIT, f"{record} was delivered for the {count}th time"
            counts[count] += 1
            again += count > 1
        elif words[0] in ("accepted", "rejected"):
            finished.setdefault((words[1], words[2]), at)
    return f"{RECORDS} records delivered, {again} deliveries repeated, {len(finished)} finished, a broker killed"
