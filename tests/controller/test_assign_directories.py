"""AssignReplicasToDirs: what the controller makes of a broker's word on where its replicas lie."""

from __future__ import annotations

from controller.cluster import alter, assign, create, epoch_of, heartbeat, leading, register, state_of
from controller.fakes import Harness

from heirlog.metadata.state import UNASSIGNED_DIRECTORY
from heirlog.protocol.types import BrokerId
from heirlog.testing.conformance.controller_layer import directory

ONE = BrokerId(1)


def _mixed(min_isr: int = 1) -> Harness:
    """Broker 1 has two directories, 2 and 3 have one; a topic of two partitions that 1 leads."""
    harness = leading(0)
    register(harness, 1, log_dirs=[directory(1, 0), directory(1, 1)])
    heartbeat(harness, 1)
    for broker in (2, 3):
        register(harness, broker)
        heartbeat(harness, broker)
    create(harness, partitions=3, min_insync_replicas=str(min_isr))
    return harness


def test_only_a_broker_with_several_directories_is_left_to_choose() -> None:
    state = state_of(_mixed())
    assert {broker: state.directory_of(broker) for broker in state.replicas} == {
        1: UNASSIGNED_DIRECTORY,
        2: directory(2, 0),
        3: directory(3, 0),
    }


def test_a_report_is_written_once_and_moves_nothing_but_the_partition_epoch() -> None:
    harness = _mixed()
    before = state_of(harness)
    assert assign(harness, 1, directory(1, 1), 0, 1) == ["NONE", "NONE"]
    after = state_of(harness)
    assert after.directory_of(ONE) == directory(1, 1)
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)
    assert (after.isr, after.leader) == (before.isr, before.leader)
    end = harness.quorum.log_end_offset
    assert assign(harness, 1, directory(1, 1), 0, 1) == ["NONE", "NONE"]
    assert harness.quorum.log_end_offset == end, "nothing new, nothing written"


def test_a_disk_that_failed_before_it_was_reported_takes_its_replicas_out_of_the_isr_and_into_no_elr() -> None:
    harness = _mixed(min_isr=3)
    heartbeat(harness, 1, offline_log_dirs=[directory(1, 0)])
    assert 1 in state_of(harness).isr, "the controller cannot know yet"
    assert assign(harness, 1, directory(1, 0), 0) == ["NONE"]
    state = state_of(harness)
    assert 1 not in (*state.isr, *state.elr) and state.leader in (2, 3)
    assert 1 in state_of(harness, partition=1).isr, "that one lies elsewhere, or nobody has said so"


def test_an_eligible_replica_on_a_disk_that_failed_before_it_was_reported_is_eligible_no_longer() -> None:
    harness = _mixed(min_isr=3)
    partition = next(index for index in range(3) if state_of(harness, partition=index).leader != 1)
    alter(harness, [2, 3], partition=partition)
    assert 1 in state_of(harness, partition=partition).elr
    heartbeat(harness, 1, offline_log_dirs=[directory(1, 1)])
    assert assign(harness, 1, directory(1, 1), partition) == ["NONE"]
    assert 1 not in state_of(harness, partition=partition).elr


def test_a_leaderless_partition_is_led_again_where_its_log_turns_up() -> None:
    harness = leading(0, unclean_recovery_manager_enabled="false")
    register(harness, 1, log_dirs=[directory(1, 0), directory(1, 1)])
    heartbeat(harness, 1)
    create(harness, factor=1)
    assign(harness, 1, directory(1, 0), 0)
    heartbeat(harness, 1, offline_log_dirs=[directory(1, 0)])
    assert state_of(harness).leader == -1
    assert assign(harness, 1, directory(1, 1), 0) == ["NONE"]
    state = state_of(harness)
    # the last known leader: nobody can say that the log which turned up is the one that was lost
    assert (state.leader, state.leader_recovery_state) == (1, 1)


def test_what_cannot_be_assigned_has_an_error_of_its_own() -> None:
    harness = _mixed()
    create(harness, "bar", factor=1)
    stranger = next(broker for broker in (1, 2, 3) if broker not in state_of(harness, "bar").replicas)
    assert assign(harness, 1, directory(1, 0), 0, 9) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert assign(harness, 1, directory(1, 0), 0, topic="nowhere") == ["UNKNOWN_TOPIC_ID"]
    assert assign(harness, stranger, directory(stranger, 0), 0, topic="bar") == ["NOT_LEADER_OR_FOLLOWER"]


def test_another_incarnation_is_refused_as_a_whole() -> None:
    harness = _mixed()
    assert assign(harness, 1, directory(1, 0), 0, epoch=epoch_of(harness, 1) + 1) == "STALE_BROKER_EPOCH"
    assert state_of(harness).directory_of(ONE) == UNASSIGNED_DIRECTORY


def test_an_inactive_controller_refuses() -> None:
    harness = _mixed()
    epoch = epoch_of(harness, 1)
    harness.lose()
    assert assign(harness, 1, directory(1, 0), 0, epoch=epoch) == "NOT_CONTROLLER"
