"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets: where a share group is, and moves.

Start offsets belong to the state of share partitions, so share coordinators are asked (`state_requests.py`). A group is
only changed while it has no members (NON_EMPTY_GROUP); altering offsets of a group that does not exist makes one.

    start offset -1    the state is not initialized, or no member has fetched yet; the group, the topic or the partition
                       does not exist: like OffsetFetch, DescribeShareGroupOffsets has no error for that
    lag                end offset - start offset - records that need no delivery any more; -1 if any of them is unknown,
                       and below 0 where an operator has moved the start offset behind the end

Source: KIP-932; KIP-1226 (lag).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from heirlog.broker.groups.coordinator import GroupCoordinator
from heirlog.broker.groups.shard import GroupCoordinatorShard
from heirlog.broker.groups.share.end_offsets import EndOffsets
from heirlog.broker.groups.share.group import ShareGroup
from heirlog.broker.groups.share.state_requests import Results
from heirlog.broker.groups.share.values import NamedPartitions
from heirlog.broker.share_coordinator.state import UNINITIALIZED_OFFSET, UNKNOWN_COUNT, SharePartitionKey
from heirlog.metadata.image import Image
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from heirlog.protocol.types import Uuid

NO_ID = Uuid(bytes(16))
UNKNOWN_LAG = -1
Described = DescribeShareGroupOffsetsResponse
DescribedGroup = Described.DescribeShareGroupOffsetsResponseGroup
DescribedPartition = Described.DescribeShareGroupOffsetsResponsePartition
Altered = AlterShareGroupOffsetsResponse
Deleted = DeleteShareGroupOffsetsResponse
_NOT_HERE: Final = "This server does not host this topic-partition."


def _shard_of(
    coordinator: GroupCoordinator, group_id: str, *, needs_id: bool = True
) -> GroupCoordinatorShard | ErrorCode:
    if not coordinator.serves_share_groups:
        return ErrorCode.UNSUPPORTED_VERSION
    return coordinator.shard_of(group_id) if group_id or not needs_id else ErrorCode.INVALID_GROUP_ID


def _why(code: ErrorCode) -> str | None:
    return "The group id is empty." if code is ErrorCode.INVALID_GROUP_ID else None


def _why_not(code: ErrorCode) -> str | None:
    """Of one topic or partition."""
    if code is ErrorCode.NONE:
        return None
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _NOT_HERE
    if code is ErrorCode.INVALID_REQUEST:
        return "The start offset is below 0."
    return f"The share coordinator answered {code.name}; try again."


# -- describe ---------------------------------------------------------------------------------------------------------


def describe(
    coordinator: GroupCoordinator, ends: EndOffsets, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse | Pending[Any]:
    if not request.groups:
        return Described()
    pending: Pending[Any] = Pending()
    answers: list[Any] = [None] * len(request.groups)

    def done(number: int, answer: DescribedGroup) -> None:
        answers[number] = answer
        if None not in answers:
            pending.complete(Described(groups=answers))

    for number, asked in enumerate(request.groups):
        _describe(coordinator, ends, asked, partial(done, number))
    return pending


def _describe(
    coordinator: GroupCoordinator,
    ends: EndOffsets,
    asked: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
    done: Callable[[DescribedGroup], None],
) -> None:
    shard = _shard_of(coordinator, asked.group_id, needs_id=False)
    if isinstance(shard, ErrorCode):
        done(DescribedGroup(group_id=asked.group_id, error_code=shard))
        return
    group, image = shard.shares.groups.get(asked.group_id), coordinator.image()
    if asked.topics is None:
        known = {} if group is None else group.committed.topics.initialized
        wanted = [(image.topics[each].name, sorted(known[each].partitions)) for each in known if each in image.topics]
    else:
        named: dict[str, dict[int, None]] = {}
        for topic in asked.topics:
            named.setdefault(topic.topic_name, {}).update(dict.fromkeys(topic.partitions))
        wanted = [(name, list(indexes)) for name, indexes in named.items()]
    keys = {
        SharePartitionKey(asked.group_id, image.topic_ids[name], index): (name, index)
        for name, indexes in wanted
        if name in image.topic_ids
        for index in indexes
    }

    def answer(results: Results, found: dict[tuple[str, int], int]) -> DescribedGroup:
        return DescribedGroup(
            group_id=asked.group_id,
            topics=[
                Described.DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=image.topic_ids.get(name, NO_ID),
                    partitions=[_described(asked.group_id, image, name, index, results, found) for index in indexes],
                )
                for name, indexes in wanted
            ],
        )

    def summarized(results: Results) -> None:
        ends.find(keys.values(), lambda found: done(answer(results, found)))

    if asked.group_id and SHARE_STATE_TOPIC in image.topic_ids:
        shard.shares.states.summarize(keys, summarized)
    else:
        # there is no state, and a description is no reason to create its topic
        done(answer({}, {}))


