"""What the clients of the chaos drill saw, as they saw it: topics by name, times of this machine.

`heirlog.drill.chaos_judge` makes a `heirlog.sim.history.History` of it once the metadata log tells which topic a name
meant at what time. Only appends to lists: clients in several threads may share one record.

Values are numbers: the producer's in the high bits, a counter of its own in the low ones. So no value is sent twice.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from heirlog.sim.history import InitializedProducer, TransactionAttempt

KEPT, AIOKAFKA, RECREATED, COPIED = "chaos-kept", "chaos-aiokafka", "chaos-recreated", "chaos-copied"
PARTITIONS = {KEPT: 3, AIOKAFKA: 3, RECREATED: 2, COPIED: 3}
"""KEPT is written with librdkafka, as is RECREATED, which an operator deletes and creates again. COPIED is written in
transactions only."""
STABLE = (KEPT, AIOKAFKA)
"""Topics that are never deleted; all readers of uncommitted records read them."""
VALUE_BYTES = 200
UNKNOWN_OFFSET = -1
ERRORS_KEPT = 30


class Answered(NamedTuple):
    """A record that was acknowledged with acks=all. `sent_ms`: when it was given to the client for the first time."""

    topic: str
    partition: int
    offset: int
    """UNKNOWN_OFFSET where the answer had none: a repeat of a batch that the broker has forgotten."""
    value: int
    client: str
    sent: int
    """Tick (`ClientRecord.tick`) at which it was given to the client."""
    answered: int
    """Tick of the answer."""
    sent_ms: int
    answered_ms: int
    in_order: bool
    """The client keeps the order in which records are given to it."""


class RecordRead(NamedTuple):
    client: str
    topic: str
    partition: int
    offset: int
    value: int
    leader_epoch: int
    """-1: the client does not tell."""
    poll: int
    """Number of the call that returned it, ascending for each client."""


class LatestOffset(NamedTuple):
    """An answer to ListOffsets(latest)."""

    client: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int


@dataclass(slots=True)
class ClientRecord:
    answered: list[Answered] = field(default_factory=list)
    read: list[RecordRead] = field(default_factory=list)
    latest: list[LatestOffset] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    """Records that were given to a client, by topic."""
    refused: Counter[str] = field(default_factory=Counter)
    """Records without an acknowledgement in the end, by topic: nothing is promised for them."""
    stuck: list[str] = field(default_factory=list)
    """Writers of stable topics whose records had no answer long after the cluster had healed."""
    errors: Counter[str] = field(default_factory=Counter)
    """Messages of the clients, for a person who looks into a failure."""
    transactions: list[TransactionAttempt] = field(default_factory=list)
    """Partitions in them are TOPIC-INDEX."""
    initialized: list[InitializedProducer] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """Values that no producer of the drill wrote, each with its place."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ticks: count[int] = field(default_factory=count)

    def tick(self) -> int:
        """The number of this moment: later ones have greater numbers, over all clients and threads."""
        return next(self._ticks)

    def failed(self, what: str) -> None:
        with self._lock:
            if what in self.errors or len(self.errors) < ERRORS_KEPT:
                self.errors[what] += 1


def now_ms() -> int:
    """The time of clients, nodes and the drill alike."""
    return time.time_ns() // 1_000_000


def value_of(producer: int, number: int) -> int:
    return producer << 40 | number


def encode(value: int) -> bytes:
    return b"%d:" % value + b"." * VALUE_BYTES


def decode(content: bytes | None) -> int | None:
    """None if this is not what a producer wrote."""
    if content is None:
        return None
    digits, _, rest = content.partition(b":")
    return int(digits) if digits.isdigit() and rest == b"." * VALUE_BYTES else None
