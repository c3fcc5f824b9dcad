"""The controller's listener, met by a stranger that plays a broker: life cycle, ISR changes, envelopes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from clients.wire_client import API_KEYS, WireClient, request_bytes
from clients.world import World
from kio.index import load_response_schema
from kio.serial import entity_reader

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import decode_response
from heirlog.testing.cluster import Cluster

METADATA = "__cluster_metadata"
METADATA_ID = uuid.UUID(int=1)
FEATURES = {
    "metadata.version": (7, 29),
    "eligible.leader.replicas.version": (0, 1),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "share.version": (0, 1),
}
STRANGER = 50
SESSION_MS = 10 * 60_000


@pytest.fixture(scope="module")
def one() -> Iterator[World]:
    """A cluster of its own: the broker that a stranger plays stays registered, and sends no second heartbeat."""
    with Cluster(nodes=1, config={"broker.session.timeout.ms": SESSION_MS}) as cluster:
        yield World(cluster)


@pytest.fixture(scope="module")
def cluster_id(one: World) -> str:
    found: str = one.ask("describe_cluster", 0).cluster_id
    return found


@pytest.fixture
def controller(one: World) -> Iterator[WireClient]:
    with one.controller() as wire_client:
        yield wire_client


def registration(own_cluster_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "broker_id": STRANGER,
        "cluster_id": own_cluster_id,
        "incarnation_id": uuid.uuid4(),
        "listeners": [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "security_protocol": 0}],
        "features": [
            {"name": name, "min_supported_version": low, "max_supported_version": high}
            for name, (low, high) in FEATURES.items()
        ],
        "log_dirs": [uuid.uuid4()],
        "previous_broker_epoch": -1,
        **changes,
    }


def register(wire_client: WireClient, version: int, **values: Any) -> Any:
    """kio refuses tagged fields that it does not know, where Kafka's readers skip them."""
    _, _, correlation_id = wire_client.send("broker_registration", version, **values)
    found, answer = decode_response(API_KEYS["broker_registration"], version, wire_client.receive())
    assert found == correlation_id
    return answer


class PlayedBroker:
    """A registered broker, unfenced as long as its connection is there."""

    def __init__(self, wire_client: WireClient, cluster_id: str, broker_id: int) -> None:
        self.wire_client = wire_client
        self.id = broker_id
        answer = register(wire_client, 4, **registration(cluster_id, broker_id=broker_id))
        assert answer.error_code == 0, answer
        self.epoch: int = answer.broker_epoch
        beat = self.heartbeat()
        assert (beat.error_code.value, beat.is_caught_up, beat.is_fenced) == (0, True, False)

    def heartbeat(self, **changes: Any) -> Any:
        values = {"broker_id": self.id, "broker_epoch": self.epoch, "current_metadata_offset": 2**40, **changes}
        return self.wire_client.ask("broker_heartbeat", 1, **values)

    def alter_partition(self, topic: uuid.UUID, version: int = 3, broker_epoch: int | None = None, **asked: Any) -> Any:
        """The partition's answer; `isr` is [(broker, epoch)]."""
        isr = asked.pop("isr", [(self.id, self.epoch)])
        partition = {
            "new_isr": [broker for broker, _ in isr],
            "new_isr_with_epochs": [{"broker_id": broker, "broker_epoch": epoch} for broker, epoch in isr],
            **asked,
        }
        _, _, correlation_id = self.wire_client.send(
            "alter_partition",
            version,
            broker_id=self.id,
            broker_epoch=self.epoch if broker_epoch is None else broker_epoch,
            topics=[{"topic_id": topic, "partitions": [partition]}],
        )
        # kio refuses tagged fields that it does not know, where Kafka's readers skip them
        found, answer = decode_response(API_KEYS["alter_partition"], version, self.wire_client.receive())
        assert found == correlation_id
        return answer.topics[0].partitions[0] if answer.topics else answer


@pytest.fixture
def played(controller: WireClient, cluster_id: str, one: World) -> PlayedBroker:
    return PlayedBroker(controller, cluster_id, 1000 + int(one.name("b").rpartition("-")[2]))


