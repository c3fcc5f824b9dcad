"""Meant differences in records and offsets of partitions (`deviations.py`)."""

from __future__ import annotations

from typing import Any

from answers.deviation import A, B, C, D, Deviation, asked, at, new_topics, topic
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


def _has_negative_limit(difference: Difference) -> bool:
    if difference.plan.key != 1 or "error_code': -1" not in str(difference.answer):
        return False
    return any(part["partition_max_bytes"] < 0 for t in difference.plan.fields["topics"] for part in t["partitions"])


DATA_DEVIATIONS: list[Deviation] = [
    Deviation(
        "a negative limit",
        "a negative `partition_max_bytes` in a Fetch",
        _has_negative_limit,
        (
            new_topics(topic(D)),
            Plan(
                0,
                9,
                {
                    "acks": -1,
                    "timeout_ms": 5000,
                    "topic_data": [{"name": D, "partition_data": [{"index": 0, "records": Batch()}]}],
                },
            ),
            Plan(
                1,
                11,
                {
                    "replica_id": -1,
                    "max_wait_ms": 0,
                    "min_bytes": 0,
                    "max_bytes": 1 << 20,
                    "isolation_level": 0,
                    "session_id": 0,
                    "session_epoch": -1,
                    "topics": [
                        {
                            "topic": D,
                            "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": -3}],
                        }
                    ],
                },
            ),
        ),
    ),
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
        # two topics that do not exist have the same id
        lambda d: len(_produced(d)) > len(set(_produced(d))) or (d.plan.key == 0 and d.path.endswith("]#2]")),
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
