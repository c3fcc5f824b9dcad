"""The group APIs in every version, read and written by a codec that is not ours."""

from __future__ import annotations

from typing import Any

import pytest
from clients.wire_client import WireClient
from clients.world import World

from heirlog.apis.common.api import Role
from heirlog.node.router import ROUTES
from heirlog.protocol.api import APIS
from heirlog.protocol.batch import encode_batch

OFFSETS = "__consumer_offsets"
NEWEST = 10


def version_of(api: str, key: int, version: int) -> int:
    """The API in `version`, or its nearest."""
    route = ROUTES[Role.BROKER][key]
    assert APIS[key].module == api
    return min(max(version, route.min_version), route.max_version)


class Group:
    """A group, spoken to in one version of each API."""

    def __init__(self, world: World, version: int) -> None:
        self.name = world.name("wire-group")
        self.version = version
        self.wire_client: WireClient = world.eventually(lambda: self._coordinator(world))

    def _coordinator(self, world: World) -> WireClient | None:
        found = world.ask("find_coordinator", 3, key=self.name, key_type=0)
        if found.error_code.value:
            return None
        wire_client = world.broker(found.node_id)
        # it may not know yet that it is the coordinator, or still be loading what is there
        (described,) = wire_client.ask("describe_groups", 0, groups=[self.name]).groups
        if not described.error_code.value:
            return wire_client
        wire_client.__exit__(None, None, None)
        return None

    def ask(self, api: str, key: int, **values: Any) -> Any:
        return self.wire_client.ask(api, version_of(api, key, self.version), group_id=self.name, **values)

    def join(self, member_id: str = "") -> Any:
        return self.ask(
            "join_group",
            11,
            session_timeout=60_000,
            rebalance_timeout=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b"subscription"}],
            reason="a test",
        )


@pytest.fixture(scope="module")
def topic(world: World) -> str:
    return world.topic(partitions=2, replicas=[1])


@pytest.mark.parametrize("version", range(NEWEST + 1))
def test_a_life_in_a_group(world: World, topic: str, version: int) -> None:
    group = Group(world, version)
    with group.wire_client:
        joined = group.join()
        if version >= 4:
            assert joined.error_code.name == "member_id_required"
            joined = group.join(joined.member_id)
        assert (joined.error_code.value, joined.generation_id, joined.protocol_name) == (0, 1, "range")
        assert [(member.member_id, member.metadata) for member in joined.members] == [
            (joined.member_id, b"subscription")
        ]
        assert joined.leader == joined.member_id
        if version >= 7:
            assert joined.protocol_type == "consumer"
        me = {"member_id": joined.member_id, "generation_id": 1}
        synced = group.ask(
            "sync_group",
            14,
            assignments=[{"member_id": joined.member_id, "assignment": b"everything"}],
            protocol_type="consumer",
            protocol_name="range",
            **me,
        )
        assert (synced.error_code.value, synced.assignment) == (0, b"everything")
        assert group.ask("heartbeat", 12, **me).error_code.value == 0
        assert group.ask("heartbeat", 12, **{**me, "generation_id": 9}).error_code.name == "illegal_generation"
        commits(group, world, topic, joined.member_id)
        describes(group, joined.member_id)
        left = group.ask("leave_group", 13, member_id=joined.member_id, members=[{"member_id": joined.member_id}])
        assert left.error_code.value == 0
        if version >= 3:
            assert [(one.member_id, one.error_code.value) for one in left.members] == [(joined.member_id, 0)]
        assert group.ask("heartbeat", 12, **me).error_code.name == "unknown_member_id"
        forgets(group, topic)


