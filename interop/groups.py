"""A group of three of each client: a member is killed, a broker under a producer, then all nodes; a new member resumes.

The clients' programs carry lines: `produce` writes what it reads to a topic and ends with 0 once all of it is
acknowledged, `consume` joins a group and prints what it is given. Numbers are sent as lines, so nothing lost is a set
of numbers. Records may come twice (a killed member has not committed the last ones), but what was committed long before
the group was emptied must not come to the member that resumes.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from apache_kafka import PATIENCE_S, eventually

from heirlog.blocking import Client
from heirlog.cli.described_groups import described_group
from heirlog.cli.errors import CommandError
from heirlog.protocol.errors import KafkaError
from heirlog.testing import Cluster

TOPIC = "lines"
GROUP = "readers"
Command: TypeAlias = Callable[[str, str], Sequence[str]]
"""From "produce" or "consume" and the bootstrap servers."""


class Member:
    """A consuming process; its output is in a file."""

    def __init__(self, command: Sequence[str], output: Path, stack: ExitStack) -> None:
        self.output = output
        self._file = stack.enter_context(output.open("wb"))
        self.process = subprocess.Popen(command, stdout=self._file, stderr=subprocess.DEVNULL)
        stack.callback(self.kill)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def numbers(self) -> set[int]:
        text = self.output.read_text(errors="replace")
        return {int(line) for line in text[: text.rfind("\n") + 1].split()}


def group_has(servers: str, members: int, protocol: str) -> bool:
    """protocol: classic or consumer."""
    with Client(servers) as client:
        try:
            group = described_group(client, GROUP)
        except (CommandError, KafkaError, OSError):
            return False
    return group.state == "Stable" and [member.kind for member in group.members] == [protocol] * members


def produce(command: Sequence[str], numbers: range, between: Callable[[], None] = lambda: None) -> None:
    """Half of the numbers, what happens, the other half, all through one process, which must end with 0."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            half = numbers[: len(numbers) // 2]
            process.stdin.write("".join(f"{number}\n" for number in half))
            process.stdin.flush()
            between()
            rest = "".join(f"{number}\n" for number in numbers[len(half) :])
            _, problems = process.communicate(rest, timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 0, f"the producer ended with {process.returncode}: {problems[-2000:]}"


def full_outage(cluster: Cluster) -> None:
    """All nodes are gone at once; a broker that comes back first must not look like a cluster without brokers."""
    for node in cluster.node_ids:
        cluster.kill(node)
    for node in cluster.node_ids:
        cluster.start(node)
    cluster.wait_until_ready()


def hard_day(
    cluster: Cluster, command: Command, committed_s: float, survives_outage: bool = True, protocol: str = "classic"
) -> None:
    """Raises AssertionError for anything lost.

    committed_s: after which time a client has committed what it was given.
    survives_outage: False for a client that ends by itself once no broker can be reached.
    protocol: of the group's members, classic or consumer.
    """
    servers = cluster.bootstrap_servers
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory, ExitStack() as stack:

        def join(name: str) -> Member:
            return Member(command("consume", servers), Path(directory) / name, stack)

        def all_of(numbers: range, members: list[Member]) -> Callable[[], bool]:
            return lambda: set().union(*(member.numbers() for member in members)) >= set(numbers)

        members = [join(f"member-{number}") for number in range(3)]
        eventually(lambda: group_has(servers, 3, protocol), "a stable group of three")
        produce(command("produce", servers), range(300))
        eventually(all_of(range(300), members), "the first records at the members")
        assert sum(bool(member.numbers()) for member in members) == 3, "one member did all the work"
        time.sleep(committed_s)
        members[0].kill()
        produce(command("produce", servers), range(300, 600), lambda: cluster.kill(1))
        eventually(all_of(range(600), members), "every record after a member and a broker were killed")
        if survives_outage:
            full_outage(cluster)
            produce(command("produce", servers), range(600, 620))
            eventually(all_of(range(620), members), "every record after all nodes were killed at once")
        time.sleep(committed_s)
        for member in members:
            member.kill()
        resumed = join("resumed")
        produce(command("produce", servers), range(620, 650))
        eventually(all_of(range(620, 650), [resumed]), "the new records at the member that resumes")
        assert min(resumed.numbers()) >= 300, "committed records were read again"
