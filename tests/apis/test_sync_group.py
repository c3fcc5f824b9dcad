"""SyncGroup through a node: assignments, members that are behind, and groups without permission."""

from __future__ import annotations

import pytest
from apis.groups import Member, joined, syncing
from apis.guarded import ADMIN, G_DENIED, Guarded

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import SyncGroupRequest

EXAMPLE = SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"), None


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_member_gets_its_part_of_the_assignment(node: Guarded, version: int) -> None:
    member = joined(node, f"assigned-{version}")
    answer = node.ask(syncing(f"assigned-{version}", member), version, ADMIN)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all of it")
    assert answer.protocol_name == ("range" if version >= 5 else None)


def test_a_member_of_another_generation_or_of_none_is_refused(node: Guarded) -> None:
    member = joined(node, "behind")
    behind = node.ask(syncing("behind", Member(member.id, member.generation - 1)), principal=ADMIN)
    assert behind.error_code == ErrorCode.ILLEGAL_GENERATION
    stranger = node.ask(syncing("behind", Member("nobody", member.generation)), principal=ADMIN)
    assert stranger.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_another_protocol_is_refused_from_the_version_that_names_it(node: Guarded) -> None:
    member = joined(node, "protocols")
    other = syncing("protocols", member, protocol_name="sticky")
    assert node.ask(other, 5, ADMIN).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert node.ask(other, 4, ADMIN).error_code == ErrorCode.NONE
    unnamed = syncing("protocols", member, protocol_name=None, protocol_type=None)
    assert node.ask(unnamed, 5, ADMIN).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_client_that_must_not_read_the_group_is_refused(node: Guarded) -> None:
    answer = node.ask(syncing("g", Member("m", 1)))
    assert (answer.error_code, answer.assignment) == (G_DENIED, b"")
