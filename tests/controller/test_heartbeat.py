"""Heartbeats that carry more than life: failed log directories."""

from __future__ import annotations

from controller.cluster import create, heartbeat, leading, register, state_of
from controller.scenarios import directory


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
    # nobody else knows where a replica is: one without a directory would be led by a broker that cannot serve it
    heartbeat(harness, 1, offline_log_dirs=[directory(1, 0)])
    leaders = [int(state_of(harness, partition=partition).leader) for partition in range(4)]
    assert sorted(leaders) == [-1, -1, 1, 1]
