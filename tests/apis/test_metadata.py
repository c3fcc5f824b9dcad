"""Metadata: topics by name and id, topics to be created, and what a client must not describe."""

from __future__ import annotations

from typing import Any

import pytest
from apis.described import A, B, context, image_with, partition
from apis.guarded import CLUSTER, HOST, T_DENIED, TOPIC, Guarded, shown

from heirlog.apis import metadata
from heirlog.broker.lost_leaders import LISTED_MS
from heirlog.metadata.acls import AclOperation, PatternType
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import MetadataRequest
from heirlog.protocol.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord


def named(*names: str, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names], **more)


EXAMPLE = named("t"), None


def ask_metadata(port: Any, version: int, names: list[str | None] | None, **more: Any) -> Any:
    Topic = MetadataRequest.MetadataRequestTopic
    topics = None if names is None else [Topic(name=name) for name in names]
    return metadata.handle(port, MetadataRequest(topics=topics, **more), context(version))


def test_the_answer_has_live_brokers_and_all_topics_for_null(port: Any) -> None:
    response = ask_metadata(port, 12, None)
    assert [(found.node_id, found.port) for found in response.brokers] == [(1, 9001), (2, 9002)]
    assert response.controller_id == 1
    assert response.cluster_id == "cluster"
    assert [topic.name for topic in response.topics] == ["a", "b"]
    led, leaderless = response.topics[0].partitions
    assert (led.leader_id, led.leader_epoch, led.error_code) == (1, 4, ErrorCode.NONE)
    assert (leaderless.leader_id, leaderless.error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)


def test_a_broker_that_is_fenced_like_all_others_shows_itself(port: Any) -> None:
    """It has come back first: clients keep an answer without brokers for minutes."""
    changes = [BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number, fenced=1) for number in (1, 2)]
    port.image = image_with(*changes)
    response = ask_metadata(port, 12, None)
    assert [(found.node_id, found.port) for found in response.brokers] == [(1, 9001)]
    assert response.controller_id == 1


def test_a_broker_that_was_just_fenced_is_listed_beside_the_others(port: Any) -> None:
    """librdkafka undoes the move to a new leader where the old one vanishes in the same answer."""
    lost = port.broker.lost_leaders
    port.image = image_with(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1))
    lost.on_image(port.image, None)
    response = ask_metadata(port, 12, ["a"])
    assert [found.node_id for found in response.brokers] == [1, 2]
    assert response.controller_id == 1
    assert response.topics[0].partitions[0].offline_replicas == [2, 3]
    for names in ([], None):
        assert [found.node_id for found in ask_metadata(port, 12, names).brokers] == [1]
    port.env.advance(LISTED_MS)
    assert [found.node_id for found in ask_metadata(port, 12, ["a"]).brokers] == [1]


@pytest.mark.parametrize(
    ("names", "waits"),
    [(None, True), (["a"], True), (["new", "a"], True), (["b"], False), (["new"], False), ([], False)],
)
def test_an_answer_about_what_a_broker_leads_whose_connection_closed_waits(
    port: Any, names: list[str | None] | None, waits: bool
) -> None:
    port.image = image_with(partition(B, 0, leader=2))
    port.broker.lost_leaders.connection_closed(1)
    answer = ask_metadata(port, 12, names)
    assert isinstance(answer, Pending) == waits
    if waits:
        moved = image_with(
            partition(A, 0, leader=2, leader_epoch=5),
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1),
        )
        port.image = moved
        found: list[Any] = []
        answer.then(found.append)
        port.broker.lost_leaders.on_image(moved, None)
        (a,) = (topic for topic in found[0].topics if topic.name == "a")
        assert a.partitions[0].leader_id == 2


def test_an_answer_by_id_waits_too(port: Any) -> None:
    port.broker.lost_leaders.connection_closed(1)
    topic = MetadataRequest.MetadataRequestTopic(name=None, topic_id=B)
    assert isinstance(metadata.handle(port, MetadataRequest(topics=[topic]), context(12)), Pending)


def test_an_empty_list_means_all_topics_in_version_0_only(port: Any) -> None:
    assert len(ask_metadata(port, 0, []).topics) == 2
    assert ask_metadata(port, 1, []).topics == []


def test_a_missing_topic_is_created_where_client_and_broker_allow_it(port: Any) -> None:
    response = ask_metadata(port, 12, ["new", "bad name!"], allow_auto_topic_creation=True)
    assert [topic.error_code for topic in response.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert port.created == ["new"]
    ask_metadata(port, 12, ["other"], allow_auto_topic_creation=False)
    assert port.created == ["new"]


def test_topics_are_found_by_id(port: Any) -> None:
    Topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(topics=[Topic(name=None, topic_id=B), Topic(name=None, topic_id=b"x" * 16)])
    found, missing = metadata.handle(port, request, context(12)).topics
    assert found.name == "b"
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_ids_count_and_names_beside_them_do_not(port: Any) -> None:
    Topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[Topic(name="a", topic_id=B), Topic(name="a"), Topic(name=None, topic_id=B), Topic(name=None)]
    )
    assert [found.name for found in metadata.handle(port, request, context(12)).topics] == ["b"]