def _described(
    group_id: str, image: Image, name: str, index: int, results: Results, ends: dict[tuple[str, int], int]
) -> DescribedPartition:
    result = results.get(SharePartitionKey(group_id, image.topic_ids.get(name, NO_ID), index))
    if result is None or result.code is not ErrorCode.NONE:
        return DescribedPartition(partition_index=index, start_offset=UNINITIALIZED_OFFSET, lag=UNKNOWN_LAG)
    lag, end = UNKNOWN_LAG, ends.get((name, index))
    start, finished = result.start_offset, result.delivery_complete_count
    if start != UNINITIALIZED_OFFSET and finished != UNKNOWN_COUNT and end is not None:
        lag = end - start - finished
    leader_epoch = max(0, result.leader_epoch)
    return DescribedPartition(partition_index=index, start_offset=start, leader_epoch=leader_epoch, lag=lag)


# -- alter ------------------------------------------------------------------------------------------------------------


def alter(
    coordinator: GroupCoordinator, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | Pending[Any]:
    shard = _shard_of(coordinator, request.group_id)
    if isinstance(shard, ErrorCode):
        return Altered(error_code=shard, error_message=_why(shard))
    group = shard.shares.groups.get(request.group_id)
    if request.group_id in shard.groups:
        why = shard.why_no_share_group(request.group_id)
        return Altered(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why)
    if group is not None and not group.is_empty:
        return Altered(error_code=ErrorCode.NON_EMPTY_GROUP, error_message="The group has members; stop them first.")
    image = coordinator.image()
    offsets = {
        SharePartitionKey(request.group_id, topic.id, asked.partition_index): asked.start_offset
        for each in request.topics
        if (topic := image.topic_named(each.topic_name)) is not None
        for asked in each.partitions
        if image.partition(topic.id, asked.partition_index) is not None and asked.start_offset >= 0
    }
    if not offsets:
        return _altered(image, request, {})
    partitions = {
        topic_id: NamedPartitions(
            image.topics[topic_id].name, frozenset(key.partition for key in offsets if key.topic_id == topic_id)
        )
        for topic_id in {key.topic_id: None for key in offsets}
    }
    pending: Pending[Any] = Pending()

    def done(results: Results | ErrorCode) -> None:
        pending.complete(
            Altered(error_code=results)
            if isinstance(results, ErrorCode)
            else _altered(image, request, {key: result.code for key, result in results.items()})
        )

    shard.shares.alter_offsets(group or ShareGroup.new(request.group_id), partitions, offsets, done)
    return pending


def _altered(
    image: Image, request: AlterShareGroupOffsetsRequest, codes: dict[SharePartitionKey, ErrorCode]
) -> AlterShareGroupOffsetsResponse:
    def altered(name: str, index: int) -> Altered.AlterShareGroupOffsetsResponsePartition:
        topic_id = image.topic_ids.get(name, NO_ID)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if image.partition(topic_id, index) is not None:
            # what is missing had a negative offset
            code = codes.get(SharePartitionKey(request.group_id, topic_id, index), ErrorCode.INVALID_REQUEST)
        return Altered.AlterShareGroupOffsetsResponsePartition(
            partition_index=index, error_code=code, error_message=_why_not(code)
        )

    return Altered(
        responses=[
            Altered.AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=image.topic_ids.get(topic.topic_name, NO_ID),
                partitions=[altered(topic.topic_name, asked.partition_index) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


# -- delete -----------------------------------------------------------------------------------------------------------


def delete(
    coordinator: GroupCoordinator, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse | Pending[Any]:
    shard = _shard_of(coordinator, request.group_id)
    if isinstance(shard, ErrorCode):
        return Deleted(error_code=shard, error_message=_why(shard))
    group = shard.shares.groups.get(request.group_id)
    if group is None or not group.exists:
        why = shard.why_no_share_group(request.group_id)
        return Deleted(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why)
    if not group.is_empty:
        return Deleted(error_code=ErrorCode.NON_EMPTY_GROUP, error_message="The group has members; stop them first.")
    image, topics = coordinator.image(), group.state.topics
    known = {*topics.initialized, *topics.initializing, *topics.deleting}
    wanted = [image.topic_ids.get(topic.topic_name, NO_ID) for topic in request.topics]
    chosen = [topic_id for topic_id in wanted if topic_id in known]
    if not chosen:
        return _deleted(request, wanted, chosen, ErrorCode.NONE)
    pending: Pending[Any] = Pending()
    shard.shares.delete_topics(group, chosen, lambda code: pending.complete(_deleted(request, wanted, chosen, code)))
    return pending


def _deleted(
    request: DeleteShareGroupOffsetsRequest, wanted: Sequence[Uuid], chosen: Sequence[Uuid], code: ErrorCode
) -> DeleteShareGroupOffsetsResponse:
    Topic = Deleted.DeleteShareGroupOffsetsResponseTopic
    return Deleted(
        responses=[
            Topic(topic_name=topic.topic_name, topic_id=topic_id, error_code=code, error_message=_why_not(code))
            if topic_id in chosen
            else Topic(
                topic_name=topic.topic_name,
                topic_id=topic_id,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=_NOT_HERE if topic_id == NO_ID else "There is no offset information to delete.",
            )
            for topic, topic_id in zip(request.topics, wanted, strict=True)
        ]
    )
