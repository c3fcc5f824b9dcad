"""What a Fetch answer means for who reads from one offset to another."""

from __future__ import annotations

import pytest

from heirlog.client.errors import LogTruncated, OffsetOutOfRange
from heirlog.client.fetching import FIRST_BYTES, MARGIN_BYTES, Fetched, PartitionFetch
from heirlog.protocol.batch import encode_batch, rewrite
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FetchResponse
from heirlog.protocol.types import ZERO_UUID

EpochEndOffset = FetchResponse.EpochEndOffset


def batch(base_offset: int, records: int, epoch: int = 3) -> bytearray:
    data = encode_batch([(None, b"v" * 50, (), 0)] * records)
    rewrite(data, 0, base_offset, epoch)
    return data


def reading(start: int, stop: int, last_epoch: int = -1, check_crcs: bool = True) -> PartitionFetch:
    return PartitionFetch(
        "t", 7, start, stop, isolation=1, max_bytes=1000, max_wait_ms=5, last_epoch=last_epoch, check_crcs=check_crcs
    )


def answer(records: bytes | bytearray = b"", code: int = 0, **fields: object) -> FetchResponse:
    data = FetchResponse.PartitionData(partition_index=7, error_code=code, high_watermark=100, records=bytes(records))
    for name, value in fields.items():
        setattr(data, name, value)
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])])


def part(found: object) -> Fetched:
    assert isinstance(found, Fetched)
    return found


def test_a_request_names_the_place_and_the_epochs_on_both_sides_of_it() -> None:
    request = reading(5, 9, last_epoch=2).request(None, leader_epoch=4)
    wanted = request.topics[0].partitions[0]
    assert (request.topics[0].topic, request.topics[0].topic_id) == ("t", ZERO_UUID)
    assert (wanted.partition, wanted.fetch_offset, wanted.last_fetched_epoch, wanted.current_leader_epoch) == (
        7,
        5,
        2,
        4,
    )
    assert (request.isolation_level, request.session_id, request.session_epoch) == (1, 0, -1)


def test_no_more_bytes_are_asked_for_than_are_left_as_far_as_one_can_tell() -> None:
    fetch = PartitionFetch("t", 7, 0, 30_000, isolation=1, max_bytes=16 << 20, max_wait_ms=5)
    small = PartitionFetch("t", 7, 0, 30_000, isolation=1, max_bytes=1000, max_wait_ms=5)

    def asked(of: PartitionFetch) -> int:
        request = of.request(None, 4)
        assert request.max_bytes == request.topics[0].partitions[0].partition_max_bytes
        return request.max_bytes

    assert (asked(fetch), asked(small)) == (FIRST_BYTES, 1000), "nobody knows how large the records are"
    read = batch(0, 10_000)
    for one in (fetch, small):
        part(one.answered(answer(read)))
    assert 2 * len(read) < asked(fetch) < 3 * len(read)
    assert asked(small) == 1000
    part(fetch.answered(answer(batch(10_000, 19_999))))
    assert asked(fetch) < 2 * MARGIN_BYTES, "one record is left"


def test_whole_batches_move_the_position_and_the_epoch() -> None:
    fetch = reading(5, 20)
    found = part(fetch.answered(answer(batch(3, 4) + batch(7, 3, epoch=4), log_start_offset=1, last_stable_offset=90)))
    assert (found.first_offset, found.next_offset, found.last_epoch) == (3, 10, 4)
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (100, 90, 1)
    assert bytes(found.records) == bytes(batch(3, 4) + batch(7, 3, epoch=4))
    assert (fetch.position, fetch.last_epoch, fetch.done) == (10, 4, False)


@pytest.mark.parametrize("cut", [1, 11, 17, 60, 62, 100])
def test_a_batch_that_is_cut_off_is_left_for_the_next_answer(cut: int) -> None:
    fetch = reading(0, 20)
    found = part(fetch.answered(answer(batch(0, 4) + batch(4, 3)[:cut])))
    assert bytes(found.records) == bytes(batch(0, 4))
    assert fetch.position == 4


