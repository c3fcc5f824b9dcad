"""What each API answers when it was not executed: this node is not the active controller (or ceases to be), or the
broker that forwarded the request reached no controller in time."""

from __future__ import annotations

from typing import Final

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AllocateProducerIdsResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeQuorumResponse,
    DescribeRecoveryResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsResponse,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_SENTENCES: Final = {
    ErrorCode.NOT_CONTROLLER: "This is not the active controller; ask again.",
    ErrorCode.REQUEST_TIMED_OUT: "The active controller did not answer in time.",
    ErrorCode.RECORD_LIST_TOO_LARGE: (
        "A metadata record would be larger than 8 MiB, which is as much as the metadata log takes in one batch; "
        "make the value shorter."
    ),
    ErrorCode.SECURITY_DISABLED: "No Authorizer is configured.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed: an ACL on the cluster has to allow this.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed: an ACL on the topic has to allow this.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed: an ACL on the group has to allow this.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "Transactional Id authorization failed: an ACL on the transactional id has to allow this."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def sentence(code: ErrorCode) -> str:
    """Why nothing was done."""
    return _SENTENCES.get(code, f"The controller refused the request with {code.name}.")


def alter_partition_refused(code: ErrorCode) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=code)


def assign_directories_refused(code: ErrorCode) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=code)


def registration_refused(code: ErrorCode) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=code)


def heartbeat_refused(code: ErrorCode) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=code)


def producer_ids_refused(code: ErrorCode) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code)


def create_topics_refused(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponse.CreatableTopicResult(name=topic.name, error_code=code, error_message=sentence(code))
            for topic in request.topics
        ]
    )


def delete_topics_refused(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    asked = [(topic.name, topic.topic_id) for topic in request.topics]
    asked += [(name, bytes(16)) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=code, error_message=sentence(code)
            )
            for name, topic_id in asked
        ]
    )


def elect_leaders_refused(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    """Also per partition: version 0 has no error for the whole request."""
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersResponse.PartitionResult(
                        partition_id=partition, error_code=code, error_message=sentence(code)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def create_acls_refused(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            CreateAclsResponse.AclCreationResult(error_code=code, error_message=sentence(code))
            for _ in request.creations
        ]
    )


def delete_acls_refused(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.DeleteAclsFilterResult(error_code=code, error_message=sentence(code))
            for _ in request.filters
        ]
    )


def describe_recovery_refused(code: ErrorCode) -> DescribeRecoveryResponse:
    return DescribeRecoveryResponse(error_code=code, error_message=sentence(code))


def describe_quorum_refused(code: ErrorCode) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=code, error_message=sentence(code))


def list_reassignments_refused(code: ErrorCode) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=code, error_message=sentence(code))


def alter_reassignments_refused(code: ErrorCode) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=code, error_message=sentence(code))


def unregister_broker_refused(code: ErrorCode) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=sentence(code))


def update_features_refused(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    """Also per feature: versions 0 and 1 have a result for each."""
    return UpdateFeaturesResponse(
        error_code=code,
        error_message=sentence(code),
        results=[
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature, error_code=code, error_message=sentence(code)
            )
            for update in request.feature_updates
        ],
    )


def create_partitions_refused(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=code, error_message=sentence(code)
            )
            for topic in request.topics
        ]
    )


def alter_configs_refused(request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=code,
                error_message=sentence(code),
            )
            for resource in request.resources
        ]
    )


def incremental_alter_configs_refused(
    request: IncrementalAlterConfigsRequest, code: ErrorCode
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=code,
                error_message=sentence(code),
            )
            for resource in request.resources
        ]
    )
