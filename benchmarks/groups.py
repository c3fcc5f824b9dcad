"""Groups of the consumer protocol (KIP-848): what a heartbeat costs the brokers, and how long a rebalance takes.

The members are requests from one thread, so hundreds of them need no processes. A member here waits for nothing: it
sends its next heartbeat as soon as the one before it is answered and every other member had its turn. So a rebalance
takes the time of the coordinator and of its log, not the heartbeat interval.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks import load
from benchmarks.gauges import Cost, Nodes, everything
from heirlog.blocking import Client
from heirlog.local.cluster import Cluster
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ConsumerGroupHeartbeatRequest, FindCoordinatorRequest

TOPIC = "group-bench"
PARTITIONS = 300
SIZES = (3, 100)
"""Members of a group before one more joins."""
BEATING = 100
"""Members of the group whose heartbeats are counted."""
REBALANCE_TIMEOUT_MS = 300_000
LIMIT_S = 60.0
NOT_YET = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Of a group whose partition of `__consumer_offsets` has just been created."""
_NUMBERS = itertools.count()

R = ConsumerGroupHeartbeatRequest


@dataclass(slots=True)
class Member:
    """Has what it was last given, and says so once."""

    name: str
    epoch: int = 0
    owned: dict[bytes, list[int]] = field(default_factory=dict)
    says_owned: bool = True

    @property
    def count(self) -> int:
        return sum(map(len, self.owned.values()))

    def request(self, group: str) -> ConsumerGroupHeartbeatRequest:
        joining: dict[str, Any] = {}
        if self.epoch == 0:
            joining = {"rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, "subscribed_topic_names": [TOPIC]}
        owned = [R.TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in self.owned.items()]
        return R(
            group_id=group,
            member_id=self.name,
            member_epoch=self.epoch,
            topic_partitions=owned if self.says_owned else None,
            **joining,
        )


class Group:
    """One group, by its coordinator."""

    def __init__(self, client: Client, members: int) -> None:
        self.name = f"bench-{next(_NUMBERS)}"
        self._client = client
        self.coordinator = _coordinator(client, self.name)
        self.members = [Member(f"member-{number:04}") for number in range(members)]
        self.settle()

    def beat(self, member: Member) -> None:
        until = time.monotonic() + LIMIT_S
        while True:
            answer = self._client.send_to_broker(self.coordinator, member.request(self.name))
            if answer.error_code == ErrorCode.NONE:
                break
            if answer.error_code not in NOT_YET or time.monotonic() > until:
                raise RuntimeError(f"a heartbeat was refused: {ErrorCode(answer.error_code).name}")
            self.coordinator = _coordinator(self._client, self.name)
        member.epoch, member.says_owned = answer.member_epoch, False
        if answer.assignment is not None:
            member.owned = {bytes(each.topic_id): each.partitions for each in answer.assignment.topic_partitions}
            member.says_owned = True

    def settle(self) -> None:
        """Until every partition is with a member, and no member has two more than another."""
        until = time.monotonic() + LIMIT_S
        while True:
            for member in self.members:
                self.beat(member)
            counts = [member.count for member in self.members]
            if sum(counts) == PARTITIONS and max(counts) - min(counts) <= 1:
                return
            if time.monotonic() > until:
                raise RuntimeError(f"{self.name}: {sum(counts)} partitions assigned after {LIMIT_S:g} s")

    def one_more_s(self) -> float:
        """From the request of a new member until everything is balanced again."""
        began = time.perf_counter()
        self.members.append(Member("newcomer"))
        self.settle()
        return time.perf_counter() - began

    def leave(self) -> None:
        for member in self.members:
            member.epoch, member.says_owned = -1, False
            self._client.send_to_broker(self.coordinator, member.request(self.name))


def _coordinator(client: Client, group: str) -> int:
    until = time.monotonic() + LIMIT_S
    while True:
        (found,) = client.send_to_any(FindCoordinatorRequest(coordinator_keys=[group])).coordinators
        if found.error_code == ErrorCode.NONE:
            return int(found.node_id)
        if time.monotonic() > until:
            raise RuntimeError(f"no coordinator for {group}: {ErrorCode(found.error_code).name}")
        time.sleep(0.1)


def create(nodes: Nodes) -> None:
    load.create(nodes, TOPIC, 1, PARTITIONS)


def rebalance_s(nodes: Nodes, members: int) -> float:
    """A group of so many members gets one more."""
    with Client(nodes.bootstrap_servers) as client:
        group = Group(client, members)
        taken_s = group.one_more_s()
        group.leave()
        return taken_s


def heartbeat_us(nodes: Nodes, seconds: float) -> float:
    """CPU of all nodes for a heartbeat that changes nothing."""
    with Client(nodes.bootstrap_servers) as client:
        group = Group(client, BEATING)
        for member in group.members:
            group.beat(member)
        before, until, count = Cost.of(everything(nodes)).cpu_s, time.monotonic() + seconds, 0
        while time.monotonic() < until:
            for member in group.members:
                group.beat(member)
            count += len(group.members)
        cost_s = Cost.of(everything(nodes)).cpu_s - before
        group.leave()
        return 1e6 * cost_s / count


def report(rounds: int, seconds: float, row: Callable[..., None]) -> None:
    """heirlog alone."""
    with Cluster(nodes=3, ledger=False) as nodes:
        create(nodes)
        row("heartbeat that changes nothing, CPU", f"{_median(rounds, lambda: heartbeat_us(nodes, seconds)):.0f} µs")
        for members in SIZES:
            taken_s = _median(rounds, lambda members=members: rebalance_s(nodes, members))  # type: ignore[misc]
            row(f"rebalance from {members} to {members + 1} members", f"{1e3 * taken_s:.0f} ms")


def _median(rounds: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(rounds))
