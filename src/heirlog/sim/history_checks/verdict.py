"""All checks of a history of records, in one call."""

from __future__ import annotations

from collections.abc import Callable, Collection

from heirlog.sim.history import Finding, History, KnownLoss
from heirlog.sim.history_checks import polls, records, recovered, sends, transactions


def findings(
    history: History,
    losses: Collection[KnownLoss],
    auditor: str,
    audited: Collection[str],
    is_compacted: Callable[[str], bool] = lambda partition: False,
    has_markers: Callable[[str], bool] = lambda partition: False,
    *,
    remember_epochs: bool = True,
) -> list[Finding]:
    """Everything that is wrong with a history, most telling checks first.

    auditor: the client that read everything once more after all writes had ended, and audited: the partitions that it
    read up to their end. A partition that is not among them, of a deleted topic for example, is judged by what others
    read. is_compacted: partitions in which records may be missing (`heirlog.sim.compaction_checker` judges those).
    has_markers: partitions with transactions, where some offsets have no record. remember_epochs: as of `poll_skip`.
    """
    acknowledged = history.acknowledged
    partitions = {one.partition for one in history.observed} | {one.partition for one in acknowledged}
    compacted = {partition for partition in partitions if is_compacted(partition)}
    without_markers = {partition for partition in partitions - compacted if not has_markers(partition)}
    was_read = {partition for partition in partitions - compacted if _was_read(partition, losses, audited)}
    kept = [one for one in acknowledged if one.partition in was_read]
    whole = [one for one in history.observed if one.partition not in compacted]
    last_read = [one for one in history.observed if one.client == auditor]
    read = records.first_reads(history.observed)
    return [
        *polls.latest_went_back(history.latest, losses),
        *polls.latest_went_back(history.latest_stable, losses),
        *sends.two_leaders(history.acknowledged_by),
        *sends.few_copies(history.copies),
        *records.inconsistent_offsets(acknowledged, read, losses),
        *records.lost_write(kept, read, losses),
        *records.unseen((one for one in kept if one.partition in audited), last_read, losses),
        *records.unseen_anywhere(
            (one for one in history.acknowledged_somewhere if one.partition in audited), last_read, losses
        ),
        *recovered.discarded_record((one for one in whole if one.partition in audited), last_read, losses),
        *records.stray(history.acknowledged, read),
        *records.duplicate(read, losses=losses),
        *sends.nonmonotonic_send(history.batches, losses),
        *polls.poll_skip(
            (one for one in whole if one.partition in without_markers),
            losses,
            history.seeks,
            remember_epochs=remember_epochs,
        ),
        *polls.nonmonotonic_poll(history.observed, losses, history.seeks),
        *transactions.aborted_read(history, losses),
        *transactions.zombie(history, losses),
    ]


def _was_read(partition: str, losses: Collection[KnownLoss], audited: Collection[str]) -> bool:
    """Whether a client that read the partition from start to end has read all its records.

    A client that was reading when a lossy election made offsets be assigned again may have skipped some, and a deleted
    topic cannot be read again.
    """
    return partition in audited or all(loss.partition != partition for loss in losses)
