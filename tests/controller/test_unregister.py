"""UnregisterBroker: a broker that is not coming back leaves every list."""

from __future__ import annotations

from controller.cluster import alter, create, heartbeat, leading, register, state_of
from controller.fakes import Harness

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UnregisterBrokerRequest
from heirlog.testing.conformance.controller_layer import directory


def unregister(harness: Harness, broker: int) -> str:
    answer = harness.ask("unregister_broker", UnregisterBrokerRequest(broker_id=broker), 0)
    return ErrorCode(answer.error_code).name


def test_an_eligible_replica_that_is_unregistered_is_not_waited_for() -> None:
    harness = leading()
    create(harness, min_insync_replicas="2")
    leader = state_of(harness).leader
    alter(harness, [leader])
    eligible = state_of(harness).elr[0]
    heartbeat(harness, eligible, want_fence=True)
    assert unregister(harness, eligible) == "NONE"
    state = state_of(harness)
    assert eligible not in state.elr and eligible in state.replicas
    assert eligible not in harness.controller.image.brokers


def test_an_unregistered_leader_is_in_no_list_and_somebody_else_leads() -> None:
    harness = leading()
    create(harness, min_insync_replicas="2")
    leader = state_of(harness).leader
    assert unregister(harness, leader) == "NONE"
    state = state_of(harness)
    assert state.leader not in (-1, leader) and leader not in state.isr + state.elr + state.last_known_elr


def test_the_last_known_leader_is_forgotten_with_its_broker() -> None:
    harness = leading(unclean_recovery_manager_enabled="false")
    create(harness, min_insync_replicas="1")
    for broker in (1, 2, 3):
        heartbeat(harness, broker, want_fence=True)
    (last,) = state_of(harness).last_known_elr
    assert unregister(harness, last) == "NONE"
    state = state_of(harness)
    assert (state.isr, state.elr, state.last_known_elr, state.leader) == ((), (), (), -1)


def test_the_only_replica_begins_anew_on_another_disk_once_its_broker_was_unregistered() -> None:
    harness = leading(1)
    create(harness, factor=1)
    heartbeat(harness, 1, want_fence=True)
    assert unregister(harness, 1) == "NONE"
    register(harness, 1, life=1, log_dirs=[directory(1, 1)])
    state = state_of(harness)
    assert (state.leader, state.last_known_elr, state.directories) == (-1, (), (directory(1, 1),))


def test_an_unknown_broker_is_refused() -> None:
    harness = leading()
    assert unregister(harness, 9) == "BROKER_ID_NOT_REGISTERED"
    assert unregister(harness, 3) == "NONE"
    assert unregister(harness, 3) == "BROKER_ID_NOT_REGISTERED"
