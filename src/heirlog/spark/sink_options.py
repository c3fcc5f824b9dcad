"""The options of the sink: their names, meanings and refusals are those of Spark's own Kafka sink.

Only this sink has `exactlyOnce` and `batchId`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heirlog.protocol.compression import CODEC_NAMES
from heirlog.spark.option_values import (
    DEFAULT_POLL_TIMEOUT_MS,
    LARGEST_INT,
    OptionError,
    boolean,
    complete,
    kafka_properties,
    number,
    positive,
    refuse_misspelled,
)

DEFAULT_TRANSACTION_TIMEOUT_MS = 900_000
"""Of a batch: the largest that brokers accept by default (transaction.max.timeout.ms)."""
_REFUSED = {
    "key.serializer": "keys are written as byte arrays; encode them with DataFrame operations",
    "value.serializer": "values are written as byte arrays; encode them with DataFrame operations",
    "partitioner.class": "it is a Java class, and no Java runs here; give the partition in the column partition",
    "interceptor.classes": "interceptors are Java classes, and no Java runs here",
}
ALL_REPLICAS = -1
_ACKS = {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "1": 1, "0": 0}


@dataclass(frozen=True, slots=True)
class ExactlyOnce:
    """Of a sink that writes each batch in one transaction."""

    transactional_id: str
    transaction_timeout_ms: int
    batch_id: str | None
    """Names the batch, for a run of it that is repeated; None in a stream, which has names of its own."""
    is_stream: bool


@dataclass(frozen=True)
class SinkOptions:
    """Of one write. Picklable; its repr shows no secret."""

    properties: Mapping[str, str] = field(repr=False)
    topic: str | None
    batch_bytes: int | None
    codec: int
    acks: int
    idempotent: bool
    delivery_timeout_ms: int
    exactly_once: ExactlyOnce | None = None

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]


def sink_options(given: Mapping[str, str], *, streaming: bool = False) -> SinkOptions:
    """Raises OptionError."""
    refuse_misspelled(given)
    # Kafka's client ignores spaces around a value
    options = {name: value.strip() for name, value in complete(given).items()}
    acks = options.get("kafka.acks", "all").lower()
    if acks not in _ACKS:
        raise OptionError(f"kafka.acks is '{acks}'; it can be {', '.join(_ACKS)}")
    idempotent = boolean(options, "kafka.enable.idempotence", _ACKS[acks] == ALL_REPLICAS)
    if idempotent and _ACKS[acks] != ALL_REPLICAS:
        raise OptionError(f"kafka.acks is '{acks}', and kafka.enable.idempotence=true needs all: change one of them")
    compression = options.get("kafka.compression.type", "none").lower()
    if compression not in CODEC_NAMES:
        raise OptionError(f"kafka.compression.type is '{compression}'; it can be {', '.join(CODEC_NAMES)}")
    return SinkOptions(
        properties=kafka_properties(given, _REFUSED),
        topic=options.get("topic") or None,
        batch_bytes=positive(options, "kafka.batch.size"),
        codec=CODEC_NAMES.index(compression),
        acks=_ACKS[acks],
        idempotent=idempotent,
        delivery_timeout_ms=number(options, "kafka.delivery.timeout.ms", DEFAULT_POLL_TIMEOUT_MS),
        exactly_once=_exactly_once(options, idempotent, streaming),
    )


def _exactly_once(options: Mapping[str, str], idempotent: bool, streaming: bool) -> ExactlyOnce | None:
    transactional_id = options.get("kafka.transactional.id", "")
    batch_id = options.get("batchid") or None
    if not boolean(options, "exactlyOnce", False):
        for name, value in (("kafka.transactional.id", transactional_id), ("batchId", batch_id)):
            if value:
                raise OptionError(f"{name} is set and exactlyOnce is not: set exactlyOnce to true, or remove {name}")
        return None
    if not transactional_id:
        raise OptionError("exactlyOnce needs kafka.transactional.id: a name that no other query or program uses")
    if not idempotent:
        raise OptionError("exactlyOnce needs kafka.acks=all and kafka.enable.idempotence=true: change or remove them")
    if streaming and batch_id is not None:
        raise OptionError("batchId is for batch writes: a stream numbers its batches itself")
    timeout_ms = positive(options, "kafka.transaction.timeout.ms", LARGEST_INT)
    return ExactlyOnce(
        transactional_id,
        DEFAULT_TRANSACTION_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        batch_id,
        streaming,
    )
