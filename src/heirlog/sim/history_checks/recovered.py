"""Whether a recovery gave up a record that a replica which answered it had.

A record that a client has read was committed in the epoch of its batch. Elections since then were clean, up to the
first lossy one that touches its offset. So a replica whose last record is of that epoch or a later one, and whose log
is longer than the offset, has the record. If such a replica answered the recovery, and could be elected when it was
decided, the record must not be gone.

`answers` are what the record of the election names, without replicas that the metadata before it show as fenced or
shutting down. So the check needs no access to disks, and can be used on a cluster of real processes. The simulator
compares the same with every disk as well (`heirlog.sim.election_checker`).

Source: KIP-966, "Unclean recovery".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from heirlog.sim.history import Finding, KnownLoss, Observed
from heirlog.sim.history_checks.losses import touches

DISCARDED_RECORD = "discarded-record"


def discarded_record(
    observed: Iterable[Observed], audited: Iterable[Observed], losses: Collection[KnownLoss]
) -> list[Finding]:
    """Records that were read once and are gone, although the recovery that gave them up could have kept them.

    audited: what a reader of everything found in the end.
    """
    if not any(loss.answers for loss in losses):
        return []
    kept = {(one.partition, one.offset, one.value) for one in audited}
    found = []
    for seen in dict.fromkeys((one.partition, one.offset, one.value, one.leader_epoch) for one in observed):
        partition, offset, value, epoch = seen
        if epoch < 0 or (partition, offset, value) in kept:
            continue
        loss = _gave_up(losses, partition, offset, epoch)
        holders = (
            [] if loss is None else [broker for broker, last, end in loss.answers if last >= epoch and end > offset]
        )
        if loss is not None and holders:
            sentence = (
                f"{partition}: {value!r} at offset {offset} (epoch {epoch}) was given up by the recovery of epoch "
                f"{loss.leader_epoch}, although broker {holders[0]} had answered that its log reaches further"
            )
            found.append(Finding(DISCARDED_RECORD, sentence))
    return found


def _gave_up(losses: Collection[KnownLoss], partition: str, offset: int, epoch: int) -> KnownLoss | None:
    """The first lossy election that the record did not survive."""
    return min(
        (loss for loss in losses if touches(loss, partition, offset) and loss.leader_epoch > epoch),
        key=lambda loss: loss.leader_epoch,
        default=None,
    )
