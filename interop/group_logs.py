"""Groups in the `__consumer_offsets` of Apache Kafka, coordinated by heirlog from there on, and the other way round.

on one node        members of the consumer protocol join: stable ones, a static one that is away for a while, one with
                   a regular expression, two in the midst of a rebalance, one that has left. A share group, and
                   offsets of members and of nobody
its records        are written to the same partitions of the other node, with the id that the topic has there
on the other node  after a restart the groups are described alike, and have the same offsets. Each member continues
                   in its epoch with the partitions that it has, and may commit
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jars
from apache_kafka import eventually, started
from suites import nodes

from heirlog.blocking import LATEST, Client
from heirlog.broker.produce import ADMIN_CLIENT
from heirlog.client.offsets import CommittedOffset
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from heirlog.testing import Cluster

OFFSETS_TOPIC = "__consumer_offsets"
TOPIC, PARTITIONS = "moved", 6
STABLE, AWAY, BY_REGEX, REBALANCING, LEFT, SHARED, SIMPLE = (
    *("stable", "away", "by-regex", "rebalancing", "left"),
    *("shared", "simple"),
)
CONSUMER_GROUPS = (STABLE, AWAY, BY_REGEX, REBALANCING, LEFT)
REBALANCE_TIMEOUT_MS = 300_000
ROUNDS = 4
"""Heartbeats of each member, which are enough for any move."""


class Node(NamedTuple):
    address: str
    restart: Callable[[], None]


@contextmanager
def heirlog() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="heirlog-moved-") as directory:
        address = nodes.write_properties(Path(directory))
        with Cluster(data=directory, ledger=False) as cluster:

            def restart() -> None:
                cluster.stop(nodes.NODE_ID)
                cluster.start(nodes.NODE_ID)
                cluster.wait_until_ready()

            yield Node(address, restart)


@contextmanager
def kafka() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="kafka-moved-") as directory:
        address = nodes.write_properties(Path(directory))
        with started(Path(directory) / f"broker-{nodes.NODE_ID}") as node:
            node.wait_until_it_knows({nodes.NODE_ID}, address)

            def restart() -> None:
                node.stop()
                node.start()
                node.wait_until_it_knows({nodes.NODE_ID}, address)

            yield Node(address, restart)


@dataclass
class Member:
    group: str
    name: str
    instance: str | None = None
    regex: str | None = None
    epoch: int = 0
    owned: tuple[int, ...] = ()
    says_owned: bool = field(default=True)

    def beats(self, client: Client, epoch: int | None = None, *, acknowledges: bool = True) -> None:
        """epoch: to leave with."""
        R = ConsumerGroupHeartbeatRequest
        (topic_id,) = [topic.topic_id for topic in client.topics([TOPIC]).values()]
        has = [R.TopicPartitions(topic_id=topic_id, partitions=list(self.owned))] if self.owned else []
        request = R(
            group_id=self.group,
            member_id=self.name,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=self.instance,
            topic_partitions=has if self.epoch == 0 or (acknowledges and self.says_owned) else None,
        )
        if self.epoch == 0:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_regex = self.regex
            request.subscribed_topic_names = [TOPIC] if self.regex is None else None
        answer = asked(client, self.group, request)
        assert answer.error_code == 0, f"{self}: {answer}"
        if epoch is None:
            self.epoch, self.says_owned = answer.member_epoch, False
        if answer.assignment is not None:
            given = [number for each in answer.assignment.topic_partitions for number in each.partitions]
            self.owned, self.says_owned = tuple(sorted(given)), True

    def commits(self, client: Client, offset: int) -> None:
        R = OffsetCommitRequest
        (topic_id,) = [topic.topic_id for topic in client.topics([TOPIC]).values()]
        part = R.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=self.name,
            generation_id_or_member_epoch=self.epoch,
            topics=[R.OffsetCommitRequestTopic(name=TOPIC, topic_id=topic_id, partitions=[part])],
        )
        answer = client.send_to_coordinator(self.group, request, error_code=lambda _: 0)
        (code,) = [part.error_code for topic in answer.topics for part in topic.partitions]
        assert code == 0, f"{self}: {ErrorCode(code).name}"


def asked(client: Client, group: str, request: Any) -> Any:
    return client.send_to_coordinator(group, request, error_code=lambda answer: int(answer.error_code))


class Groups:
    """On one node, and then on the other; their names begin with `run`."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.members = [
            Member(f"{run}{STABLE}", "a"),
            Member(f"{run}{STABLE}", "b", instance="i-b"),
            Member(f"{run}{AWAY}", "c", instance="i-c"),
            Member(f"{run}{BY_REGEX}", "d", regex="mo.ed"),
            Member(f"{run}{REBALANCING}", "e"),
            Member(f"{run}{REBALANCING}", "f"),
        ]

    def begin(self, client: Client) -> None:
        a, b, c, d, e, f = self.members
        for _ in range(ROUNDS):
            for member in (a, b, c, e):
                member.beats(client)
        assert sorted(a.owned + b.owned) == list(range(PARTITIONS)), (a, b)
        eventually(lambda: d.beats(client) or len(d.owned) == PARTITIONS, "the expression is looked up")
        for number, member in enumerate(self.members[:5]):
            member.commits(client, 10 + number)
        c.beats(client, epoch=-2)
        f.beats(client)
        e.beats(client)
        assert len(e.owned) < PARTITIONS and e.says_owned, "it has not said yet that it has given up the others"
        left = Member(f"{self.run}{LEFT}", "g")
        left.beats(client)
        left.commits(client, 5)
        left.beats(client, epoch=-1)
        client.commit(f"{self.run}{SIMPLE}", {(TOPIC, 1): CommittedOffset(3, metadata="of nobody")})
        self._share(client)

    def _share(self, client: Client) -> None:
        group, epoch = f"{self.run}{SHARED}", 0

        def is_assigned() -> bool:
            nonlocal epoch
            request = ShareGroupHeartbeatRequest(group_id=group, member_id="s", member_epoch=epoch)
            request.subscribed_topic_names = [TOPIC]
            answer = asked(client, group, request)
            assert answer.error_code == 0, answer
            epoch = answer.member_epoch
            return answer.assignment is not None and bool(answer.assignment.topic_partitions)

        eventually(is_assigned, "the share partitions are initialized")

    def described(self, client: Client) -> dict[str, Any]:
        """Everything that does not name a node or a topic's id."""
        found = {}
        for kind in CONSUMER_GROUPS:
            request = ConsumerGroupDescribeRequest(group_ids=[self.run + kind])
            (group,) = client.send_to_coordinator(self.run + kind, request, error_code=_first_code).groups
            found[kind] = (
                (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name),
                sorted(_member(each) for each in group.members),
            )
        request = ShareGroupDescribeRequest(group_ids=[self.run + SHARED])
        (group,) = client.send_to_coordinator(self.run + SHARED, request, error_code=_first_code).groups
        found[SHARED] = (
            (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch),
            [(each.member_id, each.member_epoch, _partitions(each.assignment)) for each in group.members],
        )
        for kind in (*CONSUMER_GROUPS, SIMPLE):
            found[f"offsets of {kind}"] = client.committed(self.run + kind)
        return found

    def continue_on(self, client: Client) -> None:
        """Each member with what it has: the others do not lose it, and get what is free."""
        a, b, c, d, e, f = self.members
        kept = {member.name: member.owned for member in (a, b, d)}
        back = Member(f"{self.run}{AWAY}", "c2", instance="i-c")
        back.beats(client)
        assert back.owned == c.owned == tuple(range(PARTITIONS)), back
        for _ in range(ROUNDS):
            for member in (a, b, d, e, f):
                member.beats(client)
        assert {member.name: member.owned for member in (a, b, d)} == kept
        assert sorted(e.owned + f.owned) == list(range(PARTITIONS)) and len(f.owned) == PARTITIONS // 2, (e, f)
        for member in (a, b, d, e, f, back):
            member.commits(client, 100)


