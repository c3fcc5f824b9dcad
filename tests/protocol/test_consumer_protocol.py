"""Subscriptions and assignments of consumers in Kafka's formats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.protocol.consumer_protocol import (
    OwnedPartitions,
    assigned_partitions,
    assignment,
    owned_data,
    owned_in_subscription,
    owned_in_user_data,
    subscribed_topics,
    subscription,
)

OWNED = OwnedPartitions({"t": [1, 3]}, 7)
OWNED_BYTES = "00000001 0001 74 00000002 00000001 00000003 00000007"
TOPICS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9)


def test_the_bytes_are_those_of_version_0() -> None:
    assert subscription(["b", "a"]) == bytes.fromhex("0000 00000002 0001 61 0001 62 ffffffff")
    assert assignment({"a": [0, 2]}) == bytes.fromhex("0000 00000001 0001 61 00000002 00000000 00000002 ffffffff")


def test_owned_partitions_and_their_generation_are_those_of_version_2() -> None:
    data = subscription(["a"], owned=OWNED)
    assert data == bytes.fromhex("0002 00000001 0001 61 ffffffff" + OWNED_BYTES)
    assert (subscribed_topics(data), owned_in_subscription(data)) == ({"a"}, OWNED)
    with_rack = bytes.fromhex("0003") + data[2:] + bytes.fromhex("0001 72")
    assert owned_in_subscription(with_rack) == OWNED
    assert owned_in_subscription(bytes.fromhex("0001") + data[2:-4]) == OwnedPartitions(OWNED.partitions)


def test_the_user_data_of_the_sticky_strategy_has_them_too() -> None:
    data = subscription(["a"], user_data=owned_data(OWNED))
    assert data == bytes.fromhex("0000 00000001 0001 61 00000017" + OWNED_BYTES)
    assert (owned_in_user_data(data), owned_in_subscription(data)) == (OWNED, OwnedPartitions())
    both = subscription(["a"], user_data=b"anything", owned=OWNED)
    assert owned_in_subscription(both) == OWNED, "user data of any length are skipped"
    before_generations = subscription(["a"], user_data=owned_data(OWNED)[:-4])
    assert owned_in_user_data(before_generations) == OwnedPartitions(OWNED.partitions)


@pytest.mark.parametrize("data", [subscription(["a"]), b"", b"?", bytes.fromhex("0002 00000001 ffff")])
def test_a_subscription_without_owned_partitions_has_none(data: bytes) -> None:
    assert owned_in_subscription(data) == owned_in_user_data(data) == OwnedPartitions()


@given(st.dictionaries(TOPICS, st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=4))
def test_what_is_written_is_read(partitions: dict[str, list[int]]) -> None:
    assert assigned_partitions(assignment(partitions)) == partitions
    assert subscribed_topics(subscription(partitions)) == set(partitions)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert isinstance(owned_in_subscription(data), OwnedPartitions) and isinstance(
        owned_in_user_data(data), OwnedPartitions
    )
    try:
        assigned_partitions(data)
    except ValueError:
        pass


@pytest.mark.parametrize("data", ["0000 7fffffff", "0000 00000001 ffff", "0000 00000001 0001 61 ffffffff"])
def test_an_assignment_of_another_form_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="assignment"):
        assigned_partitions(bytes.fromhex(data))
