"""Answers that `make interop` found to differ from Apache Kafka's, read by a codec that is not ours.

What Apache Kafka 4.2.1 answers to the same requests is written down here; docs/compatibility.md has what is meant.
"""

from __future__ import annotations

from typing import Any

import pytest
from clients.wire_client import WireClient
from clients.world import World

from heirlog.protocol.batch import encode_batch

TOPIC, BROKER, UNKNOWN_TYPE = 2, 4, 64
SET, APPEND, UNKNOWN_OPERATION = 0, 2, 4
LATEST, EARLIEST_PENDING_UPLOAD = -1, -6
LONG_MS = 60_000
NOT_LEADER = "not_leader_or_follower"


@pytest.fixture(scope="module")
def topic(world: World) -> str:
    return world.topic(partitions=3)


def records(value: bytes = b"v") -> bytes:
    return bytes(encode_batch([(b"k", value, (), 1_700_000_000_000)]))


def code(item: Any) -> str:
    name: str = item.error_code.name
    return name


def configured(resource_type: int, name: str, *keys: str) -> dict[str, Any]:
    return {"resource_type": resource_type, "resource_name": name, "configuration_keys": list(keys) or None}


def positions(world: World, topic: str, version: int, *asked: tuple[int, int], isolation_level: int = 0) -> list[Any]:
    wanted = [{"partition_index": index, "timestamp": timestamp} for index, timestamp in asked]
    answer = world.ask_leader(
        topic,
        "list_offsets",
        version,
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[{"name": topic, "partitions": wanted}],
    )
    return [(one.name, [(part.partition_index, code(part)) for part in one.partitions]) for one in answer.topics]


# -- texts


def test_without_an_error_the_text_is_what_apache_kafka_sends(world: World, topic: str) -> None:
    def coordinator(version: int) -> Any:
        found = world.ask("find_coordinator", version, key="texts", key_type=0, coordinator_keys=["texts"])
        only = found.coordinators[0] if version >= 4 else found
        return only if only.error_code.value == 0 else None

    for version, text in ((1, "NONE"), (3, "NONE"), (4, ""), (6, "")):
        assert world.eventually(lambda version=version: coordinator(version)).error_message == text
    (described,) = world.ask("describe_configs", 4, resources=[configured(TOPIC, topic)]).results
    assert described.error_message == ""
    update = {"feature": "eligible.leader.replicas.version", "max_version_level": 1, "upgrade_type": 1}
    (updated,) = world.ask("update_features", 1, feature_updates=[update], validate_only=True).results
    assert updated.error_message == "NONE"
    quorum = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    received = world.ask("describe_quorum", 2, topics=quorum)
    assert (received.error_message, received.topics[0].partitions[0].error_message) == ("", "")


# -- positions and records


@pytest.mark.parametrize("version", [2, 5, 11])
def test_an_unknown_isolation_level_is_refused(world: World, topic: str, version: int) -> None:
    assert positions(world, topic, version, (0, LATEST), (1, LATEST), isolation_level=2) == [
        (topic, [(0, "invalid_request"), (1, "invalid_request")])
    ]


@pytest.mark.parametrize("version", [4, 6, 12])
def test_an_unknown_isolation_level_is_refused_where_the_version_has_a_place_for_it(
    world: World, topic: str, version: int
) -> None:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, "current_leader_epoch": -1}
    asked = {"max_wait": 0, "max_bytes": 1000, "session_epoch": -1, "replica_id": -1, "last_fetched_epoch": -1}
    fetched = [{"topic": topic, "partitions": [part]}]
    answer = world.ask_leader(topic, "fetch", version, isolation_level=2, topics=fetched, **asked)
    ((refused,),) = [one.partitions for one in answer.responses]
    assert code(refused) == "invalid_request"


@pytest.mark.parametrize("version", [1, 5, 11])
def test_a_partition_that_list_offsets_has_twice_is_refused_once(world: World, topic: str, version: int) -> None:
    assert positions(world, topic, version, (0, LATEST), (1, LATEST), (0, LATEST)) == [
        (topic, [(0, "invalid_request"), (1, "none" if world.leader(topic, 1) == world.leader(topic) else NOT_LEADER)])
    ]


