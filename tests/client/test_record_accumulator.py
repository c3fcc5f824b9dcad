"""What is sent, sent again, and given up: the accumulator against brokers that remember as Kafka's do."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from heirlog.client.record_accumulator import (
    IN_FLIGHT_MAX,
    ProducerBatch,
    ProducerIdAndEpoch,
    RecordAccumulator,
    one_batch,
)
from heirlog.protocol.batch import (
    InvalidBatch,
    advance_sequence,
    crc_matches,
    decode_records,
    encode_batch,
    read_header,
)
from heirlog.protocol.errors import ErrorCode, KafkaError

P = ("t", 0)
OOS = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def batch(text: str, records: int = 1) -> bytearray:
    return encode_batch([(None, text.encode(), (), 0)] * records)


def accumulator(idempotent: bool = True) -> RecordAccumulator:
    return RecordAccumulator(idempotent=idempotent, delivery_timeout_s=100)


def identified(*texts: str, partition: tuple[str, int] = P) -> RecordAccumulator:
    made = accumulator()
    for text in texts:
        made.add(partition, batch(text, 2), 0)
    made.set_producer_id(partition, ProducerIdAndEpoch(7, 0))
    return made


def send_all(box: RecordAccumulator, now_s: float = 0) -> list[ProducerBatch]:
    sent = []
    while batches := list(box.sendable(now_s)):
        for one in batches:
            box.sending(one)
            sent.append(one)
    return sent


def texts(batches: list[ProducerBatch]) -> list[str]:
    return [(decode_records(one.data)[0].value or b"").decode() for one in batches]


def sequences(batches: list[ProducerBatch]) -> list[int]:
    return [read_header(one.data).base_sequence for one in batches]


def test_nothing_goes_before_the_partition_has_a_producer_id() -> None:
    box = accumulator()
    box.add(P, batch("a"), 0)
    assert list(box.sendable(0)) == []
    assert box.partitions_without_producer_id() == ([P], False)
    box.set_producer_id(P, ProducerIdAndEpoch(7, 2))
    (sent,) = send_all(box)
    header = read_header(sent.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 0)
    assert crc_matches(sent.data, 0, header)


def test_without_idempotence_nobody_is_named_and_the_checksum_is_right() -> None:
    box = accumulator(idempotent=False)
    box.add(P, batch("a"), 0)
    (sent,) = send_all(box)
    header = read_header(sent.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert crc_matches(sent.data, 0, header)


def test_five_are_on_their_way_and_sequences_count_records() -> None:
    box = identified(*"abcdefg")
    sent = send_all(box)
    assert texts(sent) == list("abcde")
    assert len(sent) == IN_FLIGHT_MAX
    assert sequences(sent) == [0, 2, 4, 6, 8]
    box.answered(sent[0], 0, None, 0)
    assert texts(send_all(box)) == ["f"]


def test_a_batch_goes_again_with_its_sequence_alone_and_first() -> None:
    box = identified(*"abcd")
    sent = send_all(box)
    box.answered(sent[0], ErrorCode.NOT_LEADER_OR_FOLLOWER, None, 5)
    for one in sent[1:]:
        box.answered(one, OOS, None, 5)
    assert list(box.sendable(4)) == [], "not before its time"
    again = send_all(box, 5)
    assert (texts(again), sequences(again)) == (["a"], [0])
    box.answered(again[0], 0, None, 0)
    again = send_all(box, 5)
    assert (texts(again), sequences(again)) == (["b"], [2])
    box.answered(again[0], ErrorCode.DUPLICATE_SEQUENCE_NUMBER, None, 0)
    assert texts(send_all(box, 5)) == ["c"]


def test_a_lost_connection_sends_everything_again_in_order() -> None:
    box = identified(*"abc")
    for one in reversed(send_all(box)):
        box.unanswered(one, 0)
    order = []
    while not box.empty:
        (one,) = box.sendable(0)
        box.sending(one)
        order.append(one)
        box.answered(one, 0, None, 0)
    assert (texts(order), sequences(order)) == (["a", "b", "c"], [0, 2, 4])


def test_a_broker_that_forgot_the_producer_gets_a_new_one_from_sequence_zero() -> None:
    box = identified("a", "b", "c")
    sent = send_all(box)
    box.answered(sent[0], 0, None, 0)
    box.answered(sent[1], ErrorCode.UNKNOWN_PRODUCER_ID, None, 0)
    assert box.partitions_without_producer_id() == ([], False), "one of its batches is still on its way"
    box.answered(sent[2], OOS, None, 0)
    assert box.partitions_without_producer_id() == ([P], True)
    box.set_producer_id(P, ProducerIdAndEpoch(8, 0))
    assert box.partitions_without_producer_id() == ([], False)
    (again,) = box.sendable(0)
    box.sending(again)
    header = read_header(again.data)
    assert (header.producer_id, header.base_sequence, texts([again])) == (8, 0, ["b"])
    box.answered(again, 0, None, 0)
    assert sequences(send_all(box)) == [2]


def test_the_first_error_that_cannot_pass_ends_everything() -> None:
    box = identified("a", "b")
    sent = send_all(box)
    box.answered(sent[0], ErrorCode.MESSAGE_TOO_LARGE, "too large", 0)
    box.answered(sent[1], OOS, None, 0)
    assert isinstance(box.failure, KafkaError)
    assert box.failure.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "t-0" in str(box.failure)
    assert box.empty
    assert list(box.sendable(0)) == []


def test_what_waits_too_long_fails_with_the_last_reason() -> None:
    box = identified("a")
    box.expire(99, None)
    assert box.failure is None
    box.expire(100, ConnectionError("gone"))
    assert isinstance(box.failure, TimeoutError)
    assert "gone" in str(box.failure)


def test_only_one_whole_batch_is_taken() -> None:
    box = accumulator()
    for wrong in (batch("a") + batch("b"), batch("a")[:-1], bytearray(b"x")):
        with pytest.raises(InvalidBatch):
            box.add(P, wrong, 0)
    assert one_batch(batch("a", 3)).last_offset_delta == 2


@dataclass
class Remembering:
    """A partition's leader: knows the last five batches of a producer, and its next sequence."""

    log: list[str] = field(default_factory=list)
    recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=5))
    following: dict[int, int] = field(default_factory=dict)

    def append(self, data: bytearray) -> int:
        header = read_header(data)
        if (header.producer_id, header.base_sequence) in self.recent:
            return 0
        if header.base_sequence != self.following.get(header.producer_id, 0):
            return OOS
        self.recent.append((header.producer_id, header.base_sequence))
        self.following[header.producer_id] = advance_sequence(header.last_sequence, 1)
        self.log.append((decode_records(data)[0].value or b"").decode())
        return 0