def test_a_topic_is_described_once_however_often_it_was_asked_for(port: Any) -> None:
    assert [found.name for found in ask_metadata(port, 12, ["b", "x", "b", "x"]).topics] == ["b", "x"]


def test_operations_are_told_of_a_missing_topic_too(port: Any) -> None:
    for asked in ("nope", "bad name!"):
        (known, missing) = ask_metadata(port, 9, ["a", asked], include_topic_authorized_operations=True).topics
        assert missing.topic_authorized_operations == known.topic_authorized_operations > 0


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_their_version_are_refused_with_nothing_else_in_the_answer(port: Any, version: int) -> None:
    response = ask_metadata(port, version, ["a", None])
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST] * 2
    assert (response.brokers, response.controller_id) == ([], -1)


def test_a_leader_that_was_fenced_is_no_place_to_send_a_client_to(port: Any) -> None:
    port.image = image_with(partition(B, 1, leader=3, isr=[3]))
    assert ask_metadata(port, 12, ["b"]).topics[0].partitions[1].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_from_version_12_on_a_topic_without_name_and_id_is_refused(port: Any) -> None:
    response = ask_metadata(port, 12, ["a", None])
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST] * 2


def test_metadata_of_everything_leaves_out_what_may_not_be_described(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    assert shown(node.ask(MetadataRequest(topics=None))) == {"t": 0}
    assert shown(node.ask(MetadataRequest(topics=[]), 0)) == {"t": 0}
    assert shown(node.ask(named("t", "hidden"), 0)) == {"t": 0, "hidden": T_DENIED}


def test_a_topic_that_may_not_be_described_is_refused_without_its_id_whether_it_exists_or_not(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    answer = node.ask(named("t", "hidden", "none"))
    assert shown(answer) == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}
    assert {topic.topic_id for topic in answer.topics if topic.error_code} == {bytes(16)}


def test_an_id_of_a_hidden_topic_is_refused_under_the_id(node: Guarded) -> None:
    hidden, nobody = node.node.image.topic_ids["hidden"], b"n" * 16
    asked = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=each) for each in (hidden, nobody)]
    answer = node.ask(MetadataRequest(topics=asked))
    assert {(topic.name, topic.topic_id): topic.error_code for topic in answer.topics} == {
        (None, hidden): T_DENIED,
        (None, nobody): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_a_missing_topic_is_created_for_those_who_may_create_it(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "made", pattern=PatternType.PREFIXED)
    assert shown(node.ask(named("made-1", allow_auto_topic_creation=True))) == {"made-1": T_DENIED}
    assert shown(node.ask(named("made-1", allow_auto_topic_creation=False))) == {"made-1": 3}
    node.allow(AclOperation.CREATE, TOPIC, "made-1")
    assert shown(node.ask(named("made-1", "made-2", allow_auto_topic_creation=True))) == {
        "made-1": 3,
        "made-2": T_DENIED,
    }
    node.wait(lambda: "made-1" in node.node.image.topic_ids)
    assert "made-2" not in node.node.image.topic_ids


def test_authorized_operations_are_those_that_are_allowed(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    (topic,) = node.ask(named("t", include_topic_authorized_operations=True)).topics
    assert topic.topic_authorized_operations == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    old = named("t", include_cluster_authorized_operations=True)
    assert node.ask(old, 8).cluster_authorized_operations == 0
    node.allow(AclOperation.ALTER, CLUSTER)
    expected = 1 << AclOperation.ALTER | 1 << AclOperation.DESCRIBE
    assert node.ask(old, 8).cluster_authorized_operations == expected


def test_hosts_are_compared_as_java_writes_addresses(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t", host="0:0:0:0:0:0:0:1")
    node.allow(AclOperation.DESCRIBE, TOPIC, "hidden", host="10.0.0.9")
    assert shown(node.ask(MetadataRequest(topics=None), host="::1")) == {"t": 0}
    assert shown(node.ask(MetadataRequest(topics=None), host="::ffff:10.0.0.9")) == {"hidden": 0}
    assert shown(node.ask(MetadataRequest(topics=None), host=HOST)) == {}


def test_an_id_before_its_version_is_refused_for_every_client(node: Guarded) -> None:
    asked = MetadataRequest.MetadataRequestTopic(name="t", topic_id=node.topic_id("t"))
    answer = node.ask(MetadataRequest(topics=[asked]), 10)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("leader", "code"),
    [(2, ErrorCode.NONE), (4, ErrorCode.LISTENER_NOT_FOUND), (9, ErrorCode.LEADER_NOT_AVAILABLE)],
)
def test_a_leader_that_is_unknown_or_not_on_the_listener_is_said_to_be_missing(
    port: Any, leader: int, code: ErrorCode
) -> None:
    elsewhere = RegisterBrokerRecord(broker_id=4, incarnation_id=b"4" * 16, broker_epoch=4, fenced=False)
    port.image = image_with(elsewhere, partition(B, 1, replicas=[2, 4, 9], leader=leader, isr=[leader]))
    found = ask_metadata(port, 12, ["b"]).topics[0].partitions[1]
    assert (found.error_code, found.offline_replicas) == (code, [4, 9])
    assert found.leader_id == (leader if code is ErrorCode.NONE else -1)
