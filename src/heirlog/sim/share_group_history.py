"""A share group in a run: what its members received and acknowledged, and whether that is allowed.

    share-twice    of two members that have a record, the first one's lock had not ended (S1)
    share-count    a record was delivered more often than the limit, or said so (S2)
    share-final    a record was delivered after its acceptance was answered (S3)
    share-lost     a record was never delivered, and the group has finished it (S4)

*Held*: from the answer that delivers a record until its member says what became of it, its lock ends, or its session
does. A change of the leader ends it too. A session may be over before its member notices, so it is known to be alive
only until its last request that succeeded was sent.

A leader that was replaced delivers until it notices: acquiring is not stored, so nothing fences it. So what counts is
the epoch in which a broker itself believes to lead. An answer does not name it; it is between the broker's epochs when
the request was sent and when the answer came.

Elections on a lossy basis, of the topic or of `__share_group_state`, excuse what came before them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from heirlog.sim.history import Finding

TWICE, COUNT, FINAL, LOST = "share-twice", "share-count", "share-final", "share-lost"


@dataclass(slots=True, eq=False)
class SessionLife:
    alive_until_ms: int = -1


@dataclass(slots=True, eq=False)
class Delivery:
    """Records that a member received. Times are those of the run."""

    member: str
    partition: int
    first: int
    last: int
    count: int
    asked_ms: int
    answered_ms: int
    broker: str
    epoch_before: int
    """Leader epoch that the broker itself knew when the request was sent."""
    epoch_after: int
    """And when the answer came."""
    locked_until_ms: int = 0
    ended_ms: int | None = None
    """When the member said what became of them; None: it did not."""
    session: SessionLife = field(default_factory=SessionLife)


class Acceptance(NamedTuple):
    answered_ms: int
    epoch_after: int
    """Leader epoch that the broker itself knew when the answer came."""


@dataclass(slots=True)
class ShareGroupHistory:
    group: str
    count_limit: int
    deliveries: list[Delivery] = field(default_factory=list)
    accepted: dict[tuple[int, int], Acceptance] = field(default_factory=dict)
    """By partition and offset."""


def findings(history: ShareGroupHistory) -> Iterable[Finding]:
    by_record: dict[tuple[int, int], list[Delivery]] = {}
    for delivery in history.deliveries:
        for offset in range(delivery.first, delivery.last + 1):
            by_record.setdefault((delivery.partition, offset), []).append(delivery)
    for (partition, offset), deliveries in by_record.items():
        name = f"record {offset} of partition {partition}"
        for each in deliveries:
            if not 1 <= each.count <= history.count_limit:
                yield Finding(COUNT, f"{name} was delivered to {each.member} with the count {each.count}")
        accepted = history.accepted.get((partition, offset))
        if accepted is not None:
            for each in deliveries:
                if each.asked_ms > accepted.answered_ms and each.epoch_before >= accepted.epoch_after:
                    yield Finding(
                        FINAL,
                        f"{name} was accepted at {accepted.answered_ms} ms, and delivered again at "
                        f"{each.answered_ms} ms",
                    )
        yield from _twice(name, deliveries)


def _twice(name: str, deliveries: list[Delivery]) -> Iterable[Finding]:
    for earlier, later in pairwise(deliveries):
        same_leader = earlier.broker == later.broker and earlier.epoch_before == later.epoch_after
        ended_ms = earlier.locked_until_ms if earlier.ended_ms is None else earlier.ended_ms
        if same_leader and later.answered_ms < min(ended_ms, earlier.locked_until_ms, earlier.session.alive_until_ms):
            yield Finding(
                TWICE,
                f"{name} was delivered to {earlier.member} at {earlier.answered_ms} ms and to {later.member} at "
                f"{later.answered_ms} ms",
            )


def never_delivered(history: ShareGroupHistory, partition: int, start: int, end: int) -> Iterable[Finding]:
    """S4, once the group has finished the partition up to `end`."""
    delivered = {
        offset
        for delivery in history.deliveries
        if delivery.partition == partition
        for offset in range(delivery.first, delivery.last + 1)
    }
    for offset in range(start, end):
        if offset not in delivered:
            yield Finding(LOST, f"record {offset} of partition {partition} was never delivered")
