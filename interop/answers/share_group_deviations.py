"""Meant differences in share groups. Those in the state of their partitions are in share_state_deviations.py."""

from __future__ import annotations

from typing import Any

from answers.deviation import (
    SHOWN_NAMES,
    UNKNOWN_PARTITIONS,
    UNKNOWN_SERVER_ERROR,
    A,
    D,
    Deviation,
    at,
    new_topics,
    topic,
)
from answers.players import Difference
from answers.shape import Plan
from answers.share_group_episodes import DELETED, READS_COMMITTED, RECREATED
from answers.share_group_requests import ALTERED, GROUP
from answers.share_state_deviations import of_share_state
from answers.world import UNKNOWN_ID, Symbol

SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH = 122, 123
OFFSET_NOT_AVAILABLE = 78
CONTROL = 32
"""The bit of a batch's attributes."""


def _raised_by_altering(difference: Difference) -> bool:
    """The epoch of a group whose offsets were altered."""
    plan, theirs, ours = difference.plan, difference.theirs, difference.ours
    named = [plan.fields.get("group_id"), *plan.fields.get("group_ids", ())]
    return (
        plan.key in (76, 77, 84, 87)
        and at(difference, "_epoch")
        and any(str(each).endswith(ALTERED) for each in named)
        and ours > theirs
    )


def _first_offset(difference: Difference) -> bool:
    """Of a share partition from which a member has fetched, and acknowledged nothing."""
    is_of_state = difference.plan.key in (84, 87, 90) and difference.theirs == -1 and difference.ours >= 0
    return is_of_state and at(difference, ".start_offset", ".lag", ".delivery_complete_count")


def _negative_offset(difference: Difference) -> bool:
    """In an AlterShareGroupOffsets."""
    topics = difference.plan.fields["topics"] if difference.plan.key == 91 else ()
    offsets = [part["start_offset"] for topic in topics for part in topic["partitions"]]
    return bool(offsets) and min(offsets) < 0


def _repeated_assignment(difference: Difference) -> bool:
    """Of a member whose heartbeat does not name the epoch that the answer gives to it."""
    plan, answer = difference.plan, difference.answer
    return (
        plan.key == 76
        and difference.path == ".assignment"
        and difference.theirs is None
        and plan.fields["member_epoch"] != answer["member_epoch"]
    )


def _marker(difference: Difference) -> bool:
    """Of a transaction, delivered to a group that reads what is committed."""
    plan, answer = difference.plan, difference.answer
    if plan.key == 90:
        groups = [str(each["group_id"]) for each in plan.fields["groups"]]
        is_of_group = any(group.endswith(f"-{READS_COMMITTED}") for group in groups)
        return is_of_group and at(difference, ".start_offset") and difference.ours > difference.theirs
    if plan.key != 78 or not str(plan.fields["group_id"]).endswith(f"-{READS_COMMITTED}"):
        return False
    parts = [part for topic in answer["responses"] for part in topic["partitions"]]
    return any(batch["attributes"] & CONTROL for part in parts for batch in part["records"] or ())


def _passed_by_the_log_start(difference: Difference) -> bool:
    """The next fetch of a group after DeleteRecords."""
    plan = difference.plan
    is_of_group = plan.key == 78 and str(plan.fields["group_id"]).endswith(f"-{DELETED}")
    return is_of_group and difference.theirs == "not there" and bool(difference.ours["partitions"])


def _of_a_deleted_topic(difference: Difference) -> bool:
    """In a session that still names the topic that is gone, when it is there again."""
    plan, ours = difference.plan, difference.ours
    if plan.key != 78 or not str(plan.fields["group_id"]).endswith(f"-{RECREATED}"):
        return False
    return ours == "not there" or any(part["error_code"] == UNKNOWN_PARTITIONS[1] for part in ours["partitions"])


def _moved_by_the_log_start(difference: Difference) -> bool:
    """The start offset of a group whose members hold records that are deleted."""
    groups = [str(each["group_id"]) for each in difference.plan.fields.get("groups", ())]
    is_of_group = difference.plan.key == 90 and any(group.endswith(f"-{DELETED}") for group in groups)
    return is_of_group and at(difference, ".start_offset") and difference.ours > difference.theirs


