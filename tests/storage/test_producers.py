from __future__ import annotations

from collections import deque

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.logs import batch

from heirlog.protocol.batch import BatchHeader, read_header
from heirlog.protocol.errors import ErrorCode
from heirlog.storage.errors import LogError
from heirlog.storage.producers import ProducerStateEntry, ProducerStateManager


def header(
    sequence: int, count: int = 1, epoch: int = 0, offset: int = 0, producer_id: int = 1, timestamp_ms: int = 0
) -> BatchHeader:
    return read_header(
        batch(
            *["v"] * count,
            timestamp_ms=timestamp_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            base_offset=offset,
        )
    )


def verdict(states: ProducerStateManager, h: BatchHeader) -> object:
    """Accepted (and remembered): None; a duplicate: its first offset; refused: the code."""
    try:
        original = states.check(h)
    except LogError as error:
        return error.code
    if original is None:
        states.update(h)
        return None
    return original.base_offset


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert verdict(ProducerStateManager(), header(17)) is None


def test_a_gap_is_out_of_order() -> None:
    states = ProducerStateManager()
    verdict(states, header(0))
    assert verdict(states, header(2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(states, header(1)) is None


def test_the_last_five_batches_are_duplicates_and_older_ones_are_too_old() -> None:
    states = ProducerStateManager()
    for i in range(7):
        verdict(states, header(2 * i, 2, offset=100 + 2 * i))
    assert [verdict(states, header(2 * i, 2)) for i in range(2, 7)] == [104, 106, 108, 110, 112]
    assert verdict(states, header(2, 2)) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    states = ProducerStateManager()
    verdict(states, header(0, epoch=3))
    assert verdict(states, header(1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert verdict(states, header(1, epoch=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(states, header(0, epoch=4)) is None
    assert verdict(states, header(0, epoch=3)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_no_batch_overtakes_the_first_one_of_a_transaction_that_is_being_verified() -> None:
    states = ProducerStateManager()
    states.guards.guard(1, 0, 0, raises_epoch=False, wall_ms=0)
    assert verdict(states, header(2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(states, header(2, epoch=3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "as on Apache Kafka"
    assert verdict(states, header(0, offset=9)) is None
    states.guards.guard(1, 0, -1, raises_epoch=False, wall_ms=0)
    assert verdict(states, header(0)) == 9, "a repeated batch is older than the guard"


def test_sequences_wrap() -> None:
    states = ProducerStateManager()
    verdict(states, header(2**31 - 2, 3, offset=5))
    assert verdict(states, header(2**31 - 2, 3)) == 5
    assert verdict(states, header(1)) is None
    assert verdict(states, header(0, 2)) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER


def test_what_lies_before_the_first_known_batch_is_not_called_a_duplicate() -> None:
    states = ProducerStateManager()
    assert verdict(states, header(60, 10)) is None
    # a producer that is told "duplicate" takes it as written, and these never were
    assert verdict(states, header(50, 10)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(states, header(70, 10)) is None
    assert verdict(states, header(50, 10)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_expires_with_its_last_batch() -> None:
    states = ProducerStateManager()
    verdict(states, header(0, timestamp_ms=1000))
    assert states.remove_expired(1099, 100) == 0
    assert states.remove_expired(1100, 100) == 1
    assert verdict(states, header(5)) is None


def test_a_snapshot_is_kafkas_bytes() -> None:
    states = ProducerStateManager()
    verdict(states, header(5, 3, epoch=2, offset=40, producer_id=7, timestamp_ms=99))
    data = states.encode()
    entry = (
        (7).to_bytes(8, "big")
        + (2).to_bytes(2, "big")
        + (7).to_bytes(4, "big")
        + (42).to_bytes(8, "big")
        + (2).to_bytes(4, "big")
        + (99).to_bytes(8, "big")
        + b"\xff" * 4
        + b"\xff" * 8
    )
    rest = (1).to_bytes(4, "big") + entry
    assert data == b"\x00\x01" + crc32c(rest).to_bytes(4, "big") + rest


def test_a_snapshot_remembers_the_last_batch_of_each_producer() -> None:
    states = ProducerStateManager()
    for i in range(3):
        verdict(states, header(i, offset=i))
    again = ProducerStateManager.decode(states.encode())
    assert again is not None
    assert verdict(again, header(2)) == 2
    assert verdict(again, header(1)) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert verdict(again, header(3)) is None


def test_a_snapshot_does_not_make_up_what_was_written_before_the_first_known_batch() -> None:
    states = ProducerStateManager()
    for i in range(3):
        verdict(states, header(50 + 10 * i, 10, offset=10 * i))
    verdict(states, header(0, producer_id=2))
    again = ProducerStateManager.decode(states.encode())
    assert again is not None and again.encode() == states.encode()
    assert verdict(again, header(40, 10)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(again, header(50, 10)) == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert verdict(again, header(70, 10)) == 20
    assert verdict(again, header(80, 10)) is None


def test_a_snapshot_of_apache_kafka_vouches_for_its_batches_only() -> None:
    states = ProducerStateManager()
    for i in range(3):
        verdict(states, header(i, offset=i))
    data = states.encode()
    entries = data[6:-4]
    again = ProducerStateManager.decode(data[:2] + crc32c(entries).to_bytes(4, "big") + entries)
    assert again is not None
    assert verdict(again, header(2)) == 2
    assert verdict(again, header(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_that_a_leader_let_pass_is_not_called_written() -> None:
    states = ProducerStateManager()
    for sequence in (0, 1, 20, 21):
        # the leader had forgotten the producer after 1, this follower had not
        states.update(header(sequence, offset=sequence))
    assert verdict(states, header(1)) == 1
    assert verdict(states, header(10)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(states, header(0, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_epoch_without_a_batch_begins_at_zero() -> None:
    """As a snapshot of Apache Kafka may have it: of a producer whose transaction has ended."""
    states = ProducerStateManager()
    states.producers[1] = ProducerStateEntry(epoch=3, last_timestamp=0, first_sequence=0)
    again = ProducerStateManager.decode(states.encode())
    assert again is not None
    assert verdict(again, header(5, epoch=3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(again, header(0, epoch=3)) is None


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(1, 255))
def test_a_damaged_snapshot_is_not_used(at: int, flip: int) -> None:
    states = ProducerStateManager()
    verdict(states, header(0))
    data = bytearray(states.encode())
    if at >= len(data):
        assert ProducerStateManager.decode(bytes(data[: len(data) - 1])) is None
        return
    data[at] ^= flip
    assert ProducerStateManager.decode(bytes(data)) is None


class Reference:
    """The same rules, written down with unbounded sequence numbers and a full history."""

    def __init__(self) -> None:
        self.epoch = -1
        self.history: list[tuple[int, int, int]] = []

    def verdict(self, epoch: int, sequence: int, count: int, offset: int) -> object:
        if self.epoch >= 0:
            if epoch < self.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            if epoch > self.epoch and sequence != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if epoch == self.epoch:
                for first, last, at in deque(self.history, maxlen=5):
                    if (first, last) == (sequence, sequence + count - 1):
                        return at
                last = self.history[-1][1]
                if self.history[0][0] <= sequence and sequence + count - 1 <= last:
                    return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
                if sequence != last + 1:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if epoch != self.epoch:
            self.history = []
        self.epoch = epoch
        self.history.append((sequence, sequence + count - 1, offset))
        return None


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(1, 3)), max_size=60))
def test_any_sequence_of_batches_is_judged_as_by_the_reference(batches: list[tuple[int, int, int]]) -> None:
    states, reference = ProducerStateManager(), Reference()
    for offset, (epoch, sequence, count) in enumerate(batches):
        got = verdict(states, header(sequence, count, epoch, offset * 10))
        assert got == reference.verdict(epoch, sequence, count, offset * 10)


def test_codes_are_raised_with_a_sentence() -> None:
    states = ProducerStateManager()
    states.update(header(0))
    with pytest.raises(LogError, match="sequence 9 does not follow, the last known one is 0"):
        states.check(header(9))
