"""DescribeTopicPartitions: pages and cursors, both ELR lists, and what a client must not describe."""

from __future__ import annotations

from typing import Any

import pytest
from apis.described import B, context, image_with, partition
from apis.guarded import T_DENIED, TOPIC, Guarded, shown

from heirlog.apis import describe_topic_partitions
from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeTopicPartitionsRequest

Cursor = DescribeTopicPartitionsRequest.Cursor


def pages(*names: str, **more: Any) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names], **more
    )


EXAMPLE = pages("t"), None


def describe(port: Any, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    Request = DescribeTopicPartitionsRequest
    return describe_topic_partitions.handle(
        port,
        Request(
            topics=[Request.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        ),
        context(0),
    )


def listed(response: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [found.partition_index for found in topic.partitions]) for topic in response.topics]


def cursor_of(response: Any) -> tuple[str, int] | None:
    at = response.next_cursor
    return None if at is None else (at.topic_name, at.partition_index)


@pytest.mark.parametrize(
    ("limit", "cursor", "expected", "following"),
    [
        (2000, None, [("a", [0, 1]), ("b", [0])], None),
        (1, None, [("a", [0])], ("a", 1)),
        (2, None, [("a", [0, 1])], ("b", 0)),
        (2000, ("a", 1), [("a", [1]), ("b", [0])], None),
        (3, None, [("a", [0, 1]), ("b", [0])], None),
        (0, None, [("a", [0])], ("a", 1)),
        (2000, ("aa", 5), [("b", [0])], None),
    ],
)
def test_pages_follow_names_and_partitions(
    port: Any, limit: int, cursor: tuple[str, int] | None, expected: Any, following: Any
) -> None:
    response = describe(port, [], limit, cursor)
    assert listed(response) == expected
    assert cursor_of(response) == following


def test_topics_before_the_cursor_are_passed_over(port: Any) -> None:
    assert listed(describe(port, ["a", "b"], cursor=("b", 0))) == [("b", [0])]


@pytest.mark.parametrize("cursor", [("a", -1), ("nowhere", 0)])
def test_a_cursor_that_cannot_be_is_refused(port: Any, cursor: tuple[str, int]) -> None:
    response = describe(port, ["a", "b"], cursor=cursor)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.INVALID_REQUEST}


def test_unknown_and_malformed_names_stand_in_order_with_their_errors(port: Any) -> None:
    response = describe(port, ["nope", "bad name!"])
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("bad name!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_both_elr_lists_are_always_there(port: Any) -> None:
    first, second = describe(port, ["a"]).topics[0].partitions
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([], [])
    assert (second.eligible_leader_replicas, second.last_known_elr) == ([2, 3], [3])
    assert second.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert first.offline_replicas == [3]


def test_the_servers_limit_bounds_a_page(port: Any) -> None:
    port.image = image_with(*(partition(B, number) for number in range(1, 30)))
    assert sum(len(topic.partitions) for topic in describe(port, []).topics) == 10


def test_topic_partitions_are_described_as_far_as_they_may_be(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert shown(node.ask(pages())) == {"t": 0}
    assert shown(node.ask(pages("t", "hidden", "none"))) == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}
    assert shown(node.ask(pages("none"))) == {"none": T_DENIED}


def test_each_page_has_the_refusals_from_its_cursor_on(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    node.allow(AclOperation.DESCRIBE, TOPIC, "__consumer_offsets")
    names = ("t", "hidden", "zzz", "__consumer_offsets")
    first = node.ask(pages(*names, response_partition_limit=1))
    assert shown(first) == {"__consumer_offsets": 0, "hidden": T_DENIED, "zzz": T_DENIED}
    cursor = Cursor(topic_name=first.next_cursor.topic_name, partition_index=first.next_cursor.partition_index)
    assert shown(node.ask(pages(*names, cursor=cursor))) == {"t": 0, "zzz": T_DENIED}


def test_a_cursor_at_a_topic_that_may_not_be_seen_any_more_goes_on_behind_it(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    cursor = Cursor(topic_name="hidden", partition_index=0)
    assert shown(node.ask(pages(cursor=cursor))) == {"t": 0}
    assert shown(node.ask(pages("hidden", "t", cursor=cursor))) == {"t": 0, "hidden": T_DENIED}


def test_a_cursor_that_cannot_be_followed_is_invalid_whoever_asks(node: Guarded) -> None:
    cursor = Cursor(topic_name="hidden", partition_index=-1)
    assert shown(node.ask(pages("hidden", cursor=cursor))) == {"hidden": ErrorCode.INVALID_REQUEST}


def test_the_operations_of_a_topic_are_those_that_are_allowed(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    (topic,) = node.ask(pages("t")).topics
    assert topic.topic_authorized_operations == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
