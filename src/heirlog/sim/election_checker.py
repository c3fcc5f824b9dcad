"""Checks an election on a lossy basis, as an oracle that can read every disk.

    choice    no replica that could be asked had more of what was committed than the winner
    quorum    under Balanced every replica that may have the lost records has answered
    waiting   no other replica that could have been asked was left out before the time limit for answers had passed
    answers   the record's answer of a replica is what its disk holds
    T15       under Balanced no disk, those of nodes that are down included, has more of what was committed than the
                            winner, unless its broker has answered or the time limit for it has passed
    report    the loss report (`heirlog.metadata.loss_report`) has at least the records that the winner lacks and
              others have

"More" is measured by the lineage: the offset up to which a replica's log has the committed records. Records that no
disk has any more cannot be chosen or reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.image import Image
from heirlog.metadata.loss_report import loss_of
from heirlog.sim.history import Finding
from heirlog.sim.invariants import LogView, t15_winner_holds_the_most
from heirlog.sim.partition_model import PartitionModel

CHOICE = "recovery-choice"
QUORUM = "recovery-quorum"
WAITING = "recovery-waiting"
ANSWERS = "recovery-answers"
REPORT = "loss-report"
T15 = "T15"


@dataclass(frozen=True, slots=True)
class KnownReplica:
    """What the oracle knows of one replica at the moment of the election."""

    log: LogView
    """Of the process that runs, or else what its disk holds."""
    reachable: bool
    """It runs as the registered incarnation, which is unfenced and stays: it can be asked, and it can lead."""


def judge_election(
    model: PartitionModel,
    election: ElectionBasis,
    witnesses: Mapping[int, KnownReplica],
    quorum: Collection[int],
    impatient_ms: int,
    waits_for_all: bool = False,
) -> Finding | None:
    """quorum: replicas that must have answered. impatient_ms: how much too early the election left another replica out;
    0: not too early. waits_for_all: Balanced, and no operator has skipped the wait (T15).
    """
    silent = [answer.broker for answer in election.replicas if not answer.answered and answer.broker in quorum]
    if silent:
        return Finding(QUORUM, f"broker {election.leader} was elected without an answer of {silent}")
    if election.basis is Basis.RECOVERED and not any(
        answer.answered for answer in election.replicas if answer.broker == election.leader
    ):
        return Finding(ANSWERS, f"broker {election.leader} was elected without an answer of its own")
    winner = witnesses.get(election.leader)
    if winner is None or _lost_what_it_answered(election, winner):
        return None
    for answer in election.replicas:
        witness = witnesses.get(answer.broker)
        if witness is None or not witness.reachable:
            continue
        if answer.answered:
            sentence = _answer_is_true(answer, witness.log)
            if sentence is not None:
                return Finding(ANSWERS, sentence)
        elif election.basis is Basis.RECOVERED and impatient_ms > 0:
            sentence = f"broker {answer.broker} could have been asked, and was left out {impatient_ms} ms too early"
            return Finding(WAITING, sentence)
    kept_end = model.common_end(winner.log)
    if waits_for_all and impatient_ms > 0:
        answered = {answer.broker for answer in election.replicas if answer.answered}
        held = {
            broker: model.common_end(witness.log) for broker, witness in witnesses.items() if broker not in answered
        }
        sentence = t15_winner_holds_the_most(election.leader, kept_end, held)
        if sentence is not None:
            return Finding(T15, sentence)
    return _judge_loss(model, election, witnesses, kept_end)


def _lost_what_it_answered(election: ElectionBasis, winner: KnownReplica) -> bool:
    """It lost power between its answer and the election, which a controller cannot know. It never becomes leader by
    that election: its next registration is unclean, and the other replicas are asked again.
    """
    return not winner.reachable and any(
        answer.answered and _answer_is_true(answer, winner.log) is not None
        for answer in election.replicas
        if answer.broker == election.leader
    )


def _answer_is_true(answer: ReplicaAnswer, log: LogView) -> str | None:
    held = (last_written_epoch(log), log.log_end_offset)
    reported = (answer.last_written_epoch, answer.end_offset)
    if held != reported:
        return f"broker {answer.broker} is said to hold (epoch, end) {reported}, and holds {held}"
    return None


def _judge_loss(
    model: PartitionModel, election: ElectionBasis, witnesses: Mapping[int, KnownReplica], kept_end: int
) -> Finding | None:
    loss = loss_of(election.leader, election.replicas)
    answered = {answer.broker for answer in election.replicas if answer.answered}
    for broker, witness in sorted(witnesses.items()):
        held_end = model.common_end(witness.log)
        if held_end <= kept_end:
            continue
        lacks = (
            f"broker {election.leader} was elected ({election.basis.value}) with what was committed up to {kept_end}; "
            f"broker {broker} has it up to {held_end}"
        )
        if election.basis is Basis.RECOVERED and witness.reachable and broker in answered:
            return Finding(CHOICE, f"{lacks}, and had answered")
        if loss.end_offset is not None and loss.end_offset < held_end:
            return Finding(REPORT, f"{lacks}; the report ends at {loss.end_offset}")
        if loss.first_offset is not None and loss.first_offset > kept_end:
            return Finding(REPORT, f"{lacks}; the report begins at {loss.first_offset}")
    return None


def candidates(election: ElectionBasis, image: Image) -> tuple[tuple[int, int, int], ...]:
    """What `history.KnownLoss` names of a recovery: replicas that answered and could be elected when it was committed;
    empty for another kind of election. One that stopped after its answer is no candidate.
    """
    if election.basis is not Basis.RECOVERED:
        return ()
    return tuple(
        (answer.broker, answer.last_written_epoch, answer.end_offset)
        for answer in election.replicas
        if answer.answered and answer.broker in image.brokers and image.brokers[answer.broker].is_active
    )


def last_written_epoch(log: LogView) -> int:
    """Of the last record; -1 for an empty log."""
    if log.log_end_offset <= log.log_start_offset:
        return -1
    return log.epochs.epoch_for_offset(log.log_end_offset - 1)
