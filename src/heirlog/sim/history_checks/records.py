"""Whether the records that were acknowledged are the records that can be read.

Values may be anything that can be the key of a dictionary. The checks compare what producers were answered with what
consumers read; `losses` excuse what elections on a lossy basis gave up (`losses.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from heirlog.sim.history import AcknowledgedRecord, Finding, KnownLoss, Observed
from heirlog.sim.history_checks.losses import excused, explains, lineage_of, separates, touches

LOST_WRITE = "lost-write"
UNSEEN = "unseen"
DUPLICATE = "duplicate"
INCONSISTENT_OFFSETS = "inconsistent-offsets"
STRAY = "stray"


def lost_write(
    acknowledged: Iterable[AcknowledgedRecord], observed: Iterable[Observed], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Records that were acknowledged and never read, although a later record was read."""
    read_at: set[tuple[str, int, Hashable]] = set()
    highest: dict[str, int] = {}
    for seen in observed:
        partition, offset = seen.partition, seen.offset
        read_at.add((partition, offset, seen.value))
        if offset > highest.get(partition, -1):
            highest[partition] = offset
    found = []
    for one in acknowledged:
        if one.offset >= highest.get(one.partition, -1) or (one.partition, one.offset, one.value) in read_at:
            continue
        if not excused(one, losses):
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
        if before.offset != seen.offset and not any(separates(loss, before, seen) for loss in losses):
            sentence = f"{seen.partition}: {seen.value!r} stands at offset {before.offset} and again at {seen.offset}"
            found.append(Finding(DUPLICATE, sentence))
    return found


def inconsistent_offsets(
    acknowledged: Iterable[AcknowledgedRecord], observed: Iterable[Observed], losses: Collection[KnownLoss] = ()
) -> list[Finding]:
    """Offsets at which two reads, or a read and an acknowledgement, name different values within one lineage."""
    first: dict[tuple[str, int], list[Observed]] = {}
    values: dict[tuple[str, int, int], Hashable] = {}
    """In partitions with losses: what was read last in a lineage."""
    lossy: dict[str, list[KnownLoss]] = {}
    for loss in losses:
        lossy.setdefault(loss.partition, []).append(loss)
    found = []
    for seen in observed:
        at = seen.partition, seen.offset
        others = first.get(at)
        if others is None:
            first[at] = [seen]
        elif not any(_is_as_read(other, seen) for other in others):
            found += [
                Finding(
                    INCONSISTENT_OFFSETS,
                    f"{seen.partition}: offset {seen.offset} held {other.value!r} and then {seen.value!r}",
                )
                for other in others
                if other.value != seen.value and not any(explains(loss, other, seen) for loss in losses)
            ]
            others.append(seen)
        here = lossy.get(seen.partition)
        if here is not None:
            values[*at, lineage_of(seen, here)] = seen.value
    for one in acknowledged:
        here = lossy.get(one.partition)
        if here is not None:
            if excused(one, here):
                continue
            lineage = sum(1 for loss in here if touches(loss, one.partition, one.offset))
            read = values.get((one.partition, one.offset, lineage), one.value)
        else:
            others = first.get((one.partition, one.offset))
            read = one.value if others is None else others[-1].value
        if read != one.value:
            sentence = (
                f"{one.partition}: {one.value!r} was acknowledged at offset {one.offset}, where {read!r} was read"
            )
            found.append(Finding(INCONSISTENT_OFFSETS, sentence))
    return found


def _is_as_read(before: Observed, seen: Observed) -> bool:
    return before.value == seen.value and before.leader_epoch == seen.leader_epoch


def first_reads(observed: Iterable[Observed]) -> list[Observed]:
    """Without those that say the same as the first read of that offset. The checks of this module find the same in
    them: which client has read a record, and when, does not matter to them.
    """
    first: dict[tuple[str, int], Observed] = {}
    found = []
    for seen in observed:
        before = first.setdefault((seen.partition, seen.offset), seen)
        if before is seen or before.value != seen.value or before.leader_epoch != seen.leader_epoch:
            found.append(seen)
    return found


def stray(acknowledged: Iterable[AcknowledgedRecord], observed: Iterable[Observed]) -> list[Finding]:
    """Records in a partition that they were not written to: another one's, or a deleted topic's of the same name."""
    home = {one.value: one.partition for one in acknowledged}
    return [
        Finding(STRAY, f"{seen.value!r} was acknowledged in {home[seen.value]} and read in {seen.partition}")
        for seen in observed
        if home.get(seen.value, seen.partition) != seen.partition
    ]
