"""Meant differences in consumer groups and their offsets (`deviations.py`)."""

from __future__ import annotations

from typing import Any

from answers.deviation import A, Deviation, missing_here
from answers.players import Difference
from answers.shape import Plan

GROUP_NOT_FOUND = 69


def _holds_nothing(difference: Difference) -> bool:
    """A group to which only offsets that were refused have been committed."""
    key, theirs, ours = difference.plan.key, difference.theirs, difference.ours
    if key == 16:
        return isinstance(theirs, dict) and theirs["group_state"] in ("", "Empty") and missing_here(difference)
    if key == 15:
        return (
            (theirs, ours) == ("Empty", "Dead")
            or (ours == GROUP_NOT_FOUND and theirs == 0)
            or (ours == "a text" and theirs is None)
        )
    return key == 42 and (theirs, ours) == (0, GROUP_NOT_FOUND)


def _committed(difference: Difference) -> list[tuple[Any, int]]:
    plan = difference.plan
    topics = plan.fields["topics"] if plan.key == 8 else ()
    by = "topic_id" if plan.version >= 10 else "name"
    return [(topic[by], part["partition_index"]) for topic in topics for part in topic["partitions"]]


GROUP_DEVIATIONS: list[Deviation] = [
    Deviation(
        "a group that holds nothing",
        "a new group whose first commit is refused",
        _holds_nothing,
        (
            Plan(
                8,
                5,
                {
                    "group_id": "shown-g",
                    "topics": [
                        {
                            "name": A,
                            "partitions": [
                                {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 5000}
                            ],
                        }
                    ],
                },
            ),
            Plan(15, 5, {"groups": ["shown-g"]}),
            Plan(42, 2, {"groups_names": ["shown-g"]}),
        ),
    ),
    Deviation(
        "a partition twice in an OffsetCommit",
        "a name that is twice in a request",
        lambda d: len(_committed(d)) > len(set(_committed(d))),
        (
            Plan(
                8,
                5,
                {
                    "group_id": "shown-h",
                    "topics": [
                        {
                            "name": A,
                            "partitions": [
                                {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 5000},
                                {"partition_index": 0, "committed_offset": 2, "committed_metadata": ""},
                            ],
                        }
                    ],
                },
            ),
        ),
    ),
]
