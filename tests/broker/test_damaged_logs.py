"""What a leader does whose log has rotted: it gives its copy up once another replica is in the ISR."""

from __future__ import annotations

import pytest

from heirlog.broker import internal_topic_loader
from heirlog.broker.internal_topic_loader import InternalTopicLoader
from heirlog.protocol.batch import rewrite
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchResponse

from .fakes import Rig, answer_of, batch, restarted, state

BATCHES = 4
SIZE = len(batch(value=b"value-0"))
BASE_OFFSET_AT, LENGTH_AT, EPOCH_AT, DELTA_AT, VALUE_AT = 0, 8, 15, 23, SIZE - 3
"""In a batch."""


def rotten(at: int, offset: int = 1, *, bit: int = 0, roll_after: int | None = None) -> Rig:
    """A broker whose log of four batches has a flipped bit, and that leads alone.

    at: byte of the batch at `offset`. roll_after: the next batches are in another segment.
    """
    rig = leading_alone([batch(value=b"value-%d" % number) for number in range(BATCHES)], roll_after)
    # a start reads the headers of the active segment
    flip(rig, offset * SIZE + at, bit)
    return rig


def leading_alone(batches: list[bytearray], roll_after: int | None = None) -> Rig:
    """After a clean stop."""
    rig = Rig().started()
    partition = rig.show(state([1, 2], [1]))
    for number, produced in enumerate(batches):
        rig.produce(1, produced)
        if number == roll_after:
            partition.log.roll()
    rig.env.advance(100)
    rig = restarted(rig)
    rig.set_partition(state([1, 2], [1], leader_epoch=6))
    return rig.started()


def flip(rig: Rig, position: int, bit: int = 0, segment: int = 0) -> None:
    file = rig.env.files.open(f"/data/foo-0/{segment:020d}.log")
    file.pwrite(bytes([file.pread(1, position)[0] ^ 1 << bit]), position)


def loaded(rig: Rig) -> tuple[list[int], list[int], list[bool]]:
    """Offsets of the records and of what is skipped, and whether loading has ended."""
    records: list[int] = []
    unreadable: list[int] = []
    done: list[bool] = []
    loader = InternalTopicLoader(
        rig.env,
        rig.broker.replicas,
        rig.partition(),
        on_record=lambda header, record: records.append(record.offset),
        on_unreadable=lambda offset, error: unreadable.append(offset),
        on_done=lambda: done.append(True),
    )
    loader.read()
    rig.env.advance(10)
    return records, unreadable, done


def fetched(rig: Rig, offset: int, replica: int = -1) -> FetchResponse.PartitionData:
    found: FetchResponse.PartitionData = answer_of(rig.fetch(offset, replica=replica)).responses[0].partitions[0]
    return found


def events(rig: Rig) -> list[str]:
    return [event for event, _ in rig.env.events if event.startswith("damaged-batch")]


@pytest.mark.parametrize("at", [EPOCH_AT, VALUE_AT])
def test_the_only_copy_of_an_internal_topic_is_loaded_without_the_batch_that_is_damaged(at: int) -> None:
    rig = rotten(at=at, offset=2)
    assert loaded(rig) == ([0, 1, 3], [2], [True])
    assert events(rig) == ["damaged-batch-kept"] and not rig.partition().offline


@pytest.mark.parametrize("slice_batches", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("at", "bit", "unreadable"),
    # offset 1 again; an offset far beyond the log's end; a last offset beyond it
    [(BASE_OFFSET_AT + 7, 1, [3]), (BASE_OFFSET_AT, 6, [3]), (DELTA_AT, 6, [3])],
)
def test_a_damaged_offset_neither_leads_back_nor_beyond_the_end(
    monkeypatch: pytest.MonkeyPatch, slice_batches: int, at: int, bit: int, unreadable: list[int]
) -> None:
    monkeypatch.setattr(internal_topic_loader, "LOAD_SLICE_BYTES", slice_batches * SIZE)
    rig = rotten(at=at, offset=3, bit=bit)
    assert loaded(rig) == ([0, 1, 2], unreadable, [True])


@pytest.mark.parametrize("slice_batches", [1, 2, 3, 4])
def test_no_batch_is_skipped_unseen_because_the_one_before_it_claims_its_offset(
    monkeypatch: pytest.MonkeyPatch, slice_batches: int
) -> None:
    monkeypatch.setattr(internal_topic_loader, "LOAD_SLICE_BYTES", slice_batches * SIZE)
    rig = rotten(at=DELTA_AT + 3, offset=1, roll_after=2)
    records, unreadable, done = loaded(rig)
    assert (records, done) == ([0, 3], [True])
    assert unreadable[0] == 1


