"""The assignor of share groups: counts, and what stays where it is."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from heirlog.broker.groups.consumer.values import common, size_of
from heirlog.broker.groups.share.assignor import ShareMemberToAssign, simple
from heirlog.protocol.types import Uuid

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def group(members: int, *topics: Uuid, targets: Any = None) -> dict[str, ShareMemberToAssign]:
    return {f"m{n}": ShareMemberToAssign(frozenset(topics), (targets or {}).get(f"m{n}", {})) for n in range(members)}


def sharing(found: Any) -> Counter[tuple[Uuid, int]]:
    return Counter((t, n) for each in found.values() for t, numbers in each.items() for n in numbers)


@pytest.mark.parametrize(("members", "partitions"), [(1, 3), (2, 3), (3, 3), (4, 3), (5, 2), (3, 2), (7, 1), (4, 2)])
def test_each_partition_has_as_many_members_as_there_are_per_partition(members: int, partitions: int) -> None:
    found = simple(group(members, A), {A: frozenset(range(partitions))})
    assert set(sharing(found).values()) == {-(-members // partitions)}
    assert len(sharing(found)) == partitions
    counts = [size_of(each) for each in found.values()]
    assert max(counts) - min(counts) <= 1 and min(counts) >= 1


def test_topics_that_all_members_share_are_spread_together() -> None:
    found = simple(group(3, A, B), {A: frozenset([0, 1]), B: frozenset([0])})
    assert [size_of(each) for each in found.values()] == [1, 1, 1]


def test_where_members_subscribe_to_different_topics_each_topic_is_spread_over_its_own() -> None:
    members = {"a": ShareMemberToAssign(frozenset([A]), {}), "ab": ShareMemberToAssign(frozenset([A, B]), {})}
    found = simple(members, {A: frozenset([0, 1]), B: frozenset([0, 1, 2])})
    assert size_of(found["a"]) == 1
    assert found["ab"][B] == {0, 1, 2}
    assert set(sharing(found).values()) == {1}


def test_a_group_without_partitions_or_a_member_without_topics_gets_nothing() -> None:
    assert simple(group(2, A), {}) == {"m0": {}, "m1": {}}
    assert simple(group(1), {A: frozenset([0])}) == {"m0": {}}


def test_what_is_balanced_stays_and_only_as_much_moves_as_must() -> None:
    rng = random.Random(5)
    for _ in range(300):
        members, partitions = rng.randrange(1, 9), rng.randrange(1, 9)
        topics = {A: frozenset(range(partitions))}
        found = simple(group(members, A), topics)
        assert simple(group(members, A, targets=found), topics) == found
        left = {each: target for each, target in found.items() if each != "m0"}
        if left:
            after = simple({each: ShareMemberToAssign(frozenset([A]), target) for each, target in left.items()}, topics)
            assert set(sharing(after).values()) == {-(-len(left) // partitions)}
            more = simple(
                {f"m{n}": ShareMemberToAssign(frozenset([A]), after.get(f"m{n}", {})) for n in range(9)}, topics
            )
            assert set(sharing(more).values()) == {-(-9 // partitions)}
            if len(left) <= partitions:
                kept = sum(size_of(common(after[each], left[each])) for each in left)
                moves = sum(map(size_of, left.values())) - kept
                assert moves <= len(left), "at most one of each member"
