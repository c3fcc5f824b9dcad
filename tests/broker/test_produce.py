"""Produce as a client sees it: which error, when, and what is in the log afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.produce import _check_codec
from heirlog.context import CLOSE, NO_ANSWER
from heirlog.pending import Pending
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError

from .fakes import Rig, answer_of, batch, restarted, state


def outcome(result: Any) -> Any:
    """(error, base offset) of the only partition; None while it waits."""
    response = answer_of(result)
    if response is None:
        return None
    answer = response.responses[0].partition_responses[0]
    return ErrorCode(answer.error_code), answer.base_offset


def leader(replicas: list[int] | None = None, min_isr: int = 1, isr: list[int] | None = None) -> Rig:
    rig = Rig().started()
    rig.set_config("min.insync.replicas", str(min_isr))
    rig.show(state(replicas or [1], isr))
    return rig


def test_acks_1_is_answered_with_the_offset_of_its_first_record() -> None:
    rig = leader()
    assert outcome(rig.produce(1, batch(3))) == (ErrorCode.NONE, 0)
    assert outcome(rig.produce(1, batch(2))) == (ErrorCode.NONE, 3)
    assert rig.partition().log.log_end_offset == 5


def test_acks_1_is_accepted_below_min_isr() -> None:
    rig = leader([1, 2, 3], min_isr=2, isr=[1])
    assert outcome(rig.produce(1)) == (ErrorCode.NONE, 0)
    assert rig.partition().high_watermark == 0


def test_acks_0_has_no_answer() -> None:
    rig = leader()
    assert rig.produce(0) is NO_ANSWER
    assert rig.partition().log.log_end_offset == 1


def test_acks_0_that_fails_closes_the_connection() -> None:
    rig = Rig().started()
    assert rig.produce(0) is CLOSE


def test_acks_all_below_min_isr_is_refused_and_appends_nothing() -> None:
    rig = leader([1, 2, 3], min_isr=2, isr=[1])
    assert outcome(rig.produce(-1)) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert rig.partition().log.log_end_offset == 0


def test_acks_all_of_a_single_replica_is_answered_at_once() -> None:
    rig = leader()
    assert outcome(rig.produce(-1)) == (ErrorCode.NONE, 0)


def test_acks_all_waits_for_the_high_watermark() -> None:
    rig = leader([1, 2])
    result = rig.produce(-1)
    assert isinstance(result, Pending)
    rig.fetch(0, replica=2)
    assert not result.done
    rig.fetch(1, replica=2)
    assert outcome(result) == (ErrorCode.NONE, 0)


def test_acks_all_times_out_where_the_follower_stays_away() -> None:
    rig = leader([1, 2])
    result = rig.produce(-1, timeout_ms=500)
    rig.env.advance(499)
    assert not result.done
    rig.env.advance(1)
    assert outcome(result) == (ErrorCode.REQUEST_TIMED_OUT, -1)


def test_acks_all_learns_that_leadership_is_lost() -> None:
    rig = leader([1, 2])
    result = rig.produce(-1)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    assert outcome(result) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    response = answer_of(result)
    assert response.responses[0].partition_responses[0].current_leader.leader_id == 2
    assert [(node.node_id, node.host) for node in response.node_endpoints] == [(2, "broker2")]


def test_a_leader_that_is_elected_again_does_not_confirm_what_it_appended_in_the_epoch_before() -> None:
    rig = leader([1, 2])
    result = rig.produce(-1)
    rig.show(state([1, 2], leader=1, leader_epoch=6, partition_epoch=2))
    assert outcome(result) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_an_abandoned_wait_is_forgotten() -> None:
    rig = leader([1, 2])
    result = rig.produce(-1)
    assert len(rig.broker.replicas.delayed.produce) == 1
    result.abandon()
    assert len(rig.broker.replicas.delayed.produce) == 0


def test_other_acks_are_refused() -> None:
    assert outcome(leader().produce(2)) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)


def test_an_unknown_topic_is_told_apart_from_a_partition_that_lives_elsewhere() -> None:
    rig = leader()
    rig.set_partition(state([2, 3], leader=2), "bar")
    rig.publish()
    assert outcome(rig.produce(1, topic="baz"))[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome(rig.produce(1, topic="baz", version=13))[0] is ErrorCode.UNKNOWN_TOPIC_ID
    assert outcome(rig.produce(1, topic="bar"))[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert outcome(rig.produce(1, topic="bar", version=13))[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_topic_ids_find_the_same_partition() -> None:
    rig = leader()
    assert outcome(rig.produce(1, version=13)) == (ErrorCode.NONE, 0)


def test_each_partition_of_a_request_stands_for_itself() -> None:
    rig = leader()
    rig.show(state([1]), index=1)
    damaged = batch()
    damaged[-1] ^= 1
    answers = answer_of(rig.produce(1, batch(), damaged)).responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE]
    assert rig.partition(index=1).log.log_end_offset == 0


def test_a_request_with_several_waiting_partitions_is_answered_once_all_are_replicated() -> None:
    rig = leader([1, 2])
    rig.show(state([1, 2]), index=1)
    result = rig.produce(-1, batch(), batch())
    rig.fetch(1, replica=2, partitions=[0])
    assert not result.done
    rig.fetch(1, replica=2, partitions=[1])
    assert outcome(result) == (ErrorCode.NONE, 0)
    assert len(rig.broker.replicas.delayed.produce) == 0


def test_a_repeated_batch_of_an_idempotent_producer_is_answered_with_its_first_offset() -> None:
    rig = leader()
    first = rig.produce(1, batch(2, producer_id=7, producer_epoch=0, base_sequence=0))
    again = rig.produce(1, batch(2, producer_id=7, producer_epoch=0, base_sequence=0))
    assert outcome(first) == outcome(again) == (ErrorCode.NONE, 0)
    assert rig.partition().log.log_end_offset == 2


def test_a_repeated_batch_that_is_not_replicated_yet_waits_again() -> None:
    rig = leader([1, 2])
    rig.produce(-1, batch(1, producer_id=7, producer_epoch=0, base_sequence=0))
    again = rig.produce(-1, batch(1, producer_id=7, producer_epoch=0, base_sequence=0))
    assert outcome(again) is None
    rig.fetch(1, replica=2)
    assert answer_of(again).responses[0].partition_responses[0].base_offset == 0


def test_a_disk_that_fails_through_one_partition_of_a_request_answers_for_the_others_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(log_dirs="/data,/more", metadata_log_dir="/metadata").started()
    identity = rig.broker.replicas.directories.online[0].directory_id
    first, second = (rig.show(state([1, 2], directories=(identity, identity)), index=index) for index in (0, 1))

    def fail(*_: object, **more: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(second.log, "append_as_leader", fail)
    result = rig.produce(-1, batch(), batch())
    response = answer_of(result)
    assert response is not None, "the first partition waits for a follower that cannot help it any more"
    answers = response.responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert first.log.log_end_offset == 1 and not len(rig.broker.replicas.delayed.produce)


def numbered(sequence: int) -> bytearray:
    return batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence)


def with_a_forgotten_offset(appended: int = 6) -> Rig:
    """A leader that has `appended` batches of a producer and no follower yet; the offset of the first is forgotten."""
    rig = leader([1, 2])
    for sequence in range(appended):
        rig.produce(1, numbered(sequence))
    return rig


def test_a_repeat_whose_offset_is_forgotten_is_confirmed_once_all_of_the_log_is_replicated() -> None:
    rig = with_a_forgotten_offset()
    again = rig.produce(-1, numbered(0))
    rig.produce(1, numbered(6))
    rig.fetch(5, replica=2)
    assert outcome(again) is None
    rig.fetch(6, replica=2)
    assert outcome(again) == (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)
    assert outcome(rig.produce(-1, numbered(0))) is None, "the log has grown meanwhile"
    rig.fetch(7, replica=2)
    assert outcome(rig.produce(-1, numbered(0))) == (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)


def test_a_repeat_whose_offset_is_forgotten_times_out_like_any_other_write() -> None:
    rig = with_a_forgotten_offset()
    again = rig.produce(-1, numbered(0), timeout_ms=500)
    rig.env.advance(500)
    assert outcome(again) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert answer_of(again).responses[0].partition_responses[0].error_message is None


def test_a_repeat_whose_offset_is_forgotten_learns_that_leadership_is_lost() -> None:
    rig = with_a_forgotten_offset()
    again = rig.produce(-1, numbered(0))
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    assert outcome(again) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_a_repeat_with_acks_1_does_not_wait() -> None:
    rig = with_a_forgotten_offset()
    assert outcome(rig.produce(1, numbered(0))) == (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)
    assert outcome(rig.produce(1, numbered(3))) == (ErrorCode.NONE, 3)


def test_a_follower_that_restarted_cleanly_and_leads_does_not_confirm_a_repeat_that_can_still_be_lost() -> None:
    rig = with_a_forgotten_offset(3)
    again = restarted(rig)
    again.set_partition(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    again.started(epoch=1001).show(state([1, 2], leader=1, leader_epoch=7, partition_epoch=3))
    first, last = (again.produce(-1, numbered(sequence)) for sequence in (0, 2))
    assert outcome(first) is None and outcome(last) is None
    again.fetch(3, replica=2)
    assert outcome(first) == (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)
    assert outcome(last) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, None)])
def test_zstd_needs_the_version_that_brought_it(version: int, code: ErrorCode | None) -> None:
    records = encode_batch([(None, b"v", (), 1)], compression=4)
    if code is None:
        _check_codec(records, version)
        return
    with pytest.raises(KafkaError) as refused:
        _check_codec(records, version)
    assert refused.value.code is code
