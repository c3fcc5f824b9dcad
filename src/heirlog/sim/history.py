"""The recorded history of a run, of simulated or of real clients. `heirlog.sim.history_checks` judges it.

Values may be anything that can be the key of a dictionary. A partition is named by text (`partition_name`): topics that
had the same name one after the other are different. What one client did is recorded in the order in which it happened.
`History.tick` numbers moments for comparisons between clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import NamedTuple


@lru_cache(maxsize=1024)
def partition_name(topic: str, index: int, topic_id: bytes) -> str:
    """What histories call a partition."""
    return f"{topic}-{index}.{topic_id[:4].hex()}"


@dataclass(slots=True)  # thousands in a run: frozen, each takes three times as long
class AcknowledgedRecord:
    """A record that was acknowledged to a producer with acks=all. `time_ms`: when the producer sent it (last)."""

    partition: str
    offset: int
    value: Hashable
    time_ms: int = 0


@dataclass(slots=True)  # as above
class AcknowledgedBatch:
    """A batch that was acknowledged to a producer with acks=all, by an answer that names its offset."""

    partition: str
    client: str
    first_offset: int
    last_offset: int
    sent: int
    """Tick at which it was sent first."""
    answered: int
    """Tick of the answer."""
    time_ms: int = 0
    """When it was sent last."""
    in_order: bool = False
    """Of an idempotent producer: the order in which batches are sent first is that of their offsets, even if several
    are in flight.
    """


class AcknowledgedBy(NamedTuple):
    """A broker that acknowledged records as the leader of this epoch, as far as the observer knew."""

    partition: str
    leader_epoch: int
    broker: int


@dataclass(slots=True)  # as above
class Observed:
    """A record that a consumer read."""

    partition: str
    offset: int
    value: Hashable
    leader_epoch: int = -1
    """Of its batch; -1 where the client does not know it."""
    client: str = ""
    poll: int = 0
    """Number of the poll (one answer of the client's library) that returned it, ascending for each client."""


@dataclass(frozen=True, slots=True)
class Seek:
    """A reader continues from another position: it noticed that the log diverged from what it had read, its program
    sought one, or its partitions were assigned again.
    """

    partition: str
    client: str
    poll: int
    """Number of the first poll after it."""
    position: int | None
    """None: not known, as after a rebalance. Nothing is expected of the next offset then."""


@dataclass(frozen=True, slots=True)
class KnownLoss:
    """A lossy-basis election: what was sent until `time_ms`, from `start_offset` on, may be gone."""

    partition: str
    start_offset: int
    leader_epoch: int
    time_ms: int
    winner: tuple[tuple[int, int], ...] = ()
    """(leader epoch, first offset) of the winner's log, ascending."""
    answers: tuple[tuple[int, int, int], ...] = ()
    """(broker, epoch of its last record, log end) of each replica that answered a recovery, as the election's record
    names them, and that could be elected then: it was unfenced and not shutting down. Empty for other elections.
    """


@dataclass(slots=True)  # as above
class Latest:
    """An answer to ListOffsets(latest), in the order in which one client got them."""

    partition: str
    offset: int
    leader_epoch: int
    client: str


@dataclass(slots=True)  # as above
class Copies:
    """How many replicas had what was committed below `end_offset`, and how many had to have it (min ISR), at the moment
    at which it was committed.
    """

    partition: str
    end_offset: int
    copies: int
    min_isr: int


@dataclass(frozen=True, slots=True)
class InitializedProducer:
    """An answer to InitProducerId with a transactional id. `sent`, `answered`: ticks."""

    transactional_id: str
    client: str
    producer_id: int
    producer_epoch: int
    sent: int
    answered: int


@dataclass(slots=True)
class TransactionAttempt:
    """One transaction, as its producer saw it."""

    transactional_id: str
    client: str
    producer_id: int
    producer_epoch: int
    began_ms: int
    initialized: int = -1
    """Tick of the answer to InitProducerId that gave the producer its id."""
    values: dict[Hashable, str] = field(default_factory=dict)
    """With the partition that each was written to."""
    acknowledged: dict[Hashable, int] = field(default_factory=dict)
    """Values that were acknowledged, with the tick at which their batch was sent first."""
    inputs: dict[Hashable, tuple[int, int]] = field(default_factory=dict)
    """What was read to write a value: partition and offset of a group's topic."""
    commit_sent: int = -1
    """Tick at which EndTxn(commit) was sent first; -1: never."""
    committed: bool | None = None
    """The outcome, if EndTxn was answered with success."""
    ended_ms: int = -1
    """When the answer came."""

    @property
    def outcome(self) -> bool | None:
        """Whether it was committed; None: its producer does not know."""
        return False if self.commit_sent < 0 else self.committed


@dataclass(slots=True)
class History:
    """What all clients of a run saw. `now_ms`: the run's own time, which no clock fault touches."""

    now_ms: Callable[[], int]
    acknowledged: list[AcknowledgedRecord] = field(default_factory=list)
    """acks=all only."""
    acknowledged_somewhere: list[AcknowledgedRecord] = field(default_factory=list)
    """acks=all, by an answer that names no offset (-1 here)."""
    acknowledged_by_leader: int = 0
    """Records acknowledged with acks=1."""
    batches: list[AcknowledgedBatch] = field(default_factory=list)
    acknowledged_by: set[AcknowledgedBy] = field(default_factory=set)
    """acks=all only: what several brokers acknowledge with acks=1 may be lost."""
    observed: list[Observed] = field(default_factory=list)
    seeks: list[Seek] = field(default_factory=list)
    latest: list[Latest] = field(default_factory=list)
    latest_stable: list[Latest] = field(default_factory=list)
    """The same of readers of committed records: the last stable offset."""
    copies: list[Copies] = field(default_factory=list)
    transactions: list[TransactionAttempt] = field(default_factory=list)
    initialized: list[InitializedProducer] = field(default_factory=list)
    repeated: list[Finding] = field(default_factory=list)
    """Requests that were answered, and got another answer when their bytes came again (X18)."""
    transaction_counts: Counter[str] = field(default_factory=Counter)
    """How often producers did what has to happen in some run."""
    read_committed: set[str] = field(default_factory=set)
    """Clients that read committed records only."""
    sent: int = 0
    acknowledged_end: dict[str, int] = field(default_factory=dict)
    """Per partition, one past the highest offset acknowledged with acks=all in its current lineage."""
    _lineage_began_ms: dict[str, int] = field(default_factory=dict)
    _ticks: count[int] = field(default_factory=count)

    def tick(self) -> int:
        """The number of this moment: later ones have greater numbers. Safe for threads."""
        return next(self._ticks)

    def acknowledge(self, partition: str, base_offset: int, values: Sequence[Hashable], sent_ms: int) -> None:
        """acks=all. What was sent before the current lineage began may belong to the one before."""
        for delta, value in enumerate(values):
            self.acknowledged.append(AcknowledgedRecord(partition, base_offset + delta, value, sent_ms))
        if sent_ms > self._lineage_began_ms.get(partition, -1):
            end = base_offset + len(values)
            self.acknowledged_end[partition] = max(self.acknowledged_end.get(partition, 0), end)

    def acknowledge_somewhere(self, partition: str, values: Sequence[Hashable], sent_ms: int) -> None:
        """acks=all, and the answer does not say at which offset: DUPLICATE_SEQUENCE_NUMBER."""
        self.acknowledged_somewhere += [AcknowledgedRecord(partition, -1, value, sent_ms) for value in values]

    def lineage_began(self, partition: str, start_offset: int, now_ms: int) -> None:
        """A lossy-basis election: offsets from `start_offset` on are assigned again."""
        self._lineage_began_ms[partition] = now_ms
        self.acknowledged_end[partition] = min(self.acknowledged_end.get(partition, 0), start_offset)


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule, in one sentence."""

    check: str
    sentence: str
