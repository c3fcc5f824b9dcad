from __future__ import annotations

import struct

import pytest

from heirlog.broker.groups.group import ClassicGroup, ClassicGroupMember, GroupState
from heirlog.broker.groups.offset_expiry import expired_offsets
from heirlog.broker.groups.offsets import OffsetAndMetadata

DAY_MS = 86_400_000
READS_T = struct.pack(">hih1s", 1, 1, 1, b"t")


def group_of(kind: str) -> ClassicGroup:
    """Offsets of topics t and u, committed at 0."""
    group = ClassicGroup("g")
    group.offsets.committed = {("t", 0): OffsetAndMetadata(1, 0, "", 0), ("u", 0): OffsetAndMetadata(1, 0, "", 0)}
    if kind != "simple":
        group.protocol_type, group.state_since_ms = "consumer", DAY_MS
    if kind in ("stable", "preparing", "other type"):
        group.state = GroupState.PREPARING_REBALANCE if kind == "preparing" else GroupState.STABLE
        group.protocol = "range"
        group.members["m"] = ClassicGroupMember("m", None, "c", "h", 1000, 1000, [("range", READS_T)])
    if kind == "other type":
        group.protocol_type = "connect"
    return group


@pytest.mark.parametrize(
    ("kind", "after_days", "gone"),
    [
        ("simple", 6.9, []),
        ("simple", 7, ["t", "u"]),
        ("empty", 7.9, []),
        ("empty", 8, ["t", "u"]),
        ("stable", 100, ["u"]),
        ("preparing", 100, []),
        ("other type", 100, []),
    ],
)
def test_an_offset_is_forgotten_when_nobody_has_needed_it_for_a_week(
    kind: str, after_days: float, gone: list[str]
) -> None:
    group = group_of(kind)
    expired = expired_offsets(group, int(after_days * DAY_MS), 7 * DAY_MS)
    assert [topic for topic, _ in expired] == gone


def test_an_offset_with_a_time_of_its_own_goes_then() -> None:
    group = group_of("preparing")
    group.offsets.committed[("t", 0)] = OffsetAndMetadata(1, 0, "", 0, 1000)
    assert expired_offsets(group, 999, 7 * DAY_MS) == []
    assert expired_offsets(group, 1000, 7 * DAY_MS) == [("t", 0)]


def test_a_commit_to_a_group_without_members_is_younger_than_the_groups_last_change() -> None:
    group = group_of("empty")
    group.offsets.committed[("t", 0)] = OffsetAndMetadata(1, 0, "", 5 * DAY_MS)
    assert expired_offsets(group, 11 * DAY_MS, 7 * DAY_MS) == [("u", 0)]
