"""One partition without a leader: what it waits for, and who wins. Pure.

    clean candidate (acceptable member of the ISR, or of the ELR where the ISR is empty)    a clean election, always
    members of ISR or ELR, none of them acceptable    Balanced, None: wait for one    Aggressive: recover
    no members left                                   None: an operator decides       Aggressive: recover
                                                      Balanced: recover once its whole quorum is there

    Balanced     elects when the whole quorum has answered, and every other assigned replica too, or the time limit
                 has passed since the recovery began (an operator may skip the wait for the others)
    Aggressive   elects when every replica has answered, or the window is over; if nobody has answered by then, the
                 first answer decides. A fenced replica may be back within the window, so it is waited for so long

The quorum of Balanced is LastKnownELR if that names at least min ISR replicas: a committed record was on that many
members, and everybody who left them is on the list, so one of them has it unless they have all lost it. A shorter list
was cleared, or begun late, and proves nothing: then every assigned replica must answer. Whoever never answers blocks,
and the status says who; the way out is an operator. An adding replica is different: where losses have been listed, and
it is not on the list, it has not been a member since the ISR was last at min ISR, and holds no committed record that
the members lacked. It counts among the others, or a reassignment to a dead broker would block for ever.

The others are waited for because the quorum only proves who held every committed record. After a power cut all of its
members may have lost their unflushed tails, while a replica outside it lost nothing and boots last: elected without it,
the quorum would have it truncated. So a fenced replica counts, and one whose directory is offline, or whose broker is
not registered. One that never comes back delays the election by the time limit, and no longer.

A recovery begins when its quorum is first acceptable as a whole, on this controller: before that there is nothing to
decide, and a new controller does not know how long its predecessor has waited. A quorum member that goes while the
others are asked does not end the recovery, and the time limit runs on: an election may follow its return at once.

Acceptable: unfenced, not shutting down, its directory online. Only acceptable replicas may win. A quorum member that is
not acceptable is waited for, also with an answer on file: its log may be the best one. Any other replica with an answer
on file is waited for only if that answer beats the winner.

With the ELR feature off the last in-sync member keeps its seat, fenced: it counts as a fenced ELR member does.

Source: KIP-966, "Unclean recovery".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from heirlog.controller.recovery.replica_log_info import ReplicaLogInfo, best, is_better
from heirlog.controller.recovery.strategy import Strategy
from heirlog.metadata.state import Ids, PartitionRegistration
from heirlog.protocol.types import BrokerId


class Phase(Enum):
    """What a partition is in; the names are what DescribeRecovery tells."""

    LED = "Led"
    CLEAN_CANDIDATE = "CleanElection"
    """Never for long: the election follows at once."""
    WAITING_FOR_ELIGIBLE = "WaitingForEligible"
    WAITING_FOR_QUORUM = "WaitingForQuorum"
    RECOVERING = "Recovering"
    MANUAL = "ManualElectionRequired"
    WAITING_FOR_LAST_KNOWN = "WaitingForLastKnownLeader"
    """Manager off."""
    WAITING_FOR_ANY = "WaitingForAnyReplica"
    """Manager off, and unclean elections are allowed."""


class RecoveryQuorum(NamedTuple):
    members: Ids
    reason: str


class RecoveryDecision(NamedTuple):
    phase: Phase
    waits_for: Ids = ()
    wait_ends_ms: int | None = None
    """Controller's clock; None: no limit."""
    winner: BrokerId | None = None
    any_decides: bool = False
    """The next answer may decide; else nothing changes before all of `waits_for` have answered, or the wait ends."""


@dataclass(slots=True)
class Case:
    """What is to be judged."""

    state: PartitionRegistration
    strategy: Strategy
    min_isr: int
    """Effective."""
    acceptable: Ids
    """Which replicas may lead now."""
    answers: Mapping[BrokerId, ReplicaLogInfo]
    """Those that count, also of replicas that have gone since."""
    now_ms: int
    began_ms: int
    """When the recovery began; now, if it would begin now."""
    window_ms: int
    timeout_ms: int
    skips_wait: bool = False

    def valid(self) -> dict[BrokerId, ReplicaLogInfo]:
        """Answers that count, of replicas that may lead."""
        return {replica: answer for replica, answer in self.answers.items() if replica in self.acceptable}


def quorum_members(state: PartitionRegistration, min_isr: int) -> Ids:
    """Who must answer before Balanced elects."""
    known = state.last_known_elr
    if len(known) >= min_isr:
        return known
    if not known or not state.adding:
        return state.replicas
    return tuple([replica for replica in state.replicas if replica in known or replica not in state.adding])


