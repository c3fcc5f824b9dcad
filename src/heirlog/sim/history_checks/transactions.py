"""Whether transactions were all or nothing, for readers of committed records and for the producers themselves.

    aborted-read       a reader of committed records got one of a transaction that was not committed
    lost-transaction   a commit was acknowledged, and a record of it cannot be read
    torn-transaction   of a transaction with an unknown outcome, some acknowledged records can be read and others not
    zombie             a producer was replaced, and something that it asked for afterwards was done
    copied-once        an input of a consume-transform-produce loop is in the committed output twice, or not at all

`values` of an attempt are in the log at most once each, so a record is known by its value. An outcome is *no* if the
producer never asked for a commit, or if its abort was acknowledged; *yes* if its commit was.

An election on a lossy basis that came after the transaction had begun excuses it: its records, its markers or its
decision may be lost.

Source: Jepsen's Kafka workload (aborted-read, torn-txn), KIP-98, KIP-447.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping

from heirlog.sim.history import Finding, History, InitializedProducer, KnownLoss, TransactionAttempt

ABORTED_READ = "aborted-read"
LOST_TRANSACTION = "lost-transaction"
TORN_TRANSACTION = "torn-transaction"
ZOMBIE = "zombie"
COPIED_ONCE = "copied-once"
_INTERNAL = ("__transaction_state-", "__consumer_offsets-")


def transaction_excused(attempt: TransactionAttempt, losses: Collection[KnownLoss]) -> bool:
    """A lossy election may have taken a part of it."""
    partitions = set(attempt.values.values())
    return any(
        loss.time_ms >= attempt.began_ms and (loss.partition in partitions or loss.partition.startswith(_INTERNAL))
        for loss in losses
    )


def _named(attempt: TransactionAttempt) -> str:
    return f"a transaction of {attempt.transactional_id} (epoch {attempt.producer_epoch})"


def aborted_read(history: History, losses: Collection[KnownLoss] = ()) -> list[Finding]:
    refused: dict[Hashable, TransactionAttempt] = {
        value: attempt for attempt in history.transactions if attempt.outcome is False for value in attempt.values
    }
    return [
        Finding(
            ABORTED_READ,
            f"{seen.partition}: {seen.client} read {seen.value!r} at offset {seen.offset}, of "
            f"{_named(refused[seen.value])}, which was not committed",
        )
        for seen in history.observed
        if seen.client in history.read_committed
        and seen.value in refused
        and not transaction_excused(refused[seen.value], losses)
    ]


def _readable(history: History, auditor: str) -> set[Hashable]:
    return {seen.value for seen in history.observed if seen.client == auditor}


def lost_transaction(
    history: History, auditor: str, audited: Collection[str], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """auditor: the reader of committed records that read everything after the end; audited: the partitions."""
    readable = _readable(history, auditor)
    return [
        Finding(
            LOST_TRANSACTION,
            f"{attempt.values[value]}: {value!r} of {_named(attempt)}, which was committed, cannot be read",
        )
        for attempt in history.transactions
        if attempt.outcome is True and not transaction_excused(attempt, losses)
        for value in attempt.acknowledged
        if value not in readable and attempt.values[value] in audited
    ]


def torn_transaction(
    history: History, auditor: str, audited: Collection[str], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Arguments as for `lost_transaction`."""
    readable = _readable(history, auditor)
    found = []
    for attempt in history.transactions:
        values = [value for value in attempt.acknowledged if attempt.values[value] in audited]
        seen = [value for value in values if value in readable]
        if seen and len(seen) < len(values) and not transaction_excused(attempt, losses):
            missing = next(value for value in values if value not in readable)
            sentence = (
                f"{_named(attempt)}: {seen[0]!r} can be read in {attempt.values[seen[0]]}, and {missing!r} in "
                f"{attempt.values[missing]} cannot"
            )
            found.append(Finding(TORN_TRANSACTION, sentence))
    return found


def decisions_lost(losses: Collection[KnownLoss]) -> bool:
    """A partition of `__transaction_state` had an election on a lossy basis."""
    return any(loss.partition.startswith(_INTERNAL[0]) for loss in losses)


def given_again(history: History) -> list[tuple[int, int]]:
    """Producer ids with their epochs that were given to two producers: a leader takes the first batch of the one for a
    repeat of the other's. No loss excuses that.
    """
    times: dict[tuple[int, int], int] = {}
    for one in history.initialized:
        producer = (one.producer_id, one.producer_epoch)
        times[producer] = times.get(producer, 0) + 1
    return [producer for producer, count in times.items() if count > 1]


def zombie(history: History, losses: Collection[KnownLoss] = ()) -> list[Finding]:
    """A batch, or the end of a transaction, that was asked for after another producer had the id, and succeeded."""
    by_id: dict[str, list[InitializedProducer]] = {}
    for one in history.initialized:
        by_id.setdefault(one.transactional_id, []).append(one)
    found = [
        Finding(ZOMBIE, f"producer id {producer_id} and its epoch {epoch} were given to two producers")
        for producer_id, epoch in given_again(history)
    ]
    forgotten = decisions_lost(losses)
    for attempt in history.transactions:
        replaced = _replaced_at(attempt, by_id.get(attempt.transactional_id, ()))
        if replaced is None or transaction_excused(attempt, losses) or forgotten:
            continue
        late = [value for value, sent in attempt.acknowledged.items() if sent > replaced]
        if attempt.committed and attempt.commit_sent > replaced:
            late.append("its commit")
        if late:
            sentence = (
                f"{_named(attempt)} by {attempt.client}: {late[0]!r} was accepted after another producer had got the id"
            )
            found.append(Finding(ZOMBIE, sentence))
    return found


def _replaced_at(attempt: TransactionAttempt, producers: Iterable[InitializedProducer]) -> int | None:
    """The tick from which on a later producer had the id; None: never."""
    later = [
        one.answered
        for one in producers
        if (one.producer_id == attempt.producer_id and one.producer_epoch > attempt.producer_epoch)
        or (one.producer_id != attempt.producer_id and one.sent > attempt.initialized)
    ]
    return min(later, default=None)


def copied_once(
    history: History, auditor: str, committed: Mapping[int, int], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """committed: the group's offset of each input partition in the end. All partitions of the output were read."""
    if any(loss.partition.startswith(_INTERNAL) for loss in losses):
        return []
    inputs = {value: one for attempt in history.transactions for value, one in attempt.inputs.items()}
    outputs = {attempt.values[value] for attempt in history.transactions for value in attempt.inputs}
    if any(loss.partition in outputs for loss in losses):
        return []
    copies: dict[tuple[int, int], int] = {}
    for value in _readable(history, auditor):
        if value in inputs:
            copies[inputs[value]] = copies.get(inputs[value], 0) + 1
    wanted = {(index, offset) for index, end in committed.items() for offset in range(end)}
    found = []
    for index, offset in sorted(wanted | copies.keys()):
        times = copies.get((index, offset), 0)
        if times != ((index, offset) in wanted):
            sentence = (
                f"input {offset} of partition {index} is in the committed output {times} times; the group has "
                f"committed offset {committed.get(index, 0)}"
            )
            found.append(Finding(COPIED_ONCE, sentence))
    return found
