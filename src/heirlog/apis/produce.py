"""Produce (key 0): append record batches to partitions that this broker leads.

v5 log start offset, v7 zstd, v8 per-record errors, v9 flexible, v10 current leader and node endpoints in tags, v13
topic ids instead of names. The records stay bytes from the socket to the file. The rules are in `broker.produce`.

ApiVersions shows the range from version 0, because librdkafka (2.5 among others) sends gzip, snappy and lz4
uncompressed to a broker whose range begins later. A request below version 3 closes the connection, as on Apache Kafka.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call, parted, split
from heirlog.apis.common.ports import OnBroker
from heirlog.broker.transactional_produce import TOPIC_ID_VERSION
from heirlog.context import CLOSE, Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.batch import is_transactional
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ProduceRequest, ProduceResponse
from heirlog.protocol.primitives import records_view


class Produces(Protocol):
    def produce(self, request: ProduceRequest, context: Context) -> Reply[ProduceResponse]: ...


def guard(call: Call[ProduceRequest, ProduceResponse]) -> Reply[ProduceResponse]:
    """With acks=0 there is no answer to refuse with: the connection closes, as on every failure."""
    request, by_id = call.request, call.context.api_version >= TOPIC_ID_VERSION
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allowed, denied = parted(request.topic_data, lambda topic: call.may_topic(topic.name, topic.topic_id, by_id=by_id))
    transactional_id = request.transactional_id
    if transactional_id is not None and not call.may(ResourceType.TRANSACTIONAL_ID, transactional_id):
        code, allowed, denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, [], list(request.topic_data)
    answer = split(call, "topic_data", "responses", allowed, denied, lambda topic: _denied(topic, code))
    return CLOSE if denied and request.acks == 0 else answer


def _denied(topic: ProduceRequest.TopicProduceData, code: ErrorCode) -> ProduceResponse.TopicProduceResponse:
    return ProduceResponse.TopicProduceResponse(
        topic_id=topic.topic_id,
        name=topic.name,
        partition_responses=[
            ProduceResponse.PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
            for data in topic.partition_data
        ],
    )


def handle(node: OnBroker[Produces], request: ProduceRequest, context: Context) -> Reply[ProduceResponse]:
    if request.transactional_id is None and _has_transaction(request):
        # also without an authorizer, as on Apache Kafka
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        refusal = ProduceResponse(responses=[_denied(topic, code) for topic in request.topic_data])
        return CLOSE if request.acks == 0 else refusal
    return node.broker.produce(request, context)


def _has_transaction(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            if is_transactional(records_view(data.records)):
                return True
    return False


API = Api(
    key=ApiKey.PRODUCE,
    broker=Served(
        (3, 13),
        handle,
        needs=(
            Need(AclOperation.WRITE, ResourceType.TOPIC),
            Need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
        ),
        guard=guard,
        advertised=(0, 13),
    ),
    # its records are in the log by then
    keeps_nothing=True,
    limits=(Limit("message.max.bytes", "bytes in a batch", ErrorCode.MESSAGE_TOO_LARGE),),
    remarks=(
        "advertised as 0-13, as by Kafka: librdkafka does not compress with gzip, snappy and lz4 for a broker whose "
        "range begins above 0. Versions 0-2 close the connection"
    ),
)