def test_a_time_that_the_version_does_not_know_is_refused_before_the_partition_is_looked_for(
    world: World, topic: str
) -> None:
    asked = (0, EARLIEST_PENDING_UPLOAD), (99, EARLIEST_PENDING_UPLOAD)
    assert positions(world, topic, 3, *asked) == [(topic, [(0, "unsupported_version"), (99, "unsupported_version")])]


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_aborted_transactions_are_null_beside_the_error_of_a_partition_that_exists(
    world: World, topic: str, isolation_level: int
) -> None:
    parts = [
        {"partition": index, "fetch_offset": 1000, "partition_max_bytes": 1000, "current_leader_epoch": -1}
        for index in (0, 99)
    ]
    answer = world.ask_leader(
        topic,
        "fetch",
        12,
        max_wait=0,
        max_bytes=1000,
        session_epoch=-1,
        isolation_level=isolation_level,
        topics=[{"topic": topic, "partitions": parts}],
    )
    found = {part.partition_index: part for one in answer.responses for part in one.partitions}
    assert (code(found[0]), found[0].aborted_transactions) == ("offset_out_of_range", None)
    assert (code(found[99]), found[99].aborted_transactions) == ("unknown_topic_or_partition", ())


@pytest.mark.parametrize("version", [4, 6, 12])
def test_of_a_partition_that_a_fetch_has_twice_the_last_counts(world: World, topic: str, version: int) -> None:
    def part(offset: int, partition: int = 0) -> dict[str, int]:
        wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1000}
        return wanted | {"current_leader_epoch": -1, "last_fetched_epoch": -1}

    asked = [{"topic": topic, "partitions": [part(1000), part(0, 99), part(0), part(0, 99)]}]
    more = {"max_wait": 0, "max_bytes": 1000, "session_epoch": -1, "replica_id": -1, "isolation_level": 0}
    answer = world.ask_leader(topic, "fetch", version, topics=asked, **more)
    found = {part.partition_index: code(part) for one in answer.responses for part in one.partitions}
    assert found == {0: "none", 99: "unknown_topic_or_partition"}
    assert sum(len(one.partitions) for one in answer.responses) == 2


def test_a_partition_that_a_produce_has_twice_stores_both(world: World) -> None:
    topic = world.topic()
    twice = [{"index": 0, "records": records(value)} for value in (b"1", b"2")]
    answer = world.ask_leader(
        topic, "produce", 9, acks=-1, timeout=10_000, topic_data=[{"name": topic, "partition_data": twice}]
    )
    found = [(part.index, code(part), part.base_offset) for one in answer.responses for part in one.partition_responses]
    assert found == [(0, "none", 0), (0, "none", 1)]


# -- topics and partitions


@pytest.mark.parametrize(
    ("partitions", "factor", "refused"),
    [
        (-2, 0, "invalid_replication_factor"),
        (0, -2, "invalid_replication_factor"),
        (0, 1, "invalid_partitions"),
        (-2, 9, "invalid_partitions"),
    ],
)
def test_the_replication_factor_is_looked_at_first(world: World, partitions: int, factor: int, refused: str) -> None:
    asked = {"name": "never", "num_partitions": partitions, "replication_factor": factor}
    (answer,) = world.ask("create_topics", 7, topics=[asked], validate_only=True, timeout=10_000).topics
    assert code(answer) == refused


def test_a_configuration_without_a_value_is_refused_also_where_it_comes_again_with_one(world: World) -> None:
    configs = [{"name": "flush.ms", "value": value} for value in (None, "9")]
    asked = {"name": "never", "num_partitions": 0, "replication_factor": -1, "configs": configs}
    (answer,) = world.ask("create_topics", 7, topics=[asked], validate_only=True, timeout=10_000).topics
    assert code(answer) == "invalid_config"


def test_deletions_without_name_and_id_or_with_both_are_answered_one_by_one(world: World, topic: str) -> None:
    nothing = {"name": None, "topic_id": None}
    both = {"name": topic, "topic_id": world.topic_id(topic)}
    for asked in (nothing, both):
        answer = world.ask("delete_topics", 6, topics=[asked, asked], timeout=10_000)
        assert [code(one) for one in answer.responses] == ["invalid_request"] * 2


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_election_names_topics_without_partitions_too(world: World, topic: str, version: int) -> None:
    asked = [{"topic": topic, "partitions": []}, {"topic": "nowhere", "partitions": []}]
    answer = world.ask("elect_leaders", version, election_type=0, topic_partitions=asked, timeout=10_000)
    assert {one.topic: one.partition_result for one in answer.replica_election_results} == {topic: (), "nowhere": ()}


@pytest.mark.parametrize("limit", [0, 1, -1])
def test_a_cursor_behind_a_topics_last_partition_continues_with_the_next_topic(world: World, limit: int) -> None:
    first, second = sorted((world.topic(partitions=2), world.topic(partitions=2)))
    for beyond in (2, 7):
        answer = world.ask(
            "describe_topic_partitions",
            0,
            topics=[{"name": first}, {"name": second}],
            response_partition_limit=limit,
            cursor={"topic_name": first, "partition_index": beyond},
        )
        described = [(one.name, [part.partition_index for part in one.partitions]) for one in answer.topics]
        assert described == [(first, []), (second, [0])]
        assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == (second, 1)


