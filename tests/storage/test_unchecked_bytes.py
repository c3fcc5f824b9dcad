from __future__ import annotations

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from heirlog.storage.unchecked_bytes import UncheckedBytes

SIZE = 40
Range: TypeAlias = tuple[int, int]
RANGES = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda ends: (min(ends), max(ends)))


@given(st.lists(st.tuples(st.sampled_from(["checked", "cut"]), RANGES), max_size=8), RANGES)
def test_the_parts_are_the_bytes_that_nobody_has_checked(steps: list[tuple[str, Range]], asked: Range) -> None:
    unchecked, model = UncheckedBytes(SIZE), set(range(SIZE))
    for what, (start, end) in steps:
        if what == "cut":
            unchecked.cut(end)
            model -= set(range(end, SIZE))
        else:
            unchecked.checked(start, end)
            model -= set(range(start, end))
    parts = list(unchecked.parts(*asked))
    assert [byte for start, end in parts for byte in range(start, end)] == sorted(model & set(range(*asked)))
    assert all(start < end for start, end in parts)
    assert not model or unchecked.end > max(model)
