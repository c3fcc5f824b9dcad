"""Guards of what concerns the cluster as a whole: the request is served or refused as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.controller import refusals
from heirlog.metadata.acls import Operation, ResourceType
from heirlog.node.authorization.call import Call, changed
from heirlog.node.describe import NOT_ASKED
from heirlog.protocol.api import response_class
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DescribeClusterResponse,
    FetchRequest,
    FetchResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsResponse,
)

CLUSTER = ResourceType.CLUSTER
DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
SENTENCE = refusals.sentence(DENIED)


def open_to_all(call: Call) -> Any:
    """Nothing is asked for; or the active controller asks, to which this broker forwards the request."""
    return call.handle()


def whole(call: Call) -> Any:
    """Refused by the error code of the answer."""
    return call.handle() if call.may(CLUSTER) else whole_refusal(call)


def whole_refusal(call: Call) -> Any:
    answer: Any = response_class(call.route.key)()
    answer.error_code = DENIED
    if "error_message" in answer.FIELDS:
        answer.error_message = SENTENCE
    return answer


def refusing(refused: Callable[[Any, ErrorCode], Any]) -> Callable[[Call], Any]:
    """Refused by what `refused(request, code)` makes, for answers with more than one error code."""

    def guard(call: Call) -> Any:
        return call.handle() if call.may(CLUSTER) else refused(call.request, DENIED)

    return guard


def log_info_refused(request: GetReplicaLogInfoRequest, code: ErrorCode) -> GetReplicaLogInfoResponse:
    return GetReplicaLogInfoResponse(
        topic_partition_log_info_list=[
            GetReplicaLogInfoResponse.TopicPartitionLogInfo(
                topic_id=topic.topic_id,
                partition_log_info=[
                    GetReplicaLogInfoResponse.PartitionLogInfo(
                        partition=partition, error_code=code, error_message=SENTENCE
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ]
    )


def describe_brokers(call: Call) -> Any:
    """Everybody sees the brokers; who may not describe the cluster is told of no operations on it."""

    def tell(response: DescribeClusterResponse) -> None:
        if response.cluster_authorized_operations != NOT_ASKED:
            response.cluster_authorized_operations = cluster_operations(call)

    return changed(call.handle(), tell)


def describe_controllers(call: Call) -> Any:
    """Only operators speak to controllers."""
    return describe_brokers(call) if call.may(CLUSTER) else whole_refusal(call)


def cluster_operations(call: Call) -> int:
    if not call.may_also(Operation.DESCRIBE, CLUSTER):
        return 0
    return call.operations(CLUSTER)


def init_producer_id(call: Call) -> Any:
    """An idempotent producer needs no permission of its own where it may write to some topic (KIP-679)."""
    request: InitProducerIdRequest = call.request
    if request.transactional_id is not None:
        if not call.may(ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not call.may_any(ResourceType.TOPIC) and not call.may(CLUSTER):
        return InitProducerIdResponse(error_code=DENIED)
    return call.handle()


def list_transactions(call: Call) -> Any:
    """Only those that the client may describe."""

    def keep(response: ListTransactionsResponse) -> None:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if call.may(ResourceType.TRANSACTIONAL_ID, state.transactional_id, is_denial=False)
        ]

    return changed(call.handle(), keep)


def fetch(call: Call) -> Any:
    """A follower needs the cluster, a consumer each topic, also those that its session remembers."""
    request: FetchRequest = call.request
    if max(request.replica_id, request.replica_state.replica_id) < 0:
        return call.handle_refusing(lambda topic: not call.may(ResourceType.TOPIC, topic))
    return call.handle() if call.may(CLUSTER) else _follower_refused(request)


def _follower_refused(request: FetchRequest) -> FetchResponse:
    """In a session the follower has to name its partitions again, which are refused one by one."""
    if request.session_epoch > 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return FetchResponse(
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=asked.partition,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        high_watermark=-1,
                        records=b"",
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


elect_leaders = refusing(refusals.elect_leaders_refused)
update_features = refusing(refusals.update_features_refused)
create_acls = refusing(refusals.create_acls_refused)
delete_acls = refusing(refusals.delete_acls_refused)
replica_log_info = refusing(log_info_refused)
