"""DeleteGroups through a node: groups with members, groups that do not exist, and groups without permission."""

from __future__ import annotations

import pytest
from apis.groups import commit, coordinate, joined
from apis.guarded import ADMIN, G_DENIED, GROUP, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteGroupsRequest, ListGroupsRequest

EXAMPLE = DeleteGroupsRequest(groups_names=["g"]), None


def delete(node: Guarded, *groups: str, version: int = 2, principal: str = ADMIN) -> dict[str, int]:
    answer = node.ask(DeleteGroupsRequest(groups_names=list(groups)), version, principal)
    assert len({result.group_id for result in answer.results}) == len(answer.results)
    return {result.group_id: result.error_code for result in answer.results}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_group_goes_with_its_offsets_unless_it_has_members(node: Guarded, version: int) -> None:
    commit(node, "gone")
    joined(node, "busy")
    assert delete(node, "gone", "busy", "none", "gone", version=version) == {
        "gone": ErrorCode.NONE,
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert "gone" not in [group.group_id for group in node.ask(ListGroupsRequest(), principal=ADMIN).groups]


def test_no_groups_is_an_empty_answer_and_no_name_the_name_of_a_group(node: Guarded) -> None:
    coordinate(node)
    assert delete(node) == {}
    assert delete(node, "") == {"": ErrorCode.GROUP_ID_NOT_FOUND}, "old consumers commit under it"


def test_groups_that_must_not_be_deleted_stay(node: Guarded) -> None:
    commit(node, "mine")
    commit(node, "hidden")
    node.allow(AclOperation.DELETE, GROUP, "mine")
    node.allow(AclOperation.READ, GROUP, "hidden")
    refused = delete(node, "hidden", "mine", "none", principal="User:alice")
    assert refused == {"mine": 0, "hidden": G_DENIED, "none": G_DENIED}
    assert delete(node, "hidden") == {"hidden": ErrorCode.NONE}


def test_where_every_group_is_refused_no_coordinator_is_asked(node: Guarded) -> None:
    assert delete(node, "a", "b", principal="User:alice") == {"a": G_DENIED, "b": G_DENIED}
