"""Which replicas may lead next, and which were given up: checked at each committed record, with the state before it.

    R2    a leader epoch has one result
    T8b   an election on a lossy basis that no operator requested comes only after enough members have lost their data
    T10   with the recovery manager, no replica that may hold committed records is forgotten

Only the oracle knows what it means that a member leaves. A broker has all its records if its process ended by itself,
cleanly, and was started once since, even if the cluster counts its stop as unclean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId
from heirlog.sim.history import Finding
from heirlog.sim.invariants import (
    r2_one_result_per_epoch,
    t8b_enough_members_were_lost,
    t10_members_stay_listed,
)
from heirlog.sim.partition_model import PartitionModel


@dataclass(slots=True)
class LeaderRules:
    """What holds for a run, and what the oracle knows."""

    manager: bool
    """The recovery manager is on as of the record that is judged."""
    is_intact: Callable[[BrokerId], bool]
    """Its disk has lost nothing since it was registered."""


@dataclass(slots=True)
class CommittedChange:
    """One committed record, as far as it touches one partition."""

    before: PartitionRegistration
    after: PartitionRegistration
    min_isr: int
    elr_enabled: bool
    clears_elr: bool
    """It is a ClearElr: later records of the same batch name the cleared members again."""
    forbidden_loss: bool
    """Neither an operator nor the topic's strategy allowed an election on a lossy basis."""

    @property
    def elects(self) -> bool:
        return self.after.leader >= 0 and self.after.leader_epoch > self.before.leader_epoch

    @property
    def is_lossy(self) -> bool:
        return self.elects and is_lossy(self.before, self.after)


def is_lossy(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """Whether the election between two states was lossy.

    The record says so, or the new leader was in neither list, so that nothing promises that it has every committed
    record.
    """
    if after.basis is not None and after.basis is not before.basis:
        return True
    return after.leader not in before.isr and after.leader not in before.elr


def judge(model: PartitionModel, event: CommittedChange, rules: LeaderRules) -> Finding | None:
    """The first rule that the record breaks. Also updates the lineage by the record."""
    before, after = event.before, event.after
    sentence = r2_one_result_per_epoch(before, after)
    if sentence is not None:
        return Finding("R2", sentence)
    if after.leader_epoch > before.leader_epoch:
        model.elected[after.leader_epoch] = after.leader
    # the record that takes the last member out may elect, too
    _record_losses(model, event, rules)
    finding = _judge_with_elr(model, event, rules) if event.elr_enabled else None
    if len(after.isr) >= event.min_isr:
        model.lost.clear()
        model.taken_out = False
        model.min_isr = event.min_isr
    return finding


def _judge_with_elr(model: PartitionModel, event: CommittedChange, rules: LeaderRules) -> Finding | None:
    before, after = event.before, event.after
    if event.is_lossy and event.forbidden_loss:
        sentence = t8b_enough_members_were_lost(after.leader, model.lost, model.min_isr, model.taken_out)
        if sentence is not None:
            return Finding("T8b", sentence)
    if rules.manager and not event.clears_elr and not event.is_lossy:
        sentence = t10_members_stay_listed(before, after, event.min_isr)
        if sentence is not None:
            return Finding("T10", sentence)
    return None


def _record_losses(model: PartitionModel, event: CommittedChange, rules: LeaderRules) -> None:
    """Which members have left both lists, and why.

    While the feature is off, a member that leaves an ISR below min ISR enters no ELR: the downgrade has taken it out.
    That also holds after the upgrade, until the ISR is back at min ISR. The downgrade's own ClearElr follows its level
    record, so it is applied with the feature off.
    """
    before, after = event.before, event.after
    gone = [m for m in (*before.isr, *before.elr) if m not in after.isr and m not in after.elr]
    for member in gone:
        if not event.elr_enabled or event.clears_elr or member not in after.replicas:
            model.taken_out = True
        elif not rules.is_intact(member):
            model.lost[member] = None
