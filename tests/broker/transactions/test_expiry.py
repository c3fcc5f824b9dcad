"""Which transactional ids are deleted when nobody uses them, and which transactions are aborted after a time."""

from __future__ import annotations

import pytest

from heirlog.broker.transactions import expiry
from heirlog.protocol.errors import ErrorCode

from ..fakes import state
from .test_coordinator import TRANSACTIONS, Coordinating, added, code, listed, producer

HOUR_MS = 3_600_000


def in_state(name: str, **properties: str) -> Coordinating:
    """With `t` in this state for more than an hour."""
    rig = Coordinating(transactional_id_expiration_ms=str(HOUR_MS), **properties)
    me = producer(rig.init(timeout_ms=900_000))
    if name != "Empty":
        rig.add(me, 0)
    if name not in ("Empty", "Ongoing"):
        rig.end(me, commit=name.endswith("Commit"))
    if name.startswith("Complete"):
        rig.answer_markers()
    assert rig.state_name == name
    return rig


@pytest.mark.parametrize("name", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_an_id_without_a_transaction_is_deleted(name: str) -> None:
    rig = in_state(name)
    rig.env.advance(2 * HOUR_MS + 1)
    assert rig.described().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert code(rig.init()) == "NONE"


@pytest.mark.parametrize("name", ["PrepareCommit", "PrepareAbort"])
def test_an_id_whose_markers_are_on_their_way_stays(name: str) -> None:
    rig = in_state(name)
    rig.env.advance(10 * HOUR_MS)
    assert rig.state_name == name


def test_an_open_transaction_is_aborted_first() -> None:
    rig = in_state("Ongoing")
    rig.env.advance(10 * HOUR_MS)
    assert rig.state_name == "PrepareAbort"


def test_only_an_open_transaction_takes_too_long() -> None:
    for name in ("Empty", "CompleteCommit", "CompleteAbort", "PrepareCommit"):
        rig = in_state(name)
        before = rig.described()
        rig.env.advance(HOUR_MS // 2)
        assert (rig.state_name, rig.described().producer_epoch) == (name, before.producer_epoch)


def test_a_transaction_that_is_being_ended_is_not_timed_out() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    starting = rig.init(timeout_ms=1000)
    rig.followed()
    me = producer(starting)
    rig.add(me, 0)
    rig.followed()
    ending = rig.end(me)
    rig.env.advance(20_000)
    rig.followed()
    assert (code(ending), rig.state_name) == ("NONE", "PrepareCommit")
    assert rig.answer_markers().markers[0].transaction_result is True


def test_an_id_whose_deletion_is_not_written_stays_and_is_tried_again() -> None:
    rig = Coordinating([1, 2], transactional_id_expiration_ms=str(HOUR_MS))
    rig.followed()
    starting = rig.init()
    rig.followed()
    producer(starting)
    rig.set_config("min.insync.replicas", "2", TRANSACTIONS)
    rig.set_partition(state([1, 2], [1], leader_epoch=5, partition_epoch=6), TRANSACTIONS)
    rig.publish()
    rig.env.advance(2 * HOUR_MS)
    assert rig.state_name == "Empty"
    assert code(rig.init("u")) == "COORDINATOR_NOT_AVAILABLE"
    rig.set_partition(state([1, 2], leader_epoch=5, partition_epoch=7), TRANSACTIONS)
    rig.publish()
    rig.env.advance(HOUR_MS)
    rig.followed()
    assert rig.described().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize("limit", ["ids", "bytes"])
def test_many_ids_are_deleted_in_batches_that_the_topic_takes(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Coordinating(transactional_id_expiration_ms=str(HOUR_MS))
    if limit == "ids":
        monkeypatch.setattr(expiry, "EXPIRED_PER_BATCH", 2)
    else:
        rig.set_config("max.message.bytes", "1000", TRANSACTIONS)
        rig.publish()
    names = [f"{number}-{'x' * 200}" for number in range(7)]
    for name in names:
        producer(rig.init(name))
    rig.env.advance(2 * HOUR_MS + 1)
    assert not set(names).intersection(listed(rig))


def test_an_id_that_was_never_written_is_forgotten() -> None:
    # KAFKA-14880: such an id must not stop the deletion of the others
    rig = Coordinating([1, 2], transactional_id_expiration_ms=str(HOUR_MS))
    rig.followed()
    starting = rig.init("idle")
    rig.followed()
    producer(starting)
    rig.set_config("min.insync.replicas", "2", TRANSACTIONS)
    rig.set_partition(state([1, 2], [1], leader_epoch=5, partition_epoch=6), TRANSACTIONS)
    rig.publish()
    assert code(rig.init()) == "COORDINATOR_NOT_AVAILABLE"
    rig.set_partition(state([1, 2], leader_epoch=5, partition_epoch=7), TRANSACTIONS)
    rig.publish()
    rig.env.advance(2 * HOUR_MS + 1)
    rig.followed()
    assert rig.described("idle").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_record_that_is_too_large_changes_nothing() -> None:
    rig = Coordinating()
    rig.set_config("max.message.bytes", "150", TRANSACTIONS)
    rig.publish()
    assert code(rig.init("u" * 200)) == "UNKNOWN_SERVER_ERROR"
    assert rig.described("u" * 200).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert added(rig.add(producer(rig.init()), 0)) == ["NONE"]