def test_a_log_start_inside_a_batch_is_no_damage() -> None:
    rig = leading_alone([batch(count=3) for _ in range(3)])
    rig.partition().log.increment_log_start(1)
    flip(rig, 2 * len(batch(count=3)) - 1)
    assert loaded(rig) == ([0, 1, 2, 6, 7, 8], [3], [True])


def test_what_is_damaged_is_not_served() -> None:
    rig = rotten(at=VALUE_AT, offset=2)
    loaded(rig)
    assert fetched(rig, 2, replica=2).error_code == ErrorCode.CORRUPT_MESSAGE
    assert fetched(rig, 2).error_code == ErrorCode.CORRUPT_MESSAGE
    assert fetched(rig, 3).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("roll_after", "records"), [(None, [0]), (2, [0, 3])])
def test_a_segment_whose_batches_cannot_be_told_apart_is_skipped(roll_after: int | None, records: list[int]) -> None:
    rig = rotten(at=LENGTH_AT, roll_after=roll_after)
    assert loaded(rig) == (records, [1], [True])


def test_the_copy_is_given_up_when_another_replica_joins_the_isr_although_nobody_reads() -> None:
    rig = rotten(at=VALUE_AT, offset=2)
    loaded(rig)
    rig.show(state([1, 2], [1, 2], leader_epoch=6, partition_epoch=2))
    rig.env.advance(10)
    assert events(rig) == ["damaged-batch-kept", "damaged-batch-found"] and rig.partition().offline


def test_damage_that_was_deleted_meanwhile_costs_no_directory() -> None:
    rig = rotten(at=VALUE_AT, offset=1, roll_after=1)
    loaded(rig)
    log = rig.partition().log
    log.increment_log_start(2)
    log.delete_old_segments(rig.env.wall_ms(), rig.partition().high_watermark)
    rig.env.advance(100_000)
    rig.show(state([1, 2], [1, 2], leader_epoch=6, partition_epoch=2))
    rig.env.advance(10)
    assert events(rig) == ["damaged-batch-kept"] and not rig.partition().offline


@pytest.mark.parametrize("at", [BASE_OFFSET_AT, LENGTH_AT, EPOCH_AT, VALUE_AT])
def test_damage_that_was_truncated_and_copied_again_costs_no_directory(at: int) -> None:
    rig = rotten(at=at, offset=2)
    loaded(rig)
    rig.show(state([1, 2], [2], leader=2, leader_epoch=7, partition_epoch=2))
    log = rig.partition().log
    log.truncate_to(1)
    for offset in range(1, BATCHES):
        # of other sizes, so that none begins where the damage was
        copied = batch(value=b"good-%d" % offset)
        rewrite(copied, 0, offset, 7)
        log.append_as_follower(copied, 7)
    rig.show(state([1, 2], [1, 2], leader_epoch=8, partition_epoch=3))
    rig.env.advance(10)
    assert events(rig) == ["damaged-batch-kept"] and not rig.partition().offline


@pytest.mark.parametrize("at", [BASE_OFFSET_AT, LENGTH_AT, EPOCH_AT, DELTA_AT])
def test_damage_that_no_crc_shows_is_given_up_too(at: int) -> None:
    rig = rotten(at=at, offset=2)
    loaded(rig)
    rig.show(state([1, 2], [1, 2], leader_epoch=6, partition_epoch=2))
    rig.env.advance(10)
    assert events(rig) == ["damaged-batch-kept", "damaged-batch-found"] and rig.partition().offline


def test_damage_is_given_up_although_other_damage_was_found_first_and_deleted_meanwhile() -> None:
    rig = rotten(at=VALUE_AT, offset=1, roll_after=1)
    flip(rig, VALUE_AT, segment=2)
    fetched(rig, 1)
    log = rig.partition().log
    log.increment_log_start(2)
    log.delete_old_segments(rig.env.wall_ms(), rig.partition().high_watermark)
    rig.env.advance(100_000)
    fetched(rig, 2)
    rig.show(state([1, 2], [1, 2], leader_epoch=6, partition_epoch=2))
    rig.env.advance(10)
    assert events(rig) == ["damaged-batch-kept", "damaged-batch-kept", "damaged-batch-found"]
