"""TxnOffsetCommit: a producer commits offsets of a group within its transaction.

    the transaction coordinator confirms (or, from version 5 on, adds) the group's partition of `__consumer_offsets`
    --> checked by the group --> one transactional batch --> answered once it is committed to the log

The group checks last: its members may change while the transaction coordinator is asked.

What the group checks differs from a plain commit: members in a rebalance may commit, since their transaction began
before it. A request that names no member passes also while the group has members, as producers from before KIP-447 send
it: only their transactional id fences them.

Source: KIP-98, KIP-447, KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.offset_rules import transactional_refusal
from heirlog.broker.groups.coordinator import GroupCoordinator
from heirlog.broker.groups.group import GroupState
from heirlog.broker.groups.offset_requests import METADATA_MAX_BYTES
from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.shard import GroupCoordinatorShard
from heirlog.broker.transactions.add_partitions_manager import Codes, TransactionPartitions
from heirlog.broker.transactions.state import ProducerIdAndEpoch
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from heirlog.storage.verification import UNVERIFIED, VerificationGuard

LOADING_VERSION = 2
"""The first version that knows COORDINATOR_LOAD_IN_PROGRESS."""
ABORTABLE_VERSION = 4
ADDING_VERSION = 5

Ask: TypeAlias = Callable[[TransactionPartitions], None]
Reply: TypeAlias = "TxnOffsetCommitResponse | Pending[TxnOffsetCommitResponse]"

_TO_CLIENT = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""Errors of the transaction coordinator as clients of a group coordinator know them."""


def txn_offset_commit(
    coordinator: GroupCoordinator,
    env: Env,
    request: TxnOffsetCommitRequest,
    context: Context,
    *,
    ask: Ask,
    is_verified: bool,
) -> Reply:
    """ask: asks a transaction coordinator. is_verified: `transaction.partition.verification.enable`."""
    version = context.api_version
    refused = _unknown(coordinator, request)

    def answered(code: ErrorCode) -> TxnOffsetCommitResponse:
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_VERSION:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        exists = coordinator.image().topic_ids
        asked = [topic for topic in request.topics if topic.partitions or topic.name not in exists]
        return refusal(asked, code, refused)

    if all((topic.name, asked.partition_index) in refused for topic in request.topics for asked in topic.partitions):
        return answered(ErrorCode.NONE)
    shard = coordinator.shard_of(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
    if isinstance(shard, ErrorCode):
        return answered(shard)
    producer = (request.producer_id, request.producer_epoch)
    try:
        guard = shard.writer.verification_guard(producer, raises_epoch=version >= ADDING_VERSION)
    except KafkaError as error:
        return answered(error.code)
    pending: Pending[TxnOffsetCommitResponse] = Pending()

    def commit(allowed_by: VerificationGuard | None) -> None:
        code = _group_error(shard, request)
        if code is not ErrorCode.NONE:
            pending.complete(answered(code))
            return
        offsets = _sorted_out(coordinator, env, request, refused)
        if not offsets:
            pending.complete(answered(ErrorCode.NONE))
            return
        shard.writer.commit_transactional(
            request.group_id, offsets, producer, allowed_by, lambda code: pending.complete(answered(code))
        )

    if guard is None or not (is_verified or version >= ADDING_VERSION):
        commit(guard if guard is None else UNVERIFIED)
        return pending

    def confirmed(codes: Codes) -> None:
        (found,) = codes.values()
        if found is ErrorCode.NONE:
            commit(guard)
        else:
            pending.complete(answered(_as_client_knows(found, version)))

    index = coordinator.partition_of(request.group_id)
    assert index is not None, "the group has a shard"
    ask(
        TransactionPartitions(
            request.transactional_id,
            ProducerIdAndEpoch(*producer),
            [(OFFSETS_TOPIC, index)],
            version < ADDING_VERSION,
            confirmed,
        )
    )
    return pending


def _as_client_knows(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION:
        return ErrorCode.INVALID_TXN_STATE
    return _TO_CLIENT.get(code, code)


def _unknown(coordinator: GroupCoordinator, request: TxnOffsetCommitRequest) -> dict[TopicPartition, ErrorCode]:
    image = coordinator.image()
    return {
        (topic.name, asked.partition_index): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for topic in request.topics
        for asked in topic.partitions
        if image.partition_named(topic.name, asked.partition_index) is None
    }


def _sorted_out(
    coordinator: GroupCoordinator, env: Env, request: TxnOffsetCommitRequest, refused: dict[TopicPartition, ErrorCode]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets that may be committed; adds the errors of others to `refused`."""
    wall_ms = env.wall_ms()
    metadata_max_bytes = min(coordinator.metadata_max_bytes, METADATA_MAX_BYTES)
    # a topic may have been deleted while the transaction coordinator was asked
    refused |= _unknown(coordinator, request)
    topic_ids = coordinator.image().topic_ids
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            partition, metadata = (topic.name, asked.partition_index), asked.committed_metadata or ""
            if partition in refused:
                continue
            if len(metadata.encode()) > metadata_max_bytes:
                refused[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[partition] = OffsetAndMetadata(
                    asked.committed_offset,
                    asked.committed_leader_epoch,
                    metadata,
                    wall_ms,
                    topic_id=topic_ids[topic.name],
                )
    return offsets


def _group_error(shard: GroupCoordinatorShard, request: TxnOffsetCommitRequest) -> ErrorCode:
    group = shard.groups.get(request.group_id)
    if group is None or not group.exists:
        is_share = request.group_id in shard.shares.groups
        return ErrorCode.ILLEGAL_GENERATION if is_share or request.generation_id >= 0 else ErrorCode.NONE
    if isinstance(group, ConsumerGroup):
        return transactional_refusal(group.state, request.member_id, request.group_instance_id, request.generation_id)
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.generation_id < 0 and (group.is_empty or not (request.member_id or request.group_instance_id)):
        return ErrorCode.NONE
    code = group.check_member(request.member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        return code
    is_current = is_current_generation(request.generation_id, group.generation)
    return ErrorCode.NONE if is_current else ErrorCode.ILLEGAL_GENERATION


def is_current_generation(generation: int, current: int) -> bool:
    """Guard 27: a member commits offsets in a transaction only in the current generation (KIP-447).

    Without it a former owner commits offsets of what the next owner has read, too.
    """
    return generation == current


def refusal(
    topics: Iterable[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic],
    code: ErrorCode,
    refused: Mapping[TopicPartition, ErrorCode],
) -> TxnOffsetCommitResponse:
    """The answer with this error for every partition that has no other one."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=asked.partition_index,
                        error_code=refused.get((topic.name, asked.partition_index), code),
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in topics
        ]
    )
