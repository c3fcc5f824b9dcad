"""The controller's own elections: preferred leaders back in charge, and leaderless partitions that may be unclean."""

from __future__ import annotations

from functools import partial

import pytest
from controller.cluster import alter, create, heartbeat, leading, state_of
from controller.fakes import Harness

from heirlog.controller import controller as controller_module
from heirlog.controller.elect_leaders import balance, elect_unclean
from heirlog.protocol.messages import IncrementalAlterConfigsRequest

SHIPPED_RULES = {"unclean_recovery_manager_enabled": "false", "unclean_leader_election_interval_ms": "5000"}
NEVER_SILENT = {"broker_session_timeout_ms": "100000000"}


def moved_away(harness: Harness, partitions: int) -> list[int]:
    """Partitions that their first replica does not lead, though it could; the first replicas."""
    create(harness, partitions=partitions)
    preferred = [int(state_of(harness, partition=index).replicas[0]) for index in range(partitions)]
    for broker in (1, 2):
        heartbeat(harness, broker, want_fence=True)
        heartbeat(harness, broker)
    for index in range(partitions):
        alter(harness, [1, 2, 3], partition=index)
    assert leaders(harness, partitions) == [3] * partitions
    return preferred


def leaders(harness: Harness, partitions: int) -> list[int]:
    return [int(state_of(harness, partition=index).leader) for index in range(partitions)]


def after(harness: Harness, ms: int) -> None:
    harness.env.advance(ms)
    harness.commit()


def test_a_balancer_that_is_switched_off_moves_nobody() -> None:
    harness = leading(auto_leader_rebalance_enable="false", leader_imbalance_check_interval_seconds="1", **NEVER_SILENT)
    moved_away(harness, 3)
    after(harness, 60_000)
    assert leaders(harness, 3) == [3, 3, 3]


def test_the_interval_is_that_of_the_configuration() -> None:
    harness = leading(leader_imbalance_check_interval_seconds="40", **NEVER_SILENT)
    preferred = moved_away(harness, 3)
    after(harness, 39_000)
    assert leaders(harness, 3) == [3, 3, 3]
    after(harness, 1_000)
    assert leaders(harness, 3) == preferred


def test_a_preferred_replica_that_is_not_in_sync_does_not_lead() -> None:
    harness = leading(leader_imbalance_check_interval_seconds="1", **NEVER_SILENT)
    create(harness)
    first = int(state_of(harness).replicas[0])
    heartbeat(harness, first, want_fence=True)
    heartbeat(harness, first)
    led_by = state_of(harness).leader
    after(harness, 5_000)
    assert state_of(harness).leader == led_by != first


def test_what_a_run_leaves_over_follows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_module, "balance", partial(balance, limit=2))
    harness = leading(leader_imbalance_check_interval_seconds="1", **NEVER_SILENT)
    preferred = moved_away(harness, 5)
    after(harness, 1_000)
    assert sum(led == 3 for led in leaders(harness, 5)) > sum(first == 3 for first in preferred)
    after(harness, 30)
    assert leaders(harness, 5) == preferred


def allow_unclean(harness: Harness, topic: str) -> None:
    change = IncrementalAlterConfigsRequest.AlterableConfig(
        name="unclean.leader.election.enable", config_operation=0, value="true"
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2, resource_name=topic, configs=[change]
    )
    (answer,) = harness.ask(
        "incremental_alter_configs", IncrementalAlterConfigsRequest(resources=[resource]), 1
    ).responses
    assert not answer.error_code


def leaderless(harness: Harness, *topics: str) -> None:
    """Only broker 1 is alive, which was thrown out of every ISR before the others went."""
    for topic in topics:
        create(harness, topic)
        if state_of(harness, topic).leader == 1:
            heartbeat(harness, 1, want_fence=True)
            heartbeat(harness, 1)
        alter(harness, [2, 3], topic=topic)
    for broker in (2, 3):
        heartbeat(harness, broker, want_fence=True)
    assert all(state_of(harness, topic).leader == -1 for topic in topics)


def test_a_topic_that_may_be_unclean_is_elected_for_at_the_next_interval_and_no_other() -> None:
    harness = leading(**SHIPPED_RULES, **NEVER_SILENT)
    leaderless(harness, "foo", "bar")
    allow_unclean(harness, "foo")
    assert state_of(harness, "foo").leader == -1, "the flag alone elects nobody"
    after(harness, 5_000)
    assert (state_of(harness, "foo").leader, state_of(harness, "foo").leader_recovery_state) == (1, 1)
    assert state_of(harness, "bar").leader == -1


def test_unclean_elections_of_a_run_are_limited_and_follow_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_module, "elect_unclean", partial(elect_unclean, limit=1))
    harness = leading(**SHIPPED_RULES, **NEVER_SILENT)
    leaderless(harness, "foo", "bar")
    allow_unclean(harness, "foo")
    allow_unclean(harness, "bar")
    after(harness, 5_000)
    assert sum(state_of(harness, topic).leader == 1 for topic in ("foo", "bar")) == 1
    after(harness, 20)
    assert all(state_of(harness, topic).leader == 1 for topic in ("foo", "bar"))
