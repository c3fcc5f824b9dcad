"""Who may commit and fetch offsets of a consumer group: a member in its epoch.

A commit is judged by everything that is written of the group: it is in the log behind the record that fenced its
member. A fetch reads committed offsets, so it is judged by what is committed of the group.

A producer's transaction names the generation of a classic member even for members of the consumer protocol, so its
refusal is ILLEGAL_GENERATION; one from before KIP-447 names no member, and only its transactional id fences it.

Source: KIP-848; KIP-447.
"""

from __future__ import annotations

from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.protocol.errors import ErrorCode

MEMBER_EPOCH_VERSION = 9
"""OffsetCommit, OffsetFetch: members name their epoch."""


def is_current_epoch(epoch: int, current: int) -> bool:
    """Guard 35: a member of the consumer protocol commits offsets only in its current epoch (KIP-848).

    Without it a former owner of a partition commits offsets over those of the next owner.
    """
    return epoch == current


def commit_refusal(group: ConsumerGroupState, member_id: str, epoch: int, version: int) -> ErrorCode:
    """The error if this client may not commit for the group, else NONE. version: of OffsetCommit."""
    if epoch < 0 and group.is_empty:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and version < MEMBER_EPOCH_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    if is_current_epoch(epoch, group.current(member_id).epoch):
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def transactional_refusal(
    group: ConsumerGroupState, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """The error if this producer may not commit for the group, else NONE."""
    if generation < 0 and (group.is_empty or not (member_id or instance_id)):
        return ErrorCode.NONE
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    is_current = is_current_epoch(generation, group.current(member_id).epoch)
    return ErrorCode.NONE if is_current else ErrorCode.ILLEGAL_GENERATION


def fetch_refusal(committed: ConsumerGroupState, member_id: str | None, epoch: int) -> ErrorCode:
    """The error if this client may not fetch offsets of the group, else NONE."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = None if member_id is None else committed.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == committed.current(member.member_id).epoch:
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
