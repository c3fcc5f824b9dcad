"""Rules of transactions as functions of what logs, coordinators and answers say: how one is broken, or None.

    X7    no leader that answers ListOffsets(latest) exposes a lower last stable offset than one before it
    X15   what a group coordinator knows is what its log says: committed offsets, and those that are not stable
    X17   cleaning changes no committed record that is the last one of its key, and shows no other one
    X18   the bytes of a request that was answered, sent again, get the same answer or a refusal
    X20   a producer id and epoch that a producer got as an answer are kept by the log of its coordinator

`heirlog.sim.transaction_checker` and `heirlog.sim.transactional_load` bring what they judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition

Producer: TypeAlias = tuple[int, int]
"""Producer id and epoch."""
GroupPartition: TypeAlias = tuple[str, TopicPartition]


class WrittenOffset(NamedTuple):
    """A record of `__consumer_offsets`."""

    producer_id: int | None
    """None: outside of any transaction."""
    place: GroupPartition
    value: OffsetAndMetadata | None
    """None: the offset is deleted."""


class Ended(NamedTuple):
    """A marker in `__consumer_offsets`."""

    producer_id: int
    commit: bool


class KeyedRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


class Answer(NamedTuple):
    """effect: what the answer says about it, such as an offset or an epoch."""

    code: int
    effect: tuple[int, ...] = ()


def x7_stable_offset_never_falls(name: str, highest: int, stable: int, epoch: int) -> str | None:
    """highest: that leaders have exposed, this one included."""
    if stable < highest:
        return f"the LSO of {name} is {stable} in epoch {epoch}, and {highest} was exposed before"
    return None


def decided_offsets(
    log: Iterable[WrittenOffset | Ended],
) -> tuple[dict[GroupPartition, OffsetAndMetadata], set[GroupPartition]]:
    """The committed offsets, and the partitions with one that is not decided yet.

    The last record that is decided counts, whenever its marker came. A deletion counts at once, also for the records of
    open transactions before it.
    """
    written: dict[GroupPartition, list[tuple[int | None, OffsetAndMetadata]]] = {}
    for entry in log:
        if isinstance(entry, WrittenOffset):
            known = written.setdefault(entry.place, [])
            if entry.value is None:
                known.clear()
            else:
                known.append((entry.producer_id, entry.value))
            continue
        for place, known in written.items():
            written[place] = [
                (None if producer == entry.producer_id else producer, value)
                for producer, value in known
                if entry.commit or producer != entry.producer_id
            ]
    committed = {}
    for place, known in written.items():
        decided = [value for producer, value in known if producer is None]
        if decided:
            committed[place] = decided[-1]
    return committed, {place for place, known in written.items() if any(each is not None for each, _ in known)}


def x15_offsets_are_those_of_the_log(
    log: Iterable[WrittenOffset | Ended],
    committed: Mapping[GroupPartition, OffsetAndMetadata],
    unstable: Collection[GroupPartition],
) -> str | None:
    """What a coordinator has committed, and what it calls unstable (UNSTABLE_OFFSET_COMMIT)."""
    logged, open_places = decided_offsets(log)
    for place in sorted({*logged, *committed}):
        if logged.get(place) != committed.get(place):
            return f"{place}: the coordinator has {committed.get(place)}, and its log says {logged.get(place)}"
    differing = sorted(open_places.symmetric_difference(unstable))
    if differing:
        return f"{differing[0]}: the coordinator and its log do not agree whether a transaction is open"
    return None


def x17_cleaning_keeps_what_is_committed(
    committed: Iterable[KeyedRecord], scanned: Iterable[KeyedRecord], first: int, end: int
) -> str | None:
    """committed: all records that transactions have committed. scanned: what a reader of committed records gets from
    `first` to `end`.
    """
    known = {record.offset: record for record in committed if first <= record.offset < end}
    got = {record.offset: record for record in scanned}
    for offset, record in sorted(got.items()):
        if known.get(offset) != record:
            return f"offset {offset} is read as committed, and it is not"
    last = {record.key: record for _, record in sorted(known.items())}
    for record in last.values():
        if record.offset not in got:
            return f"offset {record.offset} has the last committed value of its key, and is not read"
    return None


def x18_repeated_request_changes_nothing(what: str, first: Answer, again: Answer) -> str | None:
    """first: the answer with success that the request had got."""
    if again.code == first.code and again.effect != first.effect:
        return f"{what}: the answer was {first.effect}, and to the same bytes later {again.effect}"
    return None


def x20_answers_are_kept(
    promised: Iterable[tuple[str, Producer]], held: Mapping[str, Collection[Producer]]
) -> str | None:
    """promised: transactional ids with what their producers got as an answer. held: what each id had by its records."""
    for name, producer in promised:
        if producer not in held.get(name, ()):
            return f"{name}: its producer got {producer} as an answer, and no record of its coordinator has that"
    return None
