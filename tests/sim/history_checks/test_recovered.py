from __future__ import annotations

from heirlog.sim.history import KnownLoss, Observed
from heirlog.sim.history_checks.recovered import discarded_record


def read(offset: int, epoch: int, value: str = "") -> Observed:
    return Observed("t-0", offset, value or f"{epoch}/{offset}", epoch)


def loss(start: int, epoch: int, *answers: tuple[int, int, int]) -> KnownLoss:
    return KnownLoss("t-0", start, epoch, time_ms=100, answers=answers)


BEFORE = [read(offset, 2) for offset in range(6)]
KEPT = BEFORE[:3]


def test_a_record_that_a_replica_which_answered_had_is_not_given_up() -> None:
    (first, *rest) = discarded_record(BEFORE, KEPT, [loss(3, 4, (1, 2, 3), (2, 2, 6))])
    assert first.check == "discarded-record"
    assert first.sentence == (
        "t-0: '2/3' at offset 3 (epoch 2) was given up by the recovery of epoch 4, although broker 2 had answered that "
        "its log reaches further"
    )
    assert len(rest) == 2


def test_a_longer_log_of_an_older_epoch_does_not_have_the_records() -> None:
    assert discarded_record(BEFORE, KEPT, [loss(3, 4, (1, 2, 3), (2, 1, 9))]) == []


def test_a_log_of_a_later_epoch_has_them() -> None:
    assert len(discarded_record(BEFORE, KEPT, [loss(3, 4, (1, 2, 3), (2, 3, 5))])) == 2


def test_what_no_replica_that_answered_had_is_lost_by_design() -> None:
    assert discarded_record(BEFORE, KEPT, [loss(3, 4, (1, 2, 3), (2, 2, 3))]) == []
    assert discarded_record(BEFORE, KEPT, [loss(3, 4)]) == []


def test_what_can_still_be_read_was_not_given_up() -> None:
    assert discarded_record(BEFORE, BEFORE, [loss(3, 4, (1, 2, 3), (2, 2, 6))]) == []


def test_the_first_lossy_election_gave_it_up() -> None:
    unclean, recovery = loss(3, 4), loss(3, 6, (1, 4, 3), (2, 4, 9))
    assert discarded_record(BEFORE, KEPT, [recovery, unclean]) == []
    assert len(discarded_record(BEFORE, KEPT, [recovery])) == 3


def test_a_record_of_unknown_epoch_is_not_judged() -> None:
    assert discarded_record([read(4, -1)], [], [loss(3, 4, (1, 2, 3), (2, 2, 6))]) == []
