"""What may be held against a share group, on histories written by hand."""

from __future__ import annotations

from heirlog.sim.share_group_history import (
    COUNT,
    FINAL,
    LOST,
    TWICE,
    Acceptance,
    Delivery,
    SessionLife,
    ShareGroupHistory,
    findings,
    never_delivered,
)


def delivery(
    member: str,
    at_ms: int,
    *,
    broker: str = "broker-1",
    epochs: tuple[int, int] = (1, 1),
    count: int = 1,
    ended_ms: int | None = None,
    alive_until_ms: int = 10_000,
) -> Delivery:
    """Of record 0, asked for 10 ms before, with a lock of 1500 ms."""
    return Delivery(
        member,
        partition=0,
        first=0,
        last=0,
        count=count,
        asked_ms=at_ms - 10,
        answered_ms=at_ms,
        broker=broker,
        epoch_before=epochs[0],
        epoch_after=epochs[1],
        locked_until_ms=at_ms + 1490,
        ended_ms=ended_ms,
        session=SessionLife(alive_until_ms),
    )


def checks(*deliveries: Delivery, accepted: Acceptance | None = None) -> list[str]:
    history = ShareGroupHistory("g", 5, list(deliveries))
    if accepted is not None:
        history.accepted[0, 0] = accepted
    return [finding.check for finding in findings(history)]


def test_a_record_may_not_be_delivered_while_a_member_has_it() -> None:
    assert checks(delivery("a", 1000), delivery("b", 1500)) == [TWICE]


def test_a_record_may_be_delivered_again_when_its_lock_or_session_ended_or_it_was_acknowledged() -> None:
    assert checks(delivery("a", 1000), delivery("b", 2500)) == []
    assert checks(delivery("a", 1000, alive_until_ms=1200), delivery("b", 1500)) == []
    assert checks(delivery("a", 1000, ended_ms=1300), delivery("b", 1500)) == []


def test_a_leader_that_does_not_know_its_successor_may_deliver_what_that_one_has_delivered() -> None:
    paused = delivery("b", 1500, broker="broker-3", epochs=(0, 1))
    assert checks(delivery("a", 1000, broker="broker-2"), paused) == []


def test_a_leader_in_a_newer_epoch_has_no_locks_of_before() -> None:
    assert checks(delivery("a", 1000, epochs=(1, 1)), delivery("b", 1500, epochs=(1, 2))) == []


def test_an_accepted_record_may_not_be_delivered_by_the_same_or_a_later_leader() -> None:
    accepted = Acceptance(answered_ms=1200, epoch_after=1)
    assert checks(delivery("a", 1000, ended_ms=1100), delivery("b", 3000), accepted=accepted) == [FINAL]
    later = delivery("b", 3000, broker="broker-2", epochs=(2, 2))
    assert checks(delivery("a", 1000, ended_ms=1100), later, accepted=accepted) == [FINAL]


def test_an_earlier_leader_that_was_paused_may_deliver_an_accepted_record() -> None:
    paused = delivery("b", 3000, broker="broker-2", epochs=(0, 1))
    accepted = Acceptance(answered_ms=1200, epoch_after=1)
    assert checks(delivery("a", 1000, ended_ms=1100), paused, accepted=accepted) == []


def test_a_delivery_that_was_asked_for_before_the_acceptance_was_answered_is_allowed() -> None:
    accepted = Acceptance(answered_ms=1500, epoch_after=1)
    assert checks(delivery("a", 1000, ended_ms=1100), delivery("b", 1505), accepted=accepted) == []


def test_a_record_is_not_delivered_more_often_than_the_limit() -> None:
    assert checks(delivery("a", 1000, count=6)) == [COUNT]


def test_a_finished_record_that_no_member_received_is_lost() -> None:
    history = ShareGroupHistory("g", 5, [delivery("a", 1000)])
    assert [finding.check for finding in never_delivered(history, 0, 0, 2)] == [LOST]
