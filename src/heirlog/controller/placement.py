"""Which brokers get the replicas of new partitions.

Three goals; an earlier one outranks a later one:

    racks       a partition has replicas in as many racks as possible, and no rack has two more than another one that
                has a broker left. Brokers without `broker.rack` count as one rack
    fenced      a fenced broker, or one in controlled shutdown, gets a replica only where the racks leave no other
    balance     each active broker leads as many partitions as any other (one more at most). Of the brokers that the
                first two goals leave, the one with the fewest replicas gets the next one; equal ones are drawn

The first replica is the first leader, so it is active. The goals and their order are those of Kafka's
StripedReplicaPlacer. The algorithm is different: Kafka's takes the racks in rotation, so the brokers of a small rack
lead more partitions.

Only the partitions of one call are balanced. A trap: a small rack limits the balance. With 10 brokers in rack a, 10 in
b and 1 in c, replication factor 3 puts a replica of every partition on the broker in c.

Source: KIP-36; `make interop` compares with Kafka's class.
"""

from __future__ import annotations

from collections.abc import Iterable

from heirlog.env import Random
from heirlog.metadata.state import BrokerRegistration, Ids
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import BrokerId

_LAST = 1e9
"""Added to the load of an inactive broker: more than any number of replicas."""


def place(brokers: Iterable[BrokerRegistration], partitions: int, replication_factor: int, random: Random) -> list[Ids]:
    """One assignment per partition. Raises INVALID_REPLICATION_FACTOR if there are too few brokers."""
    known = sorted(brokers, key=lambda broker: broker.id)
    if replication_factor > len(known):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(known)} broker(s) are registered.",
        )
    if not any(broker.is_active for broker in known):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): All brokers are currently fenced or in "
            "controlled shutdown.",
        )
    spread = _Spread(known, random)
    return [spread.next(replication_factor) for _ in range(partitions)]


class _Spread:
    """The load of each broker from the partitions placed so far."""

    def __init__(self, brokers: list[BrokerRegistration], random: Random) -> None:
        self._random = random
        self._rack_of = {broker.id: broker.rack for broker in brokers}
        self._active = [broker.id for broker in brokers if broker.is_active]
        self._load = {broker.id: (0.0 if broker.is_active else _LAST) + random.random() for broker in brokers}
        """Replicas, plus the partition that a broker has still to lead; a random fraction orders equal brokers."""
        self._to_lead: set[BrokerId] = set()
        """Active brokers that have led one partition less than the others."""

    def next(self, replication_factor: int) -> Ids:
        """The replicas of one more partition, its leader first."""
        if not self._to_lead:
            self._to_lead = set(self._active)
            # counted before they lead: otherwise the last one would get a partition to lead in addition to a full load
            for broker in self._active:
                self._count(broker)
        leader = min(self._to_lead, key=self._load.__getitem__)
        self._to_lead.remove(leader)
        replicas = [leader]
        racks = {self._rack_of[leader]}
        while len(replicas) < replication_factor:
            free = [broker for broker in self._rack_of if broker not in replicas]
            candidates = [broker for broker in free if self._rack_of[broker] not in racks]
            if not candidates:  # every rack that can have one more has one: the next round begins
                racks.clear()
                candidates = free
            follower = min(candidates, key=self._load.__getitem__)
            self._count(follower)
            replicas.append(follower)
            racks.add(self._rack_of[follower])
        return tuple(replicas)

    def _count(self, broker: BrokerId) -> None:
        self._load[broker] = int(self._load[broker]) + 1 + self._random.random()
