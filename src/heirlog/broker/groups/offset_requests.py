"""OffsetCommit, OffsetFetch and OffsetDelete: which client may change a group's offsets, and the form of the responses.

A commit is accepted from

    a member            that names its id and the generation it is in; not while that generation waits for its
                        assignment (the member may no longer own the partitions that it commits). Members of the
                        consumer protocol name their epoch (`consumer/offset_rules.py`)
    any other client    with generation -1, while the group has no members: a consumer that assigns
                        its own partitions, or an operator

Each partition is checked separately: first whether it exists, then whether the metadata is short enough. The accepted
partitions are one batch.

Offsets of a partition of `__consumer_offsets` below min ISR are read as far as they are committed, also where this
coordinator cannot load the rest. Who asks for stable offsets waits, and who names a partition without a known offset:
its first commit may be in the rest.

A group that does not exist has no committed offsets: OffsetFetch answers -1 for each partition, without an error. The
same goes for an offset of a deleted topic whose name another one has now (`offsets.py`). The keys of the log have topic
names. From version 10 on requests and responses have topic ids, which are translated with this broker's image.

Source: KIP-211, KIP-447, KIP-496, KIP-709 (several groups), KIP-848 (versions 9), KIP-516 (ids).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.offset_rules import commit_refusal, fetch_refusal
from heirlog.broker.groups.coordinator import GroupCoordinator
from heirlog.broker.groups.group import CONSUMER, ClassicGroup, GroupState
from heirlog.broker.groups.group_registry import Group
from heirlog.broker.groups.offsets import NO_EXPIRY, OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.shard import GroupCoordinatorShard
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.image import Image
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from heirlog.protocol.types import Uuid

NO_OFFSET = -1
FOREVER_MS = 2**63 - 1
METADATA_MAX_BYTES = 32_767
"""Most that a record has room for, whatever offset.metadata.max.bytes says."""
OWN_ERROR_VERSION = 2
"""OffsetFetch: an error of the whole group has a field of its own; before, every partition carries it."""
GROUPS_VERSION = 8
"""OffsetFetch: several groups in one request."""
NOT_FOUND_VERSION = 9
"""OffsetCommit: from this version on a generation of an unknown group has its own error; before, it counts as old."""
TOPIC_ID_VERSION = 10
"""OffsetCommit, OffsetFetch: topics are named by their id."""

_Called: TypeAlias = tuple[bytes | str, int]
"""A partition as a request names it: the id or the name of its topic, and its number."""
_Asked: TypeAlias = dict[_Called, tuple[str, OffsetCommitRequest.OffsetCommitRequestPartition]]
Place: TypeAlias = OffsetFetchResponse.OffsetFetchResponsePartitions | OffsetFetchResponse.OffsetFetchResponsePartition


# -- OffsetCommit -----------------------------------------------------------------------------------------------------


def commit(
    coordinator: GroupCoordinator, env: Env, request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Pending[Any]:
    by_id = context.api_version >= TOPIC_ID_VERSION
    image = coordinator.image()
    asked, refused = _sorted_out(image, request, by_id)
    # a topic without partitions is in the response only if it does not exist
    shown = [
        topic
        for topic in request.topics
        if topic.partitions or not _exists(image, _name_of(image, topic.topic_id) if by_id else topic.name)
    ]

    def answered(code: ErrorCode) -> OffsetCommitResponse:
        return _commit_answer(
            shown, lambda topic, index: refused.get((topic.topic_id if by_id else topic.name, index), code)
        )

    shard = coordinator.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return answered(shard)
    code = _commit_refusal(shard, request, context.api_version)
    group = shard.groups.get(request.group_id)
    if code is not ErrorCode.NONE:
        if isinstance(group, ConsumerGroup):
            return shard.consumer.once_committed(group, answered(code), answered)
        return answered(code)
    if isinstance(group, ClassicGroup):
        shard.membership.committed(group, request.member_id)
    wall_ms = env.wall_ms()
    expire_ms = NO_EXPIRY if request.retention_time_ms == -1 else min(wall_ms + request.retention_time_ms, FOREVER_MS)
    metadata_max_bytes = min(coordinator.metadata_max_bytes, METADATA_MAX_BYTES)
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for called, (name, partition) in asked.items():
        metadata = partition.committed_metadata or ""
        if len(metadata.encode()) > metadata_max_bytes:
            refused[called] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            offsets[(name, partition.partition_index)] = OffsetAndMetadata(
                partition.committed_offset,
                partition.committed_leader_epoch,
                metadata,
                wall_ms,
                expire_ms,
                image.topic_ids[name],
            )
    if not offsets:
        return answered(ErrorCode.NONE)
    pending: Pending[Any] = Pending()
    shard.writer.commit_offsets(request.group_id, offsets, lambda code: pending.complete(answered(code)))
    return pending


def _sorted_out(image: Image, request: OffsetCommitRequest, by_id: bool) -> tuple[_Asked, dict[_Called, ErrorCode]]:
    """The existing partitions with their topics' names, and the error of each other partition."""
    asked: _Asked = {}
    refused: dict[_Called, ErrorCode] = {}
    for topic in request.topics:
        name = _name_of(image, topic.topic_id) if by_id else topic.name
        for partition in topic.partitions:
            called = (topic.topic_id if by_id else topic.name, partition.partition_index)
            problem = _partition_problem(image, name, partition.partition_index)
            if problem is not ErrorCode.NONE or name is None:
                refused[called] = problem
            else:
                asked[called] = (name, partition)
    return asked, refused


