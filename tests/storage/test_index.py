from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.storage.index import OffsetIndex, TimeIndex

entries = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 500)), max_size=40)


def offset_index(steps: list[tuple[int, int]]) -> tuple[OffsetIndex, list[tuple[int, int]]]:
    index, offset, position, plain = OffsetIndex(100), 100, 0, []
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        plain.append((offset, position))
    return index, plain


@settings(deadline=None)
@given(entries, st.integers(100, 1500), st.integers(0, 15_000))
def test_a_floor_is_the_greatest_entry_not_above(steps: list[tuple[int, int]], offset: int, position: int) -> None:
    index, plain = offset_index(steps)
    assert index.floor(offset) == max((p for o, p in plain if o <= offset), default=0)
    assert index.floor_of_position(position) == max((p for _, p in plain if p <= position), default=0)
    index.truncate(position)
    assert index.floor(10**6) == max((p for _, p in plain if p < position), default=0)


@settings(deadline=None)
@given(entries)
def test_indexes_come_back_from_kafkas_bytes(steps: list[tuple[int, int]]) -> None:
    index, plain = offset_index(steps)
    data = index.encode()
    assert data == b"".join((o - 100).to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in plain)
    again = OffsetIndex.decode(100, data, 10**6)
    assert again is not None and again.encode() == data
    times = TimeIndex(100)
    for offset, timestamp_ms in plain:
        times.maybe_append(timestamp_ms, offset)
    data = times.encode()
    assert data == b"".join(t.to_bytes(8, "big") + (o - 100).to_bytes(4, "big") for o, t in plain)
    back = TimeIndex.decode(100, data)
    assert back is not None and back.last == times.last


def test_a_time_that_is_not_larger_makes_no_entry() -> None:
    times = TimeIndex(0)
    for timestamp_ms, offset in ((-1, 0), (5, 1), (5, 2), (4, 3), (6, 4)):
        times.maybe_append(timestamp_ms, offset)
    assert (list(times.timestamps), list(times.relative_offsets)) == ([5, 6], [1, 4])
    assert [times.floor(t) for t in (0, 5, 6, 7)] == [0, 0, 1, 4]
    times.truncate(4)
    assert times.last == (5, 1)


def test_bytes_that_are_no_index_are_refused() -> None:
    rising = (1).to_bytes(4, "big") + (9).to_bytes(4, "big")
    assert OffsetIndex.decode(0, rising, 9) is None, "an entry beyond the end of the log file"
    assert OffsetIndex.decode(0, rising, 10) is not None
    assert OffsetIndex.decode(0, rising * 2, 100) is None
    assert OffsetIndex.decode(0, rising[:-1], 100) is None
    assert OffsetIndex.decode(0, bytes(80), 100) is None, "preallocated and not trimmed"
    assert TimeIndex.decode(0, bytes(13)) is None
    assert TimeIndex.decode(0, bytes(24)) is None
