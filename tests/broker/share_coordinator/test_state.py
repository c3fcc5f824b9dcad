"""The rules of one share partition's state: who may write it, and what its records add up to."""

from __future__ import annotations

import random

import pytest

from heirlog.broker.share_coordinator.batches import StateBatch
from heirlog.broker.share_coordinator.records import read_record, write_record
from heirlog.broker.share_coordinator.state import (
    LOWEST_STATE_EPOCH,
    NOT_READ,
    SharePartitionKey,
    ShareRecord,
    ShareState,
    ShareUpdate,
    StateWrite,
    applied,
    check_leader,
    initialized,
    is_cold,
    next_snapshot,
    read_by,
    updated,
    written,
)
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import Uuid

KEY = SharePartitionKey("g", Uuid(b"t" * 16), 3)
MANY = 500


def write(state_epoch: int = 1, leader_epoch: int = 4, start: int = -1, *batches: StateBatch) -> StateWrite:
    return StateWrite(state_epoch, leader_epoch, start, 0, batches)


def after(before: ShareState | None, value: ShareState | ShareUpdate | None) -> ShareState:
    state = applied(before, ShareRecord(KEY, value))
    assert state is not None
    return state


def begun(state_epoch: int, start: int, wall_ms: int = 0) -> ShareState:
    """A state that a leader has read."""
    state = after(None, initialized(None, state_epoch, start, wall_ms))
    return after(state, read_by(state, 0))


def refusal(before: ShareState | None, asked: StateWrite) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        written(before, asked, MANY, 0)
    return raised.value.code


def test_a_state_begins_with_an_initialization_and_a_later_one_begins_it_again() -> None:
    state = initialized(None, 1, -1, 1000)
    assert (state.snapshot_epoch, state.state_epoch, state.start_offset) == (0, 1, -1)
    state = after(state, read_by(state, 4))
    state = after(state, written(state, write(1, 4, 10, StateBatch(10, 12, 2, 1)), MANY, 0))
    again = initialized(state, 2, 3, 2000)
    assert (again.snapshot_epoch, again.state_epoch, again.start_offset, again.batches) == (1, 2, 3, ())
    further = after(again, written(again, write(2, 4, 10, StateBatch(10, 12, 2, 1)), MANY, 0))
    assert initialized(further, 2, 3, 2000) is further, "the same request again"
    with pytest.raises(KafkaError) as raised:
        initialized(again, 1, 0, 0)
    assert raised.value.code is ErrorCode.FENCED_STATE_EPOCH