def _member(member: Any) -> tuple[Any, ...]:
    return (
        member.member_id,
        member.instance_id or "",
        member.member_epoch,
        sorted(member.subscribed_topic_names),
        member.subscribed_topic_regex or "",
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        member.member_type,
    )


def _partitions(assignment: Any) -> list[tuple[str, list[int]]]:
    return sorted((topic.topic_name, sorted(topic.partitions)) for topic in assignment.topic_partitions)


def _first_code(answer: Any) -> int:
    return int(answer.groups[0].error_code)


def check() -> str:
    jars.fetch()
    with heirlog() as ours, kafka() as theirs:
        for node in (ours, theirs):
            _prepare(node)
        count = 0
        for run, source, target in (("k-", theirs, ours), ("h-", ours, theirs)):
            groups = Groups(run)
            with Client(source.address) as client:
                groups.begin(client)
                expected = groups.described(client)
            count += _move(run, source, target)
            target.restart()
            with Client(target.address) as client:
                found = eventually(lambda: _or_none(groups, client), "groups are loaded")  # noqa: B023
                assert found == expected, f"{run}: {found}\ninstead of {expected}"
                groups.continue_on(client)
    return f"{count} records of {len(CONSUMER_GROUPS) + 2} groups, in both directions"


def _or_none(groups: Groups, client: Client) -> dict[str, Any] | None:
    try:
        return groups.described(client)
    except (KafkaError, OSError):
        return None


def _prepare(node: Node) -> None:
    """With the topic, and with coordinators."""
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    with Client(node.address) as client:
        (created,) = client.send_to_any(CreateTopicsRequest(topics=[topic])).topics
        assert created.error_code == 0, created
        asking = FindCoordinatorRequest(coordinator_keys=["any"])
        eventually(lambda: client.send_to_any(asking).coordinators[0].error_code == 0, "there is a coordinator")


def _move(run: str, source: Node, target: Node) -> int:
    """Writes the records of these groups to the other node; how many."""
    count = 0
    with Client(source.address) as here, Client(target.address, client_id=ADMIN_CLIENT) as there:
        ids = [client.topics([TOPIC])[TOPIC].topic_id for client in (here, there)]
        assert ids[0] is not None and ids[1] is not None
        for index in range(int(nodes.CONFIG["offsets.topic.num.partitions"])):
            place = (OFFSETS_TOPIC, index)
            records = []
            for part in here.fetch(*place, 0, here.list_offsets({place: LATEST})[place].offset):
                for at, _ in walk(part.records):
                    for record in decode_records(part.records, at):
                        value = None if record.value is None else bytes(record.value).replace(ids[0], ids[1])
                        if run.encode() in bytes(record.key or b""):
                            records.append((record.key, value, (), record.timestamp_ms))
            if records:
                assert there.produce(*place, encode_batch(records)).error_code == 0
            count += len(records)
    return count