def commits(group: Group, world: World, topic: str, member_id: str) -> None:
    by_id = {"name": topic, "topic_id": world.topic_id(topic)}
    places = [
        {"partition_index": index, "committed_offset": 10 + index, "committed_leader_epoch": 0, "committed_metadata": m}
        for index, m in enumerate([None, "metadata"])
    ]
    committed = group.ask(
        "offset_commit",
        8,
        generation_id_or_member_epoch=1,
        generation_id=1,
        member_id=member_id,
        retention_time=-1,
        topics=[{**by_id, "partitions": places}],
    )
    assert [(p.partition_index, p.error_code.value) for p in committed.topics[0].partitions] == [(0, 0), (1, 0)]
    asked = [{**by_id, "partition_indexes": [0, 1, 7]}]
    answer = group.ask("offset_fetch", 9, topics=asked, groups=[{"group_id": group.name, "topics": asked}])
    found = fetched(group, answer)
    assert [(p.partition_index, p.committed_offset, p.metadata) for p in found] == [
        (0, 10, ""),
        (1, 11, "metadata"),
        (7, -1, ""),
    ]
    assert [p.error_code.value for p in found] == [0, 0, 0]
    if group.version >= 2:
        answer = group.ask("offset_fetch", 9, topics=None, groups=[{"group_id": group.name, "topics": None}])
        assert [p.committed_offset for p in fetched(group, answer)] == [10, 11]


def fetched(group: Group, answer: Any) -> Any:
    whole = answer.groups[0] if group.version >= 8 else answer
    if group.version >= 2:
        assert whole.error_code.value == 0
    (topic,) = whole.topics
    return topic.partitions


def describes(group: Group, member_id: str) -> None:
    answer = group.wire_client.ask(
        "describe_groups",
        version_of("describe_groups", 15, group.version),
        groups=[group.name, "nobody"],
        include_authorized_operations=True,
    )
    mine, nobody = sorted(answer.groups, key=lambda one: one.group_id != group.name)
    assert (mine.group_state, mine.protocol_type, mine.protocol_data) == ("Stable", "consumer", "range")
    assert [(m.member_id, m.client_id, m.member_metadata, m.member_assignment) for m in mine.members] == [
        (member_id, "a stranger", b"subscription", b"everything")
    ]
    if nobody.error_code.name != "not_coordinator":
        assert nobody.group_state == "Dead"
        assert nobody.error_code.name == ("group_id_not_found" if group.version >= 6 else "none")
    if group.version >= 3:
        assert mine.authorized_operations > 0
    listed = group.wire_client.ask(
        "list_groups",
        version_of("list_groups", 16, group.version),
        states_filter=["Stable"],
        types_filter=["classic"],
    )
    (one,) = [found for found in listed.groups if found.group_id == group.name]
    assert one.protocol_type == "consumer"
    if group.version >= 5:
        assert (one.group_state, one.group_type) == ("Stable", "classic")


def forgets(group: Group, topic: str) -> None:
    deleted = group.ask(
        "offset_delete",
        47,
        topics=[{"name": topic, "partitions": [{"partition_index": 0}, {"partition_index": 9}]}],
    )
    assert deleted.error_code.value == 0
    assert [p.error_code.name for p in deleted.topics[0].partitions] == ["none", "unknown_topic_or_partition"]
    answer = group.wire_client.ask(
        "delete_groups", version_of("delete_groups", 42, group.version), groups_names=[group.name, group.name + "?"]
    )
    codes = {result.group_id: result.error_code.name for result in answer.results}
    assert codes[group.name] == "none"
    assert codes[group.name + "?"] in ("group_id_not_found", "not_coordinator")


def test_clients_may_not_write_the_coordinators_topic(world: World) -> None:
    Group(world, 9).wire_client.__exit__(None, None, None)
    data = {"index": 0, "records": bytes(encode_batch([(b"k", b"v", (), 1_700_000_000_000)]))}
    answer = world.ask_leader(
        OFFSETS, "produce", 9, acks=1, timeout=5000, topic_data=[{"name": OFFSETS, "partition_data": [data]}]
    )
    assert answer.responses[0].partition_responses[0].error_code.name == "invalid_topic_exception"


@pytest.mark.parametrize("size", [9000, 40_000])
def test_a_name_that_no_record_has_room_for_is_refused(world: World, topic: str, size: int) -> None:
    group = Group(world, 9)
    name = "g" * size
    with group.wire_client as wire_client:
        place = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": 0, "committed_metadata": ""}
        answer = wire_client.ask("offset_commit", 9, group_id=name, topics=[{"name": topic, "partitions": [place]}])
        assert answer.topics[0].partitions[0].error_code.name == "invalid_group_id"
        joined = wire_client.ask(
            "join_group",
            9,
            group_id=group.name,
            session_timeout=60_000,
            group_instance_id=name,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )
        assert joined.error_code.name == "invalid_request"
