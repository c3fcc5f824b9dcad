"""A change of very many partitions, over several turns of the event loop.

    first records, partitions 0..1999 | partitions 2000..3999 | ... | the last ones, and the records that end the change

All of 100,000 partitions in one turn take seconds. After controller.quorum.fetch.timeout.ms the voters would elect
another controller, which would begin again. Each turn reads the image as it is then, so requests between two turns
count; and each prefix must be safe on its own, because a controller may lose its leadership between two turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from heirlog.controller.controller_result import ControllerResult
from heirlog.controller.leadership import Changes
from heirlog.protocol.types import PartitionKey

PARTITIONS_PER_TURN: Final = 2_000
"""Whose changes one turn makes, encodes and applies: about a tenth of a second."""

R = TypeVar("R")


def in_turns(
    partitions: Sequence[PartitionKey],
    change: Callable[[Sequence[PartitionKey]], Changes],
    last: Callable[[Sequence[Any], Sequence[PartitionKey]], ControllerResult[R]],
    *,
    is_wanted: Callable[[], bool],
    first: Sequence[Any] = (),
) -> ControllerResult[R]:
    """Change `partitions`; as few as fit into one turn are left to `last`.

    change: makes the records of some of them. last: gets the records of `first` that were not made yet, and the
        partitions that are left; makes the last records, and the answer. is_wanted: False if the rest of the change is
        pointless; `last` follows at once. first: records before all others.
    """

    def turn(start: int, head: Sequence[Any]) -> ControllerResult[R]:
        end = start + PARTITIONS_PER_TURN
        if end >= len(partitions) or not is_wanted():
            return last(head, partitions[start:])
        changes = change(partitions[start:end])
        return ControllerResult(_no_answer_yet, [*head, *changes.records], changes.elections, lambda: turn(end, ()))

    return turn(0, first)


def _no_answer_yet(base_offset: int) -> Any:
    raise AssertionError("only the last turn answers")
