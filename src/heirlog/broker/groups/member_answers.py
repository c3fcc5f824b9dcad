"""What a member of a classic group waits for: the answers to its JoinGroup and its SyncGroup.

At most one of each waits. What ends the wait may come from any side: the generation is complete, its assignment is
stored, the member sends the request again, it is removed, or the whole group is gone. Each takes the waiting request
from the member before it completes it, so that none is answered twice.
"""

from __future__ import annotations

from typing import Any, Final

from heirlog.broker.groups.group import ClassicGroup, ClassicGroupMember
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import JoinGroupResponse, SyncGroupResponse

NULL_PROTOCOL_VERSION: Final = 7
"""JoinGroup: a response without a protocol has null in that field; before, the empty string."""


def join_refusal(code: ErrorCode, version: int, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name=no_protocol(version), member_id=member_id)


def no_protocol(version: int) -> str | None:
    """What a JoinGroup response of this version has as the name of a protocol that has none."""
    return None if version >= NULL_PROTOCOL_VERSION else ""


def joined(group: ClassicGroup, member: ClassicGroupMember) -> JoinGroupResponse:
    """The generation as this member sees it; the leader also gets the subscriptions of all members."""
    listed = group.subscriptions() if member.member_id == group.leader else []
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol or "",
        leader=group.leader or "",
        member_id=member.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member_id, group_instance_id=instance_id, metadata=subscription
            )
            for member_id, instance_id, subscription in listed
        ],
    )


def assigned(group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )


def await_join(member: ClassicGroupMember, version: int) -> Pending[Any]:
    pending: Pending[Any] = Pending()
    member.joining, member.joining_version = pending, version
    return pending


def answer_join(member: ClassicGroupMember, response: JoinGroupResponse) -> None:
    pending, member.joining = member.joining, None
    if pending is not None:
        pending.complete(response)


def answer_sync(member: ClassicGroupMember, response: SyncGroupResponse) -> None:
    pending, member.syncing = member.syncing, None
    if pending is not None:
        pending.complete(response)


def refuse(member: ClassicGroupMember, code: ErrorCode) -> None:
    """Whatever this member waits for."""
    answer_join(member, join_refusal(code, member.joining_version, member.member_id))
    answer_sync(member, SyncGroupResponse(error_code=code))
