"""Share sessions: epochs, the order of partitions, limits, and who learns of an end."""

from __future__ import annotations

import pytest

from heirlog.broker.share_partitions.share_session import (
    IDLE_GROUPS_MAX,
    PARTITIONS_MAX,
    UNREADABLE_MAX,
    SessionKey,
    ShareSessionCache,
)
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import Uuid

TOPIC = Uuid(b"t" * 16)
A, B, OTHER_GROUP = SessionKey("g", "a"), SessionKey("g", "b"), SessionKey("h", "a")


class Cache(ShareSessionCache):
    def __init__(self, limit: int = 10) -> None:
        self.heard: list[str] = []
        super().__init__(
            limit,
            lambda key: self.heard.append(f"ended {key.group_id} {key.member_id}"),
            lambda group: self.heard.append(f"gone {group}"),
        )


def code_of(cache: ShareSessionCache, key: SessionKey, epoch: int) -> ErrorCode:
    try:
        cache.advance(key, epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_epochs_grow_by_one_and_begin_again_after_the_last() -> None:
    cache = Cache()
    session = cache.open(A, "connection")
    assert code_of(cache, A, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert [code_of(cache, A, epoch) for epoch in (1, 2)] == [ErrorCode.NONE] * 2
    session.epoch = 2**31 - 1
    assert [code_of(cache, A, epoch) for epoch in (2**31 - 1, 1)] == [ErrorCode.NONE] * 2
    assert code_of(cache, B, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_each_answer_begins_with_another_partition() -> None:
    cache = Cache()
    session = cache.open(A, "connection")
    session.update([(TOPIC, index) for index in range(3)], [])
    orders = []
    for epoch in (1, 2, 3):
        cache.advance(A, epoch)
        orders.append([index for _, index in session.partitions()])
    assert sorted(orders) == [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    session.update([], [(TOPIC, 1)])
    assert sorted(index for _, index in session.partitions()) == [0, 2]


def test_a_session_has_only_so_many_partitions() -> None:
    session = Cache().open(A, "connection")
    session.update([(TOPIC, index) for index in range(PARTITIONS_MAX)], [])
    with pytest.raises(KafkaError) as refused:
        session.update([(TOPIC, PARTITIONS_MAX)], [])
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    session.update([(TOPIC, PARTITIONS_MAX)], [(TOPIC, 0)])
    assert session.partition_count == PARTITIONS_MAX


def test_a_session_has_few_partitions_that_its_member_cannot_read() -> None:
    session = Cache().open(A, "connection")
    session.update([(TOPIC, index) for index in range(UNREADABLE_MAX + 1)], [], lambda key: key[1] > 0)
    session.update([(TOPIC, 0)], [], lambda key: False)
    assert session.partition_count == UNREADABLE_MAX + 1
    with pytest.raises(KafkaError) as refused:
        session.update([(TOPIC, 10_000 + index) for index in range(UNREADABLE_MAX)], [], lambda key: False)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert session.partition_count == UNREADABLE_MAX + 1, "nothing has changed"
    session.update([(TOPIC, 10_000 + index) for index in range(UNREADABLE_MAX)], [(TOPIC, 0)], lambda key: False)
    # what exists meanwhile counts no more, once it is named again
    session.update([(TOPIC, 10_000 + index) for index in range(UNREADABLE_MAX)], [], lambda key: True)
    session.update([(TOPIC, 20_000)], [], lambda key: False)


def test_a_new_session_of_the_same_member_replaces_the_old_one_silently() -> None:
    cache = Cache()
    cache.open(A, "one")
    cache.open(A, "two")
    assert (len(cache), cache.heard) == (1, [])
    cache.connection_closed("one")
    assert cache.heard == []
    cache.connection_closed("two")
    assert cache.heard == ["ended g a", "gone g"]


def test_the_last_session_of_a_group_is_noticed() -> None:
    cache = Cache()
    for key in (A, B, OTHER_GROUP):
        cache.open(key, key)
    cache.close(A)
    cache.connection_closed(B)
    assert cache.heard == ["ended g a", "ended g b", "gone g"]
    assert (len(cache), cache.evictions) == (1, 1)
    cache.close(A)
    assert cache.heard[3:] == []


def test_all_sessions_of_a_connection_end_with_it() -> None:
    """Apache Kafka knows only the one that was opened last."""
    cache = Cache()
    for key in (A, B, OTHER_GROUP):
        cache.open(key, "one")
    cache.connection_closed("one")
    assert len(cache) == 0 and cache.evictions == 3


def test_a_group_whose_last_member_ends_its_session_is_kept_until_the_connection_closes() -> None:
    cache = Cache()
    cache.open(A, "one")
    cache.close(A)
    assert cache.heard == ["ended g a"]
    cache.open(A, "two")
    cache.connection_closed("one")
    assert cache.heard == ["ended g a"], "it has a session again"
    cache.close(A)
    cache.connection_closed("two")
    assert cache.heard == ["ended g a", "ended g a", "gone g"]
    cache.connection_closed("two")
    assert len(cache.heard) == 3


def test_few_groups_are_kept_for_a_connection() -> None:
    cache = Cache()
    for number in range(IDLE_GROUPS_MAX + 1):
        key = SessionKey(f"g{number}", "a")
        cache.open(key, "one")
        cache.close(key)
    assert [each for each in cache.heard if each.startswith("gone")] == ["gone g0"]
    cache.connection_closed("one")
    assert cache.heard[-IDLE_GROUPS_MAX:] == [f"gone g{number + 1}" for number in range(IDLE_GROUPS_MAX)]


def test_idle_groups_count_as_sessions_and_go_first() -> None:
    cache = Cache(limit=3)
    for number in range(4):
        key = SessionKey(f"g{number}", "m")
        cache.open(key, f"connection {number}")
        cache.close(key)
    assert [heard for heard in cache.heard if heard.startswith("gone")] == ["gone g0"]
    for number in range(3):
        cache.open(SessionKey("new", f"m{number}"), "connection")
    assert [heard for heard in cache.heard if heard.startswith("gone")] == [f"gone g{number}" for number in range(4)]


def test_beyond_the_limit_no_session_is_opened() -> None:
    cache = Cache(limit=1)
    cache.open(A, "connection")
    with pytest.raises(KafkaError) as refused:
        cache.open(B, "connection")
    assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    cache.open(A, "other")
    cache.close(A)
    cache.open(B, "connection")
