"""Meant differences in consumer groups and their offsets (`deviations.py`)."""

from __future__ import annotations

from typing import Any

from answers.consumer_group_requests import UNREADABLE
from answers.deviation import SHOWN_NAMES, A, B, D, Deviation, at, missing_here, new_topics, topic
from answers.players import NO_ANSWER, Difference
from answers.shape import Plan
from heirlog.protocol.consumer_protocol import subscription

GROUP_NOT_FOUND = 69
STATIC, CONSUMED = f"{SHOWN_NAMES}static", f"{SHOWN_NAMES}consumed"


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


def _fetched(difference: Difference) -> list[str]:
    """Groups whose complete offsets are asked for."""
    plan = difference.plan
    groups = plan.fields.get("groups", ()) if plan.key == 9 and plan.version >= 8 else ()
    return [group["group_id"] for group in groups if group["topics"] is None]


def _is_unreadable(plan: Plan) -> bool:
    return any(protocol["metadata"] == UNREADABLE for protocol in plan.fields["protocols"])


def _heartbeat(**fields: Any) -> Plan:
    static = {"group_id": STATIC, "member_id": "m", "member_epoch": 0, "instance_id": "i", "topic_partitions": []}
    return Plan(68, 1, static | {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [A]} | fields)


GROUP_DEVIATIONS: list[Deviation] = [
    Deviation(
        "a group twice in an OffsetFetch",
        "a name that is twice in a request",
        lambda d: len(_fetched(d)) > len(set(_fetched(d))),
        (
            _heartbeat(group_id=CONSUMED, instance_id=None),
            Plan(
                9,
                9,
                {
                    "groups": [
                        {"group_id": CONSUMED, "member_id": "nobody", "member_epoch": 1, "topics": None},
                        {"group_id": CONSUMED, "member_id": "m", "member_epoch": 1, "topics": None},
                    ]
                },
            ),
        ),
    ),
    Deviation(
        "the generation of a classic member that replaces the last member of the consumer protocol",
        "a classic member that replaces the last member of the consumer protocol",
        lambda d: d.plan.key == 11 and at(d, ".generation_id") and d.theirs == 0 and d.ours > 0,
        (
            _heartbeat(),
            Plan(
                11,
                8,
                {
                    "group_id": STATIC,
                    "session_timeout_ms": 60_000,
                    "rebalance_timeout_ms": 60_000,
                    "member_id": "",
                    "group_instance_id": "i",
                    "protocol_type": "consumer",
                    "protocols": [{"name": "range", "metadata": subscription([B])}],
                },
                keeps=f"{STATIC}/0",
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "a classic group with a subscription that cannot be read",
        "JoinGroup of the first members of a classic group, one of them with a subscription that cannot be read",
        lambda d: d.plan.key == 11 and d.theirs == NO_ANSWER and _is_unreadable(d.plan),
        is_harmless=False,
        by_chance=True,
    ),
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
            new_topics(topic(D)),
            Plan(
                8,
                5,
                {
                    "group_id": "shown-h",
                    "topics": [
                        {
                            "name": D,
                            "partitions": [
                                {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 5000},
                                {"partition_index": 0, "committed_offset": 2, "committed_metadata": ""},
                            ],
                        }
                    ],
                },
            ),
        ),
        # Apache Kafka stores the first of them if the second is refused
        is_harmless=False,
    ),
]
