"""What a client without a permission is told, API by API, and that the permission of the table is the one it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from apis.guarded import ADMIN, ALICE, BROKER, CONTROLLER, HOST, Guarded, denials

from heirlog.apis.common.api import Role
from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.node.router import ROUTES
from heirlog.protocol.api import ApiKey, request_class
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import (
    AlterConfigsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    EnvelopeRequest,
    FetchRequest,
    FindCoordinatorRequest,
    GetReplicaLogInfoRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    SyncGroupRequest,
    UpdateFeaturesRequest,
)

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
NAMES = {TOPIC: "t", GROUP: "g", CLUSTER: CLUSTER_NAME, ResourceType.TRANSACTIONAL_ID: "x"}
T_DENIED, C_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
LISTENERS = {Role.BROKER: BROKER, Role.CONTROLLER: CONTROLLER}
NOTHING = 0


@pytest.fixture(scope="module")
def one() -> Guarded:
    guarded = Guarded()
    guarded.create_topics("t", "hidden", "__consumer_offsets")
    return guarded


@pytest.fixture
def node(one: Guarded) -> Iterator[Guarded]:
    yield one
    one.forget_acls()


# -- the table --------------------------------------------------------------------------------------------------------


def produce(*topics: str, acks: int = 1, transactional_id: str | None = None) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name, partition_data=[data(index=0, records=encode_batch([(b"k", b"v", (), 0)]))]
            )
            for name in topics
        ],
    )


def fetch(*topics: str, replica: int = -1, **more: Any) -> FetchRequest:
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        replica_id=replica,
        max_bytes=1 << 20,
        topics=[FetchRequest.FetchTopic(topic=name, partitions=[asked]) for name in topics],
        **more,
    )


def of_broker(resource: type[Any]) -> list[Any]:
    return [resource(resource_type=4, resource_name="")]


def describe_acls(**more: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        **{"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1} | more
    )


REQUESTS: dict[int, tuple[Any, int | None]] = {
    0: (produce("t"), 12),
    1: (fetch("t"), 12),
    2: (
        ListOffsetsRequest(
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name="t", partitions=[ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)]
                )
            ]
        ),
        None,
    ),
    3: (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), None),
    8: (
        OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name="t", partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(committed_offset=1)]
                )
            ],
        ),
        9,
    ),
    9: (
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id="g",
                    topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
                )
            ]
        ),
        9,
    ),
    10: (FindCoordinatorRequest(coordinator_keys=["g"]), None),
    11: (
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
        ),
        None,
    ),
    12: (HeartbeatRequest(group_id="g"), None),
    13: (LeaveGroupRequest(group_id="g"), None),
    14: (SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"), None),
    15: (DescribeGroupsRequest(groups=["g"]), None),
    19: (
        CreateTopicsRequest(
            topics=[CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
        ),
        None,
    ),
    20: (DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="none")]), None),
    21: (
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name="t", partitions=[DeleteRecordsRequest.DeleteRecordsPartition()]
                )
            ]
        ),
        None,
    ),
    23: (
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic="t", partitions=[OffsetForLeaderEpochRequest.OffsetForLeaderPartition()]
                )
            ]
        ),
        None,
    ),
    29: (describe_acls(), None),
    30: (
        CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=2, resource_name="", principal="User:x", host="*", operation=3, permission_type=3
                )
            ]
        ),
        None,
    ),
    31: (
        DeleteAclsRequest(
            filters=[
                DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=1, principal_filter="User:nobody", operation=1, permission_type=1
                )
            ]
        ),
        None,
    ),
    32: (DescribeConfigsRequest(resources=of_broker(DescribeConfigsRequest.DescribeConfigsResource)), None),
    33: (AlterConfigsRequest(resources=of_broker(AlterConfigsRequest.AlterConfigsResource), validate_only=True), None),
    37: (
        CreatePartitionsRequest(topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=1)]),
        None,
    ),
    42: (DeleteGroupsRequest(groups_names=["g"]), None),
    43: (ElectLeadersRequest(topic_partitions=[]), 2),
    44: (
        IncrementalAlterConfigsRequest(
            resources=[IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=8, resource_name="1")],
            validate_only=True,
        ),
        None,
    ),
    47: (
        OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name="t", partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition()]
                )
            ],
        ),
        None,
    ),
    57: (UpdateFeaturesRequest(validate_only=True), None),
    58: (EnvelopeRequest(client_host_address=bytes(4)), None),
    61: (
        DescribeProducersRequest(topics=[DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])]),
        None,
    ),
    75: (DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsRequest.TopicRequest(name="t")]), None),
    10093: (
        GetReplicaLogInfoRequest(
            topic_partitions=[GetReplicaLogInfoRequest.TopicPartitions(topic_id=b"t" * 16, partitions=[0])]
        ),
        None,
    ),
}
"""What no message with nothing in it would show."""
REFUSES_NOTHING = tuple((Role.BROKER, key) for key in (16, 60, 66))
"""ListGroups, DescribeCluster and ListTransactions only leave things out."""
GUARDED = [
    (role, key)
    for role, routes in ROUTES.items()
    for key, route in routes.items()
    if route.served.needs or route.served.guard is not None
]


def request_for(role: Role, key: int) -> tuple[Any, int | None]:
    if role is Role.CONTROLLER and key == 1:
        return FetchRequest(), None
    return REQUESTS.get(key) or (request_class(key)(), None)


def test_what_a_broker_forwards_is_asked_for_by_the_controller() -> None:
    for key, route in ROUTES[Role.BROKER].items():
        if route.is_forwarded:
            assert ROUTES[Role.CONTROLLER][key].served.needs


def test_only_api_versions_is_open_to_every_client() -> None:
    """A broker that only forwards asks for nothing: the controller does."""
    open_to_all = {
        key
        for routes in ROUTES.values()
        for key, route in routes.items()
        if not route.is_forwarded and not route.served.needs and route.served.guard is None
    }
    assert open_to_all == {ApiKey.API_VERSIONS}


@pytest.mark.parametrize(("role", "key"), GUARDED)
def test_nothing_is_served_to_those_who_may_do_nothing(node: Guarded, role: Role, key: int) -> None:
    request, version = request_for(role, key)
    answer = node.ask(request, version, listener=LISTENERS[role])
    if (role, key) in REFUSES_NOTHING:
        assert not denials(answer)
    else:
        assert denials(answer), answer


@pytest.mark.parametrize(("role", "key"), GUARDED)
def test_each_api_is_served_to_those_who_have_what_its_rule_says(node: Guarded, role: Role, key: int) -> None:
    served = ROUTES[role][key].served
    for operation, kind in [*served.needs, *served.also]:
        node.allow(operation, kind, NAMES[kind])
    request, version = request_for(role, key)
    answer = node.ask(request, version, listener=LISTENERS[role])
    assert not denials(answer), answer


@pytest.mark.parametrize(
    "key", [key for key, route in ROUTES[Role.BROKER].items() if route.is_forwarded and not route.served.needs]
)
def test_what_is_forwarded_is_asked_for_of_the_client_not_of_the_broker(node: Guarded, key: int) -> None:
    request, version = request_for(Role.BROKER, key)
    assert denials(node.ask(request, version))
    assert not denials(node.ask(request, version, principal=ADMIN))


# -- records ----------------------------------------------------------------------------------------------------------


def codes_by_topic(answer: Any) -> dict[str, int]:
    return {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}


def test_a_producer_writes_to_its_topics_and_is_refused_the_others_whether_they_exist_or_not(node: Guarded) -> None:
    node.allow(AclOperation.WRITE, TOPIC, "t")
    answer = node.ask(produce("hidden", "t", "none"), 12)
    assert codes_by_topic(answer) == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}


def test_a_refused_producer_without_acks_loses_its_connection(node: Guarded) -> None:
    assert node.ask(produce("hidden", acks=0), 12) is None


def test_a_transactional_id_is_asked_for_before_any_topic(node: Guarded) -> None:
    node.allow(AclOperation.WRITE, TOPIC, "t")
    answer = node.ask(produce("t", transactional_id="x"), 12)
    assert codes_by_topic(answer) == {"t": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


def test_an_idempotent_producer_needs_only_some_topic(node: Guarded) -> None:
    request = request_class(22)()
    request.transactional_id = None
    assert node.ask(request).error_code == C_DENIED
    node.allow(AclOperation.WRITE, TOPIC, "any", pattern=PatternType.PREFIXED)
    assert node.ask(request).error_code == NOTHING


def fetched(answer: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.responses}


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
    assert fetched(node.ask(fetch("t", replica=2), 12)) == {"t": T_DENIED}
    again = node.ask(fetch("t", replica=2, session_id=9, session_epoch=3), 12)
    assert again.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    assert fetched(node.ask(fetch("t", replica=2), 12)) != {"t": T_DENIED}


# -- descriptions -----------------------------------------------------------------------------------------------------


def named(*names: str, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names], **more)


def shown(answer: Any) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in answer.topics}


def test_metadata_of_everything_leaves_out_what_may_not_be_described(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    assert shown(node.ask(MetadataRequest(topics=None))) == {"t": 0}
    assert shown(node.ask(MetadataRequest(topics=[]), 0)) == {"t": 0}


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
    described = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert node.ask(described).cluster_authorized_operations == 0
    node.allow(AclOperation.ALTER, CLUSTER, CLUSTER_NAME)
    expected = 1 << AclOperation.ALTER | 1 << AclOperation.DESCRIBE
    assert node.ask(described).cluster_authorized_operations == expected
    old = node.ask(named("t", include_cluster_authorized_operations=True), 8)
    assert old.cluster_authorized_operations == expected
    node.allow(AclOperation.DELETE, GROUP, "g")
    (group,) = node.ask(DescribeGroupsRequest(groups=["g"], include_authorized_operations=True), 5).groups
    assert group.authorized_operations == 1 << AclOperation.DELETE | 1 << AclOperation.DESCRIBE


def pages(*names: str, **more: Any) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names], **more
    )


Cursor = DescribeTopicPartitionsRequest.Cursor


def test_topic_partitions_are_described_as_far_as_they_may_be(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert shown(node.ask(pages())) == {"t": 0}
    assert shown(node.ask(pages("t", "hidden", "none"))) == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}
    assert shown(node.ask(pages("none"))) == {"none": T_DENIED}


def test_each_page_has_the_refusals_from_its_cursor_on(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    node.allow(AclOperation.DESCRIBE, TOPIC, "__consumer_offsets")
    names = ("t", "hidden", "zzz", "__consumer_offsets")
    first = node.ask(pages(*names, response_partition_limit=1))
    assert shown(first) == {"__consumer_offsets": 0, "hidden": T_DENIED, "zzz": T_DENIED}
    cursor = Cursor(topic_name=first.next_cursor.topic_name, partition_index=first.next_cursor.partition_index)
    assert shown(node.ask(pages(*names, cursor=cursor))) == {"t": 0, "zzz": T_DENIED}


def test_a_cursor_at_a_topic_that_may_not_be_seen_any_more_goes_on_behind_it(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    cursor = Cursor(topic_name="hidden", partition_index=0)
    assert shown(node.ask(pages(cursor=cursor))) == {"t": 0}
    assert shown(node.ask(pages("hidden", "t", cursor=cursor))) == {"t": 0, "hidden": T_DENIED}


def test_a_cursor_that_cannot_be_followed_is_invalid_whoever_asks(node: Guarded) -> None:
    cursor = Cursor(topic_name="hidden", partition_index=-1)
    assert shown(node.ask(pages("hidden", cursor=cursor))) == {"hidden": ErrorCode.INVALID_REQUEST}


# -- groups -----------------------------------------------------------------------------------------------------------


def test_groups_are_listed_to_those_who_may_describe_them_or_the_cluster(node: Guarded) -> None:
    committed = REQUESTS[8][0]
    node.wait(lambda: node.ask(committed, 9, principal=ADMIN).topics[0].partitions[0].error_code == 0)
    assert [group.group_id for group in node.ask(ListGroupsRequest()).groups] == []
    node.allow(AclOperation.READ, GROUP, "g")
    assert [group.group_id for group in node.ask(ListGroupsRequest()).groups] == ["g"]
    node.forget_acls()
    node.allow(AclOperation.DESCRIBE, CLUSTER, CLUSTER_NAME)
    assert [group.group_id for group in node.ask(ListGroupsRequest()).groups] == ["g"]


def test_offsets_are_told_of_topics_that_may_be_described(node: Guarded) -> None:
    committed = REQUESTS[8][0]
    node.wait(lambda: node.ask(committed, 9, principal=ADMIN).topics[0].partitions[0].error_code == 0)
    node.allow(AclOperation.DESCRIBE, GROUP, "g")
    one_group, everything = REQUESTS[9][0], OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    (group,) = node.ask(one_group, 9).groups
    assert group.error_code == 0 and group.topics[0].partitions[0].error_code == T_DENIED
    assert node.ask(OffsetFetchRequest(groups=[everything]), 9).groups[0].topics == []
    assert node.ask(OffsetFetchRequest(group_id="g", topics=None), 7).topics == []
    node.allow(AclOperation.READ, TOPIC, "t")
    (group,) = node.ask(OffsetFetchRequest(groups=[everything]), 9).groups
    assert group.topics[0].partitions[0].committed_offset == 1


def test_a_group_that_is_denied_before_version_2_is_denied_partition_by_partition(node: Guarded) -> None:
    asked = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    answer = node.ask(OffsetFetchRequest(group_id="g", topics=[asked]), 1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_offsets_are_committed_for_topics_that_may_be_read(node: Guarded) -> None:
    node.allow(AclOperation.READ, GROUP, "g")
    node.allow(AclOperation.READ, TOPIC, "t")
    Asked, Part = OffsetCommitRequest.OffsetCommitRequestTopic, OffsetCommitRequest.OffsetCommitRequestPartition
    topics = [Asked(name=name, partitions=[Part(committed_offset=2)]) for name in ("hidden", "t", "none")]
    answer = node.ask(OffsetCommitRequest(group_id="g", topics=topics), 9)
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}


# -- topics and configurations ----------------------------------------------------------------------------------------


def creating(*names: str, **more: Any) -> CreateTopicsRequest:
    Topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[Topic(name=name, num_partitions=1, replication_factor=1) for name in names], validate_only=True, **more
    )


def test_topics_are_created_by_their_name_or_by_the_cluster(node: Guarded) -> None:
    node.allow(AclOperation.CREATE, TOPIC, "mine")
    answer = node.ask(creating("mine", "other", "twice", "twice", "__cluster_metadata"))
    assert shown(answer) == {"mine": 0, "other": T_DENIED, "twice": 42, "__cluster_metadata": 42}
    node.allow(AclOperation.CREATE, CLUSTER, CLUSTER_NAME)
    assert shown(node.ask(creating("other"))) == {"other": 0}


def test_the_configuration_of_a_new_topic_is_shown_to_those_who_may_describe_it(node: Guarded) -> None:
    node.allow(AclOperation.CREATE, TOPIC, "mine")
    (topic,) = node.ask(creating("mine")).topics
    assert (topic.topic_config_error_code, topic.num_partitions, topic.configs) == (T_DENIED, -1, [])
    node.allow(AclOperation.ALTER_CONFIGS, TOPIC, "mine")
    (topic,) = node.ask(creating("mine")).topics
    assert (topic.topic_config_error_code, topic.num_partitions, bool(topic.configs)) == (0, 1, True)


def deleting(*topics: tuple[str | None, bytes]) -> DeleteTopicsRequest:
    State = DeleteTopicsRequest.DeleteTopicState
    return DeleteTopicsRequest(topics=[State(name=name, topic_id=topic_id) for name, topic_id in topics])


def deleted(answer: Any) -> dict[tuple[str | None, bytes], int]:
    return {(result.name, result.topic_id): result.error_code for result in answer.responses}


def test_deleting_tells_no_name_and_no_existence_to_those_who_may_not_describe(node: Guarded) -> None:
    hidden, zero = node.node.image.topic_ids["hidden"], bytes(16)
    refused = deleted(node.ask(deleting(("t", zero), ("none", zero), (None, hidden))))
    assert refused == {("t", zero): T_DENIED, ("none", zero): T_DENIED, (None, hidden): T_DENIED}
    node.allow(AclOperation.DESCRIBE, TOPIC, "*")
    refused = deleted(node.ask(deleting(("t", zero), ("none", zero), (None, hidden))))
    assert refused == {("t", zero): T_DENIED, ("none", zero): 3, ("hidden", hidden): T_DENIED}


def test_by_name_a_topic_is_deleted_by_those_who_may_also_describe_it(node: Guarded) -> None:
    node.allow(AclOperation.DELETE, TOPIC, "gone")
    node.allow(AclOperation.DESCRIBE, TOPIC, "gone", permission=AclPermissionType.DENY)
    node.create_topics("gone")
    gone, zero = node.node.image.topic_ids["gone"], bytes(16)
    assert deleted(node.ask(deleting(("gone", zero)))) == {("gone", zero): T_DENIED}
    assert deleted(node.ask(deleting((None, gone)))) == {("gone", gone): 0}


def test_configurations_are_asked_for_by_the_kind_of_their_resource(node: Guarded) -> None:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = [
        Resource(resource_type=kind, resource_name=name) for kind, name in ((2, "t"), (4, ""), (8, "1"), (32, "g"))
    ]
    request = DescribeConfigsRequest(resources=asked)
    codes = [result.error_code for result in node.ask(request).results]
    assert codes == [T_DENIED, C_DENIED, C_DENIED, ErrorCode.GROUP_AUTHORIZATION_FAILED]
    node.allow(AclOperation.ALTER_CONFIGS, TOPIC, "t")
    codes = {result.resource_type: result.error_code for result in node.ask(request).results}
    assert (codes[2], codes[4]) == (0, C_DENIED)


def test_a_configuration_that_is_named_twice_is_invalid_whoever_asks(node: Guarded) -> None:
    Resource = AlterConfigsRequest.AlterConfigsResource
    asked = [Resource(resource_type=2, resource_name=name) for name in ("t", "t", "hidden")]
    answer = node.ask(AlterConfigsRequest(resources=asked))
    assert [(one.resource_name, one.error_code) for one in answer.responses] == [("t", 42), ("t", 42), ("hidden", 29)]


# -- who asks ---------------------------------------------------------------------------------------------------------


def test_hosts_are_compared_as_java_writes_addresses(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t", host="0:0:0:0:0:0:0:1")
    node.allow(AclOperation.DESCRIBE, TOPIC, "hidden", host="10.0.0.9")
    assert shown(node.ask(MetadataRequest(topics=None), host="::1")) == {"t": 0}
    assert shown(node.ask(MetadataRequest(topics=None), host="::ffff:10.0.0.9")) == {"hidden": 0}
    assert shown(node.ask(MetadataRequest(topics=None), host=HOST)) == {}


def test_the_address_of_the_client_travels_with_what_is_forwarded(node: Guarded) -> None:
    node.allow(AclOperation.CREATE, TOPIC, "mine", host=HOST)
    assert shown(node.ask(creating("mine"), host=HOST)) == {"mine": 0}
    assert shown(node.ask(creating("mine"), host="10.0.0.2")) == {"mine": T_DENIED}


def test_an_envelope_is_taken_from_nodes_only(node: Guarded) -> None:
    envelope = EnvelopeRequest(request_data=b"", request_principal=b"\0\0", client_host_address=bytes(4))
    assert node.ask(envelope, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    assert node.ask(envelope, listener=CONTROLLER).error_code == ErrorCode.INVALID_REQUEST


def test_until_the_acls_are_known_only_super_users_are_served(node: Guarded) -> None:
    described, authorizer = DescribeClusterRequest(endpoint_type=2), node.node.authorizer
    authorizer.is_loaded = False
    wire, connection = node.connect(listener=CONTROLLER)
    connection.received(RequestHeader(60, 2, 1, "guarded"), described)
    assert not wire.answers
    assert node.ask(described, principal=ADMIN, listener=CONTROLLER).error_code == NOTHING
    node.wait(lambda: bool(wire.answers))
    assert authorizer.is_loaded, "the next commit shows that this node has everything"
    connection.closed()


@pytest.mark.parametrize(
    "principal", [b"", b"\0", b"\0\1", b"\0\0", b"\0\0\x05User", b"\0\0\x05User\x09al", b"\0\0\x05User\x02\xff\0\0"]
)
def test_an_envelope_whose_principal_cannot_be_read_is_refused(node: Guarded, principal: bytes) -> None:
    inner = b"".join(encode_request(RequestHeader(19, 7, 1, "c"), creating("t")))[4:]  # type: ignore[arg-type]
    envelope = EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4))
    code = node.ask(envelope, listener=CONTROLLER, principal=ADMIN).error_code
    assert code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    envelope.client_host_address = b"\0"
    assert node.ask(envelope, listener=CONTROLLER, principal=ADMIN).error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_that_may_not_forward_tells_its_clients_nothing_of_permissions() -> None:
    alone = Guarded(super_users="User:admin", allow_everyone_if_no_acl_found="true")
    alone.allow(AclOperation.CREATE, CLUSTER, CLUSTER_NAME)
    answer = alone.ask(creating("t"), principal=ADMIN)
    assert shown(answer) == {"t": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert any(line.event == "forwarding-denied" for line in alone.log)


@pytest.mark.parametrize("by_snapshot", [False, True])
def test_acls_outlive_their_node(by_snapshot: bool) -> None:
    limits = {"metadata_log_max_record_bytes_between_snapshots": "1"} if by_snapshot else {}
    guarded = Guarded(**limits)
    guarded.create_topics("t", "u")
    guarded.allow(AclOperation.DESCRIBE, TOPIC, "t")
    before = dict(guarded.node.image.acls.by_id)
    guarded.world.run_for(2000)
    guarded.cluster.kill("broker-1")
    guarded.cluster.start("broker-1")
    guarded.wait(lambda: guarded.cluster.broker(1).node is not None and bool(guarded.node.image.topic_ids))
    assert shown(guarded.ask(MetadataRequest(topics=None))) == {"t": 0}
    assert guarded.node.image.acls.by_id == before


def test_what_is_denied_is_told_in_the_log_with_who_asked_for_what(node: Guarded) -> None:
    node.world.run_for(20_000)
    node.log.clear()
    node.ask(fetch("hidden"), 12)
    (line,) = [line for line in node.log if line.event == "authorization-denied"]
    assert dict(line.values) | {"suppressed": 0} == {
        "principal": ALICE,
        "host": HOST,
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource": "hidden",
        "suppressed": 0,
    }


def test_without_an_authorizer_there_are_no_acls_to_speak_of() -> None:
    open_node = Guarded(authorizer_class_name="", super_users="")
    assert open_node.ask(describe_acls()).error_code == ErrorCode.SECURITY_DISABLED
    (created,) = open_node.ask(REQUESTS[30][0]).results
    (removed,) = open_node.ask(REQUESTS[31][0]).filter_results
    assert created.error_code == removed.error_code == ErrorCode.SECURITY_DISABLED
    assert created.error_message == "No Authorizer is configured."
    assert open_node.ask(MetadataRequest(topics=None)).topics == []
