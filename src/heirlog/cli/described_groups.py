"""A group as `heirlog groups describe` shows it, whichever protocol its members use.

A broker is asked for a group of the consumer protocol first, then for a share group. It answers that the group is not
one, or that it does not know the protocol; then it is asked for a classic group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heirlog.cli.errors import CommandError
from heirlog.cli.next_steps import with_next_step
from heirlog.client.errors import Unsupported
from heirlog.protocol.consumer_protocol import assigned_partitions
from heirlog.protocol.errors import ErrorCode, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

DEAD = "Dead"
SHARE = "share"
NOT_OF_THIS_KIND = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
MEMBER_TYPES = {0: "classic", 1: "consumer"}

Partitions = Mapping[str, list[int]]
"""Numbers by topic."""


@dataclass(frozen=True, slots=True)
class ShownMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assigned: Partitions
    kind: str = "classic"
    epoch: int | None = None
    """Only in a group of the consumer protocol, as the target."""
    target: Partitions | None = None


@dataclass(frozen=True, slots=True)
class ShownGroup:
    group_id: str
    kind: str
    state: str
    assignor: str
    members: list[ShownMember]
    epoch: int | None = None
    assignment_epoch: int | None = None


def described_group(client: Client, group: str) -> ShownGroup:
    """Raises CommandError for a group that does not exist."""
    return _consumer_group(client, group) or share_group(client, group) or _classic_group(client, group)


def share_group(client: Client, group: str) -> ShownGroup | None:
    """None if it is not a share group. Raises CommandError."""
    from heirlog.protocol.messages import ShareGroupDescribeRequest

    try:
        answer = client.send_to_coordinator(group, ShareGroupDescribeRequest(group_ids=[group]), error_code=_code)
    except Unsupported:
        return None
    found = answer.groups[0]
    if found.error_code in NOT_OF_THIS_KIND:
        return None
    _raise_refusal(group, found.error_code)
    members = [
        ShownMember(
            member_id=member.member_id,
            instance_id=None,
            client_id=member.client_id,
            client_host=member.client_host,
            assigned=_by_name(member.assignment),
            kind=SHARE,
            epoch=member.member_epoch,
        )
        for member in found.members
    ]
    return ShownGroup(
        group, SHARE, found.group_state, found.assignor_name, members, found.group_epoch, found.assignment_epoch
    )


def _consumer_group(client: Client, group: str) -> ShownGroup | None:
    from heirlog.protocol.messages import ConsumerGroupDescribeRequest

    request = ConsumerGroupDescribeRequest(group_ids=[group])
    try:
        answer = client.send_to_coordinator(group, request, error_code=_code)
    except Unsupported:
        return None
    found = answer.groups[0]
    if found.error_code in NOT_OF_THIS_KIND:
        return None
    _raise_refusal(group, found.error_code)
    members = [
        ShownMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            assigned=_by_name(member.assignment),
            kind=MEMBER_TYPES.get(member.member_type, "consumer"),
            epoch=member.member_epoch,
            target=_by_name(member.target_assignment),
        )
        for member in found.members
    ]
    return ShownGroup(
        group, "consumer", found.group_state, found.assignor_name, members, found.group_epoch, found.assignment_epoch
    )


def _classic_group(client: Client, group: str) -> ShownGroup:
    from heirlog.protocol.messages import DescribeGroupsRequest

    answer = client.send_to_coordinator(group, DescribeGroupsRequest(groups=[group]), error_code=_code).groups[0]
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not answer.error_code and answer.group_state == DEAD):
        raise CommandError(f"group {group} does not exist; heirlog groups list shows all groups")
    _raise_refusal(group, answer.error_code)
    members = [
        ShownMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            assigned=_partitions(member.member_assignment),
        )
        for member in answer.members
    ]
    return ShownGroup(group, "classic", answer.group_state, answer.protocol_data, members)


def _code(answer: Any) -> int:
    return int(answer.groups[0].error_code)


def _raise_refusal(group: str, code: int) -> None:
    if code:
        failure = error_code(code)
        raise CommandError(with_next_step(f"cannot describe group {group}: {failure.name}", failure))


def _by_name(assignment: Any) -> Partitions:
    return {topic.topic_name: sorted(topic.partitions) for topic in assignment.topic_partitions}


def _partitions(assignment: bytes) -> Partitions:
    """Of each topic of a consumer's assignment; none of another protocol's."""
    try:
        return assigned_partitions(assignment)
    except ValueError:
        return {}


def as_texts(partitions: Partitions) -> list[str]:
    return [f"{topic}:{number}" for topic, numbers in partitions.items() for number in numbers]
