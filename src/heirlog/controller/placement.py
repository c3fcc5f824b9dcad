"""Where the replicas of a new topic go.

Brokers are dealt out round robin, so that leaders and followers spread evenly; the start is drawn, so that many small
topics do not all begin on the same broker. Where brokers name racks, neighbours in the order come from different racks,
so that the replicas of a partition do too as long as there are enough racks.

Active brokers come first. A fenced one gets a replica only where the replication factor cannot be met without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from heirlog.env import Random
from heirlog.metadata.state import BrokerState, Ids
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import BrokerId


def place(brokers: Iterable[BrokerState], partitions: int, replication_factor: int, random: Random) -> list[Ids]:
    """One assignment per partition. Raises INVALID_REPLICATION_FACTOR if there are too few brokers."""
    known = sorted(brokers, key=lambda broker: broker.id)
    active = _rack_order([broker for broker in known if broker.is_active])
    idle = _rack_order([broker for broker in known if not broker.is_active])
    if replication_factor > len(known):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(known)} broker(s) are registered.",
        )
    if not active:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): All brokers are currently fenced or in "
            "controlled shutdown.",
        )
    start = random.randrange(0, len(active))
    shift = random.randrange(0, len(active))
    return [_replicas(active, idle, start + n, shift + n // len(active), replication_factor) for n in range(partitions)]


def _replicas(active: Ids, idle: Ids, position: int, round_: int, replication_factor: int) -> Ids:
    """The first replica moves on by one per partition; the others move against it by one per full round, so that the
    partitions that one broker leads have different followers."""
    first = active[position % len(active)]
    chosen = [first]
    others = [active[(position + 1 + n) % len(active)] for n in range(len(active) - 1)]
    if len(others) > 1 and replication_factor <= len(others):
        turn = round_ % len(others)
        others = others[turn:] + others[:turn]
    chosen += others[: replication_factor - 1]
    chosen += [idle[(position + n) % len(idle)] for n in range(replication_factor - len(chosen))]
    return tuple(chosen)


def _rack_order(brokers: list[BrokerState]) -> Ids:
    """By id within each rack, racks taking turns."""
    racks: dict[str | None, list[BrokerId]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack, []).append(broker.id)
    ordered = [racks[rack] for rack in sorted(racks, key=lambda rack: (rack is None, rack or ""))]
    return tuple(broker for turn in zip_longest(*ordered) for broker in turn if broker is not None)
