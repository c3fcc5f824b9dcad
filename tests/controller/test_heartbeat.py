"""Heartbeats that carry more than life: failed log directories."""

from __future__ import annotations

import pytest
from controller.cluster import assign, create, heartbeat, leading, register, state_of
from controller.fakes import Harness

from heirlog.protocol.types import BrokerId
from heirlog.testing.conformance.controller_layer import directory


def test_a_broker_without_a_log_directory_is_fenced_once_and_never_becomes_eligible() -> None:
    harness = leading()
    create(harness, min_insync_replicas="3")
    leader = int(state_of(harness).leader)
    for _ in range(2):
        answer = heartbeat(harness, leader, offline_log_dirs=[directory(leader, 0)])
        assert answer.is_fenced
    state = state_of(harness)
    assert leader not in state.isr and leader not in state.elr
    end = harness.quorum.log_end_offset
    heartbeat(harness, leader, offline_log_dirs=[directory(leader, 0)])
    assert harness.quorum.log_end_offset == end, "nothing new, nothing written"


def _two_directories() -> Harness:
    """Brokers 1 (two directories, two partitions in each) and 2; with a min ISR that only both fulfil."""
    harness = leading(0)
    register(harness, 1, log_dirs=[directory(1, 0), directory(1, 1)])
    register(harness, 2)
    for broker in (1, 2):
        heartbeat(harness, broker)
    create(harness, partitions=4, factor=2, min_insync_replicas="2")
    assign(harness, 1, directory(1, 0), 0, 1)
    assign(harness, 1, directory(1, 1), 2, 3)
    return harness


def _lies_in(harness: Harness, partition: int, number: int) -> bool:
    return state_of(harness, partition=partition).directory_of(BrokerId(1)) == directory(1, number)


@pytest.mark.parametrize("wanted", ["want_shut_down", "want_fence"])
def test_a_directory_that_fails_with_the_same_heartbeat_as_a_stop_leaves_nobody_eligible_for_it(wanted: str) -> None:
    harness = _two_directories()
    heartbeat(harness, 1, offline_log_dirs=[directory(1, 0)], **{wanted: True})
    for partition in range(4):
        state = state_of(harness, partition=partition)
        assert 1 not in state.isr and state.leader == 2
        assert (1 in state.elr) is _lies_in(harness, partition, 1)
    assert harness.controller.image.brokers[BrokerId(1)].directories == (directory(1, 1),)


def test_a_broker_that_asks_to_be_unfenced_with_a_directory_just_lost_stays_fenced_for_this_heartbeat() -> None:
    harness = _two_directories()
    heartbeat(harness, 1, want_fence=True)
    assert heartbeat(harness, 1, offline_log_dirs=[directory(1, 0)]).is_fenced
    assert not heartbeat(harness, 1, offline_log_dirs=[directory(1, 0)]).is_fenced
    assert not any(1 in state_of(harness, partition=p).elr for p in range(4) if _lies_in(harness, p, 0))


def test_unknown_directories_change_nothing() -> None:
    harness = leading()
    create(harness)
    before = state_of(harness)
    heartbeat(harness, 1, offline_log_dirs=[directory(9, 9)])
    assert state_of(harness) == before


def test_of_a_broker_with_two_directories_one_that_fails_takes_only_its_own_partitions_along() -> None:
    harness = leading(0)
    register(harness, 1, log_dirs=[directory(1, 0), directory(1, 1)])
    heartbeat(harness, 1)
    create(harness, partitions=4, factor=1)
    assign(harness, 1, directory(1, 0), 1, 3)
    assign(harness, 1, directory(1, 1), 0, 2)
    heartbeat(harness, 1, offline_log_dirs=[directory(1, 0)])
    assert [state_of(harness, partition=partition).leader for partition in range(4)] == [1, -1, 1, -1]
