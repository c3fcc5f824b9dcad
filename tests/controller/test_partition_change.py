"""The builder of PartitionChangeBuilder records: what one record says, and when there is none."""

from __future__ import annotations

from typing import Any

from heirlog.controller.election import Election
from heirlog.controller.partition_change import (
    BuiltChange,
    ChangeCause,
    PartitionChangeBuilder,
    PartitionRules,
    TargetState,
)
from heirlog.metadata.basis import Basis
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch, Uuid

TOPIC = Uuid(b"topic-id-of-foo!")


def state(**more: Any) -> PartitionRegistration:
    values: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": BrokerId(1)}
    return PartitionRegistration(leader_epoch=LeaderEpoch(0), partition_epoch=PartitionEpoch(0), **(values | more))


def build(before: PartitionRegistration, alive: tuple[int, ...] = (1, 2, 3), **given: Any) -> BuiltChange:
    rules = {name: given.pop(name) for name in ("elr_enabled", "bumps_on_shrink") if name in given}
    values: dict[str, Any] = {"elr_enabled": True, "manager_enabled": True, "configured_min_isr": 2}
    return PartitionChangeBuilder(
        topic_id=TOPIC,
        partition=0,
        before=before,
        rules=PartitionRules(usual_election=given.pop("election", Election.ONLINE), **(values | rules)),
        acceptable=lambda broker: broker in alive,
        cause=ChangeCause(lost=given.pop("lost", ())),
        target=TargetState(**given),
    ).build()


def test_what_changes_nothing_makes_no_record() -> None:
    assert build(state()) == BuiltChange(None, None)
    assert build(state(), isr=(1, 2, 3)) == BuiltChange(None, None)


def test_a_shrink_names_the_isr_and_neither_leader_nor_lists() -> None:
    record = build(state(), isr=(1, 2)).record
    assert record is not None
    assert (record.isr, record.leader, record.eligible_leader_replicas) == ([1, 2], -2, None)


def test_a_shrink_below_min_isr_names_who_is_eligible() -> None:
    record = build(state(isr=(1, 2)), isr=(1,)).record
    assert record is not None
    assert (record.isr, record.eligible_leader_replicas) == ([1], [2])


def test_without_the_feature_the_last_member_of_the_isr_stays_and_no_list_is_written() -> None:
    record = build(state(isr=(1,)), alive=(2, 3), isr=(), elr_enabled=False).record
    assert record is not None
    assert (record.isr, record.leader, record.eligible_leader_replicas) == (None, -1, None)


def test_a_leader_that_can_no_longer_lead_is_replaced_by_a_member_of_the_isr() -> None:
    built = build(state(), alive=(2, 3), isr=(2, 3))
    assert built.record is not None
    assert (built.record.leader, built.record.isr, built.basis) == (2, [2, 3], Basis.ISR)


def test_members_whose_data_is_gone_are_written_to_the_last_known_elr() -> None:
    record = build(state(isr=(1,), elr=(2,)), alive=(), isr=(), lost=(1,)).record
    assert record is not None
    assert (record.leader, record.eligible_leader_replicas, record.last_known_elr) == (-1, None, [1])


def test_a_replica_that_leaves_the_assignment_bumps_the_leader_epoch() -> None:
    record = build(state(), isr=(1, 2), replicas=(1, 2)).record
    assert record is not None
    assert (record.replicas, record.leader) == ([1, 2], 1)


def test_before_version_3_6_a_shrink_bumps_the_leader_epoch_too() -> None:
    record = build(state(), isr=(1, 2), bumps_on_shrink=True).record
    assert record is not None
    assert record.leader == 1


def test_a_lossy_election_writes_its_basis_and_begins_a_recovery() -> None:
    built = build(state(isr=(), leader=BrokerId(-1)), alive=(3,), election=Election.UNCLEAN)
    assert built.record is not None and built.basis is Basis.UNCLEAN
    assert (built.record.leader, built.record.isr, built.record.leader_recovery_state) == (3, [3], 1)
    assert built.record.election_basis is not None
