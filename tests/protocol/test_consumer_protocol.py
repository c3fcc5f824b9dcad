"""Subscriptions and assignments of consumers in Kafka's formats, and the range rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.protocol.consumer_protocol import (
    assigned_partitions,
    assignment,
    range_assignment,
    subscribed_topics,
    subscription,
)

TOPICS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9)


def test_the_bytes_are_those_of_version_0() -> None:
    assert subscription(["b", "a"]) == bytes.fromhex("0000 00000002 0001 61 0001 62 ffffffff")
    assert assignment({"a": [0, 2]}) == bytes.fromhex("0000 00000001 0001 61 00000002 00000000 00000002 ffffffff")


@given(st.dictionaries(TOPICS, st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=4))
def test_what_is_written_is_read(partitions: dict[str, list[int]]) -> None:
    assert assigned_partitions(assignment(partitions)) == partitions
    assert subscribed_topics(subscription(partitions)) == set(partitions)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assigned_partitions(data)
    except ValueError:
        pass


@pytest.mark.parametrize("data", ["0000 7fffffff", "0000 00000001 ffff", "0000 00000001 0001 61 ffffffff"])
def test_an_assignment_of_another_form_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="assignment"):
        assigned_partitions(bytes.fromhex(data))


def shares(members: dict[str, list[str]], partitions: dict[str, int]) -> dict[str, dict[str, list[int]]]:
    made = range_assignment({name: subscription(topics) for name, topics in members.items()}, partitions)
    return {name: assigned_partitions(data) for name, data in made.items()}


def test_the_first_members_get_what_is_left_over() -> None:
    assert shares({"c": ["t"], "a": ["t"], "b": ["t"]}, {"t": 7}) == {
        "a": {"t": [0, 1, 2]},
        "b": {"t": [3, 4]},
        "c": {"t": [5, 6]},
    }


def test_each_topic_is_shared_by_those_who_read_it() -> None:
    members = {"a": ["t", "u"], "b": ["u"], "c": ["gone"]}
    assert shares(members, {"t": 2, "u": 2}) == {"a": {"t": [0, 1], "u": [0]}, "b": {"u": [1]}, "c": {}}


def test_members_without_a_readable_subscription_get_nothing() -> None:
    made = range_assignment({"a": b"?", "b": subscription(["t"])}, {"t": 1})
    assert (assigned_partitions(made["a"]), assigned_partitions(made["b"])) == ({}, {"t": [0]})
