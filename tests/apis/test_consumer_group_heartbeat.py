"""ConsumerGroupHeartbeat through a node: versions, and who may join. `tests/broker/groups/consumer` has the rules."""

from __future__ import annotations

from typing import Any

from apis.groups import coordinate
from apis.guarded import ADMIN, ALICE, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ConsumerGroupHeartbeatRequest, IncrementalAlterConfigsRequest


def joining(group: str = "g", member_id: str = "m", **more: Any) -> ConsumerGroupHeartbeatRequest:
    values: dict[str, Any] = {"rebalance_timeout_ms": 1000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, **(values | more))


EXAMPLE = joining(), None


def test_a_member_is_assigned_the_topic(node: Guarded) -> None:
    coordinate(node)
    answer = node.ask(joining("assigned"), principal=ADMIN)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "m", 1)
    assert [each.partitions for each in answer.assignment.topic_partitions] == [[0]]


def test_version_0_makes_the_id_and_has_no_regular_expression(node: Guarded) -> None:
    coordinate(node)
    assert node.ask(joining("v0", ""), 0, ADMIN).member_id
    assert node.ask(joining("v0", ""), 1, ADMIN).error_code == ErrorCode.INVALID_REQUEST


def configure(node: Guarded, group: str, **configs: int | None) -> None:
    """None: removes it."""
    R = IncrementalAlterConfigsRequest
    changes = [
        R.AlterableConfig(
            name=f"consumer.{name.replace('_', '.')}",
            config_operation=1 if value is None else 0,
            value=None if value is None else str(value),
        )
        for name, value in configs.items()
    ]
    resource = R.AlterConfigsResource(resource_type=32, resource_name=group, configs=changes)
    assert node.ask(R(resources=[resource]), principal=ADMIN).responses[0].error_code == ErrorCode.NONE


def test_configurations_of_a_group_count_from_the_next_heartbeat_on_and_until_they_are_removed(node: Guarded) -> None:
    coordinate(node)
    beat = ConsumerGroupHeartbeatRequest(group_id="timed", member_id="m", member_epoch=1)
    assert node.ask(joining("timed"), principal=ADMIN).heartbeat_interval_ms == 5000
    for longer in (True, False):
        configure(
            node,
            "timed",
            session_timeout_ms=60_000 if longer else None,
            heartbeat_interval_ms=9000 if longer else None,
        )
        assert node.ask(beat, principal=ADMIN).heartbeat_interval_ms == (9000 if longer else 5000)
        node.world.run_for(50_000)
        said = node.ask(beat, principal=ADMIN).error_code
        assert said == (ErrorCode.NONE if longer else ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_member_must_be_allowed_to_read_the_group_and_to_describe_its_topics(node: Guarded) -> None:
    coordinate(node)
    request = joining("acl", subscribed_topic_names=["t", "hidden"])
    assert node.ask(request).error_code == G_DENIED
    node.allow(AclOperation.READ, GROUP, "acl")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert node.ask(request).error_code == T_DENIED
    assert node.ask(joining("acl")).error_code == ErrorCode.NONE


def test_a_regular_expression_finds_only_what_the_client_may_describe(node: Guarded) -> None:
    coordinate(node)
    node.allow(AclOperation.READ, GROUP, "regex")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    epoch = node.ask(joining("regex", subscribed_topic_regex=".*", subscribed_topic_names=None)).member_epoch
    node.world.run_for(100)
    beat = ConsumerGroupHeartbeatRequest(group_id="regex", member_id="m", member_epoch=epoch)
    answer = node.ask(beat, principal=ALICE)
    topics = {node.node.image.topics[each.topic_id].name for each in answer.assignment.topic_partitions}
    assert topics == {"t"}