def _begins_without_a_record(difference: Difference) -> bool:
    """Where share.auto.offset.reset asks for the first record that is new enough, and there is none."""
    answer = difference.answer
    if difference.plan.key != 78 or not isinstance(answer, dict):
        return False
    codes = {part["error_code"] for topic in answer["responses"] for part in topic["partitions"]}
    return OFFSET_NOT_AVAILABLE in codes


def _acquired(answer: Any) -> int:
    parts = [part for topic in answer["responses"] for part in topic["partitions"]] if isinstance(answer, dict) else []
    batches = [batch for part in parts for batch in part["acquired_records"]]
    return sum(batch["last_offset"] - batch["first_offset"] + 1 for batch in batches)


def _other_partition_first(difference: Difference) -> bool:
    """Of several that have more records than the request wants."""
    plan = difference.plan
    if plan.key != 78 or difference.path == ".error_code":
        return False
    least = min(map(_acquired, (difference.answer, difference.our_answer)))
    return 1 <= plan.fields["max_records"] <= least and _partitions(difference.answer) != _partitions(
        difference.our_answer
    )


def _partitions(answer: Any) -> set[tuple[Any, int]]:
    """That have acquired records."""
    return {
        (topic["topic_id"], part["partition_index"])
        for topic in answer["responses"]
        for part in topic["partitions"]
        if part["acquired_records"]
    }


def _aborted_records(difference: Difference) -> bool:
    """What a group that reads what is committed gets after them."""
    plan = difference.plan
    if plan.key != 78 or not str(plan.fields["group_id"]).endswith(f"-{READS_COMMITTED}"):
        return False
    return difference.theirs == "not there" and _acquired(difference.answer) == 0 < _acquired(difference.our_answer)


def _altered_what_does_not_exist(difference: Difference) -> bool:
    is_error = difference.plan.key == 42 and at(difference, ".error_code")
    return is_error and (difference.theirs, difference.ours) == (UNKNOWN_SERVER_ERROR, 0)


def _outlives_its_connection(difference: Difference) -> bool:
    """A session on Apache Kafka whose connection had opened another one, too."""
    codes = (INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND)
    return difference.plan.key in (78, 79) and (difference.theirs, difference.ours) == codes


def _by_duration(group: str) -> dict[str, Any]:
    change = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "by_duration:PT1H"}
    return {"resource_type": GROUP, "resource_name": group, "configs": [change]}


def _first_fetch(group: str) -> dict[str, Any]:
    parts = [{"partition_index": 0, "acknowledgement_batches": []}]
    return {
        "group_id": group,
        "member_id": "m",
        "share_session_epoch": 0,
        "max_wait_ms": 1000,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 1,
        "batch_size": 1,
        "topics": [{"topic_id": Symbol("topic_ids", D, UNKNOWN_ID), "partitions": parts}],
        "forgotten_topics_data": [],
    }


def _of_share_member(epoch: int, *topics: str) -> Plan:
    """topics: what it subscribes to from now on."""
    who = {"group_id": f"{SHOWN_NAMES}m", "member_id": "m", "member_epoch": epoch, "rack_id": None}
    return Plan(76, 1, who | {"subscribed_topic_names": list(topics) or None})


