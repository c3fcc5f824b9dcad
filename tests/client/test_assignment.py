"""Which member reads which partition, by each strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.client.assignment import JAVA_CLASSES, AssignmentStrategy, assign, is_cooperative, member_metadata
from heirlog.protocol.consumer_protocol import (
    OwnedPartitions,
    assigned_partitions,
    owned_in_subscription,
    owned_in_user_data,
    subscription,
)

Shares = dict[str, dict[str, list[int]]]
STICKY = [AssignmentStrategy.STICKY, AssignmentStrategy.COOPERATIVE_STICKY]


def shares(
    strategy: AssignmentStrategy,
    members: Mapping[str, list[str]],
    partitions: dict[str, int],
    owned: Mapping[str, OwnedPartitions] | None = None,
) -> Shares:
    joining = {
        name: member_metadata([strategy], topics, (owned or {}).get(name, OwnedPartitions()))[strategy]
        for name, topics in members.items()
    }
    return {name: assigned_partitions(data) for name, data in assign(strategy, joining, partitions).items()}


def settled(
    strategy: AssignmentStrategy, members: Mapping[str, list[str]], partitions: dict[str, int], before: Shares
) -> Shares:
    """After as many generations as it takes until no member gives up partitions, from an earlier assignment."""
    for generation in range(1, 9):
        claims = {name: OwnedPartitions(before.get(name, {}), generation) for name in members}
        after = shares(strategy, members, partitions, claims)
        if strategy is AssignmentStrategy.STICKY or after == before:
            return after
        before = after
    raise AssertionError("the group does not settle")


def test_range_gives_the_first_members_what_is_left_over() -> None:
    assert shares(AssignmentStrategy.RANGE, {"c": ["t"], "a": ["t"], "b": ["t"]}, {"t": 7}) == {
        "a": {"t": [0, 1, 2]},
        "b": {"t": [3, 4]},
        "c": {"t": [5, 6]},
    }


def test_range_shares_each_topic_among_those_who_read_it() -> None:
    members = {"a": ["t", "u"], "b": ["u"], "c": ["gone"]}
    assert shares(AssignmentStrategy.RANGE, members, {"t": 2, "u": 2}) == {
        "a": {"t": [0, 1], "u": [0]},
        "b": {"u": [1]},
        "c": {},
    }


def test_roundrobin_goes_on_with_the_next_topic_where_it_was() -> None:
    members = {"b": ["t", "u"], "a": ["t", "u"]}
    assert shares(AssignmentStrategy.ROUND_ROBIN, members, {"u": 3, "t": 3}) == {
        "a": {"t": [0, 2], "u": [1]},
        "b": {"t": [1], "u": [0, 2]},
    }


def test_roundrobin_skips_members_that_do_not_read_the_topic() -> None:
    members = {"a": ["t"], "b": ["t", "u"], "c": ["t", "u", "v"]}
    # as in the documentation of Kafka's RoundRobinAssignor
    assert shares(AssignmentStrategy.ROUND_ROBIN, members, {"t": 1, "u": 2, "v": 3}) == {
        "a": {"t": [0]},
        "b": {"u": [0]},
        "c": {"u": [1], "v": [0, 1, 2]},
    }


@pytest.mark.parametrize("strategy", list(AssignmentStrategy))
def test_members_without_a_readable_subscription_and_topics_without_readers_are_left_out(
    strategy: AssignmentStrategy,
) -> None:
    made = assign(strategy, {"a": b"?", "b": subscription(["t"])}, {"t": 1, "unread": 2})
    assert {name: assigned_partitions(data) for name, data in made.items()} == {"a": {}, "b": {"t": [0]}}


def test_a_strategy_that_was_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="uniform"):
        assign("uniform", {}, {})


MEMBERS = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from(["t", "u", "v"]), unique=True), min_size=1, max_size=5
)
PARTITIONS = st.fixed_dictionaries({"t": st.integers(0, 9), "u": st.integers(0, 5)})


def owners(found: Shares) -> dict[tuple[str, int], str]:
    assigned = [((topic, number), name) for name, of in found.items() for topic, ns in of.items() for number in ns]
    assert max(Counter(at for at, _ in assigned).values(), default=1) == 1, "a partition has two readers"
    return dict(assigned)


@given(st.sampled_from(list(AssignmentStrategy)), MEMBERS, PARTITIONS)
def test_each_partition_has_one_reader_that_wants_it(
    strategy: AssignmentStrategy, members: dict[str, list[str]], partitions: dict[str, int]
) -> None:
    found = owners(shares(strategy, members, partitions))
    wanted = {topic for topics in members.values() for topic in topics}
    assert set(found) == {(topic, n) for topic, count in partitions.items() if topic in wanted for n in range(count)}
    assert all(at[0] in members[name] for at, name in found.items())


@given(st.sampled_from(STICKY), MEMBERS, MEMBERS, PARTITIONS, PARTITIONS)
def test_sticky_shares_are_even_after_any_change(
    strategy: AssignmentStrategy,
    before: dict[str, list[str]],
    after: dict[str, list[str]],
    partitions: dict[str, int],
    later: dict[str, int],
) -> None:
    found = owners(settled(strategy, after, later, shares(strategy, before, partitions)))
    wanted = {topic for topics in after.values() for topic in topics}
    assert set(found) == {(topic, n) for topic, count in later.items() if topic in wanted for n in range(count)}
    sizes = Counter(found.values())
    for (topic, _), name in found.items():
        assert all(sizes[name] - sizes[other] < 2 for other, topics in after.items() if topic in topics)


@given(st.sampled_from(STICKY), st.integers(1, 6), st.integers(1, 6), st.integers(0, 20))
def test_sticky_moves_no_partition_without_need(
    strategy: AssignmentStrategy, before: int, after: int, count: int
) -> None:
    """All members read the same: then the fewest moves are known."""
    old = {f"m{number}": ["t"] for number in range(before)}
    new = {f"m{number}": ["t"] for number in range(after)}
    first = owners(shares(strategy, old, {"t": count}))
    then = owners(settled(strategy, new, {"t": count}, shares(strategy, old, {"t": count})))
    had = sorted(Counter(name for name in first.values() if name in new).values(), reverse=True)
    size, larger = divmod(count, after)
    kept_at_most = sum(min(held, size + (index < larger)) for index, held in enumerate(had))
    assert sum(name == then[at] for at, name in first.items()) == kept_at_most


def test_a_partition_is_given_up_before_it_is_assigned_again() -> None:
    members = {"a": ["t"], "b": ["t"]}
    first = shares(AssignmentStrategy.COOPERATIVE_STICKY, members, {"t": 2}, {"a": OwnedPartitions({"t": [0, 1]}, 1)})
    assert first == {"a": {"t": [1]}, "b": {}}, "a must see first that partition 0 is no longer its own"
    second = shares(
        AssignmentStrategy.COOPERATIVE_STICKY,
        members,
        {"t": 2},
        {"a": OwnedPartitions({"t": [1]}, 2), "b": OwnedPartitions({}, 2)},
    )
    assert second == {"a": {"t": [1]}, "b": {"t": [0]}}


def test_an_older_claim_does_not_count_and_is_given_up() -> None:
    members = {"a": ["t"], "b": ["t"]}
    claims = {"a": OwnedPartitions({"t": [0, 1]}, 3), "b": OwnedPartitions({"t": [1]}, 4)}
    assert shares(AssignmentStrategy.STICKY, members, {"t": 2}, claims) == {"a": {"t": [0]}, "b": {"t": [1]}}
    found = shares(AssignmentStrategy.COOPERATIVE_STICKY, members, {"t": 2}, claims)
    assert found == {"a": {"t": [0]}, "b": {}}, "a may still read partition 1"


def test_of_equal_claims_none_counts() -> None:
    claims = {name: OwnedPartitions({"t": [0]}, 3) for name in ("a", "b")}
    assert shares(AssignmentStrategy.COOPERATIVE_STICKY, {"a": ["t"], "b": ["t"]}, {"t": 1}, claims) == {
        "a": {},
        "b": {},
    }


def test_a_member_that_may_be_eager_says_that_it_owns_nothing() -> None:
    owned = OwnedPartitions({"t": [0]}, 5)
    alone = member_metadata([AssignmentStrategy.COOPERATIVE_STICKY], ["t"], owned)
    assert is_cooperative([AssignmentStrategy.COOPERATIVE_STICKY]) and not is_cooperative(list(AssignmentStrategy))
    assert owned_in_subscription(alone["cooperative-sticky"]) == owned
    several = member_metadata(list(AssignmentStrategy), ["t"], owned)
    assert list(several) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert owned_in_subscription(several["cooperative-sticky"]) == OwnedPartitions({}, 5)
    assert owned_in_user_data(several["sticky"]) == owned


def test_the_classes_of_java_clients_have_names() -> None:
    assert (
        JAVA_CLASSES["org.apache.kafka.clients.consumer.CooperativeStickyAssignor"]
        is AssignmentStrategy.COOPERATIVE_STICKY
    )
    assert set(JAVA_CLASSES.values()) == set(AssignmentStrategy)
