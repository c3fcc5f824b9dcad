"""DescribeShareGroupOffsets (key 90): where share groups have got in their partitions (KIP-932).

v1 lag (KIP-1226). Topics that the client must not describe are left out where it asks for all, and refused where it
names them. The rules are in `broker.groups.share.offset_requests`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups.share import offset_requests
from heirlog.broker.groups.share.end_offsets import EndOffsets
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse

Response = DescribeShareGroupOffsetsResponse
Group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
Topic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic


class KnowsEnds(CoordinatesGroups, Protocol):
    @property
    def end_offsets(self) -> EndOffsets: ...


def refused(request: DescribeShareGroupOffsetsRequest, code: ErrorCode) -> DescribeShareGroupOffsetsResponse:
    """The error of every group."""
    return Response(groups=[_refused(asked, code) for asked in request.groups])


def _refused(asked: Group, code: ErrorCode) -> Response.DescribeShareGroupOffsetsResponseGroup:
    return Response.DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id, error_code=code)


def guard(
    call: Call[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse],
) -> Reply[DescribeShareGroupOffsetsResponse]:
    request = call.request
    allowed, denied = parted(request.groups, lambda asked: call.may(ResourceType.GROUP, asked.group_id))
    hidden: dict[str, list[Topic]] = {}
    shown = []
    for asked in allowed:
        topics = asked.topics
        if topics is not None:
            topics, hidden[asked.group_id] = parted(topics, lambda each: call.may(ResourceType.TOPIC, each.topic_name))
        shown.append(without(asked, topics=topics))
    answer: Reply[DescribeShareGroupOffsetsResponse] = Response()
    if shown:
        answer = call.handle(without(request, groups=shown))

    def finish(response: DescribeShareGroupOffsetsResponse) -> None:
        for group in response.groups:
            group.topics = [
                each for each in group.topics if call.may(ResourceType.TOPIC, each.topic_name, is_denial=False)
            ]
            if group.error_code == ErrorCode.NONE:
                group.topics += [_hidden(topic) for topic in hidden.get(group.group_id, ())]
        response.groups += [_refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED) for asked in denied]

    return changed(answer, finish)


def _hidden(topic: Topic) -> Response.DescribeShareGroupOffsetsResponseTopic:
    return Response.DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            Response.DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, start_offset=-1, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for index in topic.partitions
        ],
    )


def handle(
    node: OnBroker[KnowsEnds], request: DescribeShareGroupOffsetsRequest, context: Context
) -> Reply[DescribeShareGroupOffsetsResponse]:
    return offset_requests.describe(node.broker.groups, node.broker.end_offsets, request)


API = Api(
    key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    broker=Served(
        (0, 1),
        handle,
        needs=(Need(AclOperation.DESCRIBE, ResourceType.GROUP), Need(AclOperation.DESCRIBE, ResourceType.TOPIC)),
        guard=guard,
    ),
    refused=refused,
    has_large_answer=True,
)