# -- BrokerRegistration, BrokerHeartbeat -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
def test_refused_registrations(controller: WireClient, cluster_id: str, version: int) -> None:
    def code(**changes: Any) -> str:
        answer = controller.ask("broker_registration", version, **registration(cluster_id, **changes))
        assert answer.broker_epoch == -1
        name: str = answer.error_code.name
        return name

    assert code(cluster_id="another") == "inconsistent_cluster_id"
    assert code(broker_id=1) == "duplicate_broker_registration", "broker 1 is alive"
    if version >= 1:
        assert code(is_migrating_zk_broker=True) == "broker_id_not_registered"
    assert code(features=[]) == "invalid_registration"
    if version >= 2:
        narrow = [{"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 7}]
        assert code(features=narrow) == "unsupported_version"
        directory = uuid.uuid4()
        assert code(log_dirs=[directory, directory]) == "invalid_registration"
        assert code(log_dirs=[]) == "invalid_registration"
        assert code(log_dirs=[uuid.UUID(int=1)]) == "invalid_registration", "reserved"
    else:
        assert code() == "invalid_registration", "this metadata.version needs log directories, which come with v2"


@pytest.mark.parametrize("version", range(2))
def test_refused_heartbeats(controller: WireClient, version: int) -> None:
    unknown = controller.ask("broker_heartbeat", version, broker_id=4711, broker_epoch=1)
    assert unknown.error_code.name == "broker_id_not_registered"
    stale = controller.ask("broker_heartbeat", version, broker_id=1, broker_epoch=0)
    assert stale.error_code.name == "stale_broker_epoch"
    assert (stale.is_fenced, stale.is_caught_up, stale.should_shut_down) == (True, False, False)


def test_a_broker_registers_is_unfenced_and_leaves(one: World, controller: WireClient, cluster_id: str) -> None:
    asked = registration(cluster_id, broker_id=STRANGER)
    first = register(controller, 4, **asked)
    assert first.error_code == 0
    assert register(controller, 4, **asked).broker_epoch == first.broker_epoch, "same incarnation"
    alive = {"broker_id": STRANGER, "broker_epoch": first.broker_epoch}
    waiting = controller.ask("broker_heartbeat", 1, **alive, current_metadata_offset=0)
    assert (waiting.is_caught_up, waiting.is_fenced) == (False, True)
    wants_fence = controller.ask("broker_heartbeat", 1, **alive, current_metadata_offset=2**40, want_fence=True)
    assert (wants_fence.is_caught_up, wants_fence.is_fenced) == (True, True)
    assert brokers(one) == [1]
    ready = controller.ask("broker_heartbeat", 1, **alive, current_metadata_offset=2**40)
    assert (ready.is_caught_up, ready.is_fenced) == (True, False)
    one.eventually(lambda: brokers(one) == [1, STRANGER])
    other = controller.ask("broker_registration", 4, **registration(cluster_id, broker_id=STRANGER))
    assert other.error_code.name == "duplicate_broker_registration"
    leaving = controller.ask("broker_heartbeat", 1, **alive, current_metadata_offset=2**40, want_shut_down=True)
    assert (leaving.is_fenced, leaving.should_shut_down) == (True, True)
    one.eventually(lambda: brokers(one) == [1])
    fenced = one.ask("describe_cluster", 2, endpoint_type=1, include_fenced_brokers=True).brokers
    assert {broker.broker_id: broker.is_fenced for broker in fenced}[STRANGER]


def brokers(one: World) -> list[int]:
    return [broker.node_id for broker in one.ask("metadata", 12, topics=[]).brokers]


def test_a_broker_whose_connection_closes_is_fenced_soon(one: World, cluster_id: str) -> None:
    with one.controller() as wire_client:
        gone = PlayedBroker(wire_client, cluster_id, 2000)
        one.eventually(lambda: gone.id in brokers(one))
    one.eventually(lambda: gone.id not in brokers(one))


# -- AlterPartition --------------------------------------------------------------------------------------------------


def led_by(one: World, played: PlayedBroker) -> uuid.UUID:
    """A topic that the played broker leads, with broker 1 behind it."""
    return one.topic_id(topic_on(one, [played.id, 1]))


def topic_on(one: World, replicas: list[int]) -> str:
    name = one.name()
    asked = {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": replicas}],
    }
    assert one.ask("create_topics", 7, topics=[asked], timeout=5000).topics[0].error_code.value == 0
    one.eventually(lambda: one.metadata(name).error_code.value == 0)
    return name


@pytest.mark.parametrize("version", [2, 3])
def test_alter_partition_is_refused_in_kafkas_order(one: World, played: PlayedBroker, version: int) -> None:
    topic = led_by(one, played)

    def code(topic_id: uuid.UUID = topic, **asked: Any) -> str:
        return ErrorCode(played.alter_partition(topic_id, version, **asked).error_code).name.lower()

    assert code(broker_epoch=played.epoch - 1) == "stale_broker_epoch"
    assert code(uuid.uuid4()) == "unknown_topic_id"
    assert code(partition_index=9) == "unknown_topic_or_partition"
    assert code(leader_epoch=1) == "not_controller", "it has seen records that the controller has not"
    assert code(partition_epoch=1) == "not_controller"
    assert code(leader_epoch=-1) == "fenced_leader_epoch"
    others = one.topic_id(topic_on(one, [1, played.id]))
    assert code(others) == "invalid_request", "it does not lead"
    assert code(partition_epoch=-1) == "invalid_update_version"
    assert code(isr=[]) == "invalid_request"
    assert code(isr=[(1, -1)]) == "invalid_request", "without the leader"
    assert code(isr=[(played.id, -1), (played.id, -1)]) == "invalid_request"
    assert code(isr=[(played.id, -1), (77, -1)]) == "invalid_request", "not a replica"
    assert code(leader_recovery_state=1) == "invalid_request", "it has recovered"
    if version >= 3:
        assert code(isr=[(played.id, played.epoch), (1, 0)]) == "ineligible_replica", "broker 1's earlier life"


def test_a_broker_reports_where_its_replicas_lie(one: World, controller: WireClient, cluster_id: str) -> None:
    directories = [uuid.uuid4(), uuid.uuid4()]
    values = registration(cluster_id, broker_id=4000, log_dirs=directories)
    epoch = register(controller, 4, **values).broker_epoch
    beat = {"broker_id": 4000, "broker_epoch": epoch, "current_metadata_offset": 2**40}
    assert not controller.ask("broker_heartbeat", 1, **beat).is_fenced
    name = topic_on(one, [4000, 1])
    topic = one.topic_id(name)

    def report(directory: uuid.UUID, broker_epoch: int = epoch, broker: int = 4000) -> Any:
        asked = [
            {"topic_id": topic, "partitions": [{"partition_index": 0}, {"partition_index": 9}]},
            {"topic_id": uuid.UUID(int=77), "partitions": [{"partition_index": 0}]},
        ]
        return controller.ask(
            "assign_replicas_to_dirs",
            0,
            broker_id=broker,
            broker_epoch=broker_epoch,
            directories=[{"id_": directory, "topics": asked}],
        )

    assert report(directories[0], epoch + 1).error_code.name == "stale_broker_epoch"
    assert report(directories[0], broker=1999).error_code.name == "stale_broker_epoch"
    (received,) = report(directories[1]).directories
    assert received.id_ == directories[1]
    codes = [each.error_code.name for found in received.topics for each in found.partitions]
    assert codes == ["none", "unknown_topic_or_partition", "unknown_topic_id"]
    # with that directory goes what was reported there, and nothing else
    one.eventually(lambda: set(one.metadata(name).partitions[0].isr_nodes) == {1, 4000})
    controller.ask("broker_heartbeat", 1, **beat, offline_log_dirs=[directories[0]])
    controller.ask("broker_heartbeat", 1, **beat, offline_log_dirs=directories[:1])
    assert set(one.metadata(name).partitions[0].isr_nodes) == {1, 4000}
    assert report(directories[0]).error_code.value == 0
    one.eventually(lambda: set(one.metadata(name).partitions[0].isr_nodes) == {1})


@pytest.mark.parametrize("forwarded", [True, False])
def test_a_broker_is_unregistered(one: World, cluster_id: str, forwarded: bool) -> None:
    ask = one.ask if forwarded else one.ask_controller
    with one.controller() as wire_client:
        gone = PlayedBroker(wire_client, cluster_id, 3000 + forwarded)
        topic = topic_on(one, [gone.id, 1])
        assert ask("unregister_broker", 0, broker_id=gone.id).error_code.value == 0
        assert gone.heartbeat().error_code.name == "broker_id_not_registered"
    refused = ask("unregister_broker", 0, broker_id=gone.id)
    assert refused.error_code.name == "broker_id_not_registered" and str(gone.id) in refused.error_message
    one.eventually(lambda: one.leader(topic) == 1)
    known = {broker.broker_id for broker in one.ask("describe_cluster", 2, include_fenced_brokers=True).brokers}
    assert gone.id not in known


@pytest.mark.parametrize("forwarded", [True, False])
@pytest.mark.parametrize("version", range(3))
def test_levels_of_features_are_changed(one: World, version: int, forwarded: bool) -> None:
    ask = one.ask if forwarded else one.ask_controller
    elr = "eligible.leader.replicas.version"

    def update(feature: str, level: int, kind: int = 1, **top: Any) -> str:
        asked = {"feature": feature, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": kind > 1}
        got = ask("update_features", version, feature_updates=[asked], timeout=5000, **top)
        if version < 2:
            done = [] if got.error_code.value else [(feature, got.error_code)]
            assert [(each.feature, each.error_code) for each in got.results] == done
        assert bool(got.error_message) or got.error_code.value == 0
        name: str = got.error_code.name
        return name

    def level() -> int:
        answer = one.ask("api_versions", 3, client_software_name="s", client_software_version="1")
        return {found.name: found.max_version_level for found in answer.finalized_features}.get(elr, 0)

    assert update("no.such.feature", 1) == "invalid_update_version"
    assert update(elr, 7) == "invalid_update_version"
    assert update(elr, 0, kind=1) == "invalid_update_version", "that is no upgrade"
    if version:
        assert update(elr, 0, kind=2, validate_only=True) == "none" and level() == 1
        assert update(elr, 0, kind=9) == "invalid_update_version"
    assert update(elr, 0, kind=2) == "none"
    one.eventually(lambda: level() == 0)
    assert update(elr, 1) == "none"
    one.eventually(lambda: level() == 1)


@pytest.mark.parametrize("version", [2, 3])
def test_an_isr_shrinks_and_grows(one: World, played: PlayedBroker, version: int) -> None:
    topic = led_by(one, played)
    alone = played.alter_partition(topic, version, isr=[(played.id, played.epoch)])
    assert (alone.error_code, alone.isr, alone.leader_id, alone.leader_epoch) == (0, [played.id], played.id, 0)
    assert (alone.partition_epoch, alone.committed_offset > 0) == (1, True)
    old = played.alter_partition(topic, version, isr=[(played.id, -1), (1, -1)])
    assert old.error_code == ErrorCode.INVALID_UPDATE_VERSION
    both = played.alter_partition(topic, version, isr=[(played.id, -1), (1, -1)], partition_epoch=1)
    assert (both.error_code, set(both.isr), both.partition_epoch) == (0, {played.id, 1}, 2)


# -- the quorum ------------------------------------------------------------------------------------------------------


def fetched(controller: WireClient, version: int, **changes: Any) -> Any:
    top = {name: changes.pop(name) for name in ("cluster_id", "max_wait", "replica_state") if name in changes}
    partition = {"partition_max_bytes": 100_000, "current_leader_epoch": 1, "last_fetched_epoch": 0, **changes}
    topics = [{"topic": METADATA, "topic_id": METADATA_ID, "partitions": [partition]}]
    return controller.ask("fetch", version, max_bytes=100_000, topics=topics, **top)


@pytest.mark.parametrize("version", [12, 17, 18])
def test_the_metadata_log_can_be_fetched(controller: WireClient, cluster_id: str, version: int) -> None:
    answer = fetched(controller, version, cluster_id=cluster_id)
    partition = answer.responses[0].partitions[0]
    assert (answer.error_code.value, partition.error_code.value) == (0, 0)
    assert partition.records or partition.snapshot_id.end_offset >= 0
    assert partition.current_leader.leader_id == 100
    foreign = fetched(controller, version, cluster_id="another")
    assert foreign.error_code.name == "inconsistent_cluster_id"
    fenced = fetched(controller, version, current_leader_epoch=0)
    assert fenced.responses[0].partitions[0].error_code.name == "fenced_leader_epoch"
    unknown = fetched(controller, version, current_leader_epoch=9)
    assert unknown.responses[0].partitions[0].error_code.name == "unknown_leader_epoch"
    diverging = fetched(controller, version, fetch_offset=2**40, last_fetched_epoch=1)
    assert diverging.responses[0].partitions[0].diverging_epoch.epoch == 1


@pytest.mark.parametrize("version", range(3))
def test_describe_quorum(controller: WireClient, version: int) -> None:
    asked = [{"topic_name": METADATA, "partitions": [{"partition_index": 0}]}]
    answer = controller.ask("describe_quorum", version, topics=asked)
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code.value, partition.leader_id, partition.leader_epoch) == (0, 100, 1)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset >= partition.high_watermark > 0) == (100, True)
    assert 1 in {observer.replica_id for observer in partition.observers}
    if version >= 2:
        assert [node.node_id for node in answer.nodes] == [100]
    other = controller.ask("describe_quorum", version, topics=[asked[0] | {"topic_name": "t"}])
    assert other.error_code.name == "none"
    assert other.topics[0].partitions[0].error_code.name == "unknown_topic_or_partition"


@pytest.mark.parametrize("version", range(3))
def test_a_broker_asks_the_controller_about_the_quorum(world: World, version: int) -> None:
    asked = [{"topic_name": METADATA, "partitions": [{"partition_index": 0}]}]
    (partition,) = world.ask("describe_quorum", version, topics=asked).topics[0].partitions
    assert (partition.error_code.value, partition.leader_id) == (0, 100)


@pytest.mark.parametrize("version", [0, 1])
def test_snapshots_that_are_not_there(controller: WireClient, version: int) -> None:
    partition = {"partition": 0, "current_leader_epoch": 1, "snapshot_id": {"end_offset": 12345, "epoch": 1}}
    topics = [{"name": METADATA, "partitions": [partition]}]
    answer = controller.ask("fetch_snapshot", version, max_bytes=1000, topics=topics)
    assert answer.topics[0].partitions[0].error_code.name == "snapshot_not_found"


def test_producer_ids_are_given_in_blocks(played: PlayedBroker) -> None:
    def ask(epoch: int) -> Any:
        return played.wire_client.ask("allocate_producer_ids", 0, broker_id=played.id, broker_epoch=epoch)

    first, second = ask(played.epoch), ask(played.epoch)
    assert (first.producer_id_len, second.producer_id_start) == (1000, first.producer_id_start + 1000)
    assert ask(played.epoch - 1).error_code.name == "stale_broker_epoch"


# -- Envelope --------------------------------------------------------------------------------------------------------


ANONYMOUS = b"\x00\x00" + b"\x05User" + b"\x0aANONYMOUS" + b"\x00\x00"
"""User:ANONYMOUS as brokers write it down: version, type, name, no token, no tags."""


def sent(controller: WireClient, inner: bytes, principal: bytes | None = ANONYMOUS) -> Any:
    return controller.ask(
        "envelope", 0, request_data=inner, request_principal=principal, client_host_address=b"\x7f\x00\x00\x01"
    )


def test_an_enveloped_request_is_answered_in_its_own_version(one: World, controller: WireClient) -> None:
    for version in range(2, 8):
        topic = {"name": one.name(), "num_partitions": 1, "replication_factor": 1}
        answer = sent(controller, request_bytes("create_topics", version, 40 + version, topics=[topic], timeout=1000))
        assert answer.error_code.value == 0
        message = load_response_schema(API_KEYS["create_topics"], version)
        header, at = entity_reader(message.__header_schema__)(answer.response_data, 0)
        created, size = entity_reader(message)(answer.response_data, at)
        assert (header.correlation_id, at + size) == (40 + version, len(answer.response_data))
        assert created.topics[0].error_code.value == 0


def test_what_may_not_travel_in_an_envelope(controller: WireClient) -> None:
    elect = request_bytes("elect_leaders", 2, 1, topic_partitions=[], timeout=1)
    enveloped = request_bytes("envelope", 0, 1, request_data=elect, client_host_address=b"")
    for inner in (
        enveloped,
        request_bytes("metadata", 12, 1, topics=[]),
        request_bytes("broker_heartbeat", 1, 1, broker_id=1, broker_epoch=1),
        b"",
        b"\x00",
        bytes(range(100)),
    ):
        assert sent(controller, inner).error_code.name == "invalid_request"
    assert sent(controller, elect, None).error_code.value == 0, "it is the sender's own"
    for nobody in (b"", b"\x00\x01" + ANONYMOUS[2:], ANONYMOUS[:-3]):
        assert sent(controller, elect, nobody).error_code.name == "principal_deserialization_failure"
    for unreadable in (elect[:2] + b"\x00\x09" + elect[4:], elect[:-2]):
        assert sent(controller, unreadable).error_code.name == "unsupported_version"
