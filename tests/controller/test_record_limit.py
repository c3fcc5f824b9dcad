"""One more than an admin request may make, for each API that has the limit; and those that have none."""

from __future__ import annotations

from typing import Any

import pytest
from controller.cluster import leading
from controller.fakes import Harness

from heirlog.controller.controller_result import ControllerResult
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.metadata.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.metadata.as_records import acl_record
from heirlog.metadata.image import GROUP_RESOURCE
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from heirlog.protocol.records import PartitionRecord, TopicRecord
from heirlog.protocol.types import Uuid

MOST = MAX_RECORDS_PER_USER_OP
FOO = Uuid(b"f" * 16)
ANY = 1


@pytest.fixture
def harness() -> Harness:
    return leading()


def write(harness: Harness, *records: Any) -> None:
    harness.controller.submit(lambda: ControllerResult(lambda offset: None, list(records)), lambda code: None)
    harness.commit()


def partition(number: int, leader: int = 2) -> PartitionRecord:
    return PartitionRecord(topic_id=FOO, partition_id=number, replicas=[1, 2], isr=[1, 2], leader=leader)


def refusal(result: Any) -> str:
    """The error message of what was too much; what to do next is behind the last semicolon."""
    assert result.error_code == ErrorCode.POLICY_VIOLATION
    message: str = result.error_message
    assert f"one request can make {MOST} metadata records; " in message
    return message.rpartition("; ")[2]


def test_a_topic_and_its_partitions_are_at_most_as_many(harness: Harness) -> None:
    def create(partitions: int) -> Any:
        topic = CreateTopicsRequest.CreatableTopic(name="foo", num_partitions=partitions, replication_factor=1)
        (result,) = harness.ask("create_topics", CreateTopicsRequest(topics=[topic], validate_only=True)).topics
        return result

    assert create(MOST - 1).error_code == ErrorCode.NONE
    assert refusal(create(MOST)).startswith("create the topics in several requests")


def test_as_many_partitions_can_be_added_at_a_time(harness: Harness) -> None:
    write(harness, TopicRecord(name="foo", topic_id=FOO), partition(0))

    def add(partitions: int) -> Any:
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name="foo", count=1 + partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], validate_only=True)
        (result,) = harness.ask("create_partitions", request).results
        return result

    assert add(MOST).error_code == ErrorCode.NONE
    assert refusal(add(MOST + 1)) == "add them in several requests."


def creations(count: int) -> CreateAclsRequest:
    fields = {"resource_type": ResourceType.TOPIC, "resource_pattern_type": PatternType.LITERAL, "host": "*"}
    fields |= {"operation": AclOperation.READ, "permission_type": AclPermissionType.ALLOW, "principal": "User:a"}
    return CreateAclsRequest(
        creations=[CreateAclsRequest.AclCreation(resource_name=f"t-{number}", **fields) for number in range(count)]
    )


def test_a_request_for_more_acls_creates_none(harness: Harness) -> None:
    results = harness.ask("create_acls", creations(MOST + 1)).results
    assert {refusal(result) for result in results} == {"create them in several requests."}
    assert not harness.controller.image.acls.by_id
    assert {result.error_code for result in harness.ask("create_acls", creations(MOST)).results} == {0}


def test_a_filter_that_matches_more_acls_deletes_none_and_the_others_delete_theirs(harness: Harness) -> None:
    def acl(number: int) -> Acl:
        return Acl(
            ResourceType.TOPIC,
            f"t-{number}",
            PatternType.LITERAL,
            "User:a",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )

    write(harness, *(acl_record(Uuid(number.to_bytes(16, "big")), acl(number)) for number in range(1, MOST + 2)))

    def matching(name: str | None) -> DeleteAclsRequest.DeleteAclsFilter:
        return DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=name,
            pattern_type_filter=ANY,
            operation=ANY,
            permission_type=ANY,
        )

    first, everything = harness.ask(
        "delete_acls", DeleteAclsRequest(filters=[matching("t-1"), matching(None)])
    ).filter_results
    assert [found.resource_name for found in first.matching_acls] == ["t-1"]
    assert refusal(everything).startswith("name a resource, a principal or an operation in the filter")
    assert f"this filter matches {MOST + 1}" in everything.error_message
    assert len(harness.controller.image.acls.by_id) == MOST
    (rest,) = harness.ask("delete_acls", DeleteAclsRequest(filters=[matching(None)])).filter_results
    assert rest.error_code == ErrorCode.NONE
    assert not harness.controller.image.acls.by_id


@pytest.mark.parametrize("request_class", [AlterConfigsRequest, IncrementalAlterConfigsRequest])
def test_the_resource_whose_configurations_are_too_many_is_refused_alone(
    harness: Harness, request_class: type[Any]
) -> None:
    change = request_class.AlterableConfig(name="consumer.session.timeout.ms", value="50000")
    resources = [
        request_class.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=f"g-{number}", configs=[change])
        for number in range(MOST + 1)
    ]
    method = "alter_configs" if request_class is AlterConfigsRequest else "incremental_alter_configs"
    *accepted, last = harness.ask(method, request_class(resources=resources)).responses
    assert {result.error_code for result in accepted} == {ErrorCode.NONE}
    assert refusal(last) == "change them in several requests."
    groups = [name for kind, name in harness.controller.image.configs if kind == GROUP_RESOURCE]
    assert len(groups) == MOST


# -- without a limit: each change stands for itself -------------------------------------------------------------------


def test_more_topics_are_deleted_in_several_batches(harness: Harness) -> None:
    names = [f"t-{number}" for number in range(MOST + 1)]
    write(harness, *(TopicRecord(name=n, topic_id=Uuid(i.to_bytes(16, "big"))) for i, n in enumerate(names, 1)))
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
    results = harness.ask("delete_topics", DeleteTopicsRequest(topics=topics)).responses
    assert [result.error_code for result in results] == [ErrorCode.NONE] * len(names)
    assert not harness.controller.image.topics
    assert [len(batch.records) for batch in harness.quorum.log[-2:]] == [MOST, 1]


def test_more_reassignments_are_started_in_several_batches(harness: Harness) -> None:
    write(harness, TopicRecord(name="foo", topic_id=FOO), *(partition(number) for number in range(MOST + 1)))
    asked = AlterPartitionReassignmentsRequest.ReassignablePartition
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(
        name="foo", partitions=[asked(partition_index=number, replicas=[2, 3]) for number in range(MOST + 1)]
    )
    (answered,) = harness.ask(
        "alter_partition_reassignments", AlterPartitionReassignmentsRequest(topics=[topic])
    ).responses
    assert {result.error_code for result in answered.partitions} == {ErrorCode.NONE}
    assert all(state.adding == (3,) for state in harness.controller.image.partitions[FOO].values())
    assert [len(batch.records) for batch in harness.quorum.log[-2:]] == [MOST, 1]


def test_more_leaders_are_elected_in_several_batches_by_the_versions_of_apache_kafka(harness: Harness) -> None:
    write(harness, TopicRecord(name="foo", topic_id=FOO), *(partition(number) for number in range(MOST + 1)))
    topic = ElectLeadersRequest.TopicPartitions(topic="foo", partitions=list(range(MOST + 1)))
    response = harness.ask("elect_leaders", ElectLeadersRequest(topic_partitions=[topic]), 2)
    (answered,) = response.replica_election_results
    assert {result.error_code for result in answered.partition_result} == {ErrorCode.NONE}
    assert all(state.leader == 1 for state in harness.controller.image.partitions[FOO].values())
    assert [len(batch.records) for batch in harness.quorum.log[-2:]] == [MOST, 1]
