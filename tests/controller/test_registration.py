"""Registration: refusals, and guard 9 (after an unclean stop it leaves ISR and ELR before it is unfenced)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from controller.cluster import alter, assign, create, epoch_of, heartbeat, leading, register, state_of
from controller.fakes import Harness

from heirlog.controller import registration
from heirlog.controller.producer_ids import BLOCK_SIZE, allocate_producer_ids
from heirlog.metadata.state import UNASSIGNED_DIRECTORY, PartitionRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AllocateProducerIdsRequest, ElectLeadersRequest
from heirlog.protocol.records import PartitionChangeRecord, RegisterBrokerRecord
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.testing.conformance.controller_layer import directory


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(9, 0)] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [Uuid(bytes(16))]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(1, 0)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_a_registration_that_cannot_be_is_refused(more: dict[str, Any], code: ErrorCode) -> None:
    harness = leading(1)
    assert register(harness, 9, **more).error_code == code
    assert 9 not in harness.controller.image.brokers


def test_the_broker_epoch_is_the_offset_of_the_registration_record() -> None:
    harness = leading(3)
    create(harness, "foo", 5)
    harness.controller.sessions.end(2)  # type: ignore[arg-type]
    response = register(harness, 2, life=1)
    batch = harness.quorum.log[-1]
    assert isinstance(batch.records[-1], RegisterBrokerRecord)
    assert all(isinstance(record, PartitionChangeRecord) for record in batch.records[:-1])
    assert response.broker_epoch == batch.last_offset == epoch_of(harness, 2)


def test_a_broker_with_a_replaced_disk_can_lead_again_once_it_is_back_in_the_isr() -> None:
    harness = leading(3)
    create(harness)
    leader = int(state_of(harness).leader)
    replaced = min({1, 2, 3} - {leader})
    harness.controller.sessions.end(replaced)  # type: ignore[arg-type]
    response = register(harness, replaced, life=1, log_dirs=[directory(replaced, 1)])
    assert response.broker_epoch == harness.quorum.log[-1].last_offset == epoch_of(harness, replaced)
    heartbeat(harness, replaced)
    alter(harness, [leader, replaced])
    harness.controller.expire_session(leader, "test")  # type: ignore[arg-type]
    harness.commit()
    state = state_of(harness)
    assert state.leader == replaced
    assert state.directories[state.replicas.index(replaced)] == directory(replaced, 1)  # type: ignore[arg-type]


def test_a_clean_stop_does_not_keep_the_seat_of_a_replica_whose_directory_is_gone() -> None:
    harness = leading(3)
    create(harness, min_insync_replicas="2")
    leader = int(state_of(harness).leader)
    alter(harness, [leader])
    follower = min(state_of(harness).elr)
    harness.controller.sessions.end(follower)
    register(harness, follower, life=1, previous=epoch_of(harness, follower), log_dirs=[directory(follower, 1)])
    state = state_of(harness)
    assert follower not in (*state.isr, *state.elr)


def test_a_broker_that_accepted_older_metadata_costs_every_replica_its_seat_and_raises_leader_epochs() -> None:
    harness = leading(3)
    create(harness, min_insync_replicas="2")
    create(harness, "elsewhere", factor=1, partitions=3)
    before = state_of(harness)
    elsewhere = [state_of(harness, "elsewhere", partition) for partition in range(3)]
    harness.controller.sessions.end(BrokerId(2))
    # a clean stop by older metadata proves nothing
    register(harness, 2, life=1, previous=epoch_of(harness, 2), newest_leader_epoch=70)
    after = state_of(harness)
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (-1, (), (), ())
    assert after.leader_epoch > 70 and after.replicas == before.replicas
    for partition, state in enumerate(elsewhere):
        assert (state_of(harness, "elsewhere", partition) == state) == (2 not in state.replicas)


def test_a_retried_registration_of_a_broker_that_accepted_older_metadata_changes_no_partition_again() -> None:
    harness = leading(3)
    create(harness)
    harness.controller.sessions.end(BrokerId(2))
    register(harness, 2, life=1, newest_leader_epoch=0)
    after = state_of(harness)
    register(harness, 2, life=1, newest_leader_epoch=0)
    assert state_of(harness) == after and not after.isr


def test_producer_ids_that_lost_metadata_gave_out_are_not_given_out_again() -> None:
    harness = leading(3)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch_of(harness, 1))
    known = allocate_producer_ids(harness.controller.image, request).respond(0).producer_id_start
    harness.controller.sessions.end(BrokerId(2))
    register(harness, 2, life=1, newest_leader_epoch=0)
    answer = allocate_producer_ids(harness.controller.image, request).respond(0)
    assert answer.error_code == ErrorCode.NONE
    # other brokers may have got hundreds of thousands of blocks since the copy was made
    assert answer.producer_id_start > known + 100_000 * BLOCK_SIZE


@pytest.mark.parametrize("manager", ["true", "false"])
def test_an_empty_disk_does_not_become_the_last_known_leader(manager: str) -> None:
    harness = leading(1, unclean_recovery_manager_enabled=manager)
    create(harness, factor=1)
    harness.controller.sessions.end(1)  # type: ignore[arg-type]
    register(harness, 1, life=1, log_dirs=[directory(1, 1)])
    heartbeat(harness, 1)
    state = state_of(harness)
    assert (state.leader, state.last_known_elr, state.directories) == (-1, (1,), (directory(1, 0),))


def lost_in_turn(*dirs: Uuid, replaced: tuple[Uuid, ...]) -> PartitionRegistration:
    """min ISR 3, and all of three brokers stop uncleanly, 3 first; then 2 comes with the directories `replaced`, where
    it had `dirs`.
    """
    harness = leading(3)
    harness.controller.sessions.end(BrokerId(2))
    register(harness, 2, life=1, log_dirs=[*dirs])
    heartbeat(harness, 2)
    create(harness, min_insync_replicas="3")
    if len(dirs) > 1:
        assert assign(harness, 2, dirs[0], 0) == ["NONE"]
    for broker in (3, 1):
        harness.controller.sessions.end(BrokerId(broker))
        register(harness, broker, life=1)
    harness.controller.sessions.end(BrokerId(2))
    register(harness, 2, life=2, log_dirs=[*replaced])
    heartbeat(harness, 2)
    return state_of(harness)


def test_an_eligible_replica_that_is_away_may_have_what_another_disk_has_lost() -> None:
    harness = leading(3)
    create(harness, min_insync_replicas="2")
    leader = int(state_of(harness).leader)
    alter(harness, [leader])
    for broker in (1, 2, 3):
        harness.controller.expire_session(BrokerId(broker), "test")
    register(harness, leader, life=1, log_dirs=[directory(leader, 5)])
    state = state_of(harness)
    assert (state.leader, state.isr, len(state.elr), state.last_known_elr) == (-1, (), 2, ())
    assert state.directory_of(BrokerId(leader)) == directory(leader, 5)
    first, last = state.elr
    for broker in (first, last):
        register(harness, broker, life=1, log_dirs=[directory(broker, 5)])
    state = state_of(harness)
    assert (state.elr, state.last_known_elr) == ((), (last,))
    assert state.directory_of(BrokerId(last)) == directory(last, 0), "the last one that may have it is waited for"
    for broker in (1, 2, 3):
        heartbeat(harness, broker)
    elect_at_any_price(harness)
    state = state_of(harness)
    assert state.leader not in (-1, last)
    assert state.directories == tuple(directory(broker, 5) for broker in state.replicas), "it follows, from nothing"


def elect_at_any_price(harness: Harness) -> None:
    topic = ElectLeadersRequest.TopicPartitions(topic="foo", partitions=[0])
    harness.ask("elect_leaders", ElectLeadersRequest(election_type=1, topic_partitions=[topic]), 2)


@pytest.mark.parametrize("eligible_returns", [True, False])
def test_by_kafkas_rule_the_last_leader_begins_anew_on_another_disk_once_somebody_else_leads(
    eligible_returns: bool,
) -> None:
    harness = leading(3, unclean_recovery_manager_enabled="false")
    create(harness, min_insync_replicas="2")
    leader = int(state_of(harness).leader)
    alter(harness, [leader])
    others = sorted({1, 2, 3} - {leader})
    for broker in (*others, leader):
        harness.controller.expire_session(BrokerId(broker), "test")
    register(harness, leader, life=1, log_dirs=[directory(leader, 5)])
    heartbeat(harness, leader)
    state = state_of(harness)
    assert (state.leader, state.last_known_elr) == (-1, (leader,))
    assert state.directory_of(BrokerId(leader)) == directory(leader, 0), "it is waited for"
    for broker in others:
        if not eligible_returns:
            register(harness, broker, life=1)
        heartbeat(harness, broker)
    if not eligible_returns:
        elect_at_any_price(harness)
    state = state_of(harness)
    assert (state.leader not in (-1, leader), state.last_known_elr) == (True, ())
    assert state.directory_of(BrokerId(leader)) == directory(leader, 5)


OLD, NEW, OTHER = (directory(2, number) for number in (5, 6, 7))


def test_who_brings_another_disk_is_not_waited_for_where_others_may_have_what_was_lost() -> None:
    state = lost_in_turn(OLD, replaced=(NEW,))
    assert (state.leader, set(state.last_known_elr), state.directory_of(BrokerId(2))) == (-1, {1, 3}, NEW)
    state = lost_in_turn(OLD, OTHER, replaced=(NEW, OTHER))
    assert 2 not in state.last_known_elr and state.directory_of(BrokerId(2)) in (NEW, OTHER)


def test_who_comes_without_a_disk_that_may_come_back_is_waited_for() -> None:
    state = lost_in_turn(OLD, OTHER, replaced=(OTHER,))
    assert (state.leader, 2 in state.last_known_elr, state.directory_of(BrokerId(2))) == (-1, True, OLD)


def test_one_new_disk_does_not_stand_for_one_that_is_gone_now_and_one_that_has_failed_before() -> None:
    harness = leading(3)
    harness.controller.sessions.end(BrokerId(2))
    register(harness, 2, life=1, log_dirs=[OLD, OTHER])
    heartbeat(harness, 2)
    create(harness, partitions=2, min_insync_replicas="3")
    assert (assign(harness, 2, OLD, 0), assign(harness, 2, OTHER, 1)) == (["NONE"], ["NONE"])
    for broker in (3, 1):
        harness.controller.sessions.end(BrokerId(broker))
        register(harness, broker, life=1)
    for life, dirs in ((2, [OTHER]), (3, [NEW])):
        harness.controller.sessions.end(BrokerId(2))
        register(harness, 2, life=life, log_dirs=dirs)
    heartbeat(harness, 2)
    states = [state_of(harness, partition=index) for index in (0, 1)]
    assert [state.directory_of(BrokerId(2)) for state in states] == [OLD, OTHER], "either of them may come back"
    assert all(state.leader == -1 and 2 in state.last_known_elr for state in states)


def led_by_another_than_2(min_isr: int, *others: Uuid) -> Harness:
    """Of three replicas; that of broker 2 is in OLD, one of several directories."""
    harness = leading(3)
    harness.controller.sessions.end(BrokerId(2))
    register(harness, 2, life=1, log_dirs=[OLD, *others])
    heartbeat(harness, 2)
    create(harness, min_insync_replicas=str(min_isr))
    assert assign(harness, 2, OLD, 0) == ["NONE"]
    leader = int(state_of(harness).leader)
    assert leader != 2
    alter(harness, [leader])
    return harness


def test_a_partition_with_a_leader_does_not_wait_for_a_directory_that_is_gone() -> None:
    harness = led_by_another_than_2(3, OTHER)
    harness.controller.sessions.end(BrokerId(2))
    register(harness, 2, life=2, log_dirs=[OTHER])
    heartbeat(harness, 2)
    state = state_of(harness)
    assert (state.directory_of(BrokerId(2)), state.last_known_elr) == (OTHER, ())
    alter(harness, [int(state.leader), *sorted({1, 2, 3} - {int(state.leader)})])
    assert len(state_of(harness).isr) == 3, "min ISR can be reached again"


@pytest.mark.parametrize(("others", "place"), [((OTHER,), OTHER), ((OTHER, NEW), UNASSIGNED_DIRECTORY)])
def test_a_clean_election_ends_the_wait_for_a_directory_that_is_gone(others: tuple[Uuid, ...], place: Uuid) -> None:
    harness = led_by_another_than_2(3, *others)
    for broker in (1, 2, 3):
        harness.controller.expire_session(BrokerId(broker), "test")
    register(harness, 2, life=2, log_dirs=[*others])
    heartbeat(harness, 2)
    state = state_of(harness)
    assert (state.leader, state.last_known_elr, state.directory_of(BrokerId(2))) == (-1, (2,), OLD), "it is waited for"
    for broker in (1, 3):
        heartbeat(harness, broker)
    state = state_of(harness)
    assert state.leader in (1, 3) and state.directory_of(BrokerId(2)) == place
    alter(harness, [int(state.leader), *sorted({1, 2, 3} - {int(state.leader)})])
    assert len(state_of(harness).isr) == 3


def lose_the_follower(previous: int) -> tuple[int, Any]:
    """A follower in the ELR comes back; (its id, the partition's state)."""
    harness = leading(3)
    create(harness, "foo", min_insync_replicas="2")
    leader = int(state_of(harness).leader)
    alter(harness, [leader])
    follower = min({1, 2, 3} - {leader})
    assert follower in state_of(harness).elr
    harness.controller.sessions.end(follower)  # type: ignore[arg-type]
    register(harness, follower, life=1, previous=epoch_of(harness, follower) if previous else -1)
    return follower, state_of(harness)


def test_a_clean_restart_keeps_the_elr_seat() -> None:
    follower, state = lose_the_follower(previous=1)
    assert follower in state.elr


def test_an_unclean_restart_loses_the_elr_seat() -> None:
    follower, state = lose_the_follower(previous=0)
    assert follower not in state.elr


def in_the_elr(previous_epoch: Callable[[Harness, int], int]) -> tuple[Harness, int]:
    """A follower in the ELR registers cleanly, nothing more is heard of that process, and another one registers."""
    harness = leading(3)
    create(harness, "foo", min_insync_replicas="2")
    leader = int(state_of(harness).leader)
    alter(harness, [leader])
    follower = min({1, 2, 3} - {leader})
    stopped_in = epoch_of(harness, follower)
    for life in (1, 2):
        harness.controller.sessions.end(BrokerId(follower))
        register(harness, follower, life=life, previous=stopped_in)
        assert follower in state_of(harness).elr
    harness.controller.sessions.end(BrokerId(follower))
    register(harness, follower, life=3, previous=previous_epoch(harness, stopped_in))
    return harness, follower


def test_a_registration_whose_answer_was_lost_does_not_make_the_clean_stop_before_it_an_unclean_one() -> None:
    harness, follower = in_the_elr(lambda _, stopped_in: stopped_in)
    assert follower in state_of(harness).elr


@pytest.mark.parametrize("difference", [-1, 1])
def test_no_other_older_epoch_proves_a_clean_stop(difference: int) -> None:
    harness, follower = in_the_elr(lambda _, stopped_in: stopped_in + difference)
    assert follower not in state_of(harness).elr


def test_once_a_broker_was_unfenced_the_proof_of_its_registration_counts_no_more() -> None:
    harness = leading(3)
    create(harness, "foo", min_insync_replicas="2")
    leader = int(state_of(harness).leader)
    alter(harness, [leader])
    follower = min({1, 2, 3} - {leader})
    stopped_in = epoch_of(harness, follower)
    harness.controller.sessions.end(BrokerId(follower))
    register(harness, follower, life=1, previous=stopped_in)
    heartbeat(harness, follower)
    assert not harness.controller.image.brokers[BrokerId(follower)].fenced
    harness.controller.sessions.end(BrokerId(follower))
    register(harness, follower, life=2, previous=stopped_in)
    assert follower not in state_of(harness).elr


def test_without_guard_9_an_unclean_restart_keeps_a_seat_that_it_cannot_vouch_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registration, "stopped_cleanly", lambda *_: True)
    follower, state = lose_the_follower(previous=0)
    assert follower in state.elr
