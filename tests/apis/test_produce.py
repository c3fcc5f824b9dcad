"""Produce through a node: topics by name and by id, acks, and producers without permission."""

from __future__ import annotations

from typing import Any

from apis.guarded import ADMIN, T_DENIED, TOPIC, X_DENIED, Guarded, produce

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode

EXAMPLE = produce("t"), 12


def codes_by_topic(answer: Any) -> dict[str, int]:
    return {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}


def test_version_13_names_topics_by_their_id(node: Guarded) -> None:
    request = produce("")
    request.topic_data[0].topic_id = node.topic_id("t")
    unknown = produce("")
    unknown.topic_data[0].topic_id = b"n" * 16
    request.topic_data += unknown.topic_data
    found, missing = node.ask(request, 13, ADMIN).responses
    assert (found.topic_id, found.partition_responses[0].error_code) == (node.topic_id("t"), ErrorCode.NONE)
    assert (missing.topic_id, missing.partition_responses[0].error_code) == (b"n" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


def test_the_base_offset_of_a_batch_is_answered_and_the_log_start_offset_from_version_5_on(node: Guarded) -> None:
    node.create_topics("counted")
    offsets = []
    for version in (4, 5, 12):
        (answer,) = node.ask(produce("counted", records=(b"v", b"w")), version, ADMIN).responses[0].partition_responses
        offsets.append((answer.base_offset, answer.log_start_offset))
    assert offsets == [(0, -1), (2, 0), (4, 0)]


def test_other_acks_and_unknown_partitions_are_refused_one_by_one(node: Guarded) -> None:
    assert codes_by_topic(node.ask(produce("t", acks=2), 12, ADMIN)) == {"t": ErrorCode.INVALID_REQUIRED_ACKS}
    answer = node.ask(produce("t", "nowhere"), 12, ADMIN)
    assert codes_by_topic(answer) == {"t": ErrorCode.NONE, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_versions_before_3_close_the_connection(node: Guarded) -> None:
    wire, connection = node.connect(ADMIN)
    connection.received_frame(memoryview(bytearray(b"\0\0\0\2\0\0\0\1\0\1c" + bytes(10))))
    assert wire.closed and not wire.answers


def test_a_producer_writes_to_its_topics_and_is_refused_the_others_whether_they_exist_or_not(node: Guarded) -> None:
    node.allow(AclOperation.WRITE, TOPIC, "t")
    answer = node.ask(produce("hidden", "t", "none"), 12)
    assert codes_by_topic(answer) == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}


def test_records_of_a_transaction_need_its_id(node: Guarded) -> None:
    request = produce("t", "none")
    data = encode_batch([(b"k", b"v", (), 0)], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    request.topic_data[0].partition_data[0].records = data
    assert codes_by_topic(node.ask(request, 12, ADMIN)) == {"t": X_DENIED, "none": X_DENIED}


def test_a_refused_producer_without_acks_loses_its_connection(node: Guarded) -> None:
    assert node.ask(produce("hidden", acks=0), 12) is None


def test_a_transactional_id_is_asked_for_before_any_topic(node: Guarded) -> None:
    node.allow(AclOperation.WRITE, TOPIC, "t")
    answer = node.ask(produce("t", transactional_id="x"), 12)
    assert codes_by_topic(answer) == {"t": X_DENIED}


def test_an_id_of_a_topic_that_must_not_be_written_is_refused_under_the_id(node: Guarded) -> None:
    request = produce("")
    request.topic_data[0].topic_id = node.topic_id("hidden")
    (refused,) = node.ask(request, 13).responses
    assert (refused.topic_id, refused.partition_responses[0].error_code) == (node.topic_id("hidden"), T_DENIED)
    node.allow(AclOperation.WRITE, TOPIC, "hidden")
    (written,) = node.ask(request, 13).responses
    assert written.partition_responses[0].error_code == ErrorCode.NONE


def test_a_batch_above_the_limit_is_refused_alone(node: Guarded) -> None:
    request = produce("t", records=(b"v" * 1_100_000,))
    request.topic_data += produce("hidden").topic_data
    answer = node.ask(request, 12, ADMIN)
    assert codes_by_topic(answer) == {"t": ErrorCode.MESSAGE_TOO_LARGE, "hidden": ErrorCode.NONE}


def test_without_acks_what_is_allowed_is_stored_before_the_connection_closes(node: Guarded) -> None:
    node.allow(AclOperation.WRITE, TOPIC, "t")
    before = node.node.broker.replicas.partitions_named("t")[0].high_watermark
    assert node.ask(produce("t", "hidden", acks=0), 12) is None
    assert node.node.broker.replicas.partitions_named("t")[0].high_watermark == before + 1
