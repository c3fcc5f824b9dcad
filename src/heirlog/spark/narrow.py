"""Filters of a query that narrow what a batch read fetches. They may only leave out what no filter can select.

    topic, partition     the same for all records of a partition: one that no record can pass is not read
    offset               bounds of the range
    timestamp            a lower bound: offset of the first record that is not before it, by the index of the broker

An upper bound of timestamps narrows nothing. Timestamps come from producers, or from the clocks of several leaders,
and may go back, so records before the bound may follow records after it. The lower bound is safe with any order: what
precedes the *first* record that is late enough is not late enough.

Spark evaluates all filters again behind the source, so a filter that is not understood here costs time and no rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from heirlog.spark.offset_limits import TopicPartition
from heirlog.spark.option_values import LARGEST
from heirlog.spark.plan import Range

T = TypeVar("T")
Constant: TypeAlias = int | str
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_COMPARISONS: dict[type[Filter], Callable[[int, int], bool]] = {
    LessThan: int.__lt__,
    LessThanOrEqual: int.__le__,
    GreaterThan: int.__gt__,
    GreaterThanOrEqual: int.__ge__,
}
_PARTS: dict[type[Filter], Callable[[str, str], bool]] = {
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: str.__contains__,
}


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What all filters together leave.

    filters: those that a topic or a partition passes or not. first, last: offsets. since_ms: no record with an earlier
    timestamp is selected; None: all times.
    """

    filters: tuple[Filter, ...] = ()
    first: int = 0
    last: int = LARGEST
    since_ms: int | None = None

    def ranges(
        self, ranges: Sequence[Range], offsets_at: Callable[[dict[TopicPartition, int]], Mapping[TopicPartition, int]]
    ) -> list[Range]:
        """The ranges without what the filters exclude.

        offsets_at: offset of the first record of each partition that is not before a time in ms, negative if there is
        none.
        """
        left = [self._within(one) for one in ranges if self._reads(one)]
        asked = {} if self.since_ms is None else {(one.topic, one.partition): self.since_ms for one in left if one.size}
        if not asked:
            return left
        found = offsets_at(asked)
        begins = {partition: offset if offset >= 0 else LARGEST for partition, offset in found.items()}
        return [_bounded(one, begins.get((one.topic, one.partition), 0), one.stop) for one in left]

    def _reads(self, one: Range) -> bool:
        of_range: dict[str, Constant] = {"topic": one.topic, "partition": one.partition}
        return all(_holds(each, of_range[_column(each)]) is not False for each in self.filters)

    def _within(self, one: Range) -> Range:
        return _bounded(one, self.first, min(one.stop, self.last + 1))


def narrowing(filters: Iterable[Filter]) -> Narrowing:
    """filters: all of them hold for a row that is selected, as Spark passes them to `pushFilters`."""
    found = Narrowing()
    for one in filters:
        column = _column(one)
        if column in ("topic", "partition"):
            found = replace(found, filters=(*found.filters, one))
        elif column == "offset":
            first, last = _offsets(one)
            found = replace(found, first=max(found.first, first), last=min(found.last, last))
        elif column == "timestamp":
            since_ms = _since_ms(one)
            if since_ms is not None:
                found = replace(found, since_ms=max(found.since_ms or 0, since_ms))
    return found


def _bounded(one: Range, start: int, stop: int) -> Range:
    """Empty ranges keep no order of start and stop."""
    if start <= one.start:
        return replace(one, stop=stop)
    # the epoch of the record before is not known
    return replace(one, start=start, stop=stop, last_epoch=-1)


def _column(one: Filter) -> str:
    path = one.child.attribute if isinstance(one, Not) else one.attribute  # type: ignore[attr-defined]
    return path[0] if len(path) == 1 else ""


def _holds(one: Filter, value: Constant) -> bool | None:
    """Whether a record with this value passes; None where this is not known."""
    if isinstance(one, Not):
        # `not in` a list with a null passes nothing, but is not worth a case of its own
        passes = _holds(one.child, value)
        return None if passes is None else not passes
    if isinstance(one, In):
        others = [other for other in one.value if other is not None]
        return value in others if all(_is_like(other, value) for other in others) else None
    other: Any = getattr(one, "value", None)
    if not _is_like(other, value):
        return None
    if isinstance(one, EqualTo | EqualNullSafe):
        return bool(value == other)
    if isinstance(value, int) and type(one) in _COMPARISONS:
        return _COMPARISONS[type(one)](value, other)
    if isinstance(value, str) and type(one) in _PARTS:
        return _PARTS[type(one)](value, other)
    return None


def _is_like(other: object, value: Constant) -> bool:
    # a bool is an int in Python and not in Spark
    return type(other) is type(value)


def _offsets(one: Filter) -> tuple[int, int]:
    """The lowest and the highest offset that can pass."""
    values = _values(one, int)
    if not values:
        return 0, LARGEST
    lowest, highest = min(values), max(values)
    if isinstance(one, LessThan):
        return 0, highest - 1
    if isinstance(one, LessThanOrEqual):
        return 0, highest
    if isinstance(one, GreaterThan):
        return lowest + 1, LARGEST
    if isinstance(one, GreaterThanOrEqual):
        return lowest, LARGEST
    return lowest, highest


def _since_ms(one: Filter) -> int | None:
    """Records have whole milliseconds, Spark's timestamps microseconds."""
    times = _values(one, datetime.datetime)
    if not times or isinstance(one, LessThan | LessThanOrEqual) or any(time.tzinfo is None for time in times):
        return None
    since_us = (min(times) - _EPOCH) // datetime.timedelta(microseconds=1)
    since_ms = since_us // 1000 + 1 if isinstance(one, GreaterThan) else -(-since_us // 1000)
    # times before 1970 are requests of another meaning
    return since_ms if since_ms > 0 else None


def _values(one: Filter, kind: type[T]) -> list[T]:
    """What the column may equal or is compared with; empty for a filter that says nothing of the kind."""
    if not isinstance(
        one, EqualTo | EqualNullSafe | In | LessThan | LessThanOrEqual | GreaterThan | GreaterThanOrEqual
    ):
        return []
    values = [value for value in one.value if value is not None] if isinstance(one, In) else [one.value]
    return values if all(type(value) is kind for value in values) else []