def test_only_the_newest_leader_with_the_newest_state_writes() -> None:
    assert refusal(None, write()) is ErrorCode.INVALID_REQUEST
    state = begun(1, 0)
    state = after(state, written(state, write(leader_epoch=4), MANY, 0))
    assert refusal(state, write(leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(state, write(state_epoch=0)) is ErrorCode.FENCED_STATE_EPOCH
    assert written(state, write(state_epoch=-1, leader_epoch=-1), MANY, 0) == ShareUpdate(0, 4, -1, 0, ())
    after_alter = after(state, initialized(state, 2, 7, 0))
    assert refusal(after_alter, write(state_epoch=1)) is ErrorCode.FENCED_STATE_EPOCH
    assert refusal(after_alter, write(state_epoch=2, leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("leader_epoch", [0, 4])
def test_a_leader_with_the_state_of_a_deleted_group_does_not_write_to_the_next_one(leader_epoch: int) -> None:
    before = after(None, initialized(None, 1, 0, 0))
    before = after(before, read_by(before, leader_epoch))
    late = write(1, leader_epoch, 10)
    written(before, late, MANY, 0)
    assert applied(before, ShareRecord(KEY, None)) is None
    again = after(None, initialized(None, 1, 0, 0))
    assert refusal(again, late) is ErrorCode.FENCED_STATE_EPOCH
    assert read_by(again, -1) is None, "that is no leader"
    again = after(again, read_by(again, leader_epoch))
    assert again.leader_epoch == leader_epoch
    written(again, late, MANY, 0)


def test_a_leader_restores_what_an_election_has_lost() -> None:
    restored = after(None, initialized(None, LOWEST_STATE_EPOCH, -1, 0))
    restored = after(restored, written(restored, write(3, 0, 10), MANY, 0))
    assert (restored.state_epoch, restored.start_offset) == (LOWEST_STATE_EPOCH, 10)


def test_a_read_by_a_newer_leader_fences_the_older_ones() -> None:
    state = begun(1, 5)
    assert read_by(state, 0) is None
    update = read_by(state, 4)
    assert update is not None
    state = after(state, update)
    assert (state.leader_epoch, state.start_offset) == (4, 5)
    assert read_by(state, 4) is None
    for older in (3, -1):
        with pytest.raises(KafkaError) as raised:
            check_leader(state, older)
        assert raised.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(state, write(leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH


def test_a_write_that_arrives_after_a_later_one_does_not_move_the_start_offset_back() -> None:
    state = begun(1, 0)
    earlier = written(state, write(1, 4, 10, StateBatch(12, 12, 0, 1)), MANY, 0)
    state = after(state, earlier)
    state = after(state, written(state, write(1, 4, 20, StateBatch(22, 22, 2, 1)), MANY, 0))
    again = after(state, written(state, write(1, 4, 10, StateBatch(12, 12, 0, 1)), MANY, 0))
    assert (again.start_offset, again.batches) == (20, (StateBatch(22, 22, 2, 1),))


def test_after_many_updates_comes_a_snapshot_of_all_of_them() -> None:
    state = begun(1, 0)
    for number in range(3):
        value = written(state, write(1, 4, -1, StateBatch(2 * number, 2 * number, 2, 1)), 3, 99)
        assert isinstance(value, ShareState) == (number == 2)
        state = after(state, value)
    assert (state.snapshot_epoch, state.update_count, state.create_ms, state.write_ms) == (1, 0, 99, 99)
    assert [each.first_offset for each in state.batches] == [0, 2, 4]


def test_one_snapshot_for_pruning_is_enough_until_the_next_update() -> None:
    state = after(None, initialized(None, 1, 0, 1000))
    assert not is_cold(state)
    state = after(state, next_snapshot(state, 2000))
    assert is_cold(state)
    assert (state.create_ms, state.write_ms, state.snapshot_epoch) == (1000, 2000, 1)
    assert not is_cold(updated(state, ShareUpdate(1, 4, -1, 0, ())))


def test_the_records_say_the_same_after_they_were_written_and_read() -> None:
    batches = (StateBatch(1, 5, 0, 1), StateBatch(6, 6, 4, 5))
    for record in (
        ShareRecord(KEY, ShareState(2, 3, 4, 5, 6, batches, 7, 8)),
        ShareRecord(KEY, ShareUpdate(2, 4, -1, -1, batches)),
        ShareRecord(KEY, None),
    ):
        assert read_record(*write_record(record)) == record


def test_records_have_the_bytes_of_kafkas_layout() -> None:
    """By the schemas of the generated classes of Apache Kafka 4.2.0."""
    key, value = write_record(ShareRecord(KEY, ShareState(1, 2, 3, 4, 5, (StateBatch(6, 7, 2, 1),), 8, 9)))
    assert key == b"\0\0" + b"\0\1g" + b"t" * 16 + b"\0\0\0\3"
    assert value == (
        b"\0\0" + b"\0\0\0\1" + b"\0\0\0\2" + b"\0\0\0\3" + (4).to_bytes(8, "big") + (8).to_bytes(8, "big")
        + (9).to_bytes(8, "big") + b"\2" + (6).to_bytes(8, "big") + (7).to_bytes(8, "big") + b"\2" + b"\0\1" + b"\0"
        + b"\1\0\4\0\0\0\5"
    )  # fmt: skip
    assert write_record(ShareRecord(KEY, ShareUpdate(1, 3, 4, -1, ())))[0][:2] == b"\0\1"


def test_any_end_of_a_log_gives_the_same_state_once_it_has_the_newest_snapshot() -> None:
    """Pruning cuts in front of it; a replay that begins earlier must end the same."""
    rng = random.Random(3)
    for _ in range(100):
        state: ShareState | None = None
        log: list[ShareRecord] = []
        for step in range(rng.randrange(2, 30)):
            if state is None or rng.random() < 0.1:
                value: ShareState | ShareUpdate | None = initialized(state, step, rng.randrange(5), 0)
            elif rng.random() < 0.1:
                value = next_snapshot(state, step)
            elif rng.random() < 0.05:
                value = None
            elif state.leader_epoch == NOT_READ:
                value = read_by(state, rng.randrange(3))
            else:
                first = rng.randrange(20)
                asked = write(-1, rng.choice((-1, state.leader_epoch, state.leader_epoch + 1)), rng.choice((-1, step)))
                asked = asked._replace(batches=(StateBatch(first, first + 3, rng.choice((0, 2)), rng.randrange(3)),))
                value = written(state, asked, 4, 0)
            log.append(ShareRecord(KEY, value))
            state = applied(state, log[-1])
        newest = max((n for n, each in enumerate(log) if not isinstance(each.value, ShareUpdate)), default=0)
        for begin in range(newest + 1):
            replayed: ShareState | None = None
            for record in log[begin:]:
                stored = read_record(*write_record(record))
                assert stored is not None
                replayed = applied(replayed, stored)
            assert replayed == state