def _commit_refusal(shard: GroupCoordinatorShard, request: OffsetCommitRequest, version: int) -> ErrorCode:
    """The error if this client may not commit for the group, else NONE."""
    group = shard.groups.get(request.group_id)
    generation = request.generation_id_or_member_epoch
    if request.group_id in shard.shares.groups:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group is None or not group.exists:
        if generation < 0:
            return ErrorCode.NONE
        # a generation of a group that does not exist any more
        return ErrorCode.GROUP_ID_NOT_FOUND if version >= NOT_FOUND_VERSION else ErrorCode.ILLEGAL_GENERATION
    if isinstance(group, ConsumerGroup):
        return commit_refusal(group.state, request.member_id, generation, version)
    if generation < 0 and group.is_empty:
        return ErrorCode.NONE
    if generation < 0 and not request.member_id and request.group_instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    code = group.check_member(request.member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        return code
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _name_of(image: Image, topic_id: bytes) -> str | None:
    topic = image.topics.get(Uuid(topic_id))
    return None if topic is None else topic.name


def _exists(image: Image, topic: str | None) -> bool:
    return topic is not None and image.topic_named(topic) is not None


def _partition_problem(image: Image, topic: str | None, partition: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if image.partition_named(topic, partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _commit_answer(
    topics: Iterable[OffsetCommitRequest.OffsetCommitRequestTopic],
    code_of: Callable[[OffsetCommitRequest.OffsetCommitRequestTopic, int], ErrorCode],
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=asked.partition_index, error_code=code_of(topic, asked.partition_index)
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


# -- OffsetFetch ------------------------------------------------------------------------------------------------------


def fetch(coordinator: GroupCoordinator, request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    if context.api_version >= GROUPS_VERSION:
        by_id = context.api_version >= TOPIC_ID_VERSION
        # a group's complete offsets are in the response once, however often the request names it
        asked_for = {asked.group_id if asked.topics is None else id(asked): asked for asked in request.groups}
        stable = request.require_stable
        return OffsetFetchResponse(
            groups=[_fetch_group(coordinator, asked, by_id, stable=stable) for asked in asked_for.values()]
        )
    return _fetch_one(coordinator, request, context.api_version)


def is_stable(*, is_open: bool) -> bool:
    """Guard 26: an offset that an open transaction has written is not read by who asks for stable ones (KIP-447).

    Without it the next owner of a partition reads once more what the transaction has read.
    """
    return not is_open


def _committed(
    coordinator: GroupCoordinator,
    group_id: str,
    named: Collection[TopicPartition],
    *,
    stable: bool,
    member_id: str | None = None,
    epoch: int = -1,
) -> dict[TopicPartition, OffsetAndMetadata | ErrorCode] | ErrorCode:
    """What to say of each partition of a group.

    stable: UNSTABLE_OFFSET_COMMIT for each partition whose offset an open transaction has written. member_id, epoch: of
    the member that asks, if it names itself. named: the partitions that the request names.
    """
    shard = coordinator.shard_to_fetch(group_id, stable=stable)
    if isinstance(shard, ErrorCode):
        return shard
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and group.committed.exists:
        code = fetch_refusal(group.committed, member_id, epoch)
        if code is not ErrorCode.NONE:
            return code
    found: dict[TopicPartition, OffsetAndMetadata | ErrorCode] = {}
    if group is not None:
        found |= _of_topics_now(coordinator.image(), group)
    # "no offset" would send a consumer to auto.offset.reset, maybe past records that it has not read
    if not shard.loaded and (not found.keys() >= set(named) or shard.may_have_newer(group_id)):
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if stable:
        unstable = shard.registry.transactional.unstable(group_id)
        found |= {each: ErrorCode.UNSTABLE_OFFSET_COMMIT for each in unstable if not is_stable(is_open=True)}
    return found


def _all_committed(coordinator: GroupCoordinator, group_id: str, *, stable: bool) -> Iterable[TopicPartition]:
    """The partitions of a request that names none."""
    shard = coordinator.shard_to_fetch(group_id, stable=stable)
    group = None if isinstance(shard, ErrorCode) else shard.groups.get(group_id)
    return () if group is None else _of_topics_now(coordinator.image(), group)


def _of_topics_now(image: Image, group: Group) -> dict[TopicPartition, OffsetAndMetadata]:
    """The group's offsets without those of deleted topics whose names other topics have now."""
    committed = group.offsets.committed
    topic_ids = {topic: image.topic_ids.get(topic) for topic, _ in committed}
    return {each: value for each, value in committed.items() if value.counts_for(topic_ids[each[0]])}


def _fetch_group(
    coordinator: GroupCoordinator, asked: OffsetFetchRequest.OffsetFetchRequestGroup, by_id: bool, *, stable: bool
) -> OffsetFetchResponse.OffsetFetchResponseGroup:
    answer = OffsetFetchResponse.OffsetFetchResponseGroup(group_id=asked.group_id)
    image = coordinator.image()
    named = [
        (name, index)
        for wanted in asked.topics or ()
        if (name := _name_of(image, wanted.topic_id) if by_id else wanted.name) is not None
        for index in wanted.partition_indexes
    ]
    committed = _committed(
        coordinator, asked.group_id, named, stable=stable, member_id=asked.member_id, epoch=asked.member_epoch
    )
    if isinstance(committed, ErrorCode):
        answer.error_code = committed
        return answer
    if asked.topics is None:
        for name, partitions in _by_topic(_all_committed(coordinator, asked.group_id, stable=stable)):
            topic = image.topic_named(name)
            if by_id and topic is None:
                # the topic is deleted, and the tombstones are not committed yet: it has no id any more
                continue
            answer.topics.append(
                OffsetFetchResponse.OffsetFetchResponseTopics(
                    name=name,
                    topic_id=bytes(16) if topic is None else topic.id,
                    partitions=[_place(committed.get((name, index)), index) for index in partitions],
                )
            )
        return answer
    for wanted in asked.topics:
        known = _name_of(image, wanted.topic_id) if by_id else wanted.name
        answer.topics.append(
            OffsetFetchResponse.OffsetFetchResponseTopics(
                name=wanted.name,
                topic_id=wanted.topic_id,
                partitions=[
                    _place(None, index, ErrorCode.UNKNOWN_TOPIC_ID)
                    if known is None
                    else _place(committed.get((known, index)), index)
                    for index in wanted.partition_indexes
                ],
            )
        )
    return answer


def _fetch_one(coordinator: GroupCoordinator, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    named = [(topic.name, index) for topic in request.topics or () for index in topic.partition_indexes]
    committed = _committed(coordinator, request.group_id, named, stable=request.require_stable)
    code = committed if isinstance(committed, ErrorCode) else ErrorCode.NONE
    known = {} if isinstance(committed, ErrorCode) else committed
    if request.topics is None:
        wanted = _by_topic(_all_committed(coordinator, request.group_id, stable=request.require_stable))
    elif code is not ErrorCode.NONE and version >= OWN_ERROR_VERSION:
        wanted = []
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = []
    for name, partitions in wanted:
        places = []
        for index in partitions:
            place = _place(known.get((name, index)), index, code)
            places.append(
                OffsetFetchResponse.OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=place.committed_offset,
                    committed_leader_epoch=place.committed_leader_epoch,
                    metadata=place.metadata,
                    error_code=place.error_code,
                )
            )
        topics.append(OffsetFetchResponse.OffsetFetchResponseTopic(name=name, partitions=places))
    return OffsetFetchResponse(topics=topics, error_code=code)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return list(found.items())


def _place(
    committed: OffsetAndMetadata | ErrorCode | None, index: int, code: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    if isinstance(committed, ErrorCode):
        return _place(None, index, committed)
    if committed is None:
        return OffsetFetchResponse.OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
        )
    return OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )


# -- OffsetDelete -----------------------------------------------------------------------------------------------------


def delete(coordinator: GroupCoordinator, request: OffsetDeleteRequest) -> OffsetDeleteResponse | Pending[Any]:
    """Delete offsets of topics that no member reads; none if a member's subscription cannot be parsed."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = coordinator.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        return OffsetDeleteResponse(error_code=shard)
    group = shard.groups.get(request.group_id)
    if group is None or not group.exists:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    if isinstance(group, ClassicGroup) and not group.is_empty and group.protocol_type != CONSUMER:
        return OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    forgotten: dict[TopicPartition, OffsetAndMetadata | None] = {}
    topics = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            code = _deletion_problem(coordinator.image(), group, topic.name, asked.partition_index)
            if code is ErrorCode.NONE and (topic.name, asked.partition_index) in group.offsets.committed:
                forgotten[(topic.name, asked.partition_index)] = None
            answers.append(
                OffsetDeleteResponse.OffsetDeleteResponsePartition(
                    partition_index=asked.partition_index, error_code=code
                )
            )
        if answers or not _exists(coordinator.image(), topic.name):
            topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
    pending: Pending[Any] = Pending()

    def answer(code: ErrorCode) -> None:
        pending.complete(
            OffsetDeleteResponse(topics=topics) if code is ErrorCode.NONE else OffsetDeleteResponse(error_code=code)
        )

    if forgotten:
        shard.activity.offset_deletions += len(forgotten)
        shard.writer.commit_offsets(request.group_id, forgotten, answer)
    else:
        answer(ErrorCode.NONE)
    return pending


def _deletion_problem(image: Image, group: Group, topic: str, partition: int) -> ErrorCode:
    if image.partition_named(topic, partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic) else ErrorCode.NONE
