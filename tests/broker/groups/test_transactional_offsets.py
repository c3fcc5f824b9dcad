"""Offsets of transactions, compared with a log that is read from its beginning."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.broker.groups.transactional_offsets import TransactionalOffsets

PARTITION = ("foo", 0)
producers = st.integers(1, 3)
partitions = st.sampled_from([("foo", 0), ("foo", 1)])
steps = st.one_of(
    st.tuples(st.just("in transaction"), producers, partitions),
    st.tuples(st.just("plain"), st.just(0), partitions),
    st.tuples(st.just("delete"), st.just(0), partitions),
    st.tuples(st.sampled_from(["commit", "abort"]), producers, st.just(PARTITION)),
)


def value(number: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(number, -1, "", 0)


class Reference:
    """Every record with its place in the log; the highest place that is committed wins."""

    def __init__(self) -> None:
        self.committed: dict[tuple[str, int], tuple[int, OffsetAndMetadata]] = {}
        self.floor: dict[tuple[str, int], int] = {}
        self.open: dict[int, dict[tuple[str, int], tuple[int, OffsetAndMetadata]]] = {}

    def put(self, partition: tuple[str, int], place: int, written: OffsetAndMetadata) -> None:
        if place > max(self.committed.get(partition, (-1, written))[0], self.floor.get(partition, -1)):
            self.committed[partition] = (place, written)

    def values(self) -> dict[tuple[str, int], OffsetAndMetadata]:
        return {partition: written for partition, (_, written) in self.committed.items()}


@given(st.lists(steps, max_size=30))
def test_the_record_that_was_written_last_wins(script: list[tuple[str, int, tuple[str, int]]]) -> None:
    tested, committed, reference = TransactionalOffsets(), {}, Reference()
    for place, (kind, producer, partition) in enumerate(script):
        if kind == "in transaction":
            tested.written(producer, "g", partition, value(place))
            reference.open.setdefault(producer, {})[partition] = (place, value(place))
        elif kind == "plain":
            tested.replaced("g", partition)
            committed[partition] = value(place)
            reference.put(partition, place, value(place))
        elif kind == "delete":
            tested.forgotten("g", partition)
            committed.pop(partition, None)
            reference.committed.pop(partition, None)
            for offsets in reference.open.values():
                offsets.pop(partition, None)
        else:
            for key, written in tested.ended(producer, commit=kind == "commit"):
                committed[key.partition] = written
            for where, (at, written) in reference.open.pop(producer, {}).items():
                if kind == "commit":
                    reference.put(where, at, written)
        assert committed == reference.values()
        unstable = {where for offsets in reference.open.values() for where in offsets}
        assert set(tested.unstable("g")) == unstable
        assert tested.is_unstable("g", PARTITION) is (PARTITION in unstable)
    for producer in (1, 2, 3):
        list(tested.ended(producer, commit=False))
    assert (tested._by_producer, tested._producers) == ({}, {}), "nothing is left of transactions that have ended"
