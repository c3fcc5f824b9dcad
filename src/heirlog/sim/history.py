"""What clients saw, and whether it is allowed: functions over a recorded history of simulated or real clients.

A history is three lists: the acknowledged records, the records that were read, and the elections that lost records by
design. Values may be anything that can be the key of a dictionary. A partition is named by text (`partition_name`):
topics that had the same name one after the other are different.

    lost-write            acknowledged with acks=all, below the highest offset that was read, and never read
    unseen                acknowledged with acks=all, and not read by the clients that read everything in the end
    duplicate             a value that may be in the log once is there at two offsets
    inconsistent-offsets  one offset, two values
    stray                 acknowledged in one partition, read in another
    poll-skip             a reader stepped over offsets, or over the beginning of a new lineage

A lossy-basis election starts a new *lineage* of its partition at the winner's log end. A record that was acknowledged
before, at or above that offset, is lost by that election and not by a defect; its offset is assigned again. The leader
epoch of its batch shows to which lineage a record belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

LOST_WRITE = "lost-write"
UNSEEN = "unseen"
DUPLICATE = "duplicate"
INCONSISTENT_OFFSETS = "inconsistent-offsets"
STRAY = "stray"
POLL_SKIP = "poll-skip"
LATEST_WENT_BACK = "high-watermark-regression"


def partition_name(topic: str, index: int, topic_id: bytes) -> str:
    """What histories call a partition."""
    return f"{topic}-{index}.{topic_id[:4].hex()}"


@dataclass(frozen=True, slots=True)
class AcknowledgedRecord:
    """A record that was acknowledged to a producer with acks=all. `time_ms`: when the producer sent it (last)."""

    partition: str
    offset: int
    value: Hashable
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """A record that a consumer read. `leader_epoch` of its batch; -1 where the client does not tell."""

    partition: str
    offset: int
    value: Hashable
    leader_epoch: int = -1
    client: str = ""


@dataclass(frozen=True, slots=True)
class KnownLoss:
    """A lossy-basis election: what was sent until `time_ms`, from `start_offset` on, may be gone."""

    partition: str
    start_offset: int
    leader_epoch: int
    time_ms: int
    winner: tuple[tuple[int, int], ...] = ()
    """(leader epoch, first offset) of the winner's log, ascending."""


@dataclass(frozen=True, slots=True)
class Latest:
    """An answer to ListOffsets(latest), in the order in which one client got them."""

    partition: str
    offset: int
    leader_epoch: int
    client: str


@dataclass(frozen=True, slots=True)
class Rewound:
    """A reader noticed that the log diverged from what it had read: it continues at `position` instead of `before`."""

    partition: str
    client: str
    before: int
    position: int


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
    observed: list[Observed] = field(default_factory=list)
    latest: list[Latest] = field(default_factory=list)
    rewound: list[Rewound] = field(default_factory=list)
    sent: int = 0
    acknowledged_end: dict[str, int] = field(default_factory=dict)
    """Per partition, one past the highest offset acknowledged with acks=all in its current lineage."""
    _lineage_began_ms: dict[str, int] = field(default_factory=dict)

    def acknowledge(self, partition: str, base_offset: int, values: Sequence[int], sent_ms: int) -> None:
        """acks=all. What was sent before the current lineage began may belong to the one before."""
        for delta, value in enumerate(values):
            self.acknowledged.append(AcknowledgedRecord(partition, base_offset + delta, value, sent_ms))
        if sent_ms > self._lineage_began_ms.get(partition, -1):
            end = base_offset + len(values)
            self.acknowledged_end[partition] = max(self.acknowledged_end.get(partition, 0), end)

    def acknowledge_somewhere(self, partition: str, values: Sequence[int], sent_ms: int) -> None:
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


