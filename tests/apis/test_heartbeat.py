"""Heartbeat through a node: members that stay, members that have to join again, and groups without permission."""

from __future__ import annotations

import pytest
from apis.groups import UNNAMED_VERSION, joined, joining
from apis.guarded import ADMIN, ALICE, G_DENIED, GROUP, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import HeartbeatRequest

EXAMPLE = HeartbeatRequest(group_id="g"), None


@pytest.mark.parametrize("version", [0, 1, 3, 4])
def test_a_member_stays_as_long_as_it_says_its_generation(node: Guarded, version: int) -> None:
    group = f"alive-{version}"
    member = joined(node, group)

    def beat(generation: int, member_id: str) -> int:
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        code: int = node.ask(request, version, ADMIN).error_code
        return code

    assert beat(member.generation, member.id) == ErrorCode.NONE
    assert beat(member.generation - 1, member.id) == ErrorCode.ILLEGAL_GENERATION
    assert beat(member.generation, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_joins_again_when_another_one_comes(node: Guarded) -> None:
    member = joined(node, "joins")
    _, newcomer = node.connect(ADMIN)
    newcomer.received(RequestHeader(11, UNNAMED_VERSION, 1, "newcomer"), joining("joins"))
    request = HeartbeatRequest(group_id="joins", generation_id=member.generation, member_id=member.id)
    assert node.ask(request, principal=ADMIN).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    newcomer.closed()


def test_a_client_that_must_not_read_the_group_is_refused(node: Guarded) -> None:
    member = joined(node, "g")
    request = HeartbeatRequest(group_id="g", generation_id=member.generation, member_id=member.id)
    assert node.ask(request).error_code == G_DENIED
    node.allow(AclOperation.READ, GROUP, "g", ALICE)
    assert node.ask(request).error_code == ErrorCode.NONE
