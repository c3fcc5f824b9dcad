"""The configurations of server.properties: Kafka's names, types, defaults and limits, plus a few of our own.

Three kinds stand here. Most do what they do in Kafka. Some tune machinery that heirlog does not have (thread pools,
purgatories): they are accepted, because every server.properties in the world has them, and change nothing. A few ask
for something that this version cannot do: their values are refused with the reason. Whole families of the two latter
kinds are in `absent_configs`. A name that is in neither is refused too; Kafka would only warn, and a typo in
`min.insync.replicas` deserves better.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from heirlog.metadata.absent_configs import ABSENT_CONFIGS
from heirlog.metadata.definition import (
    DOUBLE_MAX,
    INT_MAX,
    LONG_MAX,
    ConfigKey,
    Update,
    boolean,
    double,
    integer,
    list_of,
    long,
    password,
    short,
    string,
)
from heirlog.metadata.security_configs import SECURITY
from heirlog.metadata.topic_configs import (
    COMPRESSION_TYPES,
    GZIP_LEVELS,
    LZ4_LEVELS,
    RECOVERY_STRATEGIES,
    ZSTD_LEVELS,
)

CLUSTER: Final = Update.CLUSTER_WIDE
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""Kafka's name for what `authorizer.py` does."""

_IDENTITY = (
    list_of("process.roles", None, choices=("broker", "controller")),
    integer("node.id", None, 0),
    integer("broker.id", None, 0),
    string("broker.rack", None),
    list_of("listeners", "PLAINTEXT://:9092"),
    list_of("advertised.listeners", None),
    list_of(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    ),
    string("inter.broker.listener.name", None),
    string("security.inter.broker.protocol", "PLAINTEXT", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    list_of("early.start.listeners", None),
    list_of("controller.listener.names", None),
    list_of("controller.quorum.voters", ""),
    list_of("controller.quorum.bootstrap.servers", ""),
    list_of("log.dir", "/tmp/kafka-logs"),
    list_of("log.dirs", None),
    string("metadata.log.dir", None),
)

_TOPICS = (
    integer("num.partitions", 1, 1),
    integer("default.replication.factor", 1, 1),
    boolean("auto.create.topics.enable", True),
    boolean("delete.topic.enable", True),
    integer("min.insync.replicas", 1, 1, update=CLUSTER),
    boolean("unclean.leader.election.enable", False, update=CLUSTER),
    string("compression.type", "producer", choices=COMPRESSION_TYPES, update=CLUSTER),
    integer("compression.gzip.level", -1, form=GZIP_LEVELS, update=CLUSTER),
    integer("compression.lz4.level", 9, LZ4_LEVELS[0], at_most=LZ4_LEVELS[1], update=CLUSTER),
    integer("compression.zstd.level", 3, ZSTD_LEVELS[0], at_most=ZSTD_LEVELS[1], update=CLUSTER),
    integer("message.max.bytes", 1_048_588, 0, update=CLUSTER),
    integer("max.request.partition.size.limit", 2000, 1),
)

_LOG = (
    integer("log.segment.bytes", 1_073_741_824, 1_048_576, update=CLUSTER),
    integer("internal.segment.bytes", None, 14),
    long("log.roll.ms", None, 1, update=CLUSTER),
    integer("log.roll.hours", 168, 1),
    long("log.roll.jitter.ms", None, 0, update=CLUSTER),
    integer("log.roll.jitter.hours", 0, 0),
    long("log.retention.ms", None, -1, update=CLUSTER),
    integer("log.retention.minutes", None, -1),
    integer("log.retention.hours", 168, -1),
    long("log.retention.bytes", -1, update=CLUSTER),
    long("log.retention.check.interval.ms", 300_000, 1),
    list_of(
        "log.cleanup.policy",
        "delete",
        choices=("delete", "compact"),
        update=CLUSTER,
    ),
    long("log.flush.interval.messages", LONG_MAX, 1, update=CLUSTER),
    long("log.flush.interval.ms", None, 0, update=CLUSTER),
    long("log.flush.scheduler.interval.ms", LONG_MAX),
    integer("log.flush.offset.checkpoint.interval.ms", 60_000, 0),
    integer("log.flush.start.offset.checkpoint.interval.ms", 60_000, 0),
    integer("log.index.interval.bytes", 4096, 0, update=CLUSTER),
    integer("log.index.size.max.bytes", 10_485_760, 4, update=CLUSTER),
    boolean("log.preallocate", False, update=CLUSTER),
    long("log.segment.delete.delay.ms", 60_000, 0, update=CLUSTER),
    long("log.initial.task.delay.ms", 30_000, 0),
    string("log.message.timestamp.type", "CreateTime", choices=("CreateTime", "LogAppendTime"), update=CLUSTER),
    long("log.message.timestamp.before.max.ms", LONG_MAX, 0, update=CLUSTER),
    long("log.message.timestamp.after.max.ms", 3_600_000, 0, update=CLUSTER),
    boolean("log.cleaner.enable", True),
    integer("log.cleaner.threads", 1, 0, update=CLUSTER),
    double("log.cleaner.io.max.bytes.per.second", DOUBLE_MAX, update=CLUSTER),
    long("log.cleaner.dedupe.buffer.size", 134_217_728, update=CLUSTER),
    integer("log.cleaner.io.buffer.size", 524_288, 0, update=CLUSTER),
    double("log.cleaner.io.buffer.load.factor", 0.9, update=CLUSTER),
    long("log.cleaner.backoff.ms", 15_000, 0, update=CLUSTER),
    double("log.cleaner.min.cleanable.ratio", 0.5, 0, at_most=1, update=CLUSTER),
    long("log.cleaner.delete.retention.ms", 86_400_000, 0, update=CLUSTER),
    long("log.cleaner.min.compaction.lag.ms", 0, 0, update=CLUSTER),
    long("log.cleaner.max.compaction.lag.ms", LONG_MAX, 1, update=CLUSTER),
    integer("num.recovery.threads.per.data.dir", 2, 1, update=CLUSTER),
    integer("producer.id.expiration.ms", 86_400_000, 1, update=CLUSTER),
    integer("producer.id.expiration.check.interval.ms", 600_000, 1),
)

_CONNECTIONS = (
    integer("num.network.threads", 3, 1, update=CLUSTER),
    integer("num.io.threads", 8, 1, update=CLUSTER),
    integer("background.threads", 10, 1, update=CLUSTER),
    integer("num.replica.alter.log.dirs.threads", None),
    integer("queued.max.requests", 500, 1),
    long("queued.max.request.bytes", -1),
    integer("request.timeout.ms", 30_000),
    integer("socket.send.buffer.bytes", 102_400),
    integer("socket.receive.buffer.bytes", 102_400),
    integer("socket.listen.backlog.size", 50, 1),
    integer("socket.request.max.bytes", 104_857_600, 1),
    integer("max.connections", INT_MAX, 0, update=CLUSTER),
    integer("max.connections.per.ip", INT_MAX, 0, update=CLUSTER),
    string(
        "max.connections.per.ip.overrides",
        "",
        update=CLUSTER,
        form=(r"(\s*[^,\s]+:\d{1,9}\s*(,\s*[^,\s]+:\d{1,9}\s*)*)?", "it is a list of host:count"),
    ),
    integer("max.connection.creation.rate", INT_MAX, 0, update=CLUSTER),
    long("connections.max.idle.ms", 600_000),
    integer("connection.failed.authentication.delay.ms", 100, 0),
    long("heirlog.authentication.timeout.ms", 30_000, 1),
    long("socket.connection.setup.timeout.ms", 10_000),
    long("socket.connection.setup.timeout.max.ms", 30_000),
    integer("max.incremental.fetch.session.cache.slots", 1000, 0),
    integer("fetch.max.bytes", 57_671_680, 1024),
    integer("fetch.purgatory.purge.interval.requests", 1000),
    integer("producer.purgatory.purge.interval.requests", 1000),
    integer("delete.records.purgatory.purge.interval.requests", 1),
)

_REPLICATION = (
    long("replica.lag.time.max.ms", 30_000),
    integer("replica.socket.timeout.ms", 30_000),
    integer("replica.socket.receive.buffer.bytes", 65_536),
    integer("replica.fetch.max.bytes", 1_048_576, 0),
    integer("replica.fetch.wait.max.ms", 500),
    integer("replica.fetch.backoff.ms", 1000, 0),
    integer("replica.fetch.min.bytes", 1),
    integer("replica.fetch.response.max.bytes", 10_485_760, 0),
    integer("num.replica.fetchers", 1, update=CLUSTER),
    long("replica.high.watermark.checkpoint.interval.ms", 5000),
    string("replica.selector.class", None),
    long("leader.replication.throttled.rate", LONG_MAX, 0, update=CLUSTER),
    long("follower.replication.throttled.rate", LONG_MAX, 0, update=CLUSTER),
    long("replica.alter.log.dirs.io.max.bytes.per.second", LONG_MAX, 0, update=CLUSTER),
    boolean("auto.leader.rebalance.enable", True),
    long("leader.imbalance.check.interval.seconds", 300, 1),
    integer("leader.imbalance.per.broker.percentage", 10),
    long("unclean.leader.election.interval.ms", 300_000, 1),
    boolean("unclean.recovery.manager.enabled", True),
    string("unclean.recovery.strategy", "Balanced", choices=RECOVERY_STRATEGIES, update=CLUSTER),
    long("unclean.recovery.timeout.ms", 300_000, 0, update=CLUSTER),
    boolean("controlled.shutdown.enable", True),
    integer("controlled.shutdown.max.retries", 3),
    long("controlled.shutdown.retry.backoff.ms", 5000),
    integer("broker.session.timeout.ms", 9000, 1),
    integer("broker.heartbeat.interval.ms", 2000, 1),
    integer("initial.broker.registration.timeout.ms", 60_000),
    integer("controller.socket.timeout.ms", 30_000),
    boolean("heirlog.accept.older.metadata", False),
    long("heirlog.broker.disconnect.grace.ms", 1000, -1),
    boolean("heirlog.discarded.enable", True),
    long("heirlog.discarded.max.bytes", 1_073_741_824, 0),
    long("heirlog.discarded.min.free.bytes", 1_073_741_824, 0),
    long("heirlog.discarded.retention.ms", 604_800_000, -1),
)

_METADATA = (
    integer("metadata.log.segment.bytes", 1_073_741_824, 8_388_608),
    long("metadata.log.segment.ms", 604_800_000),
    long("metadata.max.retention.bytes", 104_857_600),
    long("metadata.max.retention.ms", 604_800_000),
    long("metadata.log.max.record.bytes.between.snapshots", 20_971_520, 1),
    long("metadata.log.max.snapshot.interval.ms", 3_600_000, 0),
    integer("metadata.max.idle.interval.ms", 500, 0),
    integer("controller.quorum.election.timeout.ms", 1000, 0),
    integer("controller.quorum.election.backoff.max.ms", 1000, 0),
    integer("controller.quorum.fetch.timeout.ms", 2000, 0),
    boolean("controller.quorum.auto.join.enable", False),
    integer("controller.quorum.append.linger.ms", 25, 0),
    integer("controller.quorum.request.timeout.ms", 2000, 0),
    integer("controller.quorum.retry.backoff.ms", 20, 0),
    boolean("unstable.feature.versions.enable", False),
    boolean("unstable.api.versions.enable", False),
)

_COORDINATORS = (
    integer("offsets.topic.num.partitions", 50, 1),
    short("offsets.topic.replication.factor", 3, 1),
    integer("offsets.topic.segment.bytes", 104_857_600, 1),
    integer("offsets.topic.compression.codec", 0, at_most=4),
    integer("offsets.load.buffer.size", 5_242_880, 1),
    integer("offsets.retention.minutes", 10_080, 1),
    long("offsets.retention.check.interval.ms", 600_000, 1),
    integer("offsets.commit.timeout.ms", 5000, 1),
    integer("offset.metadata.max.bytes", 4096),
    integer("group.initial.rebalance.delay.ms", 3000),
    integer("group.min.session.timeout.ms", 6000),
    integer("group.max.session.timeout.ms", 1_800_000),
    integer("group.max.size", INT_MAX, 1),
    list_of(
        "group.coordinator.rebalance.protocols",
        "classic,consumer,streams",
        form=(
            "((consumer|share|streams),)*classic(,(consumer|share|streams))*",
            "name classic, and consumer for groups of that protocol; share groups need share.version 1 only",
        ),
    ),
    list_of(
        "group.consumer.assignors",
        "uniform,range",
        form=(
            "uniform|range|uniform,range|range,uniform",
            "heirlog has the assignors uniform and range: name one or both",
        ),
    ),
    integer("group.consumer.heartbeat.interval.ms", 5000, 1),
    integer("group.consumer.max.heartbeat.interval.ms", 15_000, 1),
    integer("group.consumer.max.session.timeout.ms", 60_000, 1),
    integer("group.consumer.max.size", INT_MAX, 1),
    string(
        "group.consumer.migration.policy",
        "bidirectional",
        form=("(?i:bidirectional|upgrade|downgrade|disabled)", "write bidirectional, upgrade, downgrade or disabled"),
    ),
    integer("group.consumer.min.heartbeat.interval.ms", 5000, 1),
    integer("group.consumer.min.session.timeout.ms", 45_000, 1),
    integer("group.consumer.session.timeout.ms", 45_000, 1),
    list_of("group.share.assignors", "simple", form=("simple", "heirlog has the assignor simple")),
    integer("group.share.delivery.count.limit", 5, 2, at_most=10),
    integer("group.share.heartbeat.interval.ms", 5000, 1),
    integer("group.share.max.heartbeat.interval.ms", 15_000, 1),
    integer("group.share.max.record.lock.duration.ms", 60_000, 30000, at_most=3600000),
    integer("group.share.max.session.timeout.ms", 60_000, 1),
    integer("group.share.max.share.sessions", 2000, 1),
    integer("group.share.max.size", 200, 1, at_most=1000),
    integer("group.share.min.heartbeat.interval.ms", 5000, 1),
    integer("group.share.min.record.lock.duration.ms", 15_000, 1000, at_most=30000),
    integer("group.share.min.session.timeout.ms", 45_000, 1),
    integer("group.share.partition.max.record.locks", 2000, 100, at_most=10000),
    integer("group.share.record.lock.duration.ms", 30_000, 1000, at_most=3600000),
    integer("group.share.session.timeout.ms", 45_000, 1),
    short("transaction.state.log.replication.factor", 3, 1),
    integer("transaction.state.log.min.isr", 2, 1),
    integer("transaction.state.log.num.partitions", 50, 1),
    integer("transaction.state.log.segment.bytes", 104_857_600, 1),
    integer("transaction.state.log.load.buffer.size", 5_242_880, 1),
    integer("transaction.max.timeout.ms", 900_000, 1),
    integer("transactional.id.expiration.ms", 604_800_000, 1),
    integer("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, 1),
    integer("transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, 1),
    integer("add.partitions.to.txn.retry.backoff.max.ms", 100, 0),
    integer("add.partitions.to.txn.retry.backoff.ms", 20, 1),
    boolean("transaction.partition.verification.enable", True, update=CLUSTER),
    boolean("transaction.two.phase.commit.enable", False),
    integer("share.coordinator.snapshot.update.records.per.snapshot", 500, 0),
    integer("share.coordinator.state.topic.compression.codec", 0, at_most=4),
    integer("share.coordinator.state.topic.num.partitions", 50, 1),
    short("share.coordinator.state.topic.replication.factor", 3, 1),
    integer("share.coordinator.state.topic.segment.bytes", 104_857_600, 1),
    integer("share.coordinator.write.timeout.ms", 5000, 1),
    short("share.coordinator.state.topic.min.isr", 2, 1),
)

_OBSERVATION = (
    string("heirlog.metrics.listener", ""),
    list_of("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter", update=CLUSTER),
    integer("metrics.num.samples", 2, 1),
    long("metrics.sample.window.ms", 30_000, 1),
    string(
        "log.level",
        "INFO",
        form=("(?i)trace|debug|info|warn|error|fatal", "one of TRACE, DEBUG, INFO, WARN, ERROR and FATAL"),
        update=CLUSTER,
    ),
    string("metrics.recording.level", "INFO", choices=("INFO", "DEBUG", "TRACE")),
    integer("quota.window.num", 11, 1),
    integer("quota.window.size.seconds", 1, 1),
    integer("controller.quota.window.num", 11, 1),
    integer("controller.quota.window.size.seconds", 1, 1),
    integer("replication.quota.window.num", 11, 1),
    integer("replication.quota.window.size.seconds", 1, 1),
    string(
        "authorizer.class.name",
        "",
        form=(f"({re.escape(STANDARD_AUTHORIZER)})?", f"heirlog has one authorizer: {STANDARD_AUTHORIZER}, or none"),
    ),
    string("super.users", ""),
    boolean("allow.everyone.if.no.acl.found", False),
    long("delegation.token.expiry.check.interval.ms", 3_600_000, 1),
    long("delegation.token.expiry.time.ms", 86_400_000, 1),
    long("delegation.token.max.lifetime.ms", 604_800_000, 1),
    password("delegation.token.secret.key"),
)

SERVER_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    **ABSENT_CONFIGS,
    **{
        definition.name: definition
        for group in (
            _IDENTITY,
            _TOPICS,
            _LOG,
            _CONNECTIONS,
            _REPLICATION,
            _METADATA,
            _COORDINATORS,
            _OBSERVATION,
            SECURITY,
        )
        for definition in group
    },
}

AUTHORIZERS: Final = frozenset(("super.users", "allow.everyone.if.no.acl.found"))
"""Apache Kafka knows these by its authorizer only, and takes what it does not know for sensitive."""
THROTTLES: Final = frozenset(
    (
        *("leader.replication.throttled.rate", "follower.replication.throttled.rate"),
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
SHOWN_WHERE_SET: Final = (
    AUTHORIZERS
    | THROTTLES
    | frozenset(
        (
            *("controlled.shutdown.max.retries", "controlled.shutdown.retry.backoff.ms"),
            "leader.imbalance.per.broker.percentage",
            *("log.initial.task.delay.ms", "producer.id.expiration.check.interval.ms"),
            *(
                "unclean.leader.election.interval.ms",
                "unstable.api.versions.enable",
                "unstable.feature.versions.enable",
            ),
        )
    )
)
"""Broker configurations whose defaults Apache Kafka does not describe."""
