"""Counting many things without blocking other work: a count that can be interrupted.

A `Survey` yields where it may pause, and returns its count at the end. The caller decides how long it may run at a
time. Meanwhile things change, so a sum over ten thousand partitions is not the state of a single instant.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Survey: TypeAlias = Generator[None, None, T]

AT_A_TIME = 256
"""Looked at between two pauses: well below a millisecond."""


def at_once(survey: Survey[T]) -> T:
    """Without pauses."""
    while True:
        try:
            next(survey)
        except StopIteration as done:
            result: T = done.value
            return result


def in_groups(things: Iterable[T]) -> Iterator[list[T]]:
    """A copy of them, in lists of `AT_A_TIME`."""
    copy = list(things)
    for start in range(0, len(copy), AT_A_TIME):
        yield copy[start : start + AT_A_TIME]
