"""Metadata and the requests that describe or change topics, in every version, with a codec of kio's."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from clients.test_wire_data import FOREVER_MS, batch, end_offset, produce
from clients.world import World

NOT_ASKED = -(2**31)


@pytest.fixture(scope="module")
def topic(world: World) -> str:
    return world.topic(partitions=2, replicas=[2, 3])


# -- Metadata, FindCoordinator, DescribeCluster ----------------------------------------------------------------------


@pytest.mark.parametrize("version", range(14))
def test_metadata_describes_brokers_and_topics(world: World, topic: str, version: int) -> None:
    answer = world.ask(
        "metadata",
        version,
        topics=[{"name": topic}],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]
    found = answer.topics[0]
    assert (found.name, found.error_code.value) == (topic, 0)
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in found.partitions] == [
        (0, 2, (2, 3), (2, 3)),
        (1, 2, (2, 3), (2, 3)),
    ]
    if version >= 1:
        assert answer.controller_id in (1, 2, 3)
        assert not found.is_internal
    if version >= 2:
        assert answer.cluster_id
    if version >= 5:
        assert found.partitions[0].offline_replicas == ()
    if version >= 7:
        assert found.partitions[0].leader_epoch == 0
    if version >= 8:
        assert found.topic_authorized_operations > 0
    if version in (8, 9, 10):
        assert answer.cluster_authorized_operations > 0
    if version >= 10:
        assert found.topic_id == world.topic_id(topic)
    if version >= 13:
        assert answer.error_code.value == 0


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_all_topics_and_of_none(world: World, topic: str, version: int) -> None:
    everything = world.ask("metadata", version, topics=[] if version == 0 else None).topics
    names = [found.name for found in everything]
    assert topic in names
    assert names == sorted(names)
    internal = {name for name in names if name.startswith("__")}
    assert internal <= {"__consumer_offsets", "__transaction_state", "__heirlog_recoveries"}
    if version >= 1:
        assert world.ask("metadata", version, topics=[]).topics == ()


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_names_that_are_no_topic(world: World, version: int) -> None:
    answer = world.ask(
        "metadata", version, topics=[{"name": "nowhere"}, {"name": "no good"}], allow_auto_topic_creation=True
    )
    codes = [found.error_code.name for found in answer.topics]
    assert codes == ["unknown_topic_or_partition", "invalid_topic_exception"]


@pytest.mark.parametrize("version", [12, 13])
def test_metadata_by_topic_id(world: World, topic: str, version: int) -> None:
    known, unknown = world.ask(
        "metadata",
        version,
        topics=[{"name": None, "topic_id": world.topic_id(topic)}, {"name": None, "topic_id": uuid.uuid4()}],
    ).topics
    assert (known.name, known.error_code.value, len(known.partitions)) == (topic, 0, 2)
    assert (unknown.name, unknown.error_code.name) == (None, "unknown_topic_id")


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_topic_id_is_refused_in_the_versions_that_only_seem_to_have_it(
    world: World, topic: str, version: int
) -> None:
    by_id = [{"name": None, "topic_id": world.topic_id(topic)}, {"name": None, "topic_id": uuid.uuid4()}]
    for asked in (by_id, [{"name": topic, "topic_id": world.topic_id(topic)}, {"name": topic}]):
        answer = world.ask("metadata", version, topics=asked)
        assert [found.error_code.name for found in answer.topics] == ["invalid_request", "invalid_request"]


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator_finds_the_leader_of_the_groups_partition(world: World, version: int) -> None:
    def found() -> Any:
        answer = world.ask("find_coordinator", version, key="g", coordinator_keys=["g", "h"], key_type=0)
        coordinators = [answer] if version < 4 else answer.coordinators
        if any(one.error_code.value for one in coordinators):
            return None  # the first question creates the topic
        # 103 and 104, as Java hashes one character
        leaders = [world.leader("__consumer_offsets", 103 % 50), world.leader("__consumer_offsets", 104 % 50)]
        return [one.node_id for one in coordinators] == leaders[: len(coordinators)] and coordinators

    coordinators = world.eventually(found)
    assert len(coordinators) == (1 if version < 4 else 2)
    addresses = world.cluster.bootstrap_servers.split(",")
    assert [f"{one.host}:{one.port}" for one in coordinators] == [addresses[one.node_id - 1] for one in coordinators]


@pytest.mark.parametrize("version", range(1, 7))
def test_there_are_no_coordinators_of_share_groups(world: World, version: int) -> None:
    answer = world.ask("find_coordinator", version, key="g", coordinator_keys=["g", "h"], key_type=2)
    found = [answer] if version < 4 else answer.coordinators
    assert [(one.error_code.name, one.node_id) for one in found] == [("invalid_request", -1)] * len(found)
    if version >= 4:
        assert [one.key for one in found] == ["g", "h"]
    assert all(one.error_message for one in found)


@pytest.mark.parametrize("version", [1, 2])
def test_a_controller_describes_controllers(world: World, version: int) -> None:
    answer = world.ask_controller("describe_cluster", version, endpoint_type=2)
    assert (answer.error_code.value, answer.controller_id, answer.endpoint_type) == (0, 100, 2)
    assert [(found.broker_id, found.port > 0) for found in answer.brokers] == [(100, True)]
    assert world.ask_controller("describe_cluster", version, endpoint_type=1).error_code.name == (
        "mismatched_endpoint_type"
    )


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster(world: World, version: int) -> None:
    answer = world.ask("describe_cluster", version, endpoint_type=1, include_cluster_authorized_operations=True)
    assert answer.error_code.value == 0
    assert [broker.broker_id for broker in answer.brokers] == [1, 2, 3]
    assert answer.controller_id in (1, 2, 3)
    assert answer.cluster_authorized_operations > 0
    unasked = world.ask("describe_cluster", version, endpoint_type=1, include_fenced_brokers=True)
    assert unasked.cluster_authorized_operations == NOT_ASKED
    if version >= 1:
        controllers = world.ask("describe_cluster", version, endpoint_type=2)
        assert controllers.error_code.name == "mismatched_endpoint_type"
        unknown = world.ask("describe_cluster", version, endpoint_type=3)
        assert unknown.error_code.name == "unsupported_endpoint_type"


# -- CreateTopics, DeleteTopics --------------------------------------------------------------------------------------


def create(world: World, version: int, *topics: dict[str, Any], validate_only: bool = False) -> list[Any]:
    asked = [{"num_partitions": 1, "replication_factor": 1, **topic} for topic in topics]
    return list(world.ask("create_topics", version, topics=asked, timeout=10_000, validate_only=validate_only).topics)


def assigned(*replicas: list[int], **others: Any) -> dict[str, Any]:
    assignments = [{"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments, **others}


@pytest.mark.parametrize("version", range(2, 8))
def test_topics_are_created_as_asked(world: World, version: int) -> None:
    counted, placed = world.name(), world.name()
    configs = [{"name": "retention.ms", "value": "12345"}]
    answers = create(
        world,
        version,
        {"name": counted, "num_partitions": 3, "replication_factor": 2, "configs": configs},
        {"name": placed, **assigned([3, 1], [1, 2])},
    )
    assert [(one.name, one.error_code.value, one.error_message) for one in answers] == [
        (counted, 0, None),
        (placed, 0, None),
    ]
    if version >= 5:
        assert [(one.num_partitions, one.replication_factor) for one in answers] == [(3, 2), (2, 2)]
        assert {c.name: (c.value, c.config_source) for c in answers[0].configs}["retention.ms"] == ("12345", 1)
    partitions = world.eventually(lambda: world.metadata(placed).partitions)
    assert [(p.replica_nodes, p.leader_id) for p in partitions] == [((3, 1), 3), ((1, 2), 1)]
    if version >= 7:
        assert [one.topic_id for one in answers] == [world.topic_id(counted), world.topic_id(placed)]


def test_counts_may_be_left_to_the_cluster(world: World) -> None:
    name = world.name()
    (created,) = create(world, 5, {"name": name, "num_partitions": -1, "replication_factor": -1})
    assert (created.num_partitions, created.replication_factor) == (1, 3)


@pytest.mark.parametrize("version", range(2, 8))
def test_validate_only_creates_nothing(world: World, topic: str, version: int) -> None:
    name = world.name()
    fine, taken = create(world, version, {"name": name}, {"name": topic}, validate_only=True)
    assert (fine.error_code.name, taken.error_code.name) == ("none", "topic_already_exists")
    if version >= 7:
        assert fine.topic_id is not None and taken.topic_id is None, "as on Apache Kafka: an id that nothing will have"
    assert world.metadata(name).error_code.name == "unknown_topic_or_partition"


REFUSED_TOPICS = {
    "a bad name": ({"name": "no good"}, "invalid_topic_exception"),
    "an empty name": ({"name": ""}, "invalid_topic_exception"),
    "a name of dots": ({"name": ".."}, "invalid_topic_exception"),
    "a name too long": ({"name": "a" * 250}, "invalid_topic_exception"),
    "no partitions": ({"num_partitions": 0}, "invalid_partitions"),
    "minus two partitions": ({"num_partitions": -2}, "invalid_partitions"),
    "no replicas": ({"replication_factor": 0}, "invalid_replication_factor"),
    "more replicas than brokers": ({"replication_factor": 4}, "invalid_replication_factor"),
    "far too many partitions": ({"num_partitions": 2**31 - 1}, "policy_violation"),
    "an unknown configuration": ({"configs": [{"name": "no.such", "value": "1"}]}, "invalid_config"),
    "a bad value": ({"configs": [{"name": "retention.ms", "value": "soon"}]}, "invalid_config"),
    "a value out of range": ({"configs": [{"name": "min.insync.replicas", "value": "0"}]}, "invalid_config"),
    "a null value": ({"configs": [{"name": "retention.ms", "value": None}]}, "invalid_config"),
    "counts and assignments": ({**assigned([1]), "num_partitions": 1}, "invalid_request"),
    "a factor and assignments": ({**assigned([1]), "replication_factor": 1}, "invalid_request"),
    "an unknown broker": (assigned([1, 9]), "invalid_replica_assignment"),
    "a broker twice": (assigned([1, 1]), "invalid_replica_assignment"),
    "an empty replica list": (assigned([]), "invalid_replica_assignment"),
    "unequal factors": (assigned([1], [1, 2]), "invalid_replica_assignment"),
    "a hole in the numbers": (
        {**assigned([1]), "assignments": [{"partition_index": 1, "broker_ids": [1]}]},
        "invalid_replica_assignment",
    ),
}


@pytest.mark.parametrize("kind", REFUSED_TOPICS)
def test_what_cannot_be_created_is_refused_alone_and_with_a_sentence(world: World, kind: str) -> None:
    asked, code = REFUSED_TOPICS[kind]
    name, good = world.name(), world.name()
    refused, fine = create(world, 7, {"name": name, **asked}, {"name": good})
    assert (refused.error_code.name, fine.error_code.name) == (code, "none")
    assert refused.error_message
    assert refused.num_partitions == -1


def test_names_that_are_taken(world: World) -> None:
    name = world.name("taken.by")
    create(world, 7, {"name": name})
    again, collides, *twice = create(
        world, 7, {"name": name}, {"name": name.replace(".", "_")}, {"name": "same"}, {"name": "same"}
    )
    assert again.error_code.name == "topic_already_exists"
    assert collides.error_code.name == "invalid_topic_exception"
    assert {one.error_code.name for one in twice} == {"invalid_request"}


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted_by_name(world: World, version: int) -> None:
    name = world.topic(replicas=[1, 2])
    asked = [name, "nowhere"]
    answer = world.ask(
        "delete_topics", version, topic_names=asked, topics=[{"name": one} for one in asked], timeout=10_000
    )
    found = {one.name: one.error_code.name for one in answer.responses}
    assert found == {name: "none", "nowhere": "unknown_topic_or_partition"}
    world.eventually(lambda: world.metadata(name).error_code.name == "unknown_topic_or_partition")


def test_topics_are_deleted_by_id(world: World) -> None:
    name = world.topic(replicas=[1, 2])
    topic_id, unknown = world.topic_id(name), uuid.uuid4()
    asked = [{"name": None, "topic_id": topic_id}, {"name": None, "topic_id": unknown}]
    deleted, missing = world.ask("delete_topics", 6, topics=asked, timeout=10_000).responses
    assert (deleted.name, deleted.topic_id, deleted.error_code.value) == (name, topic_id, 0)
    assert (missing.name, missing.topic_id, missing.error_code.name) == (None, unknown, "unknown_topic_id")


def test_a_topic_asked_for_in_two_ways_is_not_deleted(world: World, topic: str) -> None:
    topic_id = world.topic_id(topic)
    for asked in (
        [{"name": topic, "topic_id": topic_id}],
        [{"name": None, "topic_id": None}],
        [{"name": topic}, {"name": topic}],
        [{"name": topic}, {"name": None, "topic_id": topic_id}],
    ):
        answer = world.ask("delete_topics", 6, topics=asked, timeout=10_000)
        assert {one.error_code.name for one in answer.responses} == {"invalid_request"}
    assert world.metadata(topic).error_code.value == 0


# -- DescribeTopicPartitions, DescribeConfigs ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(world: World) -> list[str]:
    return [world.topic(partitions=count, replicas=[1]) for count in (2, 1, 3)]


def page(world: World, names: list[str], limit: int, cursor: tuple[str, int] | None = None) -> tuple[Any, Any]:
    """({name: partitions}, cursor) of one page."""
    answer = world.ask(
        "describe_topic_partitions",
        0,
        topics=[{"name": name} for name in names],
        response_partition_limit=limit,
        cursor=cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
    )
    found = {topic.name: [p.partition_index for p in topic.partitions] for topic in answer.topics}
    following = answer.next_cursor
    return found, following and (following.topic_name, following.partition_index)


def test_pages_follow_each_other_without_a_gap(world: World, pages: list[str]) -> None:
    first, second, third = sorted(pages)
    counts = {name: len(world.metadata(name).partitions) for name in pages}
    for limit in (1, 2, 3, 5, 6, 100):
        seen: list[tuple[str, int]] = []
        cursor = None
        while True:
            found, cursor = page(world, [third, first, second], limit, cursor)
            assert 0 < sum(map(len, found.values())) <= limit
            seen += [(name, index) for name, indexes in found.items() for index in indexes]
            if cursor is None:
                break
        assert seen == [(name, index) for name in (first, second, third) for index in range(counts[name])]


def test_the_cursor_names_the_next_partition(world: World, pages: list[str]) -> None:
    two, one, _ = pages
    assert page(world, [two], 1) == ({two: [0]}, (two, 1))
    assert page(world, [two], 1, (two, 1)) == ({two: [1]}, None)
    first, second = sorted((two, one))
    full = {first: [*range(2 if first == two else 1)]}
    assert page(world, [two, one], len(full[first])) == (full, (second, 0))
    assert page(world, [two], 0) == ({two: [0]}, (two, 1)), "at least one"


def test_all_topics_are_described_where_none_is_named(world: World, pages: list[str]) -> None:
    found, cursor = page(world, [], 2000)
    assert set(pages) <= set(found)
    assert list(found) == sorted(found)
    assert cursor is None


def test_bad_cursors_and_bad_names(world: World, pages: list[str]) -> None:
    for cursor in ({"topic_name": pages[0], "partition_index": -1}, {"topic_name": "other", "partition_index": 0}):
        answer = world.ask(
            "describe_topic_partitions",
            0,
            topics=[{"name": pages[0]}],
            response_partition_limit=10,
            cursor=cursor,
        )
        assert [one.error_code.name for one in answer.topics] == ["invalid_request"]
    answer = world.ask(
        "describe_topic_partitions", 0, topics=[{"name": "nowhere"}, {"name": "no good"}], response_partition_limit=9
    )
    assert {one.name: one.error_code.name for one in answer.topics} == {
        "no good": "invalid_topic_exception",
        "nowhere": "unknown_topic_or_partition",
    }


def test_eligible_replicas_are_always_listed(world: World, topic: str) -> None:
    answer = world.ask("describe_topic_partitions", 0, topics=[{"name": topic}], response_partition_limit=10)
    for partition in answer.topics[0].partitions:
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), ())
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ((2, 3), (2, 3), ())


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_configs(world: World, version: int) -> None:
    name, other = world.topic(replicas=[1], retention_ms="777"), world.topic(replicas=[1])
    resources = [
        {"resource_type": 2, "resource_name": name, "configuration_keys": ["retention.ms", "min.insync.replicas"]},
        {"resource_type": 2, "resource_name": other, "configuration_keys": None},
        {"resource_type": 4, "resource_name": "1", "configuration_keys": None},
        {"resource_type": 2, "resource_name": "nowhere", "configuration_keys": None},
        {"resource_type": 2, "resource_name": "no good", "configuration_keys": None},
        {"resource_type": 4, "resource_name": "2", "configuration_keys": None},
    ]
    with world.broker(1) as wire_client:
        answer = wire_client.ask("describe_configs", version, resources=resources, include_synonyms=True)
    two, everything, broker, *refused = answer.results
    assert {one.name: (one.value, one.config_source) for one in two.configs} == {
        "min.insync.replicas": ("2", 3),
        "retention.ms": ("777", 1),
    }
    assert next(s.source for one in two.configs for s in one.synonyms if one.name == "retention.ms") == 1
    assert {one.name for one in two.configs} < {one.name for one in everything.configs}
    assert "log.dirs" in {one.name for one in broker.configs}
    codes = [one.error_code.name for one in refused]
    assert codes == ["unknown_topic_or_partition", "invalid_topic_exception", "invalid_request"]
    assert all(one.error_message for one in refused)


# -- ElectLeaders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_elections_that_are_not_needed_or_not_possible(world: World, topic: str, version: int) -> None:
    partitions = [{"topic": topic, "partitions": [0, 7]}, {"topic": "nowhere", "partitions": [0]}]
    for election_type in (0, 1) if version else (0,):
        answer = world.ask(
            "elect_leaders", version, election_type=election_type, topic_partitions=partitions, timeout=5000
        )
        found = {
            (one.topic, partition.partition_id): partition.error_code.name
            for one in answer.replica_election_results
            for partition in one.partition_result
        }
        assert found == {
            (topic, 0): "election_not_needed",
            (topic, 7): "unknown_topic_or_partition",
            ("nowhere", 0): "unknown_topic_or_partition",
        }
    assert world.ask("elect_leaders", version, topic_partitions=[], timeout=5000).replica_election_results == ()

    # leaders that other tests have moved come home first, as soon as they are in sync again
    def nobody_moves() -> bool:
        answer = world.ask("elect_leaders", version, topic_partitions=None, timeout=5000)
        return all(one.partition_result == () for one in answer.replica_election_results)

    world.eventually(nobody_moves)


@pytest.mark.parametrize("election_type", [2, 3, 4, -1, 127])
def test_an_unknown_kind_of_election_is_refused(world: World, topic: str, election_type: int) -> None:
    asked = [{"topic": topic, "partitions": [0]}]
    for version in (1, 2):
        answer = world.ask("elect_leaders", version, election_type=election_type, topic_partitions=asked, timeout=5000)
        assert answer.error_code.name == "invalid_request"


def test_a_replica_goes_becomes_eligible_and_is_given_its_partition_back(world: World) -> None:
    name = world.topic(replicas=[3, 2])
    assert produce(world, name, batch(1)).error_code.value == 0
    asked = [{"topic": name, "partitions": [0]}]
    world.cluster.stop(3)
    try:
        world.eventually(lambda: world.leader(name) == 2)
        refused = world.ask("elect_leaders", 2, election_type=0, topic_partitions=asked, timeout=5000)
        (result,) = refused.replica_election_results[0].partition_result
        assert result.error_code.name == "preferred_leader_not_available"
        assert result.error_message
        described = world.ask("describe_topic_partitions", 0, topics=[{"name": name}], response_partition_limit=9)
        (partition,) = described.topics[0].partitions
        assert (partition.isr_nodes, partition.eligible_leader_replicas) == ((2,), (3,)), "ISR below min ISR: 2"
        # its fence is a record of its own, and broker 2 reads by itself that it leads
        world.eventually(lambda: world.metadata(name).partitions[0].offline_replicas == (3,))
        world.eventually(lambda: produce(world, name, batch(1), acks=-1).error_code.name == "not_enough_replicas")
        assert produce(world, name, batch(1), acks=1).base_offset == 1
        # not readable, since only one replica has it (-1: the new leader may not even know the watermark yet)
        assert end_offset(world, name) in (1, -1)
    finally:
        world.cluster.start(3)
        world.cluster.wait_until_ready()
    world.eventually(lambda: set(world.metadata(name).partitions[0].isr_nodes) == {2, 3})
    world.eventually(lambda: end_offset(world, name) == 2)
    with world.broker(2) as waiting:
        body = [{"topic": name, "partitions": [{"partition": 0, "partition_max_bytes": 1000, "fetch_offset": 2}]}]
        poll = waiting.send("fetch", 12, max_bytes=1000, max_wait=FOREVER_MS, min_bytes=1, topics=body)
        elected = world.ask("elect_leaders", 2, election_type=0, topic_partitions=None, timeout=5000)
        found = {
            one.topic: one.partition_result[0].error_code.name
            for one in elected.replica_election_results
            if one.partition_result
        }
        assert found[name] == "none"
        received = waiting.answer(poll).responses[0].partitions[0]
    assert (received.error_code.name, received.current_leader.leader_id) == ("not_leader_or_follower", 3)
    world.eventually(lambda: world.leader(name) == 3)
