"""Meant differences in the state of share partitions, as leaders and group coordinators read and write it."""

from __future__ import annotations

from typing import Any

from answers.deviation import SHOWN_NAMES, UNKNOWN_PARTITIONS, A, D, Deviation, at, new_topics, topic
from answers.players import Difference
from answers.shape import Plan
from answers.world import UNKNOWN_ID, Symbol

FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH = 74, 124


def _malformed_batches(difference: Difference) -> bool:
    """In a WriteShareGroupState."""
    batches = [
        batch
        for topic in (difference.plan.fields["topics"] if difference.plan.key == 85 else ())
        for part in topic["partitions"]
        for batch in part["state_batches"]
    ]
    return any(not 0 <= batch["first_offset"] <= batch["last_offset"] for batch in batches)


def _fenced_after_initialization(difference: Difference) -> bool:
    """A leader epoch of the state that was there before."""
    if difference.plan.key not in (84, 85, 87):
        return False
    is_epoch = at(difference, ".leader_epoch") and difference.ours > difference.theirs
    # where there is an error nothing else is said
    return is_epoch or (FENCED_LEADER_EPOCH, 0) in _codes_of_states(difference)


def _codes_of_states(difference: Difference) -> set[tuple[int, int]]:
    """The errors of share states here and on Apache Kafka, where they differ."""
    ours, theirs = (
        {
            (topic["topic_id"], part["partition"]): part["error_code"]
            for topic in (answer["results"] if isinstance(answer, dict) else ())
            for part in topic["partitions"]
        }
        for answer in (difference.our_answer, difference.answer)
    )
    return {(code, theirs.get(place, 0)) for place, code in ours.items() if code != theirs.get(place, 0)}


def _not_read(difference: Difference) -> bool:
    """A state that no leader has read since its group began."""
    if difference.plan.key == 87:
        return at(difference, ".leader_epoch") and (difference.theirs, difference.ours) == (0, -1)
    return difference.plan.key == 85 and (FENCED_STATE_EPOCH, 0) in _codes_of_states(difference)


def _moved_back(difference: Difference) -> bool:
    """By a write that names an offset below the start offset."""
    if difference.plan.key not in (84, 87) or not all(
        isinstance(each, dict) for each in (difference.answer, difference.our_answer)
    ):
        return False
    theirs, ours = (
        {
            (topic["topic_id"], part["partition"]): part["start_offset"]
            for topic in each["results"]
            for part in topic["partitions"]
        }
        for each in (difference.answer, difference.our_answer)
    )
    return any(offset < ours.get(place, -1) for place, offset in theirs.items())


def _deletes_what_is_not_there(difference: Difference) -> bool:
    is_error = difference.plan.key == 86 and at(difference, ".error_code", ".error_message")
    return is_error and (difference.theirs == UNKNOWN_PARTITIONS[0] or difference.ours is None)


def of_share_state(group: str, **part: Any) -> dict[str, Any]:
    topic = {"topic_id": Symbol("topic_ids", D, UNKNOWN_ID), "partitions": [{"partition": 0} | part]}
    return {"group_id": group, "topics": [topic]}


SHARE_STATE_DEVIATIONS: list[Deviation] = [
    Deviation(
        "a share state that is not there is deleted",
        "DeleteShareGroupState of a partition that does not exist",
        _deletes_what_is_not_there,
        (
            Plan(
                86,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}q",
                    "topics": [{"topic_id": Symbol("topic_ids", A, UNKNOWN_ID), "partitions": [{"partition": 9}]}],
                },
            ),
        ),
    ),
    Deviation(
        "a batch of a share state that ends before it begins",
        "a batch in WriteShareGroupState that ends before it begins",
        _malformed_batches,
        (
            new_topics(topic(D)),
            Plan(83, 0, of_share_state(f"{SHOWN_NAMES}w", state_epoch=0, start_offset=0)),
            Plan(
                85,
                0,
                of_share_state(
                    f"{SHOWN_NAMES}w",
                    state_epoch=0,
                    leader_epoch=0,
                    start_offset=0,
                    state_batches=[{"first_offset": 5, "last_offset": 4, "delivery_state": 0, "delivery_count": 1}],
                ),
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "the leader epoch of a share state that is initialized again",
        "InitializeShareGroupState with a newer state epoch",
        _fenced_after_initialization,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a share state that no leader has read",
        "WriteShareGroupState of a leader that has not read the state since the group began",
        _not_read,
        (
            new_topics(topic(D)),
            Plan(83, 0, of_share_state(f"{SHOWN_NAMES}u", state_epoch=1, start_offset=0)),
            Plan(87, 0, of_share_state(f"{SHOWN_NAMES}u", leader_epoch=0)),
        ),
        is_harmless=False,
    ),
    Deviation(
        "a share state whose start offset is moved back",
        "a start offset in WriteShareGroupState below the stored one",
        _moved_back,
        is_harmless=False,
        by_chance=True,
    ),
]