# -- configurations


def test_a_resource_that_is_named_twice_is_described_once(world: World, topic: str) -> None:
    answer = world.ask("describe_configs", 4, resources=[configured(TOPIC, topic)] * 2)
    assert [one.resource_name for one in answer.results] == [topic]


def test_a_resource_of_an_unknown_type_leaves_all_undescribed(world: World, topic: str) -> None:
    answer = world.ask("describe_configs", 4, resources=[configured(TOPIC, topic), configured(UNKNOWN_TYPE, "x")])
    assert [(code(one), one.configs) for one in answer.results] == [("invalid_request", ())] * 2


@pytest.mark.parametrize("operation", [SET, 1, APPEND, 3, UNKNOWN_OPERATION])
def test_an_unknown_resource_type_is_refused_whatever_is_to_be_done(world: World, operation: int) -> None:
    change = {"name": "cleanup.policy", "config_operation": operation, "value": "compact"}
    resource = {"resource_type": UNKNOWN_TYPE, "resource_name": "x", "configs": [change]}
    (by_broker,) = world.ask("incremental_alter_configs", 1, resources=[resource], validate_only=True).responses
    asked = world.ask_controller("incremental_alter_configs", 1, resources=[resource], validate_only=True)
    assert (code(by_broker), code(asked.responses[0])) == ("invalid_request", "unsupported_version")


def test_an_unknown_operation_is_refused(world: World, topic: str) -> None:
    change = {"name": "cleanup.policy", "config_operation": UNKNOWN_OPERATION, "value": "compact"}
    for resource_type, name in ((TOPIC, topic), (BROKER, "")):
        resource = {"resource_type": resource_type, "resource_name": name, "configs": [change]}
        (answer,) = world.ask("incremental_alter_configs", 1, resources=[resource]).responses
        assert code(answer) == "invalid_request" and "operation" in answer.error_message


def change(name: str, value: str | None, operation: int = SET) -> dict[str, Any]:
    return {"name": name, "config_operation": operation, "value": value}


def changed(resource_type: int, name: str, *changes: dict[str, Any]) -> dict[str, Any]:
    return {"resource_type": resource_type, "resource_name": name, "configs": list(changes)}


@pytest.mark.parametrize("version", [0, 1])
def test_a_controller_takes_the_last_of_a_key_given_twice_and_a_broker_refuses_it(
    world: World, topic: str, version: int
) -> None:
    twice = [change("file.delete.delay.ms", "60000"), change("file.delete.delay.ms", "50000")]
    asked = {"resources": [changed(TOPIC, "nowhere", *twice), changed(TOPIC, topic, *twice)], "validate_only": True}
    by_controller = world.ask_controller("incremental_alter_configs", version, **asked).responses
    by_broker = world.ask("incremental_alter_configs", version, **asked).responses
    assert [code(one) for one in by_controller] == ["unknown_topic_or_partition", "none"]
    assert [code(one) for one in by_broker] == ["invalid_request"] * 2


@pytest.mark.parametrize("version", [0, 1])
def test_the_min_isr_of_a_broker_is_refused_before_the_broker_is_looked_for(world: World, version: int) -> None:
    asked = [changed(BROKER, "99", change("min.insync.replicas", "1"))]
    (answer,) = world.ask_controller("incremental_alter_configs", version, resources=asked).responses
    assert code(answer) == "invalid_config"


def test_of_a_resource_given_twice_a_broker_changes_nothing(world: World, topic: str) -> None:
    good, bad = change("log.cleaner.threads", "2"), change("process.roles", "broker")
    asked = [changed(BROKER, "", good), changed(BROKER, "", bad), changed(TOPIC, topic, change("flush.ms", "9"))]
    answers = world.ask("incremental_alter_configs", 1, resources=asked).responses
    assert [code(one) for one in answers] == ["invalid_request", "invalid_request", "none"]
    (described,) = world.ask("describe_configs", 4, resources=[configured(BROKER, "", "log.cleaner.threads")]).results
    assert described.configs == ()
    (only,) = world.ask_controller("incremental_alter_configs", 1, resources=asked[:2]).responses
    assert code(only) == "invalid_request"


