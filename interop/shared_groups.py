"""`heirlog consume --group` in a group with Apache Kafka's console consumer, with each strategy of its clients.

The first member leads the group and assigns. So each format of subscriptions is written by one side and read by the
other, in both directions. The shares are even with two members, and one member has everything before and afterwards.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import jars
from apache_kafka import eventually

from heirlog.blocking import Client
from heirlog.client.assignment import JAVA_CLASSES
from heirlog.protocol.consumer_protocol import assigned_partitions
from heirlog.protocol.messages import DescribeGroupsRequest
from heirlog.testing import Cluster

TOPIC = "shared"
PARTITIONS = 4
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def check() -> str:
    """For `make interop`. Raises AssertionError."""
    jars.fetch()
    with Cluster(nodes=1) as cluster, Client(cluster.bootstrap_servers) as client:
        cluster.create_topic(TOPIC, partitions=PARTITIONS)
        for java_class, strategy in JAVA_CLASSES.items():
            for first in ("heirlog", "java"):
                _share(client, cluster.bootstrap_servers, java_class, f"{strategy}-{first}", first)
    return f"{len(JAVA_CLASSES)} strategies, each led by both sides"


def _share(client: Client, servers: str, java_class: str, group: str, first: str) -> None:
    given = ["heartbeat.interval.ms=300", f"partition.assignment.strategy={java_class}"]
    ours = [sys.executable, "-m", "heirlog", "consume", TOPIC, "--group", group, "-b", servers]
    java = ["java", "-cp", jars.classpath(), CONSOLE_CONSUMER, "--topic", TOPIC, "--group", group]
    java += ["--bootstrap-server", servers]
    for one in given:
        ours += ["--consumer-property", one]
        java += ["--consumer-property", one]
    commands = [ours, java] if first == "heirlog" else [java, ours]
    with _running(commands[0]):
        eventually(lambda: _shares(client, group) == [PARTITIONS], f"{group}: all partitions for the first member")
        with _running(commands[1]):
            halves = [PARTITIONS // 2] * 2
            eventually(lambda: _shares(client, group) == halves, f"{group}: half of the partitions for each")
        eventually(lambda: _shares(client, group) == [PARTITIONS], f"{group}: all partitions after the other has left")


@contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def _shares(client: Client, group: str) -> list[int]:
    """How many partitions each member has."""
    request = DescribeGroupsRequest(groups=[group])
    answer = client.send_to_coordinator(group, request, error_code=lambda got: int(got.groups[0].error_code))
    members = answer.groups[0].members
    return sorted(sum(map(len, assigned_partitions(one.member_assignment).values())) for one in members)
