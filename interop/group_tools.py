"""Kafka's tools on groups of each type, word for word beside Apache Kafka 4.2.

A node of each has the same topic, a classic group, one of the consumer protocol and a share group, with a member each,
and later without. The same command lines must print the same. Ids of members and topics, and ports, become names.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jars
from apache_kafka import eventually
from confluent_kafka import Consumer, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic
from suites.nodes import heirlog_node, kafka_node

import tools

TOPIC = "work"
PARTITIONS, RECORDS = 2, 20
CLASSIC, CONSUMER, SHARE = "classics", "nexts", "sharers"
GROUPS = (CLASSIC, CONSUMER, SHARE)
UNKNOWN = "nobody"

Answers = dict[str, str]
"""What a command line printed, with its exit code."""

_ID = re.compile(r"(?<![\w+/-])([\w.-]*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w+/-]{22})(?![\w+/-])")
_TRACE = ("at ", "Caused by:", "java.util.concurrent.ExecutionException:")
_REWORDED = {"The group has members; stop them first.": "The group is not empty."}
"""What heirlog says in more words than Kafka."""
_ADDRESS = re.compile(r"\b(localhost|127\.0\.0\.1):\d+")


def check() -> str:
    jars.fetch()
    with heirlog_node() as address:
        here = answers(address)
    with kafka_node() as address:
        kafka = answers(address)
    wrong = [
        f"{command}\nhere:\n{here[command]}\nApache Kafka:\n{kafka[command]}"
        for command in kafka
        if here[command] != kafka[command]
    ]
    assert not wrong, "\n\n".join(wrong)
    return f"{len(here)} command lines, as on Apache Kafka"


def answers(servers: str) -> Answers:
    found: Answers = {}
    prepare(servers)
    with tools.started(servers) as running:

        def ask(*words: str, about: str = "") -> None:
            said = running.ask(*words)
            found[f"{about}{' '.join(words)}"] = plain(f"{said.code}\n{said.out}{said.err}")

        ask("kafka-configs", *of_group(SHARE), "--alter", "--add-config", "share.auto.offset.reset=earliest")
        with members(servers, running):
            ask_about_all(ask, "with members: ")
            for command in deletions():
                ask(*command, about="with members: ")
        eventually(lambda: all(is_empty(running, group) for group in GROUPS), "groups without members")
        ask_about_all(ask, "")
        for command in changes():
            ask(*command)
        ask("kafka-console-share-consumer", *reading("--max-messages", str(RECORDS)))
        for command in deletions():
            ask(*command)
        ask("kafka-groups", "--list", about="at the end: ")
    return found


def of_group(group: str) -> tuple[str, ...]:
    return "--entity-type", "groups", "--entity-name", group


def reading(*more: str) -> tuple[str, ...]:
    shown = ("--formatter-property", "print.offset=true", "--formatter-property", "print.partition=true")
    return "--topic", TOPIC, "--group", SHARE, "--timeout-ms", "30000", *shown, *more


def ask_about_all(ask: Callable[..., None], when: str) -> None:
    for option in ((), ("--share",), ("--consumer",), ("--group-type", "consumer"), ("--protocol", "consumer")):
        ask("kafka-groups", "--list", *option, about=when)
    for tool in ("kafka-consumer-groups", "kafka-share-groups"):
        ask(tool, "--list", about=when)
        ask(tool, "--list", "--state", about=when)
        ask(tool, "--list", "--state", "Stable", about=when)
        for group in (*GROUPS, UNKNOWN):
            for view in ((), ("--offsets", "--verbose"), ("--members", "--verbose"), ("--state", "--verbose")):
                ask(tool, "--describe", "--group", group, *view, about=when)
    ask("kafka-consumer-groups", "--list", "--type", "consumer", about=when)
    for group in GROUPS:
        for option in ((), ("--all",)):
            ask("kafka-configs", *of_group(group), "--describe", *option, about=when)


def changes() -> Iterator[tuple[str, ...]]:
    for group in GROUPS:
        reset = ("--group", group, "--reset-offsets", "--to-earliest", "--topic", TOPIC)
        yield "kafka-consumer-groups", *reset, "--dry-run"
        yield "kafka-share-groups", *reset, "--dry-run"
    yield "kafka-share-groups", "--group", SHARE, "--reset-offsets", "--to-latest", "--all-topics", "--execute"
    yield "kafka-share-groups", "--describe", "--group", SHARE, "--offsets"
    yield "kafka-share-groups", "--group", SHARE, "--reset-offsets", "--to-earliest", "--all-topics", "--execute"
    lock = "share.record.lock.duration.ms"
    yield "kafka-configs", *of_group(SHARE), "--alter", "--add-config", f"{lock}=20000"
    yield "kafka-configs", *of_group(SHARE), "--describe"
    yield "kafka-configs", *of_group(SHARE), "--alter", "--add-config", f"{lock}=1"
    yield "kafka-configs", *of_group(SHARE), "--alter", "--add-config", "share.unknown=1"
    yield "kafka-configs", *of_group(SHARE), "--alter", "--delete-config", lock


def deletions() -> Iterator[tuple[str, ...]]:
    for group in (*GROUPS, UNKNOWN):
        for tool in ("kafka-consumer-groups", "kafka-share-groups"):
            yield tool, "--group", group, "--delete-offsets", "--topic", TOPIC
    for group in (*GROUPS, UNKNOWN):
        for tool in ("kafka-share-groups", "kafka-consumer-groups"):
            yield tool, "--group", group, "--delete"


def plain(said: str) -> str:
    """Without what differs from run to run. Rows may come in any order, and columns are as wide as their longest."""
    for ours, kafkas in _REWORDED.items():
        said = said.replace(ours, kafkas)
    said = _ADDRESS.sub("ADDRESS", _ID.sub("ID", said))
    lines = [" ".join(line.split()) for line in said.splitlines()]
    return "\n".join(sorted(line for line in lines if line and not line.startswith(_TRACE)))


def prepare(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    assert not producer.flush(30)


@contextmanager
def members(servers: str, running: tools.Tools) -> Iterator[None]:
    """One of each group, which has read and committed everything."""
    base = {"bootstrap.servers": servers, "client.id": "member"}
    reset = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    readers = [
        Consumer({**base, **reset, "group.id": CLASSIC, "group.protocol": "classic"}),
        Consumer({**base, **reset, "group.id": CONSUMER, "group.protocol": "consumer"}),
    ]
    sharer = ShareConsumer({**base, "group.id": SHARE})
    everybody = (*readers, sharer)
    for member in everybody:
        member.subscribe([TOPIC])
    stopped = threading.Event()
    ready = [threading.Event() for _ in everybody]

    def stay(index: int) -> None:
        """In a thread of its own, which also commits: a commit of librdkafka waits for a poll of another thread."""
        count = 0
        while not stopped.is_set():
            if index < len(readers):
                messages = readers[index].consume(RECORDS, 0.2)
            else:
                messages = list(sharer.poll(0.2))
            count += sum(message.error() is None for message in messages)
            if count == RECORDS and not ready[index].is_set():
                if index < len(readers):
                    readers[index].commit(asynchronous=False)
                else:
                    sharer.commit_sync()
                ready[index].set()

    workers = [threading.Thread(target=stay, args=(index,), daemon=True) for index in range(len(everybody))]
    for worker in workers:
        worker.start()
    try:
        eventually(lambda: all(each.is_set() for each in ready), "every record read and committed by each group")
        yield
    finally:
        stopped.set()
        for worker in workers:
            worker.join(30)
        for member in everybody:
            member.close()


def is_empty(running: tools.Tools, group: str) -> bool:
    tool = "kafka-share-groups" if group == SHARE else "kafka-consumer-groups"
    return "Empty" in running(tool, "--describe", "--group", group, "--state")
