"""The error codes that an answer holds, counted as Kafka's ErrorsPerSec does: each one, at whatever depth, success too.

Which fields hold them follows from the message's class: `error_code` in it and in the structs of its arrays. The plan
of a class is made at the first answer of its kind. Produce and Fetch are written out: they are what a broker answers
all day, and a plan takes four times as long.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias

from heirlog.protocol.api import ApiKey

_ARRAY_OF = re.compile(r"^list\[[\w.]*?(\w+)\]")

ErrorCounts: TypeAlias = defaultdict[int, int]
_Plan: TypeAlias = tuple[bool, tuple[tuple[str, Any], ...]]


def error_counter(api_key: int) -> Callable[[Any, ErrorCounts], None]:
    """`counter(response, counts)` adds the codes of one answer of this API."""
    return _WRITTEN_OUT.get(api_key, _count_by_plan)


def _count_produce(response: Any, counts: ErrorCounts) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            counts[partition.error_code] += 1


def _count_fetch(response: Any, counts: ErrorCounts) -> None:
    counts[response.error_code] += 1
    for topic in response.responses:
        for partition in topic.partitions:
            counts[partition.error_code] += 1


_WRITTEN_OUT: dict[int, Callable[[Any, ErrorCounts], None]] = {
    ApiKey.PRODUCE: _count_produce,
    ApiKey.FETCH: _count_fetch,
}


def _count_by_plan(response: Any, counts: ErrorCounts) -> None:
    message = type(response)
    plan = _plans.get(message)
    if plan is None:
        plan = _plans[message] = _plan(message, message)
    _follow(plan, response, counts)


def _follow(plan: _Plan, struct: Any, counts: ErrorCounts) -> None:
    has_code, arrays = plan
    if has_code:
        counts[struct.error_code] += 1
    for name, inner in arrays:
        for element in getattr(struct, name) or ():
            _follow(inner, element, counts)


_plans: dict[type[Any], _Plan] = {}


def _plan(message: type[Any], struct: type[Any]) -> _Plan:
    """Whether `struct` (of `message`) has a code, and which of its arrays lead to more."""
    arrays = []
    for name, annotation in struct.__init__.__annotations__.items():
        found = _ARRAY_OF.match(annotation)
        # the structs of a message are attributes of its class
        element = getattr(message, found[1], None) if found is not None else None
        if isinstance(element, type):
            inner = _plan(message, element)
            if inner[0] or inner[1]:
                arrays.append((name, inner))
    return "error_code" in struct.FIELDS, tuple(arrays)
