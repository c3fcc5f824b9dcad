"""Fetch through a node: topics by name and by id, sessions, followers, and the metadata log of a controller."""

from __future__ import annotations

from typing import Any

from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, T_DENIED, TOPIC, Guarded, produce

from heirlog.metadata.acls import CLUSTER_NAME, AclOperation
from heirlog.protocol.batch import read_header
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response
from heirlog.protocol.messages import FetchRequest
from heirlog.protocol.types import METADATA_TOPIC_ID


def fetch(*topics: str, replica: int = -1, **more: Any) -> FetchRequest:
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        replica_id=replica,
        max_bytes=1 << 20,
        topics=[FetchRequest.FetchTopic(topic=name, partitions=[asked]) for name in topics],
        **more,
    )


EXAMPLE = fetch("t"), 12
CONTROLLER_EXAMPLE = FetchRequest(), None


def fetched(answer: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.responses}


def test_records_are_found_by_name_and_from_version_13_on_by_id(node: Guarded) -> None:
    node.write("t", b"first")
    by_id = fetch("")
    by_id.topics[0].topic_id = node.topic_id("t")
    for version, request in ((4, fetch("t")), (12, fetch("t")), (13, by_id), (18, by_id)):
        (topic,) = node.ask(request, version, ADMIN).responses
        (partition,) = topic.partitions
        assert (partition.error_code, partition.high_watermark >= 1) == (ErrorCode.NONE, True), version
        assert b"first" in bytes(partition.records)
        assert (topic.topic, topic.topic_id) == (("t", bytes(16)) if version < 13 else ("", node.topic_id("t")))


def test_an_offset_out_of_range_and_an_unknown_topic_are_refused_one_by_one(node: Guarded) -> None:
    request = fetch("t", "nowhere")
    request.topics[0].partitions[0].fetch_offset = 1 << 40
    assert fetched(node.ask(request, 12, ADMIN)) == {
        "t": ErrorCode.OFFSET_OUT_OF_RANGE,
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_session_answers_only_what_is_new(node: Guarded) -> None:
    first = node.ask(fetch("t", session_epoch=0), 12, ADMIN)
    assert first.session_id > 0
    end = node.node.broker.replicas.partitions_named("t")[0].high_watermark
    at_end = fetch("t", session_id=first.session_id, session_epoch=1)
    at_end.topics[0].partitions[0].fetch_offset = end
    assert node.ask(at_end, 12, ADMIN).responses == []
    node.write("t", b"news")
    again = FetchRequest(session_id=first.session_id, session_epoch=2, max_bytes=1 << 20)
    (topic,) = node.ask(again, 12, ADMIN).responses
    assert b"news" in bytes(topic.partitions[0].records)
    unknown = FetchRequest(session_id=first.session_id + 7, session_epoch=1, max_bytes=1 << 20)
    assert node.ask(unknown, 12, ADMIN).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_consumer_reads_its_topics_and_is_refused_the_others(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    assert fetched(node.ask(fetch("t", "hidden", "none"), 12)) == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}


def test_a_fetch_session_ends_to_serve_a_topic_with_the_permission_to_read_it(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    first = node.ask(fetch("t", session_epoch=0), 12)
    assert fetched(first) == {"t": 0} and first.session_id
    node.forget_acls()
    later = FetchRequest(session_id=first.session_id, session_epoch=1, max_bytes=1 << 20)
    node.ask(produce("t"), 12, principal=ADMIN)
    refused = node.ask(later, 12)
    assert fetched(refused) == {"t": T_DENIED}
    assert bytes(refused.responses[0].partitions[0].records or b"") == b""


def test_a_fetch_that_waits_gives_nothing_that_was_forbidden_meanwhile(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    end = node.node.broker.replicas.partitions_named("t")[0].high_watermark
    wire, connection = node.connect()
    waiting = fetch("t", max_wait_ms=60_000, min_bytes=1)
    waiting.topics[0].partitions[0].fetch_offset = end
    connection.received(RequestHeader(1, 12, 1, "guarded"), waiting)
    assert not wire.answers
    node.forget_acls()
    node.ask(produce("t"), 12, principal=ADMIN)
    node.wait(lambda: bool(wire.answers))
    answer = decode_response(1, 12, memoryview(wire.answers[0][1])[4:])[1]
    assert fetched(answer) == {"t": T_DENIED}
    connection.closed()


def test_a_follower_needs_the_cluster_whatever_it_may_read(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    for follower in (fetch("t", replica=2), fetch("t", replica=0), fetch("t", replica=2, session_epoch=0)):
        assert fetched(node.ask(follower, 12)) == {"t": T_DENIED}
    again = node.ask(fetch("t", replica=2, session_id=9, session_epoch=3), 12)
    assert again.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    assert fetched(node.ask(fetch("t", replica=2), 12)) != {"t": T_DENIED}


def by_a_node(topic_id: bytes, epoch: int) -> FetchRequest:
    request = fetch("", replica_state=FetchRequest.ReplicaState(replica_id=9))
    topic = request.topics[0]
    topic.topic_id = topic_id
    topic.partitions[0].current_leader_epoch, topic.partitions[0].last_fetched_epoch = epoch, 0
    return request


def test_a_controller_serves_its_log_to_nodes_and_nothing_else(node: Guarded) -> None:
    epoch = node.node.quorum.epoch
    log = by_a_node(METADATA_TOPIC_ID, epoch)
    assert node.ask(log, 17, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    answer = node.ask(log, 17, listener=CONTROLLER)
    (partition,) = answer.responses[0].partitions
    assert (answer.error_code, partition.error_code, partition.high_watermark > 0) == (0, ErrorCode.NONE, True)
    assert read_header(bytes(partition.records)).base_offset == 0
    stale = node.ask(by_a_node(METADATA_TOPIC_ID, epoch + 1), 17, listener=CONTROLLER)
    assert stale.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    other = node.ask(by_a_node(node.topic_id("t"), epoch), 17, listener=CONTROLLER)
    assert (other.error_code, other.responses) == (ErrorCode.INVALID_REQUEST, [])


def test_an_answer_to_a_consumer_is_as_large_as_the_broker_allows() -> None:
    node = Guarded(fetch_max_bytes="2048")
    node.create_topics("t")
    for _ in range(5):
        node.write("t", b"v" * 900)
    (topic,) = node.ask(fetch("t"), 12, ADMIN).responses
    assert 900 < len(topic.partitions[0].records) <= 2048
