"""Judges what clients of real processes saw by the checks of the simulator (`heirlog.sim.history_checks`).

    ClientRecord (names, wall time) + CommittedLog (topic ids, elections) --> History, KnownLoss --> findings

What an election on a lossy basis gave up is known from its record in the metadata log and from the leader epochs of
what is readable in the end: the log of the winner ended where the first record of the new lineage is.

Four things cannot be judged; records of the first and the last are counted:

* aiokafka does not tell leader epochs: what it read from the offset of a lossy election on may be of either lineage.
* After two lossy elections of one partition the log of the first winner is not known any more. So it is not known where
  a reader had to continue when it entered that lineage, or how far back it was sent if nothing was written there; what
  it read before and afterwards is judged.
* librdkafka, as any client of Kafka, knows the epoch of the last record that it has read, and no earlier ones.
* A record that was acknowledged while its topic was deleted and created again may belong to either of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from heirlog.drill.chaos_record import (
    COPIED,
    KEPT,
    RECREATED,
    STABLE,
    UNKNOWN_OFFSET,
    Answered,
    ClientRecord,
    RecordRead,
)
from heirlog.drill.chaos_transactions import LeftOver
from heirlog.drill.committed_log import CommittedLog, Incarnation, PartitionChange
from heirlog.metadata.basis import Basis, ElectionBasis
from heirlog.metadata.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from heirlog.sim import group_history
from heirlog.sim.group_history import GroupHistory
from heirlog.sim.history import (
    AcknowledgedBatch,
    AcknowledgedRecord,
    Finding,
    History,
    KnownLoss,
    Latest,
    Observed,
    Seek,
    partition_name,
)
from heirlog.sim.history_checks import transactions, verdict
from heirlog.sim.history_checks.losses import excused

AUDITOR = "auditor"
"""The client that reads everything once more in the end."""
COMMITTED_READER = "committed"
"""The client that reads committed records all the time."""
CHANGED_VALUE = "changed-value"
OPEN_TRANSACTION = "open-transaction"
COPIER_STUCK = "copier-stuck"
INTERNAL = (f"{OFFSETS_TOPIC}-", f"{TRANSACTIONS_TOPIC}-")
STALE_MS = 15_000
"""A broker that knows of a deletion or creation this long after it: no fault lasts longer."""

Epochs = tuple[tuple[int, int], ...]
"""(leader epoch, first offset), ascending."""


@dataclass(slots=True)
class Judgement:
    findings: list[Finding] = field(default_factory=list)
    losses: list[KnownLoss] = field(default_factory=list)
    lossy_elections: dict[str, int] = field(default_factory=dict)
    """By basis."""
    readable: int = 0
    """Acknowledged records that were found in the end."""
    excused: int = 0
    """Acknowledged records that are gone by a lossy election which is on record."""
    unjudged: int = 0
    """Observations that no check could use."""


def judge(
    record: ClientRecord,
    audit: Sequence[RecordRead],
    log: CommittedLog,
    groups: Iterable[GroupHistory],
    left: LeftOver | None = None,
) -> Judgement:
    """audit: what a new client read of every partition, after all writes had ended. left: of transactions; None: no
    client used any."""
    names = {
        (one.name, index): partition_name(one.name, index, one.topic_id)
        for one in log.incarnations
        if one.removed_ms is None
        for index in {change.index for change in log.changes if change.topic_id == one.topic_id}
    }
    judgement = Judgement(
        losses=list(_losses(log, _epochs(audit, names), _epochs(record.read, names))),
        lossy_elections=dict(Counter(basis_of(change).basis.value for change in lossy_elections(log))),
    )
    history = History(now_ms=lambda: 0)
    _enter_sends(history, record, log, names, judgement)
    _enter_reads(history, [*record.read, *audit], names, judgement, _Blind(log, record))
    copies = _enter_transactions(history, record, names)
    history.latest += [
        Latest(names[one.topic, one.partition], one.offset, one.leader_epoch, one.client)
        for one in record.latest
        if (one.topic, one.partition) in names
    ]
    judgement.findings = [
        *(Finding(CHANGED_VALUE, sentence) for sentence in record.changed),
        *verdict.findings(
            history,
            judgement.losses,
            AUDITOR,
            set(names.values()),
            has_markers=lambda partition: partition in copies,
            remember_epochs=False,
        ),
        *(() if left is None else _transactional(history, judgement.losses, names, ends_of(audit), left)),
        *(finding for group in groups for finding in group_history.findings(group, judgement.losses)),
    ]
    _count(history, judgement)
    return judgement


# losses


def _epochs(reads: Iterable[RecordRead], names: dict[tuple[str, int], str]) -> dict[str, Epochs]:
    """Of what was read, by partition: leader epochs and the first offset of each."""
    found: dict[str, dict[int, int]] = {}
    for one in reads:
        if one.leader_epoch < 0:
            continue  # a client that tells no epochs
        epochs = found.setdefault(names[one.topic, one.partition], {})
        epochs[one.leader_epoch] = min(one.offset, epochs.get(one.leader_epoch, one.offset))
    return {name: tuple(sorted(epochs.items())) for name, epochs in found.items()}


def _losses(log: CommittedLog, epochs: dict[str, Epochs], seen: dict[str, Epochs]) -> Iterator[KnownLoss]:
    """epochs: of what is readable in the end; seen: of what was read meanwhile."""
    for change in lossy_elections(log):
        name = partition_name(change.topic, change.index, change.topic_id)
        basis = basis_of(change)
        epoch, start = int(basis.leader_epoch), _start(change, epochs.get(name, ()), seen.get(name, ()))
        kept = [entry for entry in epochs.get(name, ()) if entry[0] < epoch]
        yield KnownLoss(name, start, epoch, change.at_ms, (*kept, (epoch, start)), tuple(_answers(change)))


def _answers(change: PartitionChange) -> Iterator[tuple[int, int, int]]:
    """Of replicas that could be elected. One that answered and stopped before the decision could not."""
    basis = basis_of(change)
    if basis.basis is Basis.RECOVERED:
        for answer in basis.replicas:
            if answer.answered and answer.broker in change.active:
                yield int(answer.broker), answer.last_written_epoch, answer.end_offset


def lossy_elections(log: CommittedLog) -> Iterator[PartitionChange]:
    """Those whose record says on what basis they were held.

    A leader that was in neither list before may be clean: one record can add it to the ISR, end a reassignment and
    elect it.
    """
    for change in log.changes:
        basis = None if change.after is None else change.after.basis
        if change.before is not None and basis is not None and basis is not change.before.basis:
            yield change


def basis_of(change: PartitionChange) -> ElectionBasis:
    """Of a lossy election."""
    assert change.after is not None and change.after.basis is not None
    return change.after.basis


def _start(change: PartitionChange, epochs: Epochs, seen: Epochs) -> int:
    """Where the winner's log ended, or began to differ from what was there before.

    The election's record says it where the winner was asked: without a leader its log did not grow. Otherwise the first
    record of this epoch, or of a later one, was there; or lower, if a later election gave up more. Without any such
    record everything may be gone.

    The winner, or that of a later election, may also be a broker that was away when an earlier election gave up what it
    has. Then its records are readable again, and those are gone that were written in between: of epochs that readers
    have seen, and that are newer than the last one before this election of which anything is left.
    """
    basis = basis_of(change)
    if basis.end_offset >= 0:
        return basis.end_offset
    left = max((epoch for epoch, _ in epochs if epoch < basis.leader_epoch), default=-1)
    return min((start for epoch, start in (*epochs, *seen) if epoch > left), default=0)


class _Blind:
    """Elections on a lossy basis whose winner's log is not known: the record does not say where it ended, and another
    lossy election followed.
    """

    def __init__(self, log: CommittedLog, record: ClientRecord) -> None:
        elections: dict[str, list[PartitionChange]] = {}
        for change in lossy_elections(log):
            elections.setdefault(partition_name(change.topic, change.index, change.topic_id), []).append(change)
        self._elections = {
            name: [
                (int(basis_of(each).leader_epoch), each.at_ms) for each in changes[:-1] if basis_of(each).end_offset < 0
            ]
            for name, changes in elections.items()
        }
        answers = sorted((one.answered, one.answered_ms) for one in record.answered)
        self._ticks, self._times_ms = [tick for tick, _ in answers], [at_ms for _, at_ms in answers]

    def sent_back(self, name: str, before: RecordRead, seen: RecordRead) -> bool:
        """Whether one of them, between two polls of a reader, may explain that it continued at or below its last
        record. Polls have no times, but the acknowledgements around them have.
        """
        if seen.offset > before.offset or seen.poll == before.poll:
            return False
        first, end = bisect_right(self._ticks, before.poll), bisect_right(self._ticks, seen.poll)
        not_before_ms = self._times_ms[first - 1] if first else 0
        return any(
            before.leader_epoch < epoch
            and at_ms >= not_before_ms
            and (end == len(self._times_ms) or at_ms <= self._times_ms[end])
            for epoch, at_ms in self._elections.get(name, ())
        )


# what clients saw


def _enter_sends(
    history: History, record: ClientRecord, log: CommittedLog, names: dict[tuple[str, int], str], judgement: Judgement
) -> None:
    history.sent = record.sent.total()
    recreated = log.named(RECREATED)
    for one in record.answered:
        name = names.get((one.topic, one.partition)) if one.topic in STABLE else _home(one, recreated)
        if name is None:
            judgement.unjudged += 1
            continue
        entry = AcknowledgedRecord(name, one.offset, one.value, one.sent_ms)
        if one.offset == UNKNOWN_OFFSET:
            history.acknowledged_somewhere.append(entry)
            continue
        history.acknowledged.append(entry)
        history.batches.append(
            AcknowledgedBatch(
                name, one.client, one.offset, one.offset, one.sent, one.answered, one.sent_ms, one.in_order
            )
        )


def _home(one: Answered, incarnations: Sequence[Incarnation]) -> str | None:
    """The partition of a topic that is deleted and created again; None if it may be of either."""
    for topic in incarnations:
        is_old_enough = one.sent_ms >= topic.created_ms + (0 if topic is incarnations[0] else STALE_MS)
        if is_old_enough and (topic.removed_ms is None or one.answered_ms < topic.removed_ms):
            return partition_name(topic.name, one.partition, topic.topic_id)
    return None


def _enter_reads(
    history: History,
    reads: Iterable[RecordRead],
    names: dict[tuple[str, int], str],
    judgement: Judgement,
    blind: _Blind,
) -> None:
    losses: dict[str, list[KnownLoss]] = {}
    for loss in judgement.losses:
        losses.setdefault(loss.partition, []).append(loss)
    last: dict[tuple[str, str], RecordRead] = {}
    """By client and partition."""
    left: set[tuple[str, str]] = set()
    """Clients that tell no epochs, and have left what all lineages of the partition have in common."""
    for one in reads:
        name = names[one.topic, one.partition]
        known = losses.get(name, [])
        if one.leader_epoch < 0 and known:
            if one.offset >= min(loss.start_offset for loss in known):
                left.add((one.client, name))
            if (one.client, name) in left:
                judgement.unjudged += 1
                continue
        before = last.get((one.client, name), one)
        if blind.sent_back(name, before, one) or any(
            before.leader_epoch < loss.leader_epoch <= one.leader_epoch for loss in known[:-1]
        ):
            history.seeks.append(Seek(name, one.client, one.poll, None))
        last[one.client, name] = one
        history.observed.append(Observed(name, one.offset, one.value, one.leader_epoch, one.client, one.poll))


# transactions


def _enter_transactions(history: History, record: ClientRecord, names: dict[tuple[str, int], str]) -> Collection[str]:
    """Returns the partitions that have transactions."""
    places = {f"{topic}-{index}": name for (topic, index), name in names.items() if topic == COPIED}
    history.initialized += record.initialized
    history.transactions += [
        replace(attempt, values={value: places[place] for value, place in attempt.values.items()})
        for attempt in record.transactions
    ]
    history.read_committed |= {AUDITOR, COMMITTED_READER}
    return places.values()


def _transactional(
    history: History,
    losses: Sequence[KnownLoss],
    names: dict[tuple[str, int], str],
    ends: dict[tuple[str, int], int],
    left: LeftOver,
) -> Iterator[Finding]:
    """What is wrong with transactions after their end. ends: of what is readable, by topic and partition."""
    lost = {loss.partition for loss in losses}
    is_internal_lost = any(name.startswith(INTERNAL) for name in lost)
    hanging = {names[COPIED, index] for index in left.open}
    # a marker or a decision that is lost leaves its transaction open: an operator has to abort it
    if not is_internal_lost:
        yield from (
            Finding(OPEN_TRANSACTION, f"{name}: a transaction is open long after all producers have ended")
            for name in sorted(hanging - lost)
        )
    audited = set(names.values()) - hanging
    yield from transactions.lost_transaction(history, AUDITOR, audited, losses)
    yield from transactions.torn_transaction(history, AUDITOR, audited, losses)
    inputs = {index: name for (topic, index), name in names.items() if topic == KEPT}
    if is_internal_lost or lost.intersection(inputs.values()) or hanging:
        # offsets of the group or of what it read are not what they were, or some copies cannot be read
        return
    yield from transactions.copied_once(history, AUDITOR, left.committed, losses)
    for index in sorted(inputs):
        committed, end = left.committed.get(index, 0), ends.get((KEPT, index), 0)
        if committed < end:
            yield Finding(COPIER_STUCK, f"{KEPT}-{index}: {committed} of {end} records are copied, and no more")


def ends_of(audit: Iterable[RecordRead]) -> dict[tuple[str, int], int]:
    """Where what was read ends, by topic and partition."""
    found: dict[tuple[str, int], int] = {}
    for one in audit:
        found[one.topic, one.partition] = max(one.offset + 1, found.get((one.topic, one.partition), 0))
    return found


def _count(history: History, judgement: Judgement) -> None:
    found = {(one.partition, one.value) for one in history.observed if one.client == AUDITOR}
    for one in (*history.acknowledged, *history.acknowledged_somewhere):
        if (one.partition, one.value) in found:
            judgement.readable += 1
        elif excused(one, judgement.losses):
            judgement.excused += 1
