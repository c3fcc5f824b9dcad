"""JoinGroup through a node: ids of new members, protocols, limits of sessions, and groups without permission."""

from __future__ import annotations

import pytest
from apis.groups import coordinate, joining
from apis.guarded import ADMIN, G_DENIED, Guarded

from heirlog.protocol.errors import ErrorCode

EXAMPLE = joining(), None


@pytest.mark.parametrize("version", [0, 1, 3])
def test_up_to_version_3_a_new_member_joins_at_once(node: Guarded, version: int) -> None:
    coordinate(node)
    answer = node.ask(joining(f"at-once-{version}"), version, ADMIN)
    assert (answer.error_code, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, answer.member_id)
    assert [(member.member_id, member.metadata) for member in answer.members] == [(answer.member_id, b"subscription")]


@pytest.mark.parametrize("version", [4, 6, 9])
def test_from_version_4_on_it_joins_with_the_id_that_it_gets_first(node: Guarded, version: int) -> None:
    coordinate(node)
    group = f"named-{version}"
    first = node.ask(joining(group), version, ADMIN)
    assert (first.error_code, first.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
    again = node.ask(joining(group, first.member_id), version, ADMIN)
    assert (again.error_code, again.member_id, again.generation_id) == (ErrorCode.NONE, first.member_id, 1)
    assert again.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 2**31 - 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_cannot_join_is_refused(node: Guarded, change: dict[str, object], code: ErrorCode) -> None:
    coordinate(node)
    request = joining("refused")
    for name, value in change.items():
        setattr(request, name, value)
    assert node.ask(request, principal=ADMIN).error_code == code


@pytest.mark.parametrize(("version", "protocol"), [(6, ""), (7, None), (9, None)])
def test_a_client_without_permission_is_refused_with_a_protocol_that_its_version_can_read(
    node: Guarded, version: int, protocol: str | None
) -> None:
    answer = node.ask(joining(), version)
    assert (answer.error_code, answer.protocol_name, answer.members) == (G_DENIED, protocol, [])


def test_a_full_group_takes_no_other_member() -> None:
    node = Guarded(group_max_size="1", group_initial_rebalance_delay_ms="0")
    node.create_topics("__consumer_offsets")
    coordinate(node)
    assert node.ask(joining("full"), 3, ADMIN).error_code == ErrorCode.NONE
    assert node.ask(joining("full"), 3, ADMIN).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
