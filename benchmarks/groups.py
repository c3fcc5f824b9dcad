"""Groups of the consumer protocol (KIP-848): what a heartbeat costs the brokers, and how long a rebalance takes.

Each member has a connection, as a consumer has, but all of them are requests from one thread, so hundreds of them need
no processes. A member here waits for nothing: it sends its next heartbeat as soon as the one before it is answered and
every other member had its turn. So a rebalance takes the time of the coordinator and of its log, not the heartbeat
interval.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from benchmarks import load
from benchmarks.gauges import Cost, Loaded, Nodes, everything
from heirlog.blocking import Client
from heirlog.local.cluster import Cluster
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    FindCoordinatorRequest,
)

TOPIC = "group-bench"
PARTITIONS = 300
SIZES = (3, 100)
"""Members of a group before one more joins."""
BEATING = 100
"""Members of the group whose heartbeats are counted."""
REBALANCE_TIMEOUT_MS = 300_000
LIMIT_S = 60.0
_NUMBERS = itertools.count()

R = ConsumerGroupHeartbeatRequest


@dataclass(slots=True)
class Member:
    """Has what it was last given, and says so once."""

    client: Client
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
    """With everything assigned from the beginning. It is left by all members at the end of a `with`."""

    def __init__(self, nodes: Loaded, members: int) -> None:
        self.name = f"bench-{next(_NUMBERS)}"
        self._bootstrap = nodes.bootstrap_servers
        self.members = [self._member(f"member-{number:04}") for number in range(members)]
        self.settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.epoch, member.says_owned = -1, False
            self._send(member)
            member.client.close()

    def beat(self, member: Member) -> None:
        answer = self._send(member)
        if answer.error_code != ErrorCode.NONE:
            raise RuntimeError(f"a heartbeat was refused: {ErrorCode(answer.error_code).name}")
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
        self.members.append(self._member("newcomer"))
        self.settle()
        return time.perf_counter() - began

    def coordinator(self) -> int:
        asked = FindCoordinatorRequest(coordinator_keys=[self.name])
        (found,) = self.members[0].client.send_to_any(asked).coordinators
        return int(found.node_id)

    def _member(self, name: str) -> Member:
        return Member(Client(self._bootstrap), name)

    def _send(self, member: Member) -> ConsumerGroupHeartbeatResponse:
        """The coordinator's answer. The client remembers where that is, so it sends nothing but heartbeats."""
        answer: ConsumerGroupHeartbeatResponse = member.client.send_to_coordinator(
            self.name, member.request(self.name), error_code=lambda answer: int(answer.error_code), timeout_s=LIMIT_S
        )
        return answer


def create(nodes: Nodes) -> None:
    load.create(nodes, TOPIC, 1, PARTITIONS)


def rebalance_s(nodes: Nodes, members: int) -> float:
    """A group of so many members gets one more."""
    with Group(nodes, members) as group:
        return group.one_more_s()


def heartbeat_us(nodes: Loaded, seconds: float) -> tuple[float, float]:
    """CPU of all nodes for a heartbeat that changes nothing, and the kernel's part of it."""
    with Group(nodes, BEATING) as group:
        for member in group.members:
            group.beat(member)
        before, until, count = Cost.of(everything(nodes)), time.monotonic() + seconds, 0
        while time.monotonic() < until:
            for member in group.members:
                group.beat(member)
            count += len(group.members)
        after = Cost.of(everything(nodes))
        return 1e6 * (after.cpu_s - before.cpu_s) / count, 1e6 * (after.kernel_s - before.kernel_s) / count


def report(rounds: int, seconds: float, row: Callable[..., None]) -> None:
    """heirlog alone."""
    with Cluster(nodes=3, ledger=False) as nodes:
        create(nodes)
        row("heartbeat that changes nothing, CPU", f"{_median(rounds, lambda: heartbeat_us(nodes, seconds)[0]):.0f} µs")
        for members in SIZES:
            taken_s = _median(rounds, lambda members=members: rebalance_s(nodes, members))  # type: ignore[misc]
            row(f"rebalance from {members} to {members + 1} members", f"{1e3 * taken_s:.0f} ms")


def _median(rounds: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(rounds))
