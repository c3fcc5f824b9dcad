"""Guards of what concerns consumer groups: the group first, then the topics whose offsets are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.controller.refusals import sentence
from heirlog.metadata.acls import ResourceType
from heirlog.node.authorization.call import Call, Guard, changed, parted, without
from heirlog.node.authorization.topics import split
from heirlog.node.describe import NOT_ASKED
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupResponse,
)

GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC
DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NULL_PROTOCOL_VERSION = 7
OFFSETS_BY_ID = 10
SEVERAL_GROUPS = 8
SEVERAL_KEYS = 4
GROUP_KEY, TRANSACTION_KEY = 0, 1


# -- members ----------------------------------------------------------------------------------------------------------


def membership(refused: Callable[[int], Any]) -> Guard:
    """refused: the answer, given the version."""

    def guard(call: Call) -> Any:
        return call.handle() if call.may(GROUP, call.request.group_id) else refused(call.context.api_version)

    return guard


def _not_joined(version: int) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=DENIED, protocol_name=None if version >= NULL_PROTOCOL_VERSION else "")


join_group = membership(_not_joined)
sync_group = membership(lambda version: SyncGroupResponse(error_code=DENIED))
heartbeat = membership(lambda version: HeartbeatResponse(error_code=DENIED))
leave_group = membership(lambda version: LeaveGroupResponse(error_code=DENIED))


def find_coordinator(call: Call) -> Any:
    request: FindCoordinatorRequest = call.request
    if call.context.api_version >= SEVERAL_KEYS:
        keys = request.coordinator_keys
        left, denied = parted(keys, lambda key: _may_find(call, request.key_type, key))
        if not denied:
            return call.handle()
        answer = call.handle(without(request, coordinator_keys=left)) if left else FindCoordinatorResponse()
        code = _find_code(request.key_type)
        return changed(
            answer,
            lambda response: response.coordinators.extend(
                FindCoordinatorResponse.Coordinator(
                    key=key, node_id=-1, host="", port=-1, error_code=code, error_message=sentence(code)
                )
                for key in denied
            ),
        )
    if _may_find(call, request.key_type, request.key):
        return call.handle()
    code = _find_code(request.key_type)
    return FindCoordinatorResponse(error_code=code, error_message=sentence(code), node_id=-1, host="", port=-1)


def _may_find(call: Call, key_type: int, key: str) -> bool:
    """Other kinds of keys are refused by the handler, whoever asks."""
    if key_type == GROUP_KEY:
        return call.may(GROUP, key)
    return key_type != TRANSACTION_KEY or call.may(ResourceType.TRANSACTIONAL_ID, key)


def _find_code(key_type: int) -> ErrorCode:
    return DENIED if key_type == GROUP_KEY else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


# -- operators --------------------------------------------------------------------------------------------------------


def list_groups(call: Call) -> Any:
    """Who may describe the cluster sees every group, anybody else those that they may describe."""

    def keep(response: ListGroupsResponse) -> None:
        response.groups = [group for group in response.groups if call.may(GROUP, group.group_id, is_denial=False)]

    return call.handle() if call.may(ResourceType.CLUSTER, is_denial=False) else changed(call.handle(), keep)


def describe_groups(call: Call) -> Any:
    request: DescribeGroupsRequest = call.request
    left, denied = parted(dict.fromkeys(request.groups), lambda group: call.may(GROUP, group))

    def finish(response: DescribeGroupsResponse) -> None:
        for group in response.groups:
            if group.authorized_operations != NOT_ASKED:
                group.authorized_operations = call.operations(GROUP, group.group_id)
        response.groups += [
            DescribeGroupsResponse.DescribedGroup(group_id=group, error_code=DENIED, error_message=sentence(DENIED))
            for group in denied
        ]

    answer = call.handle(without(request, groups=left)) if left or not denied else DescribeGroupsResponse()
    return changed(answer, finish)


def delete_groups(call: Call) -> Any:
    request: DeleteGroupsRequest = call.request
    left, denied = parted(dict.fromkeys(request.groups_names), lambda group: call.may(GROUP, group))

    def finish(response: DeleteGroupsResponse) -> None:
        response.results += [
            DeleteGroupsResponse.DeletableGroupResult(group_id=group, error_code=DENIED) for group in denied
        ]

    answer = call.handle(without(request, groups_names=left)) if left or not denied else DeleteGroupsResponse()
    return changed(answer, finish)


# -- offsets ----------------------------------------------------------------------------------------------------------


def offset_commit(call: Call) -> Any:
    request: OffsetCommitRequest = call.request
    if not call.may(GROUP, request.group_id):
        return OffsetCommitResponse(topics=[_not_committed(topic, DENIED) for topic in request.topics])
    left, denied = parted(request.topics, lambda topic: _is_seen(call, topic.name, topic.topic_id))
    return split(call, "topics", "topics", left, denied, lambda topic: _not_committed(topic, TOPIC_DENIED))


def _not_committed(
    topic: OffsetCommitRequest.OffsetCommitRequestTopic, code: ErrorCode
) -> OffsetCommitResponse.OffsetCommitResponseTopic:
    return OffsetCommitResponse.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponse.OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ],
    )


def offset_delete(call: Call) -> Any:
    request: OffsetDeleteRequest = call.request
    if not call.may(GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=DENIED)
    left, denied = parted(request.topics, lambda topic: call.may(TOPIC, topic.name))
    # also with nothing left: whether the group is there comes before its topics
    answer = call.handle(without(request, topics=left))

    def finish(response: OffsetDeleteResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.topics += [
                OffsetDeleteResponse.OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponse.OffsetDeleteResponsePartition(
                            partition_index=partition.partition_index, error_code=TOPIC_DENIED
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in denied
            ]

    return changed(answer, finish)


def offset_fetch(call: Call) -> Any:
    """Offsets of topics that the client may not describe: refused where it named them, left out where it wants all."""
    request: OffsetFetchRequest = call.request
    return _fetch_several(call, request) if call.context.api_version >= SEVERAL_GROUPS else _fetch_one(call, request)


def _fetch_one(call: Call, request: OffsetFetchRequest) -> Any:
    if not call.may(GROUP, request.group_id):
        return OffsetFetchResponse(
            error_code=DENIED,
            # before version 2 there is no error of the group
            topics=[_one_topic(topic, DENIED) for topic in request.topics or () if call.context.api_version < 2],
        )
    if request.topics is None:

        def keep(response: OffsetFetchResponse) -> None:
            response.topics = [topic for topic in response.topics if call.may(TOPIC, topic.name, is_denial=False)]

        return changed(call.handle(), keep)
    left, denied = parted(request.topics, lambda topic: call.may(TOPIC, topic.name))

    def finish(response: OffsetFetchResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.topics += [_one_topic(topic, TOPIC_DENIED) for topic in denied]

    # also with nothing left: a coordinator that is elsewhere, or loads, says so
    return changed(call.handle(without(request, topics=left)), finish) if denied else call.handle()


def _one_topic(
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


AskedTopic = OffsetFetchRequest.OffsetFetchRequestTopics
ToldGroup = OffsetFetchResponse.OffsetFetchResponseGroup


def _fetch_several(call: Call, request: OffsetFetchRequest) -> Any:
    open_groups, refused = parted(request.groups, lambda asked: call.may(GROUP, asked.group_id))
    left = []
    denied: dict[str, list[AskedTopic]] = {}
    for asked in open_groups:
        seen, hidden = parted(asked.topics or (), lambda topic: _is_seen(call, topic.name, topic.topic_id))
        if hidden:
            denied.setdefault(asked.group_id, []).extend(hidden)
        left.append(without(asked, topics=seen) if hidden else asked)
    wants_all = {asked.group_id for asked in left if asked.topics is None}

    def finish(response: OffsetFetchResponse) -> None:
        for group in response.groups:
            if group.group_id in wants_all:
                group.topics = [
                    topic for topic in group.topics if _is_seen(call, topic.name, topic.topic_id, is_denial=False)
                ]
            if group.error_code == ErrorCode.NONE:
                # once, should the group be asked for twice
                group.topics += [_of_several(topic) for topic in denied.pop(group.group_id, ())]
        response.groups += [ToldGroup(group_id=asked.group_id, error_code=DENIED) for asked in refused]

    answer = call.handle(without(request, groups=left)) if left or not refused else OffsetFetchResponse()
    return changed(answer, finish)


def _is_seen(call: Call, name: str, topic_id: bytes, is_denial: bool = True) -> bool:
    """True also for an id that nobody knows: the handler says so."""
    known = call.topic_name(topic_id) if call.context.api_version >= OFFSETS_BY_ID else name
    return known is None or call.may(TOPIC, known, is_denial=is_denial)


def _of_several(topic: AskedTopic) -> OffsetFetchResponse.OffsetFetchResponseTopics:
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
