"""Broker sessions: what counts as contact, who is silent for longest, and what a failover and a pause change."""

from __future__ import annotations

from heirlog.controller.sessions import Sessions
from heirlog.protocol.types import BrokerEpoch, BrokerId

ONE, TWO = BrokerId(1), BrokerId(2)
EPOCH = BrokerEpoch(11)
TIMEOUT_MS, GRACE_MS = 9000, 1000


def sessions(grace_ms: int = GRACE_MS) -> Sessions:
    return Sessions(TIMEOUT_MS, grace_ms)


def test_a_heartbeat_starts_a_session_of_that_registration_only() -> None:
    found = sessions()
    found.touch(ONE, EPOCH, 0, None, 5)
    assert found.is_live(ONE, EPOCH)
    assert not found.is_live(ONE, BrokerEpoch(12))
    assert not found.is_live(TWO, EPOCH)


def test_a_new_registration_replaces_the_session_and_what_it_knew() -> None:
    found = sessions()
    found.touch(ONE, EPOCH, 0, None, 5)
    found.touch(ONE, BrokerEpoch(12), 1, None, -1)
    assert not found.is_live(ONE, EPOCH)
    assert found.metadata_offset(ONE, BrokerEpoch(12)) == -1


def test_the_broker_silent_for_longest_is_stale_after_the_session_timeout() -> None:
    found = sessions()
    found.touch(ONE, EPOCH, 100, None, 0)
    found.touch(TWO, EPOCH, 50, None, 0)
    assert found.longest_without_heartbeat(TIMEOUT_MS + 49) is None
    assert found.longest_without_heartbeat(TIMEOUT_MS + 50) == TWO
    assert found.longest_without_heartbeat(TIMEOUT_MS + 500) == TWO
    found.end(TWO)
    assert found.longest_without_heartbeat(TIMEOUT_MS + 500) == ONE


def test_the_grace_begins_when_the_connection_of_the_newest_heartbeat_closes() -> None:
    found, first, second = sessions(), object(), object()
    found.touch(ONE, EPOCH, 0, first, 0)
    found.touch(ONE, EPOCH, 10, second, 0)
    assert not found.connection_closed(ONE, EPOCH, first, 20)
    assert found.connection_closed(ONE, EPOCH, second, 20)
    assert not found.grace_has_ended(ONE, EPOCH, 20 + GRACE_MS - 1)
    assert found.grace_has_ended(ONE, EPOCH, 20 + GRACE_MS)


def test_a_heartbeat_on_a_new_connection_ends_the_grace() -> None:
    found, first = sessions(), object()
    found.touch(ONE, EPOCH, 0, first, 0)
    found.connection_closed(ONE, EPOCH, first, 10)
    found.touch(ONE, EPOCH, 20, object(), 0)
    assert not found.grace_has_ended(ONE, EPOCH, 10**6)


def test_a_grace_of_minus_one_is_kafkas_rule() -> None:
    found, connection = sessions(grace_ms=-1), object()
    found.touch(ONE, EPOCH, 0, connection, 0)
    assert not found.connection_closed(ONE, EPOCH, connection, 10)
    assert not found.grace_has_ended(ONE, EPOCH, 10**6)


def test_a_pause_of_the_controller_itself_counts_for_no_broker() -> None:
    found, connection = sessions(), object()
    found.touch(ONE, EPOCH, 0, None, 0)
    found.touch(TWO, EPOCH, 0, connection, 0)
    found.connection_closed(TWO, EPOCH, connection, 500)
    found.extend_all(5000)
    assert found.longest_without_heartbeat(TIMEOUT_MS + 4999) is None
    assert found.longest_without_heartbeat(TIMEOUT_MS + 5000) == ONE
    assert not found.grace_has_ended(TWO, EPOCH, 5500 + GRACE_MS - 1)


def test_the_applied_metadata_offset_never_goes_back() -> None:
    found = sessions()
    found.touch(ONE, EPOCH, 0, None, 7)
    found.touch(ONE, EPOCH, 1, None, 5)
    assert found.metadata_offset(ONE, EPOCH) == 7


def test_without_a_session_nothing_is_known() -> None:
    found = sessions()
    assert found.since_heartbeat_ms(ONE, 10) is None
    assert found.metadata_offset(ONE, EPOCH) == -1
    assert found.shutdown_offset(ONE, EPOCH) is None
    assert not found.connection_closed(ONE, EPOCH, None, 0)
    assert found.longest_without_heartbeat(10**9) is None