SHARE_GROUP_DEVIATIONS: list[Deviation] = [
    Deviation(
        "the epoch of a group whose offsets were altered",
        "AlterShareGroupOffsets",
        _raised_by_altering,
        (
            Plan(
                91,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}p{ALTERED}",
                    "topics": [{"topic_name": A, "partitions": [{"partition_index": 0, "start_offset": 0}]}],
                },
            ),
            Plan(77, 1, {"group_ids": [f"{SHOWN_NAMES}p{ALTERED}"]}),
        ),
    ),
    Deviation(
        "a share group that begins at a negative offset",
        "a negative start offset in AlterShareGroupOffsets",
        _negative_offset,
        (
            new_topics(topic(D)),
            Plan(
                91,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}n{ALTERED}",
                    "topics": [{"topic_name": D, "partitions": [{"partition_index": 0, "start_offset": -3}]}],
                },
            ),
        ),
        is_harmless=False,
    ),
    Deviation(
        "the assignment that a member of a share group has missed",
        "ShareGroupHeartbeat with the previous epoch",
        _repeated_assignment,
        (_of_share_member(0, "none"), _of_share_member(1, "nowhere"), _of_share_member(1)),
    ),
    Deviation(
        "the first offset of a share group",
        "the first offset of a share group",
        _first_offset,
        (
            Plan(
                83,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}r",
                    "topics": [
                        {
                            "topic_id": Symbol("topic_ids", A, UNKNOWN_ID),
                            "partitions": [{"partition": 0, "state_epoch": 0, "start_offset": -1}],
                        }
                    ],
                },
            ),
            Plan(
                78,
                1,
                {
                    "group_id": f"{SHOWN_NAMES}r",
                    "member_id": "m",
                    "share_session_epoch": 0,
                    "max_wait_ms": 1000,
                    "min_bytes": 1,
                    "max_bytes": 1 << 20,
                    "max_records": 1,
                    "batch_size": 1,
                    "topics": [
                        {
                            "topic_id": Symbol("topic_ids", A, UNKNOWN_ID),
                            "partitions": [{"partition_index": 0, "acknowledgement_batches": []}],
                        }
                    ],
                },
            ),
            Plan(
                87,
                0,
                {
                    "group_id": f"{SHOWN_NAMES}r",
                    "topics": [
                        {
                            "topic_id": Symbol("topic_ids", A, UNKNOWN_ID),
                            "partitions": [{"partition": 0, "leader_epoch": 0}],
                        }
                    ],
                },
            ),
        ),
    ),
    Deviation(
        "a marker of a transaction in a share group that reads what is committed",
        "the markers of transactions in a share group with `share.isolation.level=read_committed`",
        _marker,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a ShareFetch after the log start offset has passed the next record",
        "the first ShareFetch after DeleteRecords has deleted what would be delivered next",
        _passed_by_the_log_start,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "the start offset of a share group whose members hold deleted records",
        "the start offset of a share group whose members hold records that DeleteRecords has deleted",
        _moved_by_the_log_start,
        by_chance=True,
    ),
    Deviation(
        "a share group that begins where no record is new enough",
        "`share.auto.offset.reset=by_duration:...` in a partition without a record that is new enough",
        _begins_without_a_record,
        (
            new_topics(topic(D)),
            Plan(44, 1, {"resources": [_by_duration(f"{SHOWN_NAMES}k")], "validate_only": False}),
            Plan(83, 0, of_share_state(f"{SHOWN_NAMES}k", state_epoch=0, start_offset=-1)),
            Plan(78, 1, _first_fetch(f"{SHOWN_NAMES}k")),
        ),
        is_harmless=False,
    ),
    Deviation(
        "which partition of a share session is delivered first",
        "a ShareFetch of several partitions that have more records than it may acquire",
        _other_partition_first,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a ShareFetch behind records of an aborted transaction",
        "a ShareFetch whose `max_records` next records are of an aborted transaction",
        _aborted_records,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a share group that is deleted after AlterShareGroupOffsets of a partition that does not exist",
        "DeleteGroups of a share group, after AlterShareGroupOffsets of a partition that does not exist",
        _altered_what_does_not_exist,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a share session that outlives its connection",
        "a connection with share sessions of several groups, or of several members, that is closed",
        _outlives_its_connection,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a share session with a topic that was deleted",
        "ShareFetch of a session that has a partition of a deleted topic, and one that its leader does not know yet",
        _of_a_deleted_topic,
        is_harmless=False,
        by_chance=True,
    ),
    Deviation(
        "a share session of a group without a name",
        "ShareFetch and ShareAcknowledge for a group without a name",
        lambda d: d.plan.key in (78, 79) and d.plan.fields["group_id"] == "",
        (Plan(79, 1, {"group_id": "", "member_id": "m", "share_session_epoch": 1, "topics": []}),),
        is_harmless=False,
    ),
]
