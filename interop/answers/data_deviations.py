"""Meant differences in records and offsets of partitions (`deviations.py`)."""

from __future__ import annotations

from typing import Any

from answers.deviation import A, B, C, Deviation, asked, at, new_topics, topic
from answers.players import Difference
from answers.shape import Plan
from answers.world import Batch

NEWEST = -3
INVALID_RECORD, INVALID_ACKS, UNSUPPORTED_CODEC = 87, 21, 76


def _of_deleted_records(difference: Difference) -> bool:
    """The newest timestamp: of a record that can be read it is older, or there is none."""
    plan, theirs, ours = difference.plan, difference.theirs, difference.ours
    if plan.key != 2 or not any(
        part["timestamp"] == NEWEST for topic in plan.fields["topics"] for part in topic["partitions"]
    ):
        return False
    if at(difference, ".offset"):
        return bool(ours == -1 or ours > theirs > -1)
    if at(difference, ".timestamp"):
        return bool(ours == -1 or -1 < ours < theirs)
    return at(difference, ".leader_epoch") and bool(ours == -1)


def _produced(difference: Difference) -> list[tuple[Any, int]]:
    if difference.plan.key != 0:
        return []
    by = "topic_id" if difference.plan.version >= 13 else "name"
    return [
        (topic[by], part["index"]) for topic in difference.plan.fields["topic_data"] for part in topic["partition_data"]
    ]


DATA_DEVIATIONS: list[Deviation] = [
    Deviation(
        "the newest timestamp of deleted records",
        "the newest timestamp (ListOffsets -3) after DeleteRecords",
        _of_deleted_records,
        (
            new_topics(topic(C)),
            Plan(
                0,
                9,
                {
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [{"name": C, "partition_data": [{"index": 0, "records": Batch()}]}],
                },
            ),
            Plan(
                21,
                2,
                {"timeout_ms": 5000, "topics": [{"name": C, "partitions": [{"partition_index": 0, "offset": -1}]}]},
            ),
            Plan(
                2,
                7,
                {
                    "replica_id": -1,
                    "isolation_level": 0,
                    "topics": [{"name": C, "partitions": [asked(0) | {"timestamp": NEWEST}]}],
                },
            ),
        ),
    ),
    Deviation(
        "the log start beside a batch that the log refuses",
        "the log start offset in an answer with INVALID_RECORD",
        lambda d: d.plan.key == 0 and at(d, ".log_start_offset") and d.ours == -1,
        (
            Plan(
                0,
                9,
                {
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [{"name": A, "partition_data": [{"index": 0, "records": Batch(control=True)}]}],
                },
            ),
        ),
    ),
    Deviation(
        "a batch and acks that are both wrong",
        "`acks` and records that are both wrong",
        lambda d: d.plan.key == 0 and d.theirs in (INVALID_RECORD, UNSUPPORTED_CODEC) and d.ours == INVALID_ACKS,
        (
            Plan(
                0,
                9,
                {
                    "acks": 2,
                    "topic_data": [{"name": A, "partition_data": [{"index": 0, "records": Batch(damage="empty")}]}],
                },
            ),
        ),
    ),
    Deviation(
        "a partition twice in a Produce",
        "a partition that is twice in a Produce",
        lambda d: len(_produced(d)) > len(set(_produced(d))),
        (
            Plan(
                0,
                9,
                {
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [{"name": B, "partition_data": [{"index": 0, "records": Batch()}] * 2}],
                },
            ),
        ),
        is_harmless=False,
    ),
]
