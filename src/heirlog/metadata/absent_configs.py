"""Configurations of Kafka features that heirlog does not have: they are known, and described with Kafka's defaults.

Clients and tools describe them, change them and compare the values. So every name of Apache Kafka 4.2 is known here. A
number only tunes the missing feature, and is accepted without effect. Any other value would switch the feature on, and
is refused with the message of its family (`ConfigKey.lacking`). `make interop` compares the list with Kafka's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from heirlog.metadata.definition import (
    INT_MAX,
    LONG_MAX,
    ConfigKey,
    Update,
    boolean,
    class_name,
    double,
    integer,
    list_of,
    long,
    password,
    short,
    string,
)
from heirlog.metadata.topic_configs import NO_TIERED_STORAGE

_PLUGINS = (
    class_name("alter.config.policy.class.name"),
    class_name("client.quota.callback.class"),
    class_name("create.topic.policy.class.name"),
)

_TUNING = (
    integer("alter.log.dirs.replication.quota.window.num", 11, 1),
    integer("alter.log.dirs.replication.quota.window.size.seconds", 1, 1),
    integer("group.coordinator.append.linger.ms", -1, -1),
    integer("group.coordinator.threads", 4, 1),
    integer("kafka.metrics.polling.interval.secs", 10, 1),
    list_of("kafka.metrics.reporters", ""),
    long("log.dir.failure.timeout.ms", 30_000, 1),
    integer("telemetry.max.bytes", 1_048_576, 1),
    integer("share.coordinator.append.linger.ms", -1, -1),
    integer("share.coordinator.load.buffer.size", 5_242_880, 1),
    integer("share.coordinator.threads", 1, 1),
    integer("share.fetch.purgatory.purge.interval.requests", 1000),
)

_PROVIDERS = (list_of("config.providers", "", update=Update.CLUSTER_WIDE),)

_KERBEROS = (
    string("sasl.kerberos.kinit.cmd", "/usr/bin/kinit", update=Update.PER_BROKER),
    long("sasl.kerberos.min.time.before.relogin", 60_000, update=Update.PER_BROKER),
    list_of("sasl.kerberos.principal.to.local.rules", "DEFAULT", update=Update.PER_BROKER),
    string("sasl.kerberos.service.name", None, update=Update.PER_BROKER),
    double("sasl.kerberos.ticket.renew.jitter", 0.05, update=Update.PER_BROKER),
    double("sasl.kerberos.ticket.renew.window.factor", 0.8, update=Update.PER_BROKER),
)

_OAUTH_CLIENT = (
    integer("sasl.login.connect.timeout.ms", None),
    integer("sasl.login.read.timeout.ms", None),
    short("sasl.login.refresh.buffer.seconds", 300, update=Update.PER_BROKER),
    short("sasl.login.refresh.min.period.seconds", 60, update=Update.PER_BROKER),
    double("sasl.login.refresh.window.factor", 0.8, update=Update.PER_BROKER),
    double("sasl.login.refresh.window.jitter", 0.05, update=Update.PER_BROKER),
    long("sasl.login.retry.backoff.max.ms", 10_000),
    long("sasl.login.retry.backoff.ms", 100),
    string("sasl.oauthbearer.assertion.algorithm", "RS256"),
    string("sasl.oauthbearer.assertion.claim.aud", None),
    integer("sasl.oauthbearer.assertion.claim.exp.seconds", 300, 0, at_most=86_400),
    string("sasl.oauthbearer.assertion.claim.iss", None),
    boolean("sasl.oauthbearer.assertion.claim.jti.include", False),
    integer("sasl.oauthbearer.assertion.claim.nbf.seconds", 60, 0, at_most=3600),
    string("sasl.oauthbearer.assertion.claim.sub", None),
    string("sasl.oauthbearer.assertion.file", None),
    string("sasl.oauthbearer.assertion.private.key.file", None),
    password("sasl.oauthbearer.assertion.private.key.passphrase"),
    string("sasl.oauthbearer.assertion.template.file", None),
)

_JAVA_SECURITY = (
    class_name(
        "principal.builder.class",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        update=Update.PER_BROKER,
    ),
    class_name("sasl.client.callback.handler.class"),
    class_name("sasl.login.class"),
    class_name(
        "sasl.oauthbearer.jwt.retriever.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
    ),
    class_name(
        "sasl.oauthbearer.jwt.validator.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"
    ),
    string("security.providers", None),
    class_name("ssl.engine.factory.class", update=Update.PER_BROKER),
    string("ssl.provider", None, update=Update.PER_BROKER),
)

_JAVA_TLS = (
    string("ssl.keymanager.algorithm", "SunX509", update=Update.PER_BROKER),
    string("ssl.protocol", "TLSv1.3", update=Update.PER_BROKER),
    string("ssl.secure.random.implementation", None, update=Update.PER_BROKER),
    string("ssl.trustmanager.algorithm", "PKIX", update=Update.PER_BROKER),
)

_GROUPS = (
    integer("group.streams.heartbeat.interval.ms", 5000, 1),
    integer("group.streams.initial.rebalance.delay.ms", 3000, 0),
    integer("group.streams.max.heartbeat.interval.ms", 15_000, 1),
    integer("group.streams.max.session.timeout.ms", 60_000, 1),
    integer("group.streams.max.size", INT_MAX, 1),
    integer("group.streams.max.standby.replicas", 2, 0),
    integer("group.streams.min.heartbeat.interval.ms", 5000, 1),
    integer("group.streams.min.session.timeout.ms", 45_000, 1),
    integer("group.streams.num.standby.replicas", 0, 0),
    integer("group.streams.session.timeout.ms", 45_000, 1),
)

_TIERS = (
    long("log.local.retention.bytes", -2, -2, update=Update.CLUSTER_WIDE),
    long("log.local.retention.ms", -2, -2, update=Update.CLUSTER_WIDE),
    integer("remote.fetch.max.wait.ms", 500, 1, update=Update.CLUSTER_WIDE),
    long("remote.list.offsets.request.timeout.ms", 30_000, 1, update=Update.CLUSTER_WIDE),
    long("remote.log.index.file.cache.total.size.bytes", 1_073_741_824, 1, update=Update.CLUSTER_WIDE),
    integer("remote.log.manager.copier.thread.pool.size", 10, 1, update=Update.CLUSTER_WIDE),
    long("remote.log.manager.copy.max.bytes.per.second", LONG_MAX, 1, update=Update.CLUSTER_WIDE),
    integer("remote.log.manager.copy.quota.window.num", 11, 1),
    integer("remote.log.manager.copy.quota.window.size.seconds", 1, 1),
    integer("remote.log.manager.expiration.thread.pool.size", 10, 1, update=Update.CLUSTER_WIDE),
    long("remote.log.manager.fetch.max.bytes.per.second", LONG_MAX, 1, update=Update.CLUSTER_WIDE),
    integer("remote.log.manager.fetch.quota.window.num", 11, 1),
    integer("remote.log.manager.fetch.quota.window.size.seconds", 1, 1),
    integer("remote.log.manager.follower.thread.pool.size", 2, 1, update=Update.CLUSTER_WIDE),
    long("remote.log.manager.task.interval.ms", 30_000, 1),
    integer("remote.log.manager.thread.pool.size", 2, 1),
    integer("remote.log.metadata.custom.metadata.max.bytes", 128, 0),
    string(
        "remote.log.metadata.manager.class.name",
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    ),
    string("remote.log.metadata.manager.class.path", None),
    string("remote.log.metadata.manager.impl.prefix", "rlmm.config."),
    string("remote.log.metadata.manager.listener.name", None),
    integer("remote.log.reader.max.pending.tasks", 100, 1),
    integer("remote.log.reader.threads", 10, 1, update=Update.CLUSTER_WIDE),
    string("remote.log.storage.manager.class.name", None),
    string("remote.log.storage.manager.class.path", None),
    string("remote.log.storage.manager.impl.prefix", "rsm.config."),
    boolean("remote.log.storage.system.enable", False),
)

_FAMILIES: Final[Sequence[tuple[str | None, Sequence[ConfigKey]]]] = (
    ("heirlog has no Kerberos (GSSAPI): use SCRAM, PLAIN or certificates", _KERBEROS),
    ("heirlog's nodes get tokens from a file, or by client id and secret", _OAUTH_CLIENT),
    ("heirlog cannot load Java classes", _JAVA_SECURITY),
    (NO_TIERED_STORAGE, _TIERS),
    ("this version of heirlog has no streams groups", _GROUPS),
    ("heirlog has no configuration providers: write the value itself", _PROVIDERS),
    ("heirlog cannot load Java classes", _PLUGINS),
    (None, _TUNING),
    (None, _JAVA_TLS),
)


def _definitions() -> Iterator[ConfigKey]:
    for lacking, family in _FAMILIES:
        for definition in family:
            yield replace(definition, lacking=lacking)


ABSENT_CONFIGS: Final[Mapping[str, ConfigKey]] = {definition.name: definition for definition in _definitions()}
