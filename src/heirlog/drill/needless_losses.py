"""T8b on real processes: an election that may lose records needs enough members that stopped uncleanly.

A record in the metadata log excuses what an election gave up. So the election itself must be justified, or a defect
that elects the wrong replica, and records it, would pass. Under the strategy Balanced, and unless an operator asked for
it:

    the ISR had min ISR members --> it fell below, at t0 --> at least min ISR of ISR + ELR stopped uncleanly --> lossy

The drill knows which process it killed, and when. A member may have died some seconds before the ISR shows it. So stops
from `BEFORE_MS` before t0 on count: the check forgives a little more than the rule does. It also forgives everything
where min ISR changed or replicas were moved meanwhile, since both may take a member out of both lists.

Source: KIP-966, "ELR invariants"; the simulator judges the same with an oracle (`heirlog.sim.leader_checker`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heirlog.drill.chaos_judge import basis_of, lossy_elections
from heirlog.drill.committed_log import CommittedLog, PartitionChange
from heirlog.metadata.basis import Basis
from heirlog.sim.history import Finding, partition_name

CHECK = "T8b"
BEFORE_MS = 15_000
"""Longer than a session of a broker and any fault that hides its end."""
OF_AN_OPERATOR = (Basis.UNCLEAN, Basis.DESIGNATED)


def needless_losses(log: CommittedLog, unclean_ends: Mapping[int, Sequence[int]]) -> list[Finding]:
    """Lossy elections that too few unclean stops explain. unclean_ends: times, by broker."""
    found = []
    for election in lossy_elections(log):
        basis = basis_of(election)
        if basis.basis in OF_AN_OPERATOR:
            continue
        own = [change for change in log.changes if _is_same(change, election) and change.at_ms <= election.at_ms]
        own = own[: own.index(election)]
        short = _below_min_isr(own)
        if _members_were_taken_out([*short, election]):
            continue
        begin = short[0] if short else election
        state = begin.before or begin.after
        assert state is not None
        members = {int(broker) for broker in (*state.isr, *state.elr)}
        lost = sorted(
            member
            for member in members
            if any(begin.at_ms - BEFORE_MS <= at_ms <= election.at_ms for at_ms in unclean_ends.get(member, ()))
        )
        needed = max(1, min(election.min_isr, len(members)))
        if len(lost) < needed:
            name = partition_name(election.topic, election.index, election.topic_id)
            sentence = (
                f"{name}: broker {basis.leader} was elected in epoch {basis.leader_epoch} on a lossy basis, "
                f"although of {sorted(members)} only {lost} had stopped uncleanly; it takes {needed}"
            )
            found.append(Finding(CHECK, sentence))
    return found


def _is_same(change: PartitionChange, other: PartitionChange) -> bool:
    return (change.topic_id, change.index) == (other.topic_id, other.index)


def _below_min_isr(changes: Sequence[PartitionChange]) -> list[PartitionChange]:
    """The last changes, from the one that took the ISR below min ISR on."""
    found: list[PartitionChange] = []
    for change in reversed(changes):
        if change.after is not None and len(change.after.isr) >= change.min_isr:
            break
        found.insert(0, change)
    return found


def _members_were_taken_out(changes: Sequence[PartitionChange]) -> bool:
    """By another min ISR, or by a move of replicas."""
    states = [state for change in changes for state in (change.before, change.after) if state is not None]
    return (
        len({change.min_isr for change in changes}) > 1
        or len({frozenset(state.replicas) for state in states}) > 1
        or any(state.is_reassigning for state in states)
    )
