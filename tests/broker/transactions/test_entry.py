"""Ids in doubt after an election that may have given up their newest states."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from heirlog.broker.transactions.marker_sender import CHANNEL
from heirlog.env import SendFailure
from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.loss_report import Loss, loss_of
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch

from ..fakes import state
from .test_coordinator import TRANSACTIONS, Coordinating, added, code, producer
from .test_transaction_version import Levelled

LAST = 32766
LOSSY = ElectionBasis(Basis.UNCLEAN, BrokerId(1), LeaderEpoch(6))
LAST_KNOWN = ElectionBasis(Basis.LAST_KNOWN, BrokerId(1), LeaderEpoch(6), replicas=(ReplicaAnswer(BrokerId(1)),))


def set_back(rig: Coordinating, *, to_offset: int | None = None, epoch: int = 6, basis: ElectionBasis = LOSSY) -> None:
    """An election on a lossy basis; everything from an offset on is lost."""
    if to_offset is not None:
        rig.partition(TRANSACTIONS).log.truncate_to(to_offset)
    to = state(rig.replicas, leader=1, leader_epoch=epoch, partition_epoch=epoch, basis=basis)
    rig.set_partition(to, TRANSACTIONS)
    rig.publish()
    rig.env.advance(1)


def end_offset(rig: Coordinating) -> int:
    return rig.partition(TRANSACTIONS).log.log_end_offset


def lose_markers(rig: Coordinating) -> None:
    """Of the leadership before; those of this one follow."""
    rig.env.take(CHANNEL).on_result(SendFailure("disconnected"))
    rig.env.advance(100)


# an election on a lossy basis


def test_no_producer_gets_an_epoch_that_a_forgotten_one_has() -> None:
    rig = Coordinating()
    first = producer(rig.init())
    kept = end_offset(rig)
    forgotten = producer(rig.init())
    assert forgotten == (first[0], first[1] + 1)
    set_back(rig, to_offset=kept)
    after = producer(rig.init())
    assert after[0] != forgotten[0] and after[1] == 0
    assert producer(rig.init()) == (after[0], 1), "it is not in doubt any more"


def test_elections_are_not_judged_for_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[BrokerId] = []

    def loss(leader: BrokerId, answers: Iterable[ReplicaAnswer]) -> Loss:
        judged.append(leader)
        return loss_of(leader, answers)

    monkeypatch.setattr("heirlog.broker.doubts.loss_of", loss)
    rig = Coordinating()
    for _ in range(20):
        producer(rig.init())
    set_back(rig)
    assert rig.state_name == "Empty"
    assert 1 <= len(judged) <= 3


@pytest.mark.parametrize("version", [4, 5])
def test_a_producer_from_before_is_fenced(version: int) -> None:
    rig = Coordinating()
    me = producer(rig.init())
    rig.add(me, 0)
    set_back(rig)
    assert rig.env.events[-2][0] == "transactional-ids-in-doubt"
    assert rig.env.events[-2][1]["first"] == ["t"]
    assert added(rig.add(me, 1)) == ["PRODUCER_FENCED"]
    assert rig.verify(me, 0) == ["PRODUCER_FENCED"]
    for commit in (True, False):
        assert code(rig.end(me, commit=commit, v=version)) == "PRODUCER_FENCED"
    assert rig.state_name == "Ongoing"


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("again_at", ["PrepareAbort", "CompleteAbort", None])
def test_an_open_transaction_is_aborted_and_the_next_producer_has_a_fresh_id(level: int, again_at: str | None) -> None:
    if level == 0 and again_at == "PrepareAbort":
        pytest.skip("values of version 0 have no room for the next producer id")
    rig = Levelled()
    rig.level(level)
    me = producer(rig.init())
    rig.add(me, 0)
    set_back(rig)
    assert code(rig.init()) == "CONCURRENT_TRANSACTIONS"
    if again_at == "PrepareAbort":
        set_back(rig, epoch=8)
        lose_markers(rig)
    (marker,) = rig.answer_markers().markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (me[0], me[1] + 1, False)
    if again_at == "CompleteAbort":
        set_back(rig, epoch=8)
    assert rig.state_name == "CompleteAbort"
    assert producer(rig.init())[0] != me[0]
    assert code(rig.init(given=me)) == "PRODUCER_FENCED"


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_decided_is_carried_out(commit: bool) -> None:
    rig = Coordinating()
    me = producer(rig.init())
    rig.add(me, 0)
    rig.end(me, commit=commit)
    set_back(rig)
    lose_markers(rig)
    assert code(rig.init()) == "CONCURRENT_TRANSACTIONS"
    # a partition that knows a later epoch has ended it
    (marker,) = rig.answer_markers(foo_0=ErrorCode.INVALID_PRODUCER_EPOCH).markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (*me, commit)
    assert rig.state_name == ("CompleteCommit" if commit else "CompleteAbort")
    assert rig.described().producer_epoch == LAST
    # also for a coordinator that sees only what the one before it wrote
    set_back(rig, epoch=8)
    assert producer(rig.init())[0] != me[0]


@pytest.mark.parametrize("commit", [True, False])
def test_the_successor_of_a_used_up_id_gets_no_epoch_a_second_time(commit: bool) -> None:
    rig = Levelled()
    rig.level(2)
    used_up = rig.used_up()
    rig.brokers_add(used_up, 0)
    following = producer(rig.end(used_up, commit=commit, v=5))
    assert following[1] == 0
    decided = end_offset(rig)
    rig.answer_markers()
    forgotten = producer(rig.init())
    assert forgotten == (following[0], 1)
    set_back(rig, to_offset=decided)
    (marker,) = rig.answer_markers().markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (used_up[0], LAST + 1, commit)
    for before in (following, forgotten):
        assert added(rig.add(before, 0)) == ["INVALID_PRODUCER_ID_MAPPING"]
    assert code(rig.end(used_up, commit=commit, v=5)) == "PRODUCER_FENCED"
    assert producer(rig.init())[0] not in (used_up[0], following[0])


def elected(basis: Basis, *end_offsets: int, lost_power: int = 0) -> ElectionBasis:
    """Of broker 1; each replica's answer, -1 for none. lost_power: the broker whose log may lack records."""
    answers = tuple(
        ReplicaAnswer(BrokerId(broker), BrokerEpoch(-1 if end < 0 else broker), 5, end, broker == lost_power)
        for broker, end in enumerate(end_offsets, 1)
    )
    return ElectionBasis(basis, BrokerId(1), LeaderEpoch(6), replicas=answers)