def test_values_are_described_in_one_spelling(world: World) -> None:
    topic = world.topic(
        file_delete_delay_ms=" 5 ", unclean_leader_election_enable=" TRUE", cleanup_policy="compact, delete"
    )
    keys = ("file.delete.delay.ms", "unclean.leader.election.enable", "cleanup.policy")
    (described,) = world.ask("describe_configs", 4, resources=[configured(TOPIC, topic, *keys)]).results
    assert {entry.name: entry.value for entry in described.configs} == {
        "file.delete.delay.ms": "5",
        "unclean.leader.election.enable": "true",
        "cleanup.policy": "compact,delete",
    }


# -- what describes a cluster


@pytest.mark.parametrize("version", [12, 13])
def test_topics_without_name_and_id_are_refused_as_a_whole(world: World, topic: str, version: int) -> None:
    nothing = {"name": None, "topic_id": None}
    for asked in ([nothing, nothing], [nothing, {"name": topic, "topic_id": None}]):
        answer = world.ask("metadata", version, topics=asked)
        assert (answer.brokers, answer.cluster_id, answer.controller_id) == ((), None, -1)
        assert [code(one) for one in answer.topics] == ["invalid_request"] * 2


@pytest.mark.parametrize("version", [12, 13])
def test_next_to_an_id_a_topic_without_name_and_id_counts_for_nothing(world: World, topic: str, version: int) -> None:
    asked = [{"name": None, "topic_id": None}, {"name": None, "topic_id": world.topic_id(topic)}]
    answer = world.ask("metadata", version, topics=asked)
    assert [one.name for one in answer.topics] == [topic]


# -- groups


def member(wire_client: WireClient, group: str, member_id: str = "") -> tuple[int, int, int]:
    protocols = [{"name": "range", "metadata": b"subscription"}]
    timeouts = {"session_timeout": LONG_MS, "rebalance_timeout": LONG_MS}
    return wire_client.send(
        "join_group", 3, group_id=group, member_id=member_id, protocol_type="consumer", protocols=protocols, **timeouts
    )


def coordinator_of(world: World, group: str) -> int:
    def found() -> Any:
        answer = world.ask("find_coordinator", 3, key=group, key_type=0)
        if answer.error_code.value:
            return None
        with world.broker(answer.node_id) as wire_client:
            (described,) = wire_client.ask("describe_groups", 0, groups=[group]).groups
        return answer if not described.error_code.value else None

    node_id: int = world.eventually(found).node_id
    return node_id


def test_a_rebalance_shows_what_the_members_had_before(world: World) -> None:
    group = world.name("rebalancing")
    broker = coordinator_of(world, group)
    with world.broker(broker) as first, world.broker(broker) as second:
        joined = first.answer(member(first, group))
        share = [{"member_id": joined.member_id, "assignment": b"share"}]
        first.ask(
            "sync_group",
            1,
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=share,
        )
        member(second, group)

        def rebalancing() -> Any:
            with world.broker(broker) as third:
                (described,) = third.ask("describe_groups", 3, groups=[group]).groups
            return described if described.group_state == "PreparingRebalance" else None

        shown = {one.member_id: one for one in world.eventually(rebalancing).members}
        assert shown[joined.member_id].member_assignment == b"share"
        assert [one.member_metadata for one in shown.values()] == [b"", b""]


@pytest.mark.parametrize("version", [2, 5, 9])
def test_a_topic_without_partitions_is_answered_only_where_it_does_not_exist(
    world: World, topic: str, version: int
) -> None:
    group = world.name("committing")
    asked = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time": -1}
    names = (topic, "nowhere")
    with world.broker(coordinator_of(world, group)) as wire_client:
        committed = wire_client.ask(
            "offset_commit",
            version,
            group_id=group,
            topics=[{"name": name, "partitions": []} for name in names],
            **asked,
        )
        kept = [
            {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}
        ]
        wire_client.ask("offset_commit", version, group_id=group, topics=kept, **asked)
        deleted = wire_client.ask(
            "offset_delete", 0, group_id=group, topics=[{"name": name, "partitions": []} for name in names]
        )
    for answer in (committed, deleted):
        assert [(one.name, one.partitions) for one in answer.topics] == [("nowhere", ())]


def test_a_commit_that_is_refused_makes_no_group(world: World, topic: str) -> None:
    group = world.name("refused")
    broker = coordinator_of(world, group)
    too_large = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 5000}
    with world.broker(broker) as wire_client:
        asked = {
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": topic, "partitions": [too_large]}],
        }
        answer = wire_client.ask("offset_commit", 5, group_id=group, **asked)
        assert code(answer.topics[0].partitions[0]) == "offset_metadata_too_large"
        (described,) = wire_client.ask("describe_groups", 5, groups=[group]).groups
        assert described.group_state == "Dead"
