"""ListGroups through a node: filters by version, and groups that a client may know."""

from __future__ import annotations

from typing import Any

from apis.groups import commit, joined
from apis.guarded import ADMIN, CLUSTER, GROUP, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.messages import ListGroupsRequest

EXAMPLE = ListGroupsRequest(), None
REFUSES_NOTHING = "it leaves out the groups that a client must not describe"


def listed(node: Guarded, version: int = 5, principal: str = ADMIN, **filters: Any) -> list[str]:
    return sorted(group.group_id for group in node.ask(ListGroupsRequest(**filters), version, principal).groups)


def test_states_and_types_are_shown_and_filtered_by_the_versions_that_have_them(node: Guarded) -> None:
    joined(node, "stable")
    commit(node, "empty")
    assert listed(node, 0) == ["empty", "stable"]
    assert listed(node, 4, states_filter=["sTABLE"]) == ["stable"]
    assert listed(node, 4, states_filter=["Dead"]) == []
    assert listed(node, 5, types_filter=["Classic"]) == ["empty", "stable"]
    assert listed(node, 5, types_filter=["consumer"]) == []
    groups = {group.group_id: group for group in node.ask(ListGroupsRequest(), 5, ADMIN).groups}
    assert (groups["stable"].group_state, groups["stable"].protocol_type) == ("Stable", "consumer")
    assert (groups["empty"].group_state, groups["empty"].group_type) == ("Empty", "classic")


def test_groups_are_listed_to_clients_that_may_describe_them_or_the_cluster(node: Guarded) -> None:
    commit(node, "g")
    commit(node, "other")
    assert listed(node, principal="User:alice") == []
    node.allow(AclOperation.READ, GROUP, "g")
    assert listed(node, principal="User:alice") == ["g"]
    node.forget_acls()
    node.allow(AclOperation.DESCRIBE, CLUSTER)
    assert {"g", "other"} <= set(listed(node, principal="User:alice"))
