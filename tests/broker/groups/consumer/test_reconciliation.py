"""One member on its way to its target, transition by transition (CurrentAssignmentBuilderTest of Apache Kafka)."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.groups.consumer.reconciliation import reconciled
from heirlog.broker.groups.consumer.values import MemberAssignment, MemberState, assignment_of
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import Uuid

STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def parts(*numbers: int, topic: Uuid = A) -> Any:
    return assignment_of([(topic, numbers)])


def having(epoch: int, state: MemberState = STABLE, assigned: Any = (), pending: Any = ()) -> MemberAssignment:
    return MemberAssignment(epoch, epoch, state, parts(*assigned), parts(*pending))


def step(current: MemberAssignment, epoch: int, target: Any, **more: Any) -> MemberAssignment:
    values: dict[str, Any] = {
        "subscribed": frozenset({A, B}),
        "owners": {},
        "owned": None,
        "subscription_changed": False,
    }
    return reconciled("m", current, target_epoch=epoch, target=target, **(values | more))


def test_a_stable_member_at_the_epoch_of_its_target_stays_as_it_is() -> None:
    current = having(5, assigned=(1, 2))
    assert step(current, 5, parts(1, 2)) is current


def test_a_member_that_only_gets_more_takes_what_is_free() -> None:
    assert step(having(5, assigned=(1,)), 6, parts(1, 2)) == MemberAssignment(6, 5, STABLE, parts(1, 2))


def test_what_another_member_has_is_waited_for_at_the_new_epoch() -> None:
    waiting = step(having(5, assigned=(1,)), 6, parts(1, 2, 3), owners={A: {2: "other"}})
    assert waiting == MemberAssignment(6, 5, UNRELEASED, parts(1, 3))
    assert step(waiting, 6, parts(1, 2, 3), owners={A: {2: "other"}}) is waiting, "no record while it only waits"
    assert step(waiting, 6, parts(1, 2, 3)) == MemberAssignment(6, 6, STABLE, parts(1, 2, 3))


def test_a_member_keeps_its_epoch_until_it_has_given_up_what_is_not_its_own() -> None:
    asked = step(having(5, assigned=(1, 2)), 6, parts(1, 3), owned=None)
    assert asked == MemberAssignment(5, 5, UNREVOKED, parts(1), parts(2))
    assert step(asked, 6, parts(1, 3), owned=None) is asked
    assert step(asked, 6, parts(1, 3), owned=parts(1, 2)) is asked
    assert step(asked, 6, parts(1, 3), owned=parts(1)) == MemberAssignment(6, 5, STABLE, parts(1, 3))


def test_a_member_that_has_already_given_up_a_partition_is_not_asked() -> None:
    assert step(having(5, assigned=(1, 2)), 6, parts(1), owned=parts(1)) == MemberAssignment(6, 5, STABLE, parts(1))


def test_a_newer_target_may_give_back_what_was_being_revoked() -> None:
    asked = having(5, UNREVOKED, assigned=(1,), pending=(2,))
    assert step(asked, 7, parts(1, 2), owned=parts(1), owners={A: {1: "m", 2: "m"}}) == MemberAssignment(
        7, 5, STABLE, parts(1, 2)
    )


def test_its_own_pending_partition_does_not_block_a_member() -> None:
    """KAFKA-19449: it waited for ever."""
    waiting = having(6, UNRELEASED, assigned=(1,))
    assert step(waiting, 6, parts(1, 2), owners={A: {2: "m"}}).state is STABLE


def test_a_member_that_waits_may_have_to_give_up_more() -> None:
    asked = step(having(6, UNRELEASED, assigned=(1, 2)), 7, parts(1))
    assert asked == MemberAssignment(6, 6, UNREVOKED, parts(1), parts(2))


def test_a_topic_that_a_member_no_longer_subscribes_to_is_given_up_at_once() -> None:
    current = MemberAssignment(5, 4, STABLE, assignment_of([(A, [1]), (B, [1])]))
    less = {"subscribed": frozenset({A}), "subscription_changed": True}
    assert step(current, 5, current.assigned, **less) == MemberAssignment(5, 5, UNREVOKED, parts(1), parts(1, topic=B))
    assert step(current, 5, current.assigned, owned=parts(1), **less) == MemberAssignment(5, 5, STABLE, parts(1))
    asked = MemberAssignment(5, 5, UNREVOKED, current.assigned, parts(7))
    assert step(asked, 6, current.assigned, **less).pending == assignment_of([(A, [7]), (B, [1])])


def test_a_state_of_a_later_version_is_left_only_with_nothing() -> None:
    unknown = having(5, MemberState.UNKNOWN, assigned=(1,), pending=(2,))
    for owned in (None, parts(1)):
        with pytest.raises(KafkaError) as refusal:
            step(unknown, 6, parts(3), owned=owned)
        assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(unknown, 6, parts(3), owned={}).assigned == parts(3)