def lost_write(
    acknowledged: Iterable[AcknowledgedRecord], observed: Iterable[Observed], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Records that were acknowledged and never read, although a later record was read."""
    read_at: dict[str, dict[int, set[Hashable]]] = {}
    for seen in observed:
        read_at.setdefault(seen.partition, {}).setdefault(seen.offset, set()).add(seen.value)
    highest = {partition: max(offsets) for partition, offsets in read_at.items()}
    found = []
    for one in acknowledged:
        if one.offset >= highest.get(one.partition, -1) or excused(one, losses):
            continue
        if one.value not in read_at[one.partition].get(one.offset, ()):
            sentence = (
                f"{one.partition}: {one.value!r} was acknowledged at offset {one.offset} and never read there, "
                f"although offset {highest[one.partition]} was"
            )
            found.append(Finding(LOST_WRITE, sentence))
    return found


def unseen(
    acknowledged: Iterable[AcknowledgedRecord], audited: Iterable[Observed], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Acknowledged records that a reader of everything did not find at their offsets. audited: what it read after all
    writes had ended; acknowledged: records of the partitions that it read.
    """
    found = {(seen.partition, seen.offset): seen.value for seen in audited}
    return [
        Finding(UNSEEN, f"{one.partition}: {one.value!r} was acknowledged at offset {one.offset} and is gone")
        for one in acknowledged
        if found.get((one.partition, one.offset)) != one.value and not excused(one, losses)
    ]


def unseen_anywhere(
    acknowledged: Iterable[AcknowledgedRecord], audited: Iterable[Observed], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Records that were acknowledged without an offset and are not in their partition. Arguments as for `unseen`."""
    found = {(seen.partition, seen.value) for seen in audited}
    return [
        Finding(UNSEEN, f"{one.partition}: {one.value!r} was acknowledged without an offset and is gone")
        for one in acknowledged
        if (one.partition, one.value) not in found
        and not any(loss.partition == one.partition and one.time_ms <= loss.time_ms for loss in losses)
    ]


def duplicate(
    observed: Iterable[Observed], once: Collection[Hashable] | None = None, losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Values at two offsets of one partition. `once`: values that may be there only once (idempotent, or sent once)."""
    first: dict[tuple[str, Hashable], Observed] = {}
    found = []
    for seen in observed:
        if once is not None and seen.value not in once:
            continue
        before = first.setdefault((seen.partition, seen.value), seen)
        if before.offset != seen.offset and not any(_separates(loss, before, seen) for loss in losses):
            sentence = f"{seen.partition}: {seen.value!r} stands at offset {before.offset} and again at {seen.offset}"
            found.append(Finding(DUPLICATE, sentence))
    return found


def _separates(loss: KnownLoss, before: Observed, seen: Observed) -> bool:
    """Whether the loss explains a value at two offsets: it gave up one of them, and the winner has the value elsewhere,
    or the value was sent again after the loss.
    """
    older, newer = sorted((before, seen), key=lambda one: one.leader_epoch)
    if not _touches(loss, older.partition, min(older.offset, newer.offset)):
        return False
    if older.leader_epoch < loss.leader_epoch <= newer.leader_epoch:
        return True
    return newer.leader_epoch < loss.leader_epoch and _holds(loss, newer.offset) != newer.leader_epoch


def inconsistent_offsets(
    acknowledged: Iterable[AcknowledgedRecord], observed: Iterable[Observed], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Offsets at which two reads, or a read and an acknowledgement, name different values within one lineage."""
    first: dict[tuple[str, int], list[Observed]] = {}
    values: dict[tuple[str, int, int], Hashable] = {}
    found = []
    for seen in observed:
        others = first.setdefault((seen.partition, seen.offset), [])
        if all(other.value != seen.value or other.leader_epoch != seen.leader_epoch for other in others):
            found += [
                Finding(
                    INCONSISTENT_OFFSETS,
                    f"{seen.partition}: offset {seen.offset} held {other.value!r} and then {seen.value!r}",
                )
                for other in others
                if other.value != seen.value and not any(_explains(loss, other, seen) for loss in losses)
            ]
            others.append(seen)
        values[seen.partition, seen.offset, _lineage(seen, losses)] = seen.value
    for one in acknowledged:
        if excused(one, losses):
            continue
        key = (one.partition, one.offset, sum(1 for loss in losses if _touches(loss, one.partition, one.offset)))
        read = values.get(key, one.value)
        if read != one.value:
            sentence = (
                f"{one.partition}: {one.value!r} was acknowledged at offset {one.offset}, where {read!r} was read"
            )
            found.append(Finding(INCONSISTENT_OFFSETS, sentence))
    return found


def _explains(loss: KnownLoss, before: Observed, seen: Observed) -> bool:
    """Whether the loss explains two values at one offset.

    One of them was written after the loss; or the winner had a tail of an older epoch there that no client had read.
    """
    if not _touches(loss, seen.partition, seen.offset) or before.leader_epoch == seen.leader_epoch:
        return False
    older, newer = sorted((before.leader_epoch, seen.leader_epoch))
    if loss.leader_epoch <= newer:
        return older < loss.leader_epoch
    return seen.leader_epoch < before.leader_epoch


def stray(acknowledged: Iterable[AcknowledgedRecord], observed: Iterable[Observed]) -> list[Finding]:
    """Records in a partition that they were not written to: another one's, or a deleted topic's of the same name."""
    home = {one.value: one.partition for one in acknowledged}
    return [
        Finding(STRAY, f"{seen.value!r} was acknowledged in {home[seen.value]} and read in {seen.partition}")
        for seen in observed
        if home.get(seen.value, seen.partition) != seen.partition
    ]


def poll_skip(observed: Iterable[Observed], losses: Collection[KnownLoss] = ()) -> list[Finding]:
    """Checks the order in which one client read partitions that are not compacted.

    It begins at 0, continues at the next offset, or goes back. Before it reads records that were written after a lossy
    election, it must go back to the offset at which the winner's log diverges from what it has read. Only the newest
    election before such a record counts: its winner may have a tail that an earlier winner did not have.
    """
    read: dict[tuple[str, str], list[tuple[int, int]]] = {}
    last: dict[tuple[str, str], Observed] = {}
    found = []
    for seen in observed:
        key = (seen.client, seen.partition)
        before, epochs = last.get(key), read.setdefault(key, [])
        expected = 0 if before is None else _goes_on_at(epochs, before, seen, losses)
        if seen.offset > expected:
            sentence = (
                f"{seen.partition}: {seen.client} read offset {seen.offset} (epoch {seen.leader_epoch}) after "
                f"{'nothing' if before is None else f'{before.offset} (epoch {before.leader_epoch})'}; what stands at "
                f"{expected} it never saw"
            )
            found.append(Finding(POLL_SKIP, sentence))
        last[key] = seen
        while epochs and epochs[-1][1] >= seen.offset:
            epochs.pop()
        if not epochs or epochs[-1][0] != seen.leader_epoch:
            epochs.append((seen.leader_epoch, seen.offset))
    return found


def _goes_on_at(
    epochs: Sequence[tuple[int, int]], before: Observed, seen: Observed, losses: Collection[KnownLoss]
) -> int:
    """The highest offset at which a reader of `before` may read `seen` next.

    epochs: (leader epoch, first offset) of what it has read, ascending.
    """
    end = before.offset + 1
    if seen.leader_epoch < before.leader_epoch:
        # no log has an older epoch behind a newer one: `seen` is of a log without the newer one
        return next(start for epoch, start in epochs if epoch > seen.leader_epoch)
    entered = [
        loss
        for loss in losses
        if loss.partition == seen.partition and before.leader_epoch < loss.leader_epoch <= seen.leader_epoch
    ]
    if not entered:
        return end
    winner = max(entered, key=lambda loss: loss.leader_epoch).winner
    while end > 0:
        ours, theirs = _entry_at(epochs, end - 1), _entry_at(winner, end - 1)
        if ours[0] == theirs[0]:
            break
        end = max(ours, theirs)[1]
    return end


def _entry_at(epochs: Sequence[tuple[int, int]], offset: int) -> tuple[int, int]:
    return next((entry for entry in reversed(epochs) if entry[1] <= offset), (-1, 0))


def _holds(loss: KnownLoss, offset: int) -> int | None:
    """The leader epoch of what the winner has there."""
    return next((epoch for epoch, start in reversed(loss.winner) if start <= offset), None)


def latest_went_back(answers: Iterable[Latest], losses: Collection[KnownLoss] = ()) -> list[Finding]:
    """Answers to ListOffsets(latest) that went back within a lineage, for one client."""
    last: dict[tuple[str, str], Latest] = {}
    found = []
    for answer in answers:
        key = (answer.client, answer.partition)
        before = last.get(key)
        last[key] = answer
        if before is None or answer.offset >= before.offset:
            continue
        if any(loss.partition == answer.partition and loss.leader_epoch > before.leader_epoch for loss in losses):
            continue
        sentence = (
            f"{answer.partition}: {answer.client} got the latest offset {before.offset} (leader epoch "
            f"{before.leader_epoch}) and then {answer.offset} (leader epoch {answer.leader_epoch})"
        )
        found.append(Finding(LATEST_WENT_BACK, sentence))
    return found


def _touches(loss: KnownLoss, partition: str, offset: int) -> bool:
    return loss.partition == partition and loss.start_offset <= offset


def excused(one: AcknowledgedRecord, losses: Collection[KnownLoss]) -> bool:
    """A lossy election may have taken it."""
    return any(one.time_ms <= loss.time_ms and _touches(loss, one.partition, one.offset) for loss in losses)


def _lineage(seen: Observed, losses: Collection[KnownLoss]) -> int:
    """How many lossy elections caused this offset to be assigned again before the record was written."""
    return sum(
        1 for loss in losses if _touches(loss, seen.partition, seen.offset) and seen.leader_epoch >= loss.leader_epoch
    )
