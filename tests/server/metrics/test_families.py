"""What a node shows to Prometheus, on whole nodes in memory."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from fuzz.brain import CONFIG, Brain, Wire
from node.test_amplification import WALL_MS, ask, produced, wait_for_coordinator
from server.metrics.scraped import Scrape, scrape, stored, watch

from heirlog.metadata.survey import AT_A_TIME
from heirlog.node.node import Node
from heirlog.pending import Pending
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    RemoveRaftVoterRequest,
)
from heirlog.server.metrics.exposition import SAMPLES_PER_PIECE, written
from heirlog.server.metrics.families import NodeFamilies
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import World

ABSENT = {
    "kafka_controller_controllereventmanager_": "there is no event queue: requests are handled as they are read",
    "kafka_controller_kafkacontroller_eventqueueoperations": "the same",
    "kafka_controller_kafkacontroller_ignoredstaticvoters": "static voters are not ignored here",
    "kafka_log_logcleaner": "the cleaner is no thread; what it does stands in the log",
    "kafka_log_logflushstats_": "flushes are not timed",
    "kafka_network_acceptor_": "one thread accepts, reads and answers",
    "kafka_network_processor_": "one thread: networkprocessoravgidlepercent is its",
    "kafka_network_requestchannel_responsequeuesize": "answers wait in their connections",
    "kafka_network_requestmetrics_messageconversionstimems": "no format is converted",
    "kafka_network_requestmetrics_requestbytes": "sizes of requests are not counted",
    "kafka_network_requestmetrics_temporarymemorybytes": "no memory pool",
    "kafka_network_socketserver_expiredconnectionskilledcount": "no SASL sessions",
    "kafka_network_socketserver_memorypool": "no memory pool",
    "kafka_server_addpartitionsmanager_channel_metrics_": "connections are not counted by channel",
    "kafka_server_app_info_": "process_start_time_seconds says it",
    "kafka_server_broker_metadata_metrics_ignored_static_voters": "static voters are not ignored here",
    "kafka_server_brokermetadatalistener_": "batches of metadata are not timed",
    "kafka_server_brokertopicmetrics_fetchmessageconversions": "no format is converted",
    "kafka_server_brokertopicmetrics_producemessageconversions": "no format is converted",
    "kafka_server_brokertopicmetrics_invalidmagicnumber": "counted as failed produce requests",
    "kafka_server_brokertopicmetrics_invalidoffsetorsequence": "counted as failed produce requests",
    "kafka_server_brokertopicmetrics_nokeycompacted": "counted as failed produce requests",
    "kafka_server_brokertopicmetrics_reassignmentbytes": "counted as replication bytes",
    "kafka_server_client_metrics_": "no client telemetry",
    "kafka_server_controllermutation_": "no quotas",
    "kafka_server_controllerserver_": "the process's values say it",
    "kafka_server_fetch_queue_size": "no quotas",
    "kafka_server_group_coordinator_metrics_batch": "batches do not wait for more",
    "kafka_server_group_coordinator_metrics_event": "no queue and no threads of its own",
    "kafka_server_group_coordinator_metrics_streams": "no streams groups",
    "kafka_server_group_coordinator_metrics_thread": "no queue and no threads of its own",
    "kafka_server_kafka_metrics_count": "the number of Java metric objects",
    "kafka_server_kafkarequesthandlerpool_": "one thread: networkprocessoravgidlepercent is its",
    "kafka_server_kafkaserver_linux_disk_": "the process's values say it",
    "kafka_server_kafkaserver_yammer": "the number of Java metric objects",
    "kafka_server_metadataloader_avgidleratio": "no thread of its own",
    "kafka_server_metadataloader_handleloadsnapshotcount": "snapshots stand in the log",
    "kafka_server_persister": "connections are not counted by channel",
    "kafka_server_produce_queue_size": "no quotas",
    "kafka_server_raft_channel_metrics_": "connections are not counted by channel",
    "kafka_server_raft_metrics_number_unknown_voter_connections": "not counted",
    "kafka_server_raft_metrics_poll_idle_ratio_avg": "no thread of its own",
    "kafka_server_replicaalterlogdirsmanager_": "replicas do not move between directories",
    "kafka_server_replicafetchermanager_deadthreadcount": "fetchers are no threads",
    "kafka_server_replicafetchermanager_minfetchrate": "a rate over replicationbytesin_total says it",
    "kafka_server_request_": "no quotas",
    "kafka_server_share_coordinator_metrics_batch": "batches do not wait for more",
    "kafka_server_share_coordinator_metrics_event": "no queue and no threads of its own",
    "kafka_server_share_coordinator_metrics_thread": "no queue and no threads of its own",
    "kafka_server_snapshotemitter_": "snapshots stand in the log",
    "kafka_server_socket_server_metrics_broker_connection_accept_rate": "no limit on accepting",
    "kafka_server_txn_marker_channel_metrics_": "connections are not counted by channel",
    "kafka_utils_throttler_": "no throttlers",
}
"""What Apache Kafka shows and heirlog does not, by the beginning of the name, and why."""
OURS = {
    "kafka_controller_global_under_min_isr_partition_count": "KIP-966",
    "kafka_controller_unclean_recovery_": "KIP-966",
    "kafka_controller_manual_leader_election_required_partition_count": "KIP-966",
    "kafka_replication_electable_replicas_count": "KIP-966",
    "kafka_network_requestmetrics_": "..._count, as exporters before 1.0 called it",
    "kafka_server_raft_metrics_current_state_info": "as exporters before 1.0 called it",
    "kafka_server_group_coordinator_metrics_consumer_group_count": "KIP-848; a bean that only some rules take",
    "kafka_server_group_coordinator_metrics_share_group_count": "KIP-932; a bean that only some rules take",
    "kafka_server_socket_server_metrics_connection_count": "a bean that only some rules take",
}


@pytest.fixture(scope="module")
def brain() -> Brain:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CONFIG, "heirlog.metrics.listener", "127.0.0.1:0")
        patch.setitem(CONFIG, "transaction.state.log.replication.factor", "1")
        patch.setitem(CONFIG, "transaction.state.log.min.isr", "1")
        brain = Brain()
    wait_for_coordinator(brain)
    assert produced(brain, "t", records(3)).error_code == 0
    fetch(brain)
    return brain


def records(count: int, size: int = 10) -> bytes:
    return bytes(encode_batch([(b"k", b"v" * size, (), WALL_MS) for _ in range(count)]))


def fetch(brain: Brain, topic: str = "t") -> Any:
    asked = FetchRequest.FetchTopic(
        topic=topic, partitions=[FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)]
    )
    return ask(brain, FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=[asked]), 12)


def create(brain: Brain, name: str, partitions: int = 1) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = ask(brain, CreateTopicsRequest(topics=[topic], timeout_ms=5000), 4)
    assert answer.topics[0].error_code == 0
    brain.cluster.run_until(lambda: bool(brain.node.broker.replicas.partitions_named(name)), 5000)


def test_every_name_that_kafka_shows_is_here_with_its_type_and_labels_or_is_known_to_be_absent(brain: Brain) -> None:
    found, kafka = scrape(brain.node), stored()
    absent = [name for name in kafka if name not in found.types]
    unexplained = [name for name in absent if not name.startswith(tuple(ABSENT))]
    assert not unexplained
    for name in kafka.keys() - set(absent):
        kind, labels = kafka[name]
        assert found.types[name] == kind, name
        assert found.labels[name] <= labels, name
    idle = [prefix for prefix in ABSENT if not any(name.startswith(prefix) for name in absent)]
    assert not idle, "these are not absent"


def test_what_kafka_does_not_show_is_known_too(brain: Brain) -> None:
    names = [name for name in scrape(brain.node).types if name.startswith("kafka_") and name not in stored()]
    assert names
    assert not [name for name in names if not name.startswith(tuple(OURS))]


def test_what_is_produced_and_fetched_counts_for_the_topic_and_in_all(brain: Brain) -> None:
    create(brain, "counted")
    before = scrape(brain.node)
    batch = records(7)
    assert produced(brain, "counted", batch).error_code == 0
    fetch(brain, "counted")
    after = scrape(brain.node)
    for name, value in (
        ("messagesin", 7),
        ("bytesin", len(batch)),
        ("bytesout", len(batch)),
        ("totalproducerequests", 1),
        ("totalfetchrequests", 1),
    ):
        family = f"kafka_server_brokertopicmetrics_{name}_total"
        assert after(family, topic="counted") == value
        assert after(family) - before(family) == value, name
    assert after("kafka_server_brokertopicmetrics_replicationbytesout_total") == 0


def test_an_open_transaction_shows_what_consumers_of_committed_records_miss(brain: Brain) -> None:
    create(brain, "open")
    brain.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 4)
    brain.world.run_for(2000)
    starting = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    assert ask(brain, starting, 5).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id is at hand yet"
    brain.world.run_for(1000)
    made = ask(brain, starting, 5)
    assert made.error_code == ErrorCode.NONE
    producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    batch = encode_batch([(b"k", b"v", (), WALL_MS)] * 3, base_sequence=0, transactional=True, **producer)
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name="open", partition_data=[data])]
    sent = ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1000, topic_data=topics)
    assert ask(brain, sent, 12).responses[0].partition_responses[0].error_code == 0
    place = {"topic": "open", "partition": "0"}
    found = scrape(brain.node)
    assert found("kafka_cluster_partition_laststableoffsetlag", **place) == 3
    asked = "kafka_server_addpartitionstotxnmanager_"
    assert found(asked + "verificationtimems_count_total") == 1
    assert found(asked + "verificationfailurerate_count_total") == 0
    assert ask(brain, EndTxnRequest(transactional_id="x", committed=True, **producer), 5).error_code == 0
    brain.world.run_for(1000)
    assert scrape(brain.node)("kafka_cluster_partition_laststableoffsetlag", **place) == 0


def test_refused_batches_count_by_their_reason(brain: Brain) -> None:
    before = scrape(brain.node)
    damaged = bytearray(records(1))
    damaged[-1] ^= 1
    assert produced(brain, "t", bytes(damaged)).error_code == 2
    assert produced(brain, "t", records(1, size=2_000_000)).error_code == 10
    assert produced(brain, "c", bytes(encode_batch([(None, b"v", (), WALL_MS)]))).error_code == 87
    assert produced(brain, "nowhere", records(1)).error_code == 3
    after = scrape(brain.node)

    def more(name: str) -> float:
        family = f"kafka_server_brokertopicmetrics_{name}_total"
        return after(family) - before(family)

    assert more("invalidmessagecrcrecords") == 1
    assert more("bytesrejected") > 2_000_000
    assert more("failedproducerequests") == 1, "only the record without a key: the others are in the course of things"
    assert more("totalproducerequests") == 3
    assert more("messagesin") == 0
    errors = after.of("kafka_network_requestmetrics_errors_total", "error")
    assert {"CORRUPT_MESSAGE", "MESSAGE_TOO_LARGE", "INVALID_RECORD", "UNKNOWN_TOPIC_OR_PARTITION"} <= errors.keys()


def test_a_deleted_topic_leaves_its_counts_in_the_sums(brain: Brain) -> None:
    create(brain, "passing")
    assert produced(brain, "passing", records(5)).error_code == 0
    before = scrape(brain.node)
    assert before("kafka_server_brokertopicmetrics_messagesin_total", topic="passing") == 5
    ask(brain, DeleteTopicsRequest(topic_names=["passing"], timeout_ms=5000), 5)
    brain.cluster.run_until(lambda: not brain.node.broker.replicas.partitions_named("passing"), 5000)
    after = scrape(brain.node)
    assert "passing" not in after.of("kafka_server_brokertopicmetrics_messagesin_total", "topic")
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    assert after(name) == before(name)


def test_requests_count_by_api_and_version_and_their_times_add_up(brain: Brain) -> None:
    fetch(brain)
    found = scrape(brain.node)
    prefix = "kafka_network_requestmetrics_"
    assert found(prefix + "requests_total", request="FetchConsumer", version="12") >= 1
    assert found(prefix + "totaltimems_count_total", request="Fetch") >= 1
    assert found(prefix + "totaltimems_count", request="Produce") == found(
        prefix + "localtimems_count_total", request="Produce"
    )
    quantiles = found.of(prefix + "totaltimems", "quantile")
    assert set(quantiles) == {"0.50", "0.75", "0.95", "0.98", "0.99", "0.999"}
    assert found(prefix + "errors_total", request="Produce", error="NONE") >= 1


def test_a_combined_node_is_broker_controller_and_quorum(brain: Brain) -> None:
    found = scrape(brain.node, {"PLAINTEXT": 3, "CONTROLLER": 2})
    assert found("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert found("kafka_server_raft_metrics_current_state", state="leader") == 1
    assert found("kafka_server_raft_metrics_current_leader") == brain.node.config.node_id
    assert found("kafka_server_kafkaserver_brokerstate") == 3
    assert found("kafka_controller_kafkacontroller_activebrokercount") == 1
    assert found("kafka_controller_kafkacontroller_brokerregistrationstate", broker="1") == 30
    topics = brain.node.image.topics
    assert found("kafka_controller_kafkacontroller_globaltopiccount") == len(topics)
    partitions = sum(map(len, brain.node.image.partitions.values()))
    assert found("kafka_controller_kafkacontroller_globalpartitioncount") == partitions
    assert found("kafka_server_replicamanager_leadercount") == partitions
    assert len(found.of("kafka_log_log_size", "partition")) <= partitions
    assert (
        found("kafka_server_socket_server_metrics_connection_count", listener="CONTROLLER", networkProcessor="0") == 2
    )
    assert found("process_resident_memory_bytes") > 10_000_000
    assert found("process_open_fds") >= 3
    assert 0 <= found("kafka_network_socketserver_networkprocessoravgidlepercent") <= 1


def test_a_wait_stands_in_its_purgatory_until_it_ends(brain: Brain) -> None:
    name = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
    connection = brain.connect()
    topic = FetchRequest.FetchTopic(
        topic="l",
        partitions=[FetchRequest.FetchPartition(partition=index, partition_max_bytes=1000) for index in (0, 1)],
    )
    brain.receive_request(connection, FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[topic]), 12)
    found = scrape(brain.node)
    assert found(name, delayedOperation="Fetch") == 1
    assert found("kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch") == 2
    brain.hang_up(connection)
    found = scrape(brain.node)
    assert found(name, delayedOperation="Fetch") == 0
    assert found("kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch") == 0


def test_names_of_topics_are_escaped_and_the_text_is_read_back_as_it_was_meant(brain: Brain) -> None:
    create(brain, "a.b-c_d")
    assert produced(brain, "a.b-c_d", records(1)).error_code == 0
    assert scrape(brain.node)("kafka_server_brokertopicmetrics_messagesin_total", topic="a.b-c_d") == 1


def test_many_partitions_are_written_in_pieces_under_one_heading(brain: Brain) -> None:
    create(brain, "many", 300)
    families = NodeFamilies(brain.node, dict)
    pieces = list(written(families.all()))
    assert max(piece.count(b"\n") for piece in pieces) <= SAMPLES_PER_PIECE + 2
    text = b"".join(pieces).decode()
    assert text.count("# TYPE kafka_log_log_size ") == 1
    assert text.count("\nkafka_log_log_size{") > 300
    assert pieces.count(b"") > 300 // AT_A_TIME, "counting pauses as well"
    ask(brain, DeleteTopicsRequest(topic_names=["many"], timeout_ms=5000), 5)


# three brokers and a controller


@pytest.fixture(scope="module")
def three() -> SimCluster:
    return started()


def started(**more: str) -> SimCluster:
    """With a topic of three partitions, each led by another broker."""
    config = {
        "heirlog.metrics.listener": "127.0.0.1:0",
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        "auto.leader.rebalance.enable": "false",
        "replica.lag.time.max.ms": "2000",
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "300",
        **more,
    }
    cluster = SimCluster(World(11), brokers=3, config=config)
    cluster.format()
    cluster.start_all()
    assert cluster.run_until(lambda: _active_brokers(cluster) == 3, 30_000)
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=3, replication_factor=3)
    said(cluster, _running(cluster)[0], CreateTopicsRequest(topics=[topic], timeout_ms=5000), 4)
    assert cluster.run_until(lambda: all(_leads(cluster, broker) for broker in (1, 2, 3)), 30_000)
    return cluster


def test_the_roles_of_a_quorum_and_the_time_of_its_election_are_shown() -> None:
    cluster = SimCluster(World(12), brokers=1, controllers=3, config={"heirlog.metrics.listener": "127.0.0.1:0"})
    cluster.format()
    cluster.start_all()
    assert cluster.run_until(lambda: _active_brokers(cluster) == 1, 30_000)
    assert _roles(cluster) == {"leader": 1, "follower": 2}
    assert scrape(_node(cluster, 1))("kafka_server_raft_metrics_current_state", state="observer") == 1
    killed = cluster.controller
    cluster.kill(killed.name)
    assert cluster.run_until(lambda: cluster.controller is not killed and _active_brokers(cluster) == 1, 30_000)
    assert cluster.run_until(lambda: _roles(cluster) == {"leader": 1, "follower": 1}, 30_000)
    found = scrape(_controller(cluster))
    assert found("kafka_server_raft_metrics_current_vote") == _controller(cluster).config.node_id
    took_ms = found("kafka_server_raft_metrics_election_latency_max")
    assert 0 < took_ms < 2000
    assert found("kafka_server_raft_metrics_election_latency_avg") <= took_ms


def test_a_change_of_the_voters_is_shown_until_it_is_committed() -> None:
    cluster = SimCluster(World(13), brokers=1, controllers=3, config={"heirlog.metrics.listener": "127.0.0.1:0"})
    cluster.format()
    cluster.start_all()
    assert cluster.run_until(lambda: _active_brokers(cluster) == 1, 30_000)
    leader = _controller(cluster)
    name = "kafka_server_raft_metrics_uncommitted_voter_change"
    assert scrape(leader)(name) == 0
    removed = next(voter for voter in leader.quorum.voters if voter.id != leader.config.node_id)
    request = RemoveRaftVoterRequest(voter_id=removed.id, voter_directory_id=removed.directory_id)
    assert isinstance(leader.quorum.remove_raft_voter(request), Pending)
    assert scrape(leader)(name) == 1
    assert cluster.run_until(lambda: scrape(leader)(name) == 0, 5_000)
    assert _controller(cluster) is leader and len(leader.quorum.voters) == 2


def _roles(cluster: SimCluster) -> Counter[str]:
    nodes = [node for name in cluster.controller_names if (node := cluster.machine(name).running) is not None]
    return Counter(next(iter(scrape(node).of("kafka_server_raft_metrics_current_state", "state"))) for node in nodes)


def _running(cluster: SimCluster) -> list[Node]:
    return [node for broker in (1, 2, 3) if (node := cluster.broker(broker).running) is not None]


def _node(cluster: SimCluster, broker: int) -> Node:
    node = cluster.broker(broker).running
    assert node is not None
    return node


def _controller(cluster: SimCluster) -> Node:
    node = cluster.controller.running
    assert node is not None
    return node


def _active_brokers(cluster: SimCluster) -> int:
    node = cluster.controller.running
    return sum(not broker.fenced for broker in node.image.brokers.values()) if node is not None else 0


def _leads(cluster: SimCluster, broker: int) -> int:
    return _node(cluster, broker).broker.metrics().leader_count


def said(cluster: SimCluster, node: Node, request: Any, version: int) -> None:
    """One request, answered or not after a while."""
    wire = Wire("PLAINTEXT")
    client = node.connected(wire)
    client.received(RequestHeader(request.API_KEY, version, 1, "test"), request)
    cluster.run_for(500)
    client.closed()


def sums(cluster: SimCluster, name: str) -> float:
    return sum(scrape(node)(f"kafka_server_replicamanager_{name}") for node in _running(cluster))


def test_copies_between_brokers_count_as_replication_and_a_lost_broker_shows_everywhere(three: SimCluster) -> None:
    leader = next(
        node
        for broker in (1, 2, 3)
        if (node := _node(three, broker)).image.partition_named("t", 0).leader == broker  # type: ignore[union-attr]
    )
    batch = records(4)
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[data])]
    said(three, leader, ProduceRequest(acks=-1, timeout_ms=3000, topic_data=topics), 12)
    copied = [scrape(_node(three, b))("kafka_server_brokertopicmetrics_replicationbytesin_total") for b in (1, 2, 3)]
    assert sorted(copied) == [0, len(batch), len(batch)]
    found = scrape(leader)
    assert found("kafka_server_brokertopicmetrics_replicationbytesout_total") == 2 * len(batch)
    assert found("kafka_server_brokertopicmetrics_bytesout_total") == 0
    assert found("kafka_network_requestmetrics_totaltimems", request="Produce", quantile="0.50") > 0
    assert found("kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 0
    assert sums(three, "underreplicatedpartitions") == 0
    assert sums(three, "leadercount") == 3

    watched = watch(_controller(three))
    before: Scrape = watched()
    assert 0 < before("kafka_server_raft_metrics_commit_latency_max") < 1000
    assert before("kafka_server_raft_metrics_append_records_rate") == 0, "the first reading"
    assert before("kafka_controller_global_under_min_isr_partition_count") == 0
    assert before("kafka_replication_electable_replicas_count") == 9
    assert before("kafka_server_raft_metrics_number_of_observers") == 3
    for broker in (2, 3):
        three.kill(f"broker-{broker}")
        assert three.run_until(lambda expected=4 - broker: _active_brokers(three) == expected, 30_000)  # type: ignore[misc]
        three.run_for(1000)
    after: Scrape = watched()
    assert after("kafka_server_raft_metrics_append_records_rate") > 0
    assert after("kafka_server_raft_metrics_fetch_records_rate") == 0
    assert after("kafka_controller_kafkacontroller_fencedbrokercount") == 2
    assert after("kafka_controller_kafkacontroller_brokerregistrationstate", broker="2") == 10
    assert after("kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert after("kafka_controller_kafkacontroller_preferredreplicaimbalancecount") == 2
    assert after("kafka_controller_global_under_min_isr_partition_count") == 3
    assert after("kafka_replication_electable_replicas_count") == 6, "one in sync, one eligible each"
    assert sums(three, "underminisrpartitioncount") == 3
    assert sums(three, "underreplicatedpartitions") == 3
    elections = after.of("heirlog_controller_elections_total", "basis")
    assert elections["isr"] >= 2 and elections["unclean"] == 0


def test_an_election_from_the_elr_is_never_counted_as_unclean(three: SimCluster) -> None:
    """Broker 1, the last in every ISR, stops cleanly and comes back: it was in the ELR meanwhile."""
    three.stop("broker-1")
    assert three.run_until(lambda: three.broker(1).running is None and _active_brokers(three) == 0, 60_000)
    watched = watch(_controller(three))
    assert watched()("kafka_controller_kafkacontroller_offlinepartitionscount") == 3
    three.start("broker-1")
    assert three.run_until(lambda: three.broker(1).running is not None and _leads(three, 1) == 3, 60_000)
    found: Scrape = watched()
    assert found("kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total") == 3
    assert found("heirlog_controller_elections_total", basis="elr") == 3
    assert found("kafka_controller_controllerstats_uncleanleaderelections_total") == 0
    assert found("kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert found("kafka_controller_unclean_recovery_partitions_count") == 0
    assert found("kafka_controller_unclean_recovery_finished_count") == 0
    assert found("kafka_controller_manual_leader_election_required_partition_count") == 0


def test_recoveries_show_until_they_end() -> None:
    """The last two lose their processes, and leave ISR and ELR; the first one back has to wait for the other."""
    cluster = started(**{"unclean.recovery.timeout.ms": "5000"})
    watched = watch(_controller(cluster))

    def becomes(name: str, value: float) -> bool:
        for _ in range(60):
            if watched()(name) == value:
                return True
            cluster.run_for(500)
        return False

    prefix = "kafka_controller_"
    offline, fenced = (f"{prefix}kafkacontroller_{name}" for name in ("offlinepartitionscount", "fencedbrokercount"))
    waiting, finished = (f"{prefix}unclean_recovery_{name}_count" for name in ("partitions", "finished"))
    for gone, broker in enumerate((2, 3, 1), 1):
        cluster.kill(f"broker-{broker}")
        assert becomes(fenced, gone)
    assert becomes(offline, 3)
    cluster.start("broker-3")
    assert becomes(fenced, 2)
    assert watched()(waiting) == 0, "broker 1 is eligible still, and waited for"
    cluster.kill("broker-3")
    assert becomes(fenced, 3)
    cluster.start("broker-1")
    assert becomes(waiting, 3)
    assert watched()(finished) == 0
    cluster.start("broker-3")
    assert becomes(finished, 3)
    found: Scrape = watched()
    assert found(waiting) == found(offline) == 0
    assert found("heirlog_controller_elections_total", basis="recovered") == 3
    assert found("kafka_controller_controllerstats_uncleanleaderelections_total") == 0, "logs were compared"
    assert sum(found("heirlog_controller_lossy_elections_total", loss=loss) for loss in ("none", "possible")) == 3
    assert found("heirlog_controller_lossy_elections_total", loss="certain") == 0
    assert found("kafka_controller_manual_leader_election_required_partition_count") == 0


def test_readings_that_last_over_deaths_and_deleted_topics_fail_nowhere_and_sums_never_go_back() -> None:
    chance = random.Random(5)
    cluster = started()
    names = [machine.name for machine in cluster.all_machines]
    readings: dict[int, Any] = {}
    seen: dict[tuple[int, Any], float] = {}
    nodes: list[Node] = []
    whole = 0
    for step in range(40):
        cluster.run_for(chance.choice((1, 50, 300)))
        for node in [node for name in names if (node := cluster.machine(name).running) is not None]:
            nodes.append(node)  # so that no other gets its id
            reading = readings.setdefault(id(node), watch_pieces(node))
            for _ in range(chance.choice((1, 10, 100))):
                if next(reading, None) is None:
                    whole += 1
                    readings[id(node)] = watch_pieces(node)
                    break
            if step % 13 == 0:
                for (name, labels), value in scrape(node).values.items():
                    if name.endswith("_total") and "topic" not in dict(labels) and name.startswith("kafka"):
                        assert value >= seen.get((id(node), (name, labels)), 0), name
                        seen[(id(node), (name, labels))] = value
        broker = chance.choice(("broker-1", "broker-2", "broker-3"))
        if not cluster.is_up(broker):
            cluster.start(broker)
        elif chance.random() < 0.2:
            chance.choice((cluster.kill, cluster.stop))(broker)
        elif running := _running(cluster):
            said(cluster, running[0], chance.choice((MAKE, DROP)), 5)
    assert whole > 10


def watch_pieces(node: Node) -> Any:
    return written(NodeFamilies(node, dict).all())


MAKE = CreateTopicsRequest(
    topics=[CreateTopicsRequest.CreatableTopic(name="u", num_partitions=2, replication_factor=1)], timeout_ms=5000
)
DROP = DeleteTopicsRequest(topic_names=["u"], timeout_ms=5000)
