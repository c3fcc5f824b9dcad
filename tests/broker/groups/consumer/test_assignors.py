from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.broker.groups.consumer.assignors import GroupToAssign, MemberToAssign, range_targets, uniform_targets
from heirlog.broker.groups.consumer.target_assignment import preferred_assignor
from heirlog.broker.groups.consumer.values import ConsumerGroupMember, assignment_of, size_of
from heirlog.metadata.survey import at_once
from heirlog.protocol.types import Uuid


def topic(number: int) -> Uuid:
    return Uuid(bytes([number]) * 16)


def group(members: dict[str, Any], topics: dict[int, int], targets: Any = None) -> GroupToAssign:
    """members: id -> numbers of topics. topics: number -> partitions."""
    asked = {
        member_id: MemberToAssign(None, frozenset(map(topic, names)), (targets or {}).get(member_id, {}))
        for member_id, names in members.items()
    }
    return GroupToAssign(
        asked,
        {topic(each): count for each, count in topics.items()},
        len({frozenset(n) for n in members.values()}) == 1,
    )


def shown(targets: Any) -> dict[str, dict[int, list[int]]]:
    return {member: {each[0]: sorted(numbers) for each, numbers in got.items()} for member, got in targets.items()}


def test_range_gives_runs_and_the_first_members_one_more() -> None:
    found = at_once(range_targets(group({"a": [1, 2], "b": [1, 2], "c": [1, 2]}, {1: 4, 2: 2})))
    assert shown(found) == {"a": {1: [0, 1], 2: [0]}, "b": {1: [2], 2: [1]}, "c": {1: [3]}}


def test_range_shares_each_topic_among_its_own_subscribers() -> None:
    found = at_once(range_targets(group({"a": [1], "b": [1, 2], "c": [2]}, {1: 3, 2: 2})))
    assert shown(found) == {"a": {1: [0, 1]}, "b": {1: [2], 2: [0]}, "c": {2: [1]}}


def test_range_sorts_static_members_first_by_instance() -> None:
    members = {
        "a": MemberToAssign(None, frozenset({topic(1)}), {}),
        "z": MemberToAssign("i1", frozenset({topic(1)}), {}),
        "y": MemberToAssign("i2", frozenset({topic(1)}), {}),
    }
    found = at_once(range_targets(GroupToAssign(members, {topic(1): 3}, True)))
    assert shown(found) == {"z": {1: [0]}, "y": {1: [1]}, "a": {1: [2]}}


def check(asked: GroupToAssign, targets: Any) -> None:
    """G6: every partition of a subscribed topic once, and nobody gets what it does not subscribe to."""
    given: Counter[tuple[Uuid, int]] = Counter()
    for member_id, got in targets.items():
        assert set(got) <= asked.members[member_id].topics
        given.update((each, number) for each, numbers in got.items() for number in numbers)
    wanted = {each for member in asked.members.values() for each in member.topics}
    assert given == Counter({(each, number): 1 for each in wanted for number in range(asked.topics[each])})


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_uniform_is_balanced_and_does_not_change_what_is_balanced(
    members: int, counts: list[int], rng: random.Random
) -> None:
    topics = dict(enumerate(counts, 1))
    names = {f"m{each}": list(topics) for each in range(members)}
    asked = group(names, topics)
    targets = at_once(uniform_targets(asked))
    for _ in range(3):
        check(asked, targets)
        sizes = [size_of(each) for each in targets.values()]
        assert max(sizes) - min(sizes) <= 1
        assert at_once(uniform_targets(group(names, topics, targets))) == targets
        # a member leaves, or one joins: the others keep what they have, as far as that is fair
        before = dict(targets)
        if len(names) > 1 and rng.random() < 0.5:
            del names[rng.choice(sorted(names))]
        else:
            names[f"n{rng.randrange(1000)}"] = list(topics)
        asked = group(names, topics, before)
        targets = at_once(uniform_targets(asked))
        quota = sum(counts) // len(names)
        for member_id in names:
            had = before.get(member_id, {})
            kept = sum(len(numbers & targets[member_id].get(each, frozenset())) for each, numbers in had.items())
            assert kept >= min(size_of(had), quota)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_uniform_with_different_subscriptions_leaves_no_move_that_would_help(data: st.DataObject) -> None:
    topics = dict(enumerate(data.draw(st.lists(st.integers(1, 7), min_size=2, max_size=5)), 1))
    chosen = st.lists(st.sampled_from(sorted(topics)), unique=True, max_size=4)
    names = {f"m{each}": data.draw(chosen) for each in range(data.draw(st.integers(2, 7)))}
    asked = group(names, topics)
    asked = GroupToAssign(asked.members, asked.topics, False)
    for targets in (at_once(uniform_targets(asked)),):
        check(asked, targets)
        loads = {member: size_of(got) for member, got in targets.items()}
        for giver, got in targets.items():
            for each in got:
                takers = [other for other, wanted in names.items() if each[0] in wanted]
                assert all(loads[giver] - loads[taker] <= 1 for taker in takers)
        again = group(names, topics, targets)
        assert at_once(uniform_targets(GroupToAssign(again.members, again.topics, False))) == targets


def test_more_members_than_partitions_leave_some_with_nothing() -> None:
    found = at_once(uniform_targets(group({"a": [1], "b": [1], "c": [1]}, {1: 2})))
    assert shown(found) == {"a": {1: [0]}, "b": {1: [1]}, "c": {}} or sum(map(size_of, found.values())) == 2


def test_partitions_that_are_gone_and_that_two_members_claim_are_assigned_once() -> None:
    """What a foreign log may hold."""
    both = assignment_of([(topic(1), [0, 1, 7])])
    targets = at_once(uniform_targets(group({"a": [1], "b": [1]}, {1: 2}, {"a": both, "b": both})))
    assert sorted(map(size_of, targets.values())) == [1, 1]


def test_a_thousand_members_and_ten_thousand_partitions_are_assigned_in_short_steps() -> None:
    names = {f"m{each:04}": [1, 2] for each in range(1000)}
    survey = uniform_targets(group(names, {1: 9999, 2: 1}))
    steps = 0
    while True:
        try:
            next(survey)
        except StopIteration as done:
            assert {size_of(got) for got in done.value.values()} == {10}
            break
        steps += 1
    assert steps >= 6


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [([None], "uniform"), (["range", None, None], "range"), (["range", "uniform", "uniform"], "uniform")],
)
def test_the_assignor_is_the_one_that_most_members_want(wanted: list[str | None], chosen: str) -> None:
    members = [ConsumerGroupMember(str(each), server_assignor=name) for each, name in enumerate(wanted)]
    assert preferred_assignor(members, ["uniform", "range"]) == chosen
