"""Who was given up, and whether that justified a loss: judged on records written by hand."""

from __future__ import annotations

import pytest

from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import NO_LEADER, BrokerId, LeaderEpoch, PartitionEpoch
from heirlog.sim.leader_checker import CommittedChange, LeaderRules, judge
from heirlog.sim.partition_model import PartitionModel


def ids(*members: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, members))


WHOLE = PartitionRegistration(ids(1, 2, 3), ids(1, 2), BrokerId(1), LeaderEpoch(4), PartitionEpoch(9))
ALONE = WHOLE._replace(isr=ids(1), elr=ids(2))
NOBODY = WHOLE._replace(isr=(), elr=(), leader=NO_LEADER, leader_epoch=LeaderEpoch(5), last_known_elr=ids(2, 1))
WON = NOBODY._replace(isr=ids(3), leader=BrokerId(3), leader_epoch=LeaderEpoch(6), last_known_elr=())


def event(
    before: PartitionRegistration,
    after: PartitionRegistration,
    *,
    clears: bool = False,
    forbidden: bool = True,
    elr: bool = True,
) -> CommittedChange:
    return CommittedChange(before, after, 2, elr_enabled=elr, clears_elr=clears, forbidden_loss=forbidden)


def checks(*events: CommittedChange, manager: bool = True, whole: tuple[int, ...] = ()) -> list[str]:
    """The rules that a partition's records break, in turn; `whole`: brokers whose disks have lost nothing."""
    model = PartitionModel("t-0", min_isr=2)
    rules = LeaderRules(manager, lambda broker: broker in whole)
    return [finding.check for one in events if (finding := judge(model, one, rules)) is not None]


def test_a_loss_after_min_isr_members_have_lost_data_is_justified() -> None:
    assert checks(event(WHOLE, ALONE), event(ALONE, NOBODY), event(NOBODY, WON)) == []


def test_a_loss_while_a_member_was_whole_is_not() -> None:
    assert checks(event(WHOLE, ALONE), event(ALONE, NOBODY), event(NOBODY, WON), whole=(2,)) == ["T8b"]


def test_an_operator_may_give_up_whom_he_likes() -> None:
    lost = event(NOBODY, WON, forbidden=False)
    assert checks(event(WHOLE, ALONE), event(ALONE, NOBODY), lost, whole=(1, 2)) == []


def test_a_change_of_min_isr_that_took_a_member_out_justifies_it_too() -> None:
    cleared = ALONE._replace(elr=())
    nobody = NOBODY._replace(last_known_elr=ids(1))
    events = [event(WHOLE, ALONE), event(ALONE, cleared, clears=True), event(cleared, nobody), event(nobody, WON)]
    assert checks(*events, manager=False, whole=(2,)) == []


@pytest.mark.parametrize("last_min_isr", ["before the downgrade", "after it"])
def test_a_member_that_left_while_the_feature_was_off_was_taken_out_by_the_downgrade(last_min_isr: str) -> None:
    began_off = [event(WHOLE._replace(isr=ids(1)), WHOLE, elr=False)] if last_min_isr == "after it" else []
    alone = WHOLE._replace(isr=ids(1))
    nobody = NOBODY._replace(last_known_elr=ids(1))
    events = [*began_off, event(WHOLE, alone, elr=False), event(alone, nobody), event(nobody, WON)]
    assert checks(*events, whole=(2, 3)) == []
    back = event(alone, WHOLE)
    assert checks(*events[:-2], back, event(WHOLE, ALONE), event(ALONE, NOBODY), event(NOBODY, WON), whole=(2,)) == [
        "T8b"
    ]


def test_the_clear_elr_of_a_downgrade_takes_members_out_too() -> None:
    cleared = ALONE._replace(elr=())
    nobody = NOBODY._replace(last_known_elr=ids(1))
    events = [event(WHOLE, ALONE), event(ALONE, cleared, clears=True, elr=False), event(cleared, nobody)]
    assert checks(*events, event(nobody, WON), manager=False, whole=(2,)) == []


def test_losses_are_counted_anew_once_the_isr_is_back() -> None:
    back = WHOLE._replace(leader_epoch=LeaderEpoch(6))
    alone = back._replace(isr=ids(1), elr=ids(2))
    waits = alone._replace(isr=(), leader=NO_LEADER, leader_epoch=LeaderEpoch(7), last_known_elr=ids(1))
    won = WON._replace(leader_epoch=LeaderEpoch(8))
    both_lost = [event(ALONE, NOBODY), event(NOBODY, back, forbidden=False)]
    again = [event(back, alone), event(alone, waits), event(waits, won)]
    assert checks(*both_lost, *again, whole=(2,)) == ["T8b"]
    assert checks(*both_lost, *again) == []


def test_whoever_is_forgotten_breaks_t10_with_the_manager_only() -> None:
    forgets = NOBODY._replace(last_known_elr=ids(1))
    assert checks(event(ALONE, forgets)) == ["T10"]
    assert checks(event(ALONE, forgets), manager=False) == []
    assert checks(event(ALONE, ALONE._replace(elr=()), clears=True)) == []