@pytest.mark.parametrize(
    ("basis", "in_doubt"),
    [
        (elected(Basis.RECOVERED, 9, 9, 4), False),
        (elected(Basis.LAST_KNOWN, 9), False),
        (elected(Basis.LAST_KNOWN, 9, -1, -1), False),
        (elected(Basis.RECOVERED, 9, 9, -1), True),
        (elected(Basis.LAST_KNOWN, 9, 10, -1), True),
        (elected(Basis.DESIGNATED, 9, 10, 9), True),
        (elected(Basis.UNCLEAN, -1, -1, -1), True),
        (elected(Basis.RECOVERED, 9, 9, 9, lost_power=1), True),
        (elected(Basis.RECOVERED, 9, 9, 4, lost_power=3), True),
    ],
)
def test_producers_go_on_where_no_replica_can_hold_more_than_the_winner(basis: ElectionBasis, in_doubt: bool) -> None:
    """All nodes were killed and are back: the transaction that was open is committed by its producer."""
    rig = Coordinating()
    me = producer(rig.init())
    rig.add(me, 0)
    set_back(rig, basis=basis)
    assert added(rig.add(me, 1)) == ["PRODUCER_FENCED" if in_doubt else "NONE"]


def test_a_time_limit_ends_a_transaction_that_is_in_doubt() -> None:
    rig = Coordinating()
    me = producer(rig.init(timeout_ms=15_000))
    rig.add(me, 0)
    set_back(rig)
    rig.env.advance(25_001)
    rig.answer_markers()
    assert rig.state_name == "CompleteAbort"
    assert producer(rig.init())[0] != me[0]


def test_an_id_from_after_the_election_is_not_in_doubt() -> None:
    rig = Coordinating()
    set_back(rig)
    me = producer(rig.init("new"))
    set_back(rig, epoch=8)
    assert added(rig.add(me, 0, name="new")) == ["NONE"]


# a doubt that only this process knows


@pytest.mark.parametrize("is_open", [True, False])
def test_the_next_coordinator_finds_the_doubt_of_one_whose_election_says_nothing(is_open: bool) -> None:
    """The recovery manager is off: no replica was asked whether it may lack records."""
    rig = Coordinating()
    me = producer(rig.init())
    if is_open:
        rig.add(me, 0)
    rig.partition(TRANSACTIONS).log.may_lack_records = True
    set_back(rig, basis=LAST_KNOWN)
    if is_open:
        rig.answer_markers()
    assert code(rig.end(me, commit=True)) == ("INVALID_PRODUCER_ID_MAPPING" if is_open else "PRODUCER_FENCED")
    elect_another(rig)
    assert producer(rig.init())[0] != me[0]


def test_a_doubt_is_recorded_once_the_isr_is_large_enough() -> None:
    rig = Coordinating([1, 2])
    rig.lead(6, isr=[1])
    me = producer(rig.init())
    rig.partition(TRANSACTIONS).log.may_lack_records = True
    rig.set_config("min.insync.replicas", "2", TRANSACTIONS)
    rig.lead(7, isr=[1])
    found = end_offset(rig)
    rig.env.advance(60_000)
    assert end_offset(rig) == found
    assert rig.partition(TRANSACTIONS).log.may_lack_records, "the next start has to know it"
    rig.set_config("min.insync.replicas", "1", TRANSACTIONS)
    rig.publish()
    rig.env.advance(60_000)
    assert end_offset(rig) == found + 1, "one record, and no further one"
    assert not rig.partition(TRANSACTIONS).log.may_lack_records
    rig.partition(TRANSACTIONS).doubts.led_without_them = -1
    rig.lead(8, isr=[1])
    assert producer(rig.init())[0] != me[0]


def elect_another(rig: Coordinating) -> None:
    """It knows what is in the log and in the metadata."""
    rig.partition(TRANSACTIONS).doubts.led_without_them = -1
    set_back(rig, epoch=8, basis=LAST_KNOWN)