def quorum_of(state: PartitionRegistration, min_isr: int) -> RecoveryQuorum:
    """The same, and why they."""
    known, members = state.last_known_elr, quorum_members(state, min_isr)
    if len(known) >= min_isr:
        return RecoveryQuorum(members, f"LastKnownELR names {len(known)} replicas, min.insync.replicas is {min_isr}")
    spared = "" if len(members) == len(state.replicas) else " except adding ones that were in no ISR"
    return RecoveryQuorum(
        members,
        f"LastKnownELR names {len(known)} of the {min_isr} replicas (min.insync.replicas) that held every committed "
        f"record, so all assigned replicas{spared} must answer",
    )


def quorum_is_complete(members: Ids, there: Collection[BrokerId]) -> bool:
    """Guard 13: Balanced waits for all members of its quorum.

    Without it the one member that still has the lost records may be the one that was not waited for.
    """
    return all(map(there.__contains__, members))


def judge(case: Case) -> RecoveryDecision:
    """With the manager on."""
    state = case.state
    if state.has_leader:
        return RecoveryDecision(Phase.LED)
    members = state.isr or state.elr
    if members and any(member in case.acceptable for member in members):
        return RecoveryDecision(Phase.CLEAN_CANDIDATE)
    if case.strategy is Strategy.AGGRESSIVE:
        return _aggressive(case)
    if members:
        return RecoveryDecision(Phase.WAITING_FOR_ELIGIBLE, members)
    if case.strategy is Strategy.NONE:
        return RecoveryDecision(Phase.MANUAL)
    return _balanced(case)


def judge_without_manager(
    state: PartitionRegistration, acceptable: Ids, allows_unclean: bool, elr: bool
) -> RecoveryDecision:
    """What the shipped rules wait for."""
    if state.has_leader:
        return RecoveryDecision(Phase.LED)
    members = state.isr or state.elr
    if any(member in acceptable for member in members):
        return RecoveryDecision(Phase.CLEAN_CANDIDATE)
    if allows_unclean:
        return RecoveryDecision(Phase.WAITING_FOR_ANY, state.replicas)
    if members:
        return RecoveryDecision(Phase.WAITING_FOR_ELIGIBLE, members)
    if elr and len(state.last_known_elr) == 1:
        return RecoveryDecision(Phase.WAITING_FOR_LAST_KNOWN, state.last_known_elr)
    return RecoveryDecision(Phase.MANUAL)


def _balanced(case: Case) -> RecoveryDecision:
    quorum = quorum_members(case.state, case.min_isr)
    if not quorum_is_complete(quorum, case.acceptable):
        return RecoveryDecision(
            Phase.WAITING_FOR_QUORUM, tuple([member for member in quorum if member not in case.acceptable])
        )
    valid = case.valid()
    if not valid or not quorum_is_complete(quorum, valid):
        return RecoveryDecision(Phase.RECOVERING, tuple([member for member in quorum if member not in valid]))
    winner, ends_ms = best(case.state.replicas, valid), case.began_ms + case.timeout_ms
    others = tuple([other for other in case.state.replicas if may_hold_more(other, case.answers, valid[winner])])
    if not wait_is_over(others, case.skips_wait, case.now_ms, ends_ms):
        return RecoveryDecision(Phase.RECOVERING, others, ends_ms)
    return RecoveryDecision(Phase.RECOVERING, winner=winner)


def wait_is_over(others: Ids, skips_wait: bool, now_ms: int, ends_ms: int) -> bool:
    """Guard 15: Balanced waits for every assigned replica that may hold more than the winner, up to its time limit.

    Without it the one replica that lost nothing in a power cut is truncated, if it boots last.
    """
    return not others or skips_wait or now_ms >= ends_ms


def may_hold_more(replica: BrokerId, answers: Mapping[BrokerId, ReplicaLogInfo], winner: ReplicaLogInfo) -> bool:
    """Whether the replica is worth waiting for. The winner beats every present replica that has answered."""
    return replica not in answers or is_better(answers[replica], winner)


def _aggressive(case: Case) -> RecoveryDecision:
    valid = case.valid()
    others = tuple([replica for replica in case.state.replicas if replica not in valid])
    ends_ms = case.began_ms + case.window_ms
    if others and case.now_ms < ends_ms:
        return RecoveryDecision(Phase.RECOVERING, others, ends_ms)
    if not valid:
        return RecoveryDecision(Phase.RECOVERING, others, any_decides=True)
    return RecoveryDecision(Phase.RECOVERING, winner=best(case.state.replicas, valid))