@pytest.mark.parametrize("seed", range(30))
def test_every_batch_is_there_once_and_in_order_whatever_gets_lost(seed: int) -> None:
    rng = random.Random(seed)
    leader = Remembering()
    box = accumulator()
    wanted = [str(number) for number in range(60)]
    waiting = deque(wanted)
    on_their_way: deque[ProducerBatch] = deque()
    while waiting or not box.empty:
        if waiting and rng.random() < 0.5:
            box.add(P, batch(waiting.popleft(), rng.randrange(1, 4)), 0)
        for partition in box.partitions_without_producer_id()[0]:
            box.set_producer_id(partition, ProducerIdAndEpoch(rng.randrange(10**6), 0))
        for one in box.sendable(0):
            box.sending(one)
            on_their_way.append(one)
        if on_their_way and rng.random() < 0.6:
            fate, one = rng.random(), on_their_way.popleft()
            if fate < 0.1:  # lost before the broker saw it
                box.answered(one, ErrorCode.NOT_LEADER_OR_FOLLOWER, None, 0)
            elif fate < 0.25:  # the connection breaks: what is on its way arrives or not, and nobody hears of it
                arrived = rng.randrange(len(on_their_way) + 2)
                for number, other in enumerate([one, *on_their_way]):
                    if number < arrived:
                        leader.append(other.data)
                    box.unanswered(other, 0)
                on_their_way.clear()
            else:
                box.answered(one, leader.append(one.data), None, 0)
    assert leader.log == wanted


def test_a_batch_that_is_sealed_again_leaves_the_bytes_of_its_earlier_request_alone() -> None:
    box = identified("a")
    (sent,) = send_all(box)
    earlier, before = sent.data, bytes(sent.data)
    box.answered(sent, ErrorCode.UNKNOWN_PRODUCER_ID, None, 0)
    box.set_producer_id(P, ProducerIdAndEpoch(8, 0))
    (again,) = send_all(box)
    assert bytes(earlier) == before
    assert read_header(again.data).producer_id == 8


def test_a_batch_that_is_given_up_is_not_sent_again_and_the_next_one_goes() -> None:
    box = accumulator(idempotent=False)
    for text in ("a", "b"):
        box.add(P, batch(text), 0)
    first, second = send_all(box)
    box.unanswered(first, 0)
    box.give_up(first)
    box.give_up(second)
    assert box.empty
    box.add(P, batch("c"), 0)
    assert texts(send_all(box)) == ["c"]


def test_an_idempotent_producer_gives_nothing_up() -> None:
    box = identified("a")
    (sent,) = send_all(box)
    with pytest.raises(AssertionError, match="sent again"):
        box.give_up(sent)
