"""What a broker has and does: ReplicaManager, BrokerTopicMetrics, purgatories, logs, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from heirlog.broker.broker import Broker
from heirlog.broker.broker_topic_metrics import BrokerTopicMetrics
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.metadata.survey import in_groups
from heirlog.node.node import Node
from heirlog.protocol.api import ApiKey
from heirlog.server.metrics import shares
from heirlog.server.metrics.family import NO_LABELS, Family, Sample, counter, counters, gauge, gauges
from heirlog.server.metrics.groups import GroupFamilies
from heirlog.server.metrics.requests import QUANTILES

SERVER = "kafka_server_"
REPLICAS = SERVER + "replicamanager_"
TOPICS = SERVER + "brokertopicmetrics_"
CLUSTER = "kafka_cluster_partition"
LOG = "kafka_log_log"
COORDINATOR = SERVER + "transaction_coordinator_metrics_"
MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
ASKED = SERVER + "addpartitionstotxnmanager_"


def families(node: Node, broker: Broker, groups: GroupFamilies) -> Iterator[Family | None]:
    yield gauge(
        SERVER + "kafkaserver_brokerstate",
        "0 not running, 1 starting, 2 recovery, 3 running, 6 controlled shutdown, 7 shutting down.",
        broker.state.value,
    )
    yield from _replica_manager(broker)
    yield from _fetching(broker)
    yield from _topics(broker)
    yield from _purgatories(node, broker)
    yield from groups.all(broker, node.env.now_ms())
    yield from shares.families(broker, node.env.now_ms())
    yield from _transactions(node, broker)
    yield from _log_directories(node, broker)
    yield from _partitions(broker)


def _replica_manager(broker: Broker) -> Iterator[Family | None]:
    found = yield from broker.survey()
    for name, text, value in (
        ("partitioncount", "Replicas on this broker.", found.partition_count),
        ("leadercount", "Partitions led by this broker.", found.leader_count),
        (
            "underreplicatedpartitions",
            "Partitions led by this broker whose ISR is smaller than the assigned replicas.",
            found.under_replicated_partitions,
        ),
        (
            "underminisrpartitioncount",
            "Partitions led by this broker whose ISR is below min ISR: acks=all is refused.",
            found.under_min_isr_partition_count,
        ),
        (
            "atminisrpartitioncount",
            "Partitions led by this broker whose ISR is exactly at min ISR.",
            found.at_min_isr_partition_count,
        ),
        (
            "reassigningpartitions",
            "Partitions led by this broker that are being reassigned.",
            found.reassigning_partitions,
        ),
        ("offlinereplicacount", "Replicas whose disk has failed.", found.offline_replica_count),
        (
            "partitionswithlatetransactionscount",
            "Partitions led by this broker with a transaction that is open for longer than a producer may ask for.",
            found.partitions_with_late_transactions,
        ),
        ("produceridcount", "Idempotent producers known, counted once per partition.", found.producer_id_count),
    ):
        yield gauge(REPLICAS + name, text, value)
    yield counter(
        REPLICAS + "isrshrinks_total",
        "Times a replica left the ISR of a partition led by this broker.",
        found.isr_shrinks,
    )
    yield counter(
        REPLICAS + "isrexpands_total",
        "Times a replica joined the ISR of a partition led by this broker.",
        found.isr_expands,
    )
    yield counter(
        REPLICAS + "failedisrupdates_total", "Changes of an ISR that the controller refused.", found.failed_isr_updates
    )
    yield counter(
        "heirlog_discarded_records_total",
        "Offsets that followers on this broker have truncated because a leader elected on a lossy basis did not "
        "have them.",
        found.records_discarded,
    )


def _fetching(broker: Broker) -> Iterator[Family | None]:
    lag, failed = yield from broker.fetchers.lags()
    labels = {"clientId": "Replica"}
    fetchers = SERVER + "replicafetchermanager_"
    yield gauges(fetchers + "maxlag", "Largest lag of a follower on this broker, in offsets.", [(labels, lag)])
    yield gauges(
        fetchers + "failedpartitionscount",
        "Partitions that followers on this broker do not copy because of an error.",
        [(labels, failed)],
    )
    sessions, prefix = broker.fetch_sessions, SERVER + "fetchsessioncache_"
    yield gauge(prefix + "numincrementalfetchsessions", "Fetch sessions.", len(sessions))
    yield gauge(
        prefix + "numincrementalfetchpartitionscached", "Partitions in fetch sessions.", sessions.partition_count
    )
    yield counter(
        prefix + "incrementalfetchsessionevictions_total",
        "Fetch sessions that were evicted to make room.",
        sessions.evictions,
    )


PER_TOPIC: Sequence[tuple[str, str, Callable[[BrokerTopicMetrics], int]]] = (
    ("messagesin", "Records appended by producers.", attrgetter("messages_in")),
    ("bytesin", "Bytes appended by producers.", attrgetter("bytes_in")),
    ("bytesout", "Bytes sent to consumers.", attrgetter("bytes_out")),
    ("bytesrejected", "Bytes of batches above max.message.bytes.", attrgetter("bytes_rejected")),
    ("totalproducerequests", "Partitions named in produce requests.", attrgetter("produces")),
    (
        "failedproducerequests",
        "Partitions named in produce requests and refused with an error.",
        attrgetter("produces_failed"),
    ),
    ("totalfetchrequests", "Partitions read for fetch requests.", attrgetter("fetches")),
    (
        "failedfetchrequests",
        "Partitions named in fetch requests and refused with an error.",
        attrgetter("fetches_failed"),
    ),
    ("totalsharefetchrequests", "Partitions looked at for share fetch requests.", attrgetter("share_fetches")),
    (
        "failedsharefetchrequests",
        "Partitions of share fetch requests that were refused with an error.",
        attrgetter("share_fetches_failed"),
    ),
    (
        "totalshareacknowledgementrequests",
        "Partitions with acknowledgements of members of share groups.",
        attrgetter("share_acknowledges"),
    ),
    (
        "failedshareacknowledgementrequests",
        "Partitions whose acknowledgements were refused with an error.",
        attrgetter("share_acknowledges_failed"),
    ),
)


def _topics(broker: Broker) -> Iterator[Family | None]:
    topic_stats = broker.replicas.topic_stats
    # added up before the topics are listed: what comes meanwhile may be in the topics and not in the sum
    total = BrokerTopicMetrics()
    total.add(topic_stats.gone)
    topics = list(topic_stats.topics.items())
    for group in in_groups(topics):
        for _, counts in group:
            total.add(counts)
        yield None
    for name, text, of in PER_TOPIC:
        yield counters(f"{TOPICS}{name}_total", text, _of_topics(total, topics, of))
    yield counter(
        f"{TOPICS}invalidmessagecrcrecords_total",
        "Partitions of produce requests that were refused because their records were damaged.",
        total.corrupt,
    )
    yield counter(
        f"{TOPICS}replicationbytesin_total", "Bytes copied from other brokers.", topic_stats.replication_bytes_in
    )
    yield counter(
        f"{TOPICS}replicationbytesout_total", "Bytes copied by other brokers.", topic_stats.replication_bytes_out
    )


def _of_topics(
    total: BrokerTopicMetrics, topics: Sequence[tuple[str, BrokerTopicMetrics]], of: Callable[[BrokerTopicMetrics], int]
) -> Iterator[Sample]:
    """The sum, without a label, and the topics that have any, as on Apache Kafka."""
    yield NO_LABELS, of(total)
    for topic, counts in topics:
        value = of(counts)
        if value:
            yield {"topic": topic}, value


def _purgatories(node: Node, broker: Broker) -> Iterator[Family | None]:
    replicas = broker.replicas
    fetches = (replicas.delayed.consumer_fetch, replicas.delayed.follower_fetch)
    elections = node.forwarded(ApiKey.ELECT_LEADERS)
    waiting = {
        "Produce": (len(replicas.delayed.produce), replicas.delayed.produce.watched),
        "Fetch": (sum(map(len, fetches)), sum(waits.watched for waits in fetches)),
        "ShareFetch": (len(broker.shares.partitions.waits), broker.shares.partitions.waits.watched),
        "DeleteRecords": (len(replicas.delayed.delete_records), replicas.delayed.delete_records.watched),
        "ElectLeader": (elections, elections),
    }
    for index, name, text in (
        (0, "numdelayedoperations", "Requests that wait, by kind."),
        (1, "purgatorysize", "Requests that wait, each counted once for every partition that it waits for."),
    ):
        yield gauges(
            f"{SERVER}delayedoperationpurgatory_{name}",
            text,
            [({"delayedOperation": kind}, counts[index]) for kind, counts in waiting.items()],
        )
    yield counters(
        SERVER + "delayedfetchmetrics_expires_total",
        "Fetch requests that were answered when their maximum wait ended.",
        [({"fetcherType": kind}, waits.expired) for kind, waits in zip(("consumer", "follower"), fetches, strict=True)],
    )


def _transactions(node: Node, broker: Broker) -> Iterator[Family | None]:
    coordinator, manager, now_ms = broker.transactions, broker.coordinators, node.env.now_ms()
    average, longest = coordinator.load_times.average_and_max_ms(now_ms)
    text = "Time to load a partition of __transaction_state, in milliseconds, in the last half minute:"
    yield gauge(COORDINATOR + "partition_load_time_avg", f"{text} average.", average)
    yield gauge(COORDINATOR + "partition_load_time_max", f"{text} longest.", longest)
    yield gauge(
        MARKERS + "unknowndestinationqueuesize",
        "Decided transactions with a marker for a partition without a leader.",
        coordinator.unknown_destinations,
    )
    yield gauge(
        MARKERS + "logappendretryqueuesize",
        "Transactions with all markers whose completion could not be written yet.",
        coordinator.waiting_completions,
    )
    yield counter(
        ASKED + "verificationfailurerate_count_total",
        "Partitions that a transaction coordinator did not confirm to a leader that asked.",
        manager.failures,
    )
    parts = [float(label) for label in QUANTILES.values()]
    values = manager.times.quantiles_ms(now_ms, parts)
    yield gauges(
        ASKED + "verificationtimems",
        "Time from a leader's question to the answer of the transaction coordinator, in milliseconds, in the last half "
        "minute.",
        [({"quantile": label}, value) for label, value in zip(QUANTILES.values(), values, strict=True)],
    )
    yield counter(ASKED + "verificationtimems_count_total", "Transactions that a leader asked about.", manager.answered)


def _log_directories(node: Node, broker: Broker) -> Iterator[Family | None]:
    online = {directory.path for directory in broker.replicas.directories.online}
    paths = node.config.log_dirs
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that cannot be used.",
        sum(path not in online for path in paths),
    )
    yield gauges(
        "kafka_log_logmanager_logdirectoryoffline",
        "1 for a log directory that cannot be used.",
        [({"logDirectory": path}, path not in online) for path in paths],
    )
    yield gauges(
        "heirlog_stray_logs",
        "Logs in a log directory that are set aside (`-stray`), as found at the start and with those since.",
        [
            ({"logDirectory": directory.path}, len(directory.removed.kept))
            for directory in broker.replicas.directories.online
        ],
    )


def _partitions(broker: Broker) -> Iterator[Family | None]:
    """One sample per partition and family: what a broker has most of. What leaders know is shown where it is led."""
    here: list[Partition] = []
    led: list[Partition] = []
    for group in in_groups(broker.replicas.all_partitions()):
        here += group
        led += [partition for partition in group if partition.role is ReplicaRole.LEADER]
        yield None
    for partitions, prefix, per_partition in ((led, CLUSTER, PER_LED_PARTITION), (here, LOG, PER_PARTITION)):
        for name, text, of in per_partition:
            yield gauges(f"{prefix}_{name}", text, _of_partitions(partitions, of))


def _of_partitions(partitions: Sequence[Partition], of: Callable[[Partition], float]) -> Iterator[Sample]:
    for partition in partitions:
        yield {"topic": partition.topic, "partition": str(partition.index)}, of(partition)


PER_LED_PARTITION: Sequence[tuple[str, str, Callable[[Partition], float]]] = (
    ("underreplicated", "1 if the ISR is smaller than the assigned replicas.", attrgetter("is_under_replicated")),
    ("underminisr", "1 if the ISR is below min ISR.", attrgetter("is_under_min_isr")),
    ("atminisr", "1 if the ISR is exactly at min ISR.", attrgetter("is_at_min_isr")),
    ("insyncreplicascount", "Size of the ISR.", lambda partition: len(partition.isr.committed)),
    (
        "laststableoffsetlag",
        "Offsets between the last stable offset and the high watermark: consumers of committed records wait there.",
        lambda partition: partition.high_watermark - partition.last_stable_offset,
    ),
    ("replicascount", "Assigned replicas.", lambda partition: len(partition.replicas)),
)
PER_PARTITION: Sequence[tuple[str, str, Callable[[Partition], float]]] = (
    ("size", "Bytes of this broker's log of the partition.", attrgetter("log.size_bytes")),
    ("logstartoffset", "First offset of this broker's log of the partition.", attrgetter("log.log_start_offset")),
    (
        "logendoffset",
        "Offset after the last record of this broker's log of the partition.",
        attrgetter("log.log_end_offset"),
    ),
    ("numlogsegments", "Segments of this broker's log of the partition.", attrgetter("log.segment_count")),
)
