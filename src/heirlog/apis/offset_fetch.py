"""OffsetFetch (key 9): how far a group has read, as far as that is committed.

v2 all topics and an error of the group, v3 throttle time, v5 leader epochs, v6 flexible, v7 `require_stable` (nothing
is ever unstable without transactions), v8 several groups, v9 member epochs, v10 topic ids. The rules are in
`broker.groups.offset_requests`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups import offset_requests
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC
DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def guard(call: Call[OffsetFetchRequest, OffsetFetchResponse]) -> Reply[OffsetFetchResponse]:
    """Topics that the client must not describe: refused where the request names them, left out where it wants all."""
    return _of_several(call) if call.context.api_version >= offset_requests.GROUPS_VERSION else _of_one(call)


def _of_one(call: Call[OffsetFetchRequest, OffsetFetchResponse]) -> Reply[OffsetFetchResponse]:
    request = call.request
    has_own_error = call.context.api_version >= offset_requests.OWN_ERROR_VERSION
    if not call.may(GROUP, request.group_id):
        return OffsetFetchResponse(
            error_code=DENIED,
            topics=[_denied_topic(topic, DENIED) for topic in request.topics or () if not has_own_error],
        )
    if request.topics is None:

        def keep(response: OffsetFetchResponse) -> None:
            response.topics = [topic for topic in response.topics if call.may(TOPIC, topic.name, is_denial=False)]

        return changed(call.handle(), keep)
    allowed, denied = parted(request.topics, lambda topic: call.may(TOPIC, topic.name))

    def finish(response: OffsetFetchResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.topics += [_denied_topic(topic, TOPIC_DENIED) for topic in denied]

    # also where no topic is left: the handler says whether the coordinator is elsewhere, or loads
    return changed(call.handle(without(request, topics=allowed)), finish) if denied else call.handle()


def _denied_topic(
    topic: OffsetFetchRequest.OffsetFetchRequestTopic, code: ErrorCode
) -> OffsetFetchResponse.OffsetFetchResponseTopic:
    return OffsetFetchResponse.OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponse.OffsetFetchResponsePartition(
                partition_index=index, committed_offset=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _of_several(call: Call[OffsetFetchRequest, OffsetFetchResponse]) -> Reply[OffsetFetchResponse]:
    request, by_id = call.request, call.context.api_version >= offset_requests.TOPIC_ID_VERSION
    groups, refused = parted(request.groups, lambda asked: call.may(GROUP, asked.group_id))
    asked_groups = []
    denied: dict[str, list[OffsetFetchRequest.OffsetFetchRequestTopics]] = {}
    for asked in groups:
        seen, hidden = parted(asked.topics or (), lambda topic: call.may_topic(topic.name, topic.topic_id, by_id=by_id))
        if hidden:
            denied.setdefault(asked.group_id, []).extend(hidden)
        asked_groups.append(without(asked, topics=seen) if hidden else asked)
    wants_all = {asked.group_id for asked in asked_groups if asked.topics is None}

    def finish(response: OffsetFetchResponse) -> None:
        for group in response.groups:
            if group.group_id in wants_all:
                group.topics = [
                    topic
                    for topic in group.topics
                    if call.may_topic(topic.name, topic.topic_id, by_id=by_id, is_denial=False)
                ]
            if group.error_code == ErrorCode.NONE:
                # once, should the request name the group twice
                group.topics += [_denied_topics(topic) for topic in denied.pop(group.group_id, ())]
        response.groups += [
            OffsetFetchResponse.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=DENIED)
            for asked in refused
        ]

    answer: Reply[OffsetFetchResponse] = OffsetFetchResponse()
    if asked_groups or not refused:
        answer = call.handle(without(request, groups=asked_groups))
    return changed(answer, finish)


def _denied_topics(
    topic: OffsetFetchRequest.OffsetFetchRequestTopics,
) -> OffsetFetchResponse.OffsetFetchResponseTopics:
    return OffsetFetchResponse.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponse.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=TOPIC_DENIED
            )
            for index in topic.partition_indexes
        ],
    )


def handle(node: OnBroker[CoordinatesGroups], request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    return offset_requests.fetch(node.broker.groups, request, context)


API = Api(
    key=ApiKey.OFFSET_FETCH,
    broker=Served(
        (1, 10), handle, needs=(Need(AclOperation.DESCRIBE, GROUP), Need(AclOperation.DESCRIBE, TOPIC)), guard=guard
    ),
    has_large_answer=True,
)
