"""What the oracle says of an election, on logs written by hand: committed is 0 - 40, of epochs 0, 2 and 5."""

from __future__ import annotations

from collections.abc import Mapping

from sim.test_partition_model import COMMITTED, Log, log

from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch
from heirlog.sim.election_checker import (
    ANSWERS,
    CHOICE,
    QUORUM,
    REPORT,
    T15,
    WAITING,
    KnownReplica,
    judge_election,
    last_written_epoch,
)
from heirlog.sim.partition_model import PartitionModel

WHOLE = log(40, *COMMITTED)
SHORT = log(20, (0, 0), (2, 10))
EMPTY = log(0)


def answer(broker: int, of: Log | None) -> ReplicaAnswer:
    """None: it did not answer."""
    if of is None:
        return ReplicaAnswer(BrokerId(broker))
    return ReplicaAnswer(BrokerId(broker), BrokerEpoch(9), last_written_epoch(of), of.log_end_offset)


def election(leader: int, *answers: ReplicaAnswer, basis: Basis = Basis.RECOVERED) -> ElectionBasis:
    end = next(one.end_offset for one in answers if one.broker == leader)
    return ElectionBasis(basis, BrokerId(leader), LeaderEpoch(7), end, replicas=answers)


def check(
    held: Mapping[int, Log],
    one: ElectionBasis,
    *,
    down: tuple[int, ...] = (),
    quorum: tuple[int, ...] = (),
    impatient_ms: int = 0,
    waits_for_all: bool = False,
) -> str | None:
    known = PartitionModel("t-0")
    known.expose(40, COMMITTED)
    witnesses = {broker: KnownReplica(its, broker not in down) for broker, its in held.items()}
    finding = judge_election(known, one, witnesses, quorum, impatient_ms, waits_for_all)
    return None if finding is None else finding.check


def test_the_replica_with_the_most_may_win() -> None:
    held = {1: SHORT, 2: WHOLE, 3: EMPTY}
    answers = [answer(broker, its) for broker, its in held.items()]
    assert check(held, election(2, *answers)) is None
    assert check(held, election(1, *answers)) == CHOICE


def test_a_longer_log_that_parts_earlier_is_not_more() -> None:
    held = {1: log(60, (0, 0), (1, 8)), 2: SHORT}
    answers = [answer(broker, its) for broker, its in held.items()]
    assert check(held, election(2, *answers)) is None
    assert check(held, election(1, *answers)) == CHOICE


def test_whoever_could_have_been_asked_is_waited_for() -> None:
    held = {1: SHORT, 2: WHOLE}
    left_out = election(1, answer(1, SHORT), answer(2, None))
    assert check(held, left_out, impatient_ms=1) == WAITING
    assert check(held, left_out) is None
    assert check(held, left_out, down=(2,), impatient_ms=1) is None
    assert check(held, left_out._replace(basis=Basis.DESIGNATED), impatient_ms=1) is None


def test_a_member_of_the_quorum_is_waited_for_wherever_it_is() -> None:
    one = election(2, answer(1, None), answer(2, WHOLE))
    assert check({2: WHOLE}, one, quorum=(1, 2)) == QUORUM
    assert check({2: WHOLE}, one, quorum=(2,)) is None


def test_an_answer_is_what_the_disk_holds() -> None:
    held = {1: SHORT, 2: WHOLE}
    lied = election(1, answer(1, log(50, (0, 0), (2, 10))), answer(2, WHOLE))
    assert check(held, lied) == ANSWERS
    assert check({2: WHOLE}, election(2, answer(1, SHORT), answer(2, WHOLE))) is None
    assert check({2: WHOLE}, election(2, answer(1, SHORT), answer(2, None))) == ANSWERS


def test_a_winner_that_lost_power_after_its_answer_was_chosen_by_its_answer() -> None:
    chosen = election(1, answer(1, WHOLE), answer(2, SHORT))
    assert check({1: EMPTY, 2: SHORT}, chosen, down=(1,)) is None
    assert check({1: EMPTY, 2: SHORT}, chosen) == ANSWERS, "the process that runs never said so"
    as_it_said = election(1, answer(1, SHORT), answer(2, WHOLE))
    assert check({1: SHORT, 2: WHOLE}, as_it_said, down=(1,)) == CHOICE


def test_the_report_covers_what_the_winner_lacks() -> None:
    held = {1: log(30, (0, 0), (2, 10)), 2: log(35, (0, 0), (2, 10), (5, 30))}
    answers = [answer(broker, its) for broker, its in held.items()]
    assert check(held, election(1, *answers, basis=Basis.DESIGNATED)) is None
    # broker 2 has more than it once said
    stale = [answers[0], answers[1]._replace(broker_epoch=BrokerEpoch(-1), last_written_epoch=2, end_offset=25)]
    assert check(held, election(1, *stale, basis=Basis.DESIGNATED), down=(2,)) == REPORT
    silent = [answers[0], answer(2, None)]
    assert check(held, election(1, *silent, basis=Basis.DESIGNATED), down=(2,)) is None


def test_what_no_disk_holds_is_not_held_against_anybody() -> None:
    held = {1: SHORT, 2: EMPTY}
    assert check(held, election(1, *[answer(broker, its) for broker, its in held.items()])) is None


def test_a_disk_of_a_node_that_is_down_is_waited_for_while_there_is_time() -> None:
    held = {1: SHORT, 2: WHOLE}
    left_out = election(1, answer(1, SHORT), answer(2, None))
    assert check(held, left_out, down=(2,), impatient_ms=1, waits_for_all=True) == T15
    assert check(held, left_out, down=(2,), impatient_ms=0, waits_for_all=True) is None
    assert check(held, left_out, down=(2,), impatient_ms=1, waits_for_all=False) is None
    assert check({1: WHOLE, 2: SHORT}, election(1, answer(1, WHOLE), answer(2, None)), waits_for_all=True) is None
