"""One partition without a leader: which replicas it waits for, and which one wins. Pure.

    clean candidate (acceptable member of the ISR, or of the ELR if the ISR is empty)       a clean election, always
    members of ISR or ELR, none of them acceptable    Balanced, None: wait for one    Aggressive: recover
    no members left                                   None: an operator decides       Aggressive: recover
                                                      Balanced: recover once its whole quorum is acceptable

    Balanced     elects when the whole quorum has answered, and either every other assigned replica has answered too or
                 the time limit has passed since the recovery began (an operator may skip the wait for the others)
    Aggressive   elects when every replica has answered, or the window is over; if no replica has answered by then, the
                 first answer decides. A fenced replica may come back within the window, so the window is waited for

The quorum of Balanced is LastKnownELR if that list names at least min ISR replicas. A committed record was on that many
members, and every member that was lost is on the list. So at least one of them has the record, unless they all lost it.
A shorter list was cleared, or was started late, and proves nothing: then every assigned replica must answer. A replica
that never answers blocks the election; the status names it, and an operator can decide.

There is one exception: an adding replica does not belong to the quorum if LastKnownELR names other replicas. It has not
been in the ISR since the ISR was last at min ISR, so it holds no committed record that the members lack. Without the
exception, a reassignment to a dead broker would block the partition for ever.

Balanced also waits for the replicas outside the quorum, because the quorum only proves which replicas held every
committed record. After a power cut all of its members may have lost records that were not flushed, while a replica
outside it lost nothing and starts last. A leader elected without that replica would make it truncate its log. So a
fenced replica is waited for, and one whose directory is offline or whose broker is not registered. A replica that never
comes back delays the election by the time limit, and not longer.

A recovery begins on this controller when all members of its quorum are acceptable for the first time. Before that there
is nothing to decide, and a new controller does not know how long its predecessor has waited. If a quorum member leaves
while the others are asked, the recovery does not end and its time limit continues; so an election may follow at once
when the member is back.

Acceptable means: unfenced, not shutting down, log directory online. Only acceptable replicas may win. A quorum member
that is not acceptable is waited for even if it has answered: its log may be the best one. Any other replica that has
answered is waited for only if its answer beats the winner's.

With the ELR feature off, the last in-sync member stays in the ISR while it is fenced. It counts like a fenced ELR
member.

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
    """The state of a partition; DescribeRecovery returns these names."""

    LED = "Led"
    CLEAN_CANDIDATE = "CleanElection"
    """Only for a moment: the election follows at once."""
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
    """Time on the controller's clock; None: no limit."""
    winner: BrokerId | None = None
    any_decides: bool = False
    """The next answer may decide. Otherwise nothing changes until all of `waits_for` have answered or the wait ends."""


@dataclass(slots=True)
class Case:
    """Input of a decision."""

    state: PartitionRegistration
    strategy: Strategy
    min_isr: int
    """Effective min ISR."""
    acceptable: Ids
    """Replicas that may lead now."""
    answers: Mapping[BrokerId, ReplicaLogInfo]
    """Answers that count, including those of replicas that have left since."""
    now_ms: int
    began_ms: int
    """When the recovery began; the current time if it has not begun."""
    window_ms: int
    timeout_ms: int
    skips_wait: bool = False

    def valid(self) -> dict[BrokerId, ReplicaLogInfo]:
        """Answers that count from replicas that may lead."""
        return {replica: answer for replica, answer in self.answers.items() if replica in self.acceptable}


def quorum_members(state: PartitionRegistration, min_isr: int) -> Ids:
    """Replicas that must answer before Balanced elects a leader."""
    known = state.last_known_elr
    if len(known) >= min_isr:
        return known
    if not known or not state.adding:
        return state.replicas
    return tuple([replica for replica in state.replicas if replica in known or replica not in state.adding])


def quorum_of(state: PartitionRegistration, min_isr: int) -> RecoveryQuorum:
    """The quorum members, and why they are the quorum."""
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

    Without it the recovery may not wait for the one member that still has the lost records.
    """
    return all(map(there.__contains__, members))


def judge(case: Case) -> RecoveryDecision:
    """The decision with the manager on."""
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
    """The decision by Apache Kafka's rules, with the manager off."""
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

    Without it the one replica that lost nothing in a power cut is truncated if it starts last.
    """
    return not others or skips_wait or now_ms >= ends_ms


def may_hold_more(replica: BrokerId, answers: Mapping[BrokerId, ReplicaLogInfo], winner: ReplicaLogInfo) -> bool:
    """Whether to wait for the replica. The winner beats every acceptable replica that has answered."""
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