def test_batches_from_behind_the_end_are_dropped_and_end_it() -> None:
    fetch = reading(0, 6)
    found = part(fetch.answered(answer(batch(0, 4) + batch(6, 3))))
    assert (bytes(found.records), fetch.done) == (bytes(batch(0, 4)), True)
    fetch = reading(4, 6)
    assert fetch.answered(answer(batch(8, 3))) is None, "4 and 5 were compacted away"
    assert fetch.done


def test_a_batch_across_the_end_is_delivered_whole() -> None:
    fetch = reading(0, 2)
    assert part(fetch.answered(answer(batch(0, 4)))).next_offset == 4
    assert fetch.done


def test_nothing_new_is_none_and_the_position_stays() -> None:
    fetch = reading(5, 9)
    assert fetch.answered(answer()) is None
    assert fetch.answered(FetchResponse()) is None
    assert (fetch.position, fetch.high_watermark) == (5, 100)


def test_a_first_batch_that_did_not_fit_is_said() -> None:
    with pytest.raises(KafkaError, match="larger max_bytes"):
        reading(0, 9).answered(answer(batch(0, 4)[:70]))


def test_a_damaged_batch_is_found_by_its_checksum_unless_nobody_asks() -> None:
    damaged = batch(0, 4) + batch(4, 4)
    damaged[-1] ^= 1
    with pytest.raises(KafkaError, match="batch at offset 4") as failed:
        reading(0, 9).answered(answer(damaged))
    assert failed.value.code is ErrorCode.CORRUPT_MESSAGE
    assert part(reading(0, 9, check_crcs=False).answered(answer(damaged))).next_offset == 8


def test_messages_of_the_old_format_are_refused_by_name() -> None:
    old = batch(0, 4)
    old[16] = 1
    with pytest.raises(KafkaError, match="format 1"):
        reading(0, 9).answered(answer(old))


def test_an_answer_that_does_not_go_on_cannot_be_asked_for_again_and_again() -> None:
    with pytest.raises(KafkaError, match="end before it"):
        reading(5, 9).answered(answer(batch(0, 4)))


def test_aborted_transactions_come_by_their_first_offset() -> None:
    Aborted = FetchResponse.AbortedTransaction
    aborted = [Aborted(producer_id=1, first_offset=9), Aborted(producer_id=2, first_offset=3)]
    found = part(reading(0, 9).answered(answer(batch(0, 4), aborted_transactions=aborted)))
    assert found.aborted == [(2, 3), (1, 9)]


def test_a_log_that_diverges_was_truncated() -> None:
    with pytest.raises(LogTruncated) as failed:
        reading(8, 9, last_epoch=5).answered(answer(diverging_epoch=EpochEndOffset(epoch=4, end_offset=6)))
    assert (failed.value.offset, failed.value.epoch, failed.value.end.leader_epoch, failed.value.end.end_offset) == (
        8,
        5,
        4,
        6,
    )


def test_an_offset_that_is_gone_names_what_there_is() -> None:
    with pytest.raises(OffsetOutOfRange, match="it holds 50 to 100") as failed:
        reading(8, 9).answered(answer(code=1, log_start_offset=50))
    assert (failed.value.offset, failed.value.log_start_offset) == (8, 50)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID, -1],
)
def test_errors_that_pass_are_handed_back(code: int) -> None:
    fetch = reading(5, 9)
    assert fetch.answered(answer(code=code)) == code
    assert fetch.position == 5


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE, 4711])
def test_errors_that_do_not_pass_are_raised(code: int) -> None:
    if code == 4711:
        assert reading(5, 9).answered(answer(code=code)) is ErrorCode.UNKNOWN_SERVER_ERROR, "a newer broker's"
    else:
        with pytest.raises(KafkaError, match="t-7"):
            reading(5, 9).answered(answer(code=code))


def test_an_error_of_the_whole_answer_counts_too() -> None:
    assert reading(5, 9).answered(FetchResponse(error_code=56)) is ErrorCode.KAFKA_STORAGE_ERROR
