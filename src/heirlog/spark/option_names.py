"""Names of options that nothing reads: a misspelled one is refused, and a warning says that another one has no effect.

    subscribe, topic, ...     known, of the source or of the sink: programs give both the same options
    checkpointLocation, ...   Spark's own, which it passes on to the source and the sink
    kafka.NAME                any, as Kafka's client has many that mean nothing here; but not one that heirlog reads,
                              misspelled
    NAME                      one of Kafka's that heirlog reads, without the prefix: refused
    anything else             refused if it is almost a known name, otherwise ignored with one warning

Spark's own Kafka source ignores all of these. A stream with `startingOffset=earliest` then silently skips what exists.
"""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Iterable, Iterator

from heirlog.client.security import KAFKAS_OWN_CLASSES, REFUSED

KAFKA = "kafka."
STRATEGIES = ("subscribe", "subscribePattern", "assign")
SOURCE_OPTIONS = (
    *("startingOffsets", "startingOffsetsDefault", "startingOffsetsByTimestamp", "startingTimestamp"),
    *("endingOffsets", "endingOffsetsDefault", "endingOffsetsByTimestamp", "endingTimestamp"),
    *("startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"),
    *("minPartitions", "maxRecordsPerPartition", "maxBytesPerPartition", "failOnDataLoss"),
    *("onDataLoss", "quarantinePath", "includeHeaders"),
    *("columns", "commitGroup", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "pushFilters", "commandConfig"),
)
"""Options besides the strategies and `kafka.*`, for callers that accept no other source's options."""
SINK_OPTIONS = ("topic", "exactlyOnce", "batchId", "commandConfig")
OF_SPARK = ("path", "checkpointLocation", "queryName", "outputMode")
"""Spark passes these on, as it does for every source and sink."""
CLIENT_PROPERTIES = (
    *("bootstrap.servers", "client.id", "default.api.timeout.ms", "isolation.level", "security.protocol"),
    *("acks", "enable.idempotence", "compression.type", "batch.size", "delivery.timeout.ms"),
    *("transactional.id", "transaction.timeout.ms"),
    *("key.serializer", "value.serializer", "partitioner.class"),
    *("auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes"),
    *("sasl.mechanism", "sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.scope"),
    *("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret"),
    *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates"),
    *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.key", "ssl.key.password"),
    *("ssl.keystore.certificate.chain", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm"),
    *REFUSED,
    *KAFKAS_OWN_CLASSES,
)
"""Those of Kafka's client that heirlog reads or refuses."""
_OF_OTHERS = (
    *("sasl.oauthbearer.jwks.endpoint.url", "sasl.server.callback.handler.class", "transaction.max.timeout.ms"),
    *("ssl.key.location", "ssl.providers"),
)
"""Of Kafka's brokers and of librdkafka, and almost one of these."""
_ALMOST = 0.85
"""A letter too many, too few or wrong in a short name, some of them in a long one: as `difflib` measures."""

_log = logging.getLogger("heirlog.spark")
_KNOWN = {name.lower(): name for name in (*STRATEGIES, *SOURCE_OPTIONS, *SINK_OPTIONS)}
_OF_SPARK = {name.lower() for name in OF_SPARK}


def misspelled(given: Iterable[str]) -> str | None:
    """What to say about the first name that is a mistake."""
    for name in _unknown(given):
        meant = _meant(name.lower())
        if meant is not None:
            return f"the option '{name}' is unknown: did you mean {meant}? docs/reference/spark.md has all options"
    return None


def warn_of_ineffective(given: Iterable[str]) -> None:
    """Once in a process for each name, when a query is planned: Spark asks for a source more than once."""
    for name in _unknown(given):
        if not name.lower().startswith(KAFKA):
            _warn(name.lower())


def _unknown(given: Iterable[str]) -> Iterator[str]:
    return (name for name in given if name.lower() not in _KNOWN and name.lower() not in _OF_SPARK)


def _meant(lower: str) -> str | None:
    if lower.startswith(KAFKA):
        own = lower.removeprefix(KAFKA)
        if own in CLIENT_PROPERTIES or own in _OF_OTHERS:
            return None
        close = difflib.get_close_matches(own, CLIENT_PROPERTIES, 1, _ALMOST)
        return f"{KAFKA}{close[0]}" if close else None
    if lower in CLIENT_PROPERTIES:
        return f"{KAFKA}{lower}"
    close = difflib.get_close_matches(lower, _KNOWN, 1, _ALMOST)
    return _KNOWN[close[0]] if close else None


@functools.cache
def _warn(lower: str) -> None:
    close = difflib.get_close_matches(lower, _KNOWN, 1)
    guess = f"; did you mean {_KNOWN[close[0]]}?" if close else ""
    _log.warning("the option '%s' has no effect on the format heirlog%s", lower, guess)
