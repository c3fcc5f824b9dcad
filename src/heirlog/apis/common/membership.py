"""The permission of a group's members: the group must allow READ, or the request is refused as a whole."""

from __future__ import annotations

from typing import Final, Protocol

from heirlog.apis.common.api import Need
from heirlog.apis.common.call import Call, Q, R
from heirlog.context import Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.errors import ErrorCode

READ_GROUP: Final = (Need(AclOperation.READ, ResourceType.GROUP),)


class NamesGroup(Protocol):
    group_id: str


def may_read_group(call: Call[Q, R]) -> bool:
    request: NamesGroup = call.request  # type: ignore[assignment]  # a message of one group
    return call.may(ResourceType.GROUP, request.group_id)


def membership(call: Call[Q, R]) -> Reply[R]:
    return call.handle() if may_read_group(call) else call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
