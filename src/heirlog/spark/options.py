"""The options of the data source: their names, meanings and refusals are those of Spark's own Kafka source.

    subscribe | subscribePattern | assign      which partitions: exactly one of them
    startingTimestamp > startingOffsetsByTimestamp > startingOffsets     where to begin: the first that is given
    endingTimestamp   > endingOffsetsByTimestamp   > endingOffsets       where to end: batch only
    kafka.*                                    properties of Kafka's client, their names without this prefix

Only this source has `columns`, `startingOffsetsDefault` and `endingOffsetsDefault` (for partitions that the JSON does
not name), `onDataLoss`, `quarantinePath`, `commitGroup`, `pushFilters` and `commandConfig` (a file of properties of
Kafka's client). A misspelled option is refused (`option_names.py`).

Values of `kafka.*` may be secrets: no message here repeats one, and `Options` keeps them out of its repr.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.protocol.compression import CODEC_NAMES
from heirlog.spark import option_names, patterns
from heirlog.spark.columns import COLUMNS, PLAIN_COLUMNS
from heirlog.spark.option_names import KAFKA, STRATEGIES

TopicPartition: TypeAlias = tuple[str, int]

EARLIEST = -2
LATEST = -1
LARGEST = 2**63 - 1
"""Of an offset, a time, a count: Java's long."""
LARGEST_INT = 2**31 - 1
DEFAULT_MAX_TRIGGER_DELAY_MS = 15 * 60 * 1000
DEFAULT_POLL_TIMEOUT_MS = 120_000
DEFAULT_RETRY_INTERVAL_MS = 1000
DEFAULT_TRANSACTION_TIMEOUT_MS = 900_000
"""Of a batch: the largest that brokers accept by default (transaction.max.timeout.ms)."""

_REFUSED = {
    "auto.offset.reset": "instead set the option startingOffsets to 'earliest' or 'latest' ; "
    "Spark itself keeps the offsets that follow",
    "key.deserializer": "keys are read as byte arrays; decode them with DataFrame operations",
    "value.deserializer": "values are read as byte arrays; decode them with DataFrame operations",
    "enable.auto.commit": "the source commits no offsets; commitGroup writes them for tools that watch the lag",
    "interceptor.classes": "interceptors are Java classes, and no Java runs here",
}
_REFUSED_IN_SINK = {
    "key.serializer": "keys are written as byte arrays; encode them with DataFrame operations",
    "value.serializer": "values are written as byte arrays; encode them with DataFrame operations",
    "partitioner.class": "it is a Java class, and no Java runs here; give the partition in the column partition",
    "interceptor.classes": "interceptors are Java classes, and no Java runs here",
}
ISOLATIONS = ("read_uncommitted", "read_committed")
ALL_REPLICAS = -1
_ACKS = {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "1": 1, "0": 0}
_TRIGGER_LIMITS = {"minoffsetspertrigger", "maxoffsetspertrigger"}
"""Options of streams. In a batch Spark's source only compares them with each other."""
_DURATION = re.compile(r"\s*([0-9]{1,15})(us|ms|s|m|min|h|d)?\s*", re.IGNORECASE)
_UNIT_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionError(ValueError):
    """An option that is missing, wrong, or contradicts another one. The message names it."""


class OnDataLoss(Enum):
    FAIL = "fail"
    SKIP = "skip"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class OffsetRangeLimit:
    """Where a read begins or ends.

    offset: EARLIEST or LATEST for all partitions. offsets: an offset, EARLIEST or LATEST by partition; `default` for
    partitions that are not named (None refuses them). timestamp_ms, timestamps: the first record not before that time.
    """

    offset: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    default: int | None = None
    timestamp_ms: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    text: str = ""
    """The JSON as given: it may contain what a stream's offset stores in addition to the offsets."""
    latest_if_none: bool = False
    """If no record has the timestamp or a later one: True for the end of the partition, False for an error."""


@dataclass(frozen=True)
class Options:
    """Of one read. Picklable; its repr shows no secret."""

    properties: Mapping[str, str] = field(repr=False)
    """Of Kafka's client, without "kafka."."""
    columns: tuple[str, ...]
    topics: tuple[str, ...] | None
    pattern: str | None
    assigned: tuple[TopicPartition, ...] | None
    starting: OffsetRangeLimit
    ending: OffsetRangeLimit
    max_offsets: int | None
    min_offsets: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records: int | None
    max_bytes: int | None
    """Of a task, estimated."""
    on_data_loss: OnDataLoss
    quarantine_path: str | None
    commit_group: str | None
    poll_timeout_ms: int
    attempts: int
    """Of a question to the cluster while a batch is planned."""
    retry_interval_ms: int
    push_filters: bool = False
    """Filters narrow what a batch reads: all that is read with these options is read with the same filters."""

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]

    @property
    def named_topics(self) -> set[str]:
        """Topics that must exist. With a pattern there are none."""
        return set(self.topics or ()) | {topic for topic, _ in self.assigned or ()}

    @property
    def isolation(self) -> int:
        """As the Fetch API numbers it."""
        return ISOLATIONS.index(self.properties.get("isolation.level", ISOLATIONS[0]).strip())


def read_options(given: Mapping[str, str], *, streaming: bool) -> Options:
    """Raises OptionError for what Spark's Kafka source refuses as well, and for a misspelled option."""
    _refuse_misspelled(given)
    options = complete(given)
    topics, pattern, assigned = _strategy(options)
    of_client = kafka_properties(options, _REFUSED)
    isolation = of_client.get("isolation.level", ISOLATIONS[0]).strip()
    if isolation not in ISOLATIONS:
        raise OptionError(f"kafka.isolation.level is '{isolation}'; it can be {' or '.join(ISOLATIONS)}")
    starting = _limit(options, "starting", LATEST if streaming else EARLIEST)
    ending = _limit(options, "ending", LATEST)
    triggers = options if streaming or options.keys() >= _TRIGGER_LIMITS else {}
    min_offsets = _positive(triggers, "minOffsetsPerTrigger")
    max_offsets = _positive(triggers, "maxOffsetsPerTrigger")
    if min_offsets is not None and max_offsets is not None and min_offsets > max_offsets:
        raise OptionError(
            f"the value of minOffsetsPerTrigger ({min_offsets}) should be less than or equal to "
            f"the value of maxOffsetsPerTrigger ({max_offsets})"
        )
    delays = options if streaming else {}
    max_trigger_delay_ms = _duration_ms(delays, "maxTriggerDelay", DEFAULT_MAX_TRIGGER_DELAY_MS)
    on_data_loss, quarantine_path = _on_data_loss(options)
    read = Options(
        properties=of_client,
        columns=_columns(options),
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        starting=starting,
        ending=ending,
        max_offsets=max_offsets,
        min_offsets=min_offsets,
        max_trigger_delay_ms=max_trigger_delay_ms,
        min_partitions=_positive(options, "minPartitions", LARGEST_INT),
        max_records=_positive(options, "maxRecordsPerPartition"),
        max_bytes=_positive(options, "maxBytesPerPartition"),
        on_data_loss=on_data_loss,
        quarantine_path=quarantine_path,
        commit_group=options.get("commitgroup") or None,
        poll_timeout_ms=_number(options, "kafkaConsumer.pollTimeoutMs", DEFAULT_POLL_TIMEOUT_MS),
        attempts=max(_number(options, "fetchOffset.numRetries", 1), 1),
        retry_interval_ms=_number(options, "fetchOffset.retryIntervalMs", DEFAULT_RETRY_INTERVAL_MS),
        push_filters=_boolean(options, "pushFilters", False),
    )
    # checked last, so that an option that is wrong for a batch and for a stream gets the same error in both
    if streaming:
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if name.lower() in options:
                raise OptionError(f"{name} is not valid in streaming queries")
    else:
        _refuse_for_batch(starting, "starting", LATEST, "latest")
        _refuse_for_batch(ending, "ending", EARLIEST, "earliest")
        _refuse_reversed("startingOffsets", starting.offsets, "endingOffsets", ending.offsets)
        _refuse_reversed(
            "startingOffsetsByTimestamp", starting.timestamps, "endingOffsetsByTimestamp", ending.timestamps
        )
    return read


def columns_of(given: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a read before it is known whether it is a batch or a stream.

    Raises OptionError for options that neither of them can have.
    """
    try:
        return read_options(given, streaming=False).columns
    except OptionError as error:
        try:
            return read_options(given, streaming=True).columns
        except OptionError:
            raise error from None


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
    _refuse_misspelled(given)
    # Kafka's client ignores spaces around a value
    options = {name: value.strip() for name, value in complete(given).items()}
    acks = options.get("kafka.acks", "all").lower()
    if acks not in _ACKS:
        raise OptionError(f"kafka.acks is '{acks}'; it can be {', '.join(_ACKS)}")
    idempotent = _boolean(options, "kafka.enable.idempotence", _ACKS[acks] == ALL_REPLICAS)
    if idempotent and _ACKS[acks] != ALL_REPLICAS:
        raise OptionError(f"kafka.acks is '{acks}', and kafka.enable.idempotence=true needs all: change one of them")
    compression = options.get("kafka.compression.type", "none").lower()
    if compression not in CODEC_NAMES:
        raise OptionError(f"kafka.compression.type is '{compression}'; it can be {', '.join(CODEC_NAMES)}")
    return SinkOptions(
        properties=kafka_properties(given, _REFUSED_IN_SINK),
        topic=options.get("topic") or None,
        batch_bytes=_positive(options, "kafka.batch.size"),
        codec=CODEC_NAMES.index(compression),
        acks=_ACKS[acks],
        idempotent=idempotent,
        delivery_timeout_ms=_number(options, "kafka.delivery.timeout.ms", DEFAULT_POLL_TIMEOUT_MS),
        exactly_once=_exactly_once(options, idempotent, streaming),
    )


def _exactly_once(options: Mapping[str, str], idempotent: bool, streaming: bool) -> ExactlyOnce | None:
    transactional_id = options.get("kafka.transactional.id", "")
    batch_id = options.get("batchid") or None
    if not _boolean(options, "exactlyOnce", False):
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
    timeout_ms = _positive(options, "kafka.transaction.timeout.ms", LARGEST_INT)
    return ExactlyOnce(
        transactional_id,
        DEFAULT_TRANSACTION_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        batch_id,
        streaming,
    )


def _refuse_misspelled(given: Mapping[str, str]) -> None:
    sentence = option_names.misspelled(given)
    if sentence is not None:
        raise OptionError(sentence)


def complete(given: Mapping[str, str]) -> dict[str, str]:
    """With names in lower case, because they are not case-sensitive, and the properties in the file `commandConfig`.

    The file is read where Spark plans, so that only that machine needs it. Raises OptionError.
    """
    options = {name.lower(): value for name, value in given.items()}
    file = options.get("commandconfig", "").strip()
    if not file:
        return options
    try:
        found = properties.read(file)
    except LocalError as error:
        raise OptionError(f"option commandConfig: {error}") from error
    return {**{f"{KAFKA}{name}": value for name, value in found.items()}, **options}


def kafka_properties(given: Mapping[str, str], refused: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """What the options say to Kafka's client. Raises OptionError."""
    of_client = {name[len(KAFKA) :]: value for name, value in complete(given).items() if name.startswith(KAFKA)}
    for name, why in refused.items():
        if name in of_client:
            raise OptionError(f"Kafka option '{name}' is not supported: {why}")
    if not of_client.get("bootstrap.servers", "").strip():
        raise OptionError(
            "option 'kafka.bootstrap.servers' must be specified: host:port,host:port, or a commandConfig that has it"
        )
    return of_client


def _strategy(
    options: Mapping[str, str],
) -> tuple[tuple[str, ...] | None, str | None, tuple[TopicPartition, ...] | None]:
    given = [name for name in STRATEGIES if name.lower() in options]
    if len(given) != 1:
        how_many = "only one" if given else "one"
        raise OptionError(f"{how_many} of the following options must be specified: {', '.join(STRATEGIES)}")
    value = options[given[0].lower()].strip()
    if given[0] == "subscribe":
        topics = tuple(sorted({topic for part in value.split(",") if (topic := part.strip())}))
        if not topics:
            raise OptionError(f"no topics to subscribe to: option 'subscribe' is '{value}'")
        return topics, None, None
    if given[0] == "subscribePattern":
        if not value:
            raise OptionError("the option 'subscribePattern' is empty")
        try:
            patterns.compiled(value)
        except (re.error, OverflowError, RecursionError) as error:
            raise OptionError(f"option 'subscribePattern' is not a regular expression: {error}") from error
        return None, value, None
    return None, None, _assigned(value)


def _assigned(value: str) -> tuple[TopicPartition, ...]:
    problem = OptionError(f"option 'assign' must be JSON like {{\"topic\":[0,1]}}, it is '{value}'")
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise problem from error
    if not isinstance(parsed, dict) or not all(isinstance(partitions, list) for partitions in parsed.values()):
        raise problem
    pairs = {(topic, partition) for topic, partitions in parsed.items() for partition in partitions}
    if not pairs or not all(type(partition) is int and partition >= 0 for _, partition in pairs):
        raise problem
    return tuple(sorted(pairs))


def _limit(options: Mapping[str, str], side: str, offset: int) -> OffsetRangeLimit:
    """side: "starting" or "ending". The more precise option wins, as in Spark."""
    latest_if_none = True
    if side == "starting":
        strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
        if strategy not in ("error", "latest"):
            raise OptionError(f"startingOffsetsByTimestampStrategy is '{strategy}'; it can be error or latest")
        latest_if_none = strategy == "latest"
    name = f"{side}Timestamp"
    if name.lower() in options:
        timestamp_ms = _whole(name, options[name.lower()].strip(), EARLIEST, LARGEST)
        return OffsetRangeLimit(timestamp_ms=timestamp_ms, latest_if_none=latest_if_none)
    name = f"{side}OffsetsByTimestamp"
    if name.lower() in options:
        timestamps = partition_numbers(name, options[name.lower()])
        for partition, timestamp_ms in timestamps.items():
            if timestamp_ms < EARLIEST:
                raise OptionError(f"{name}: {timestamp_ms} for {partition[0]}-{partition[1]} is not a timestamp in ms")
        return OffsetRangeLimit(timestamps=timestamps, latest_if_none=latest_if_none)
    name = f"{side}Offsets"
    default = _default(options, f"{name}Default")
    if name.lower() not in options:
        # no JSON names no partition
        return OffsetRangeLimit(offset=offset if default is None else default)
    value = options[name.lower()].strip()
    if value.lower() in _NAMED_OFFSETS:
        return OffsetRangeLimit(offset=_NAMED_OFFSETS[value.lower()])
    offsets = partition_offsets(name, value)
    return OffsetRangeLimit(offsets=offsets, default=default, text=value)


_NAMED_OFFSETS = {"earliest": EARLIEST, "latest": LATEST}


def _default(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name.lower())
    if value is None:
        return None
    if value.strip().lower() not in _NAMED_OFFSETS:
        raise OptionError(f"{name} is '{value}'; it can be earliest or latest")
    return _NAMED_OFFSETS[value.strip().lower()]


def _refuse_for_batch(limit: OffsetRangeLimit, side: str, offset: int, word: str) -> None:
    if limit.offset == offset:
        raise OptionError(f"{side} offset can't be {word} for batch queries")
    if limit.default == offset:
        raise OptionError(f"{side}OffsetsDefault can't be {word} for batch queries")
    for (topic, partition), given in (limit.offsets or {}).items():
        if given == offset:
            raise OptionError(f"{side}Offsets for {topic}-{partition} can't be {word} for batch queries")


def _refuse_reversed(
    begins: str, starts: Mapping[TopicPartition, int] | None, ends: str, stops: Mapping[TopicPartition, int] | None
) -> None:
    for (topic, partition), start in (starts or {}).items():
        stop = (stops or {}).get((topic, partition), LATEST)
        # -1 and -2 are not offsets yet
        if 0 <= stop < start:
            raise OptionError(f"{begins} for {topic}-{partition} is {start}, behind its {ends}, {stop}: exchange them")


def partition_offsets(name: str, value: str) -> dict[TopicPartition, int]:
    """Spark's JSON of offsets, without our own member of a stream's offset. Raises OptionError."""
    offsets = partition_numbers(name, value)
    for (topic, partition), offset in offsets.items():
        if offset < EARLIEST:
            raise OptionError(f"{name}: {offset} for {topic}-{partition}; -2 is the earliest offset, -1 the latest")
    return offsets


def partition_numbers(name: str, value: str) -> dict[TopicPartition, int]:
    """{"topic": {"0": 5}}; the words "earliest" and "latest" are not allowed as numbers."""
    problem = OptionError(
        f'{name} must be earliest, latest or JSON like {{"topic":{{"0":23,"1":-2}}}}, not \'{value}\''
    )
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise problem from error
    if not isinstance(parsed, dict):
        raise problem
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in parsed.items():
        if topic.startswith("@"):  # not a topic's name, but what a stream's offset stores in addition to the offsets
            continue
        if not isinstance(partitions, dict):
            raise problem
        for partition, number in partitions.items():
            if not re.fullmatch(r"[+-]?\d{1,10}", partition) or type(number) is not int or number > LARGEST:
                raise problem
            numbers[topic, int(partition)] = number
    return numbers


def _columns(options: Mapping[str, str]) -> tuple[str, ...]:
    include_headers = _boolean(options, "includeHeaders", False)
    value = options.get("columns")
    if value is None:
        return COLUMNS if include_headers else PLAIN_COLUMNS
    known = {name.lower(): name for name in COLUMNS}
    names = [part.strip() for part in value.split(",") if part.strip()]
    for name in names:
        if name.lower() not in known:
            raise OptionError(f"columns: there is no column '{name}'; there are {', '.join(COLUMNS)}")
    wanted = [known[name.lower()] for name in names]
    if not wanted or len(set(wanted)) < len(wanted):
        raise OptionError(f"columns is '{value}'; it must name each wanted column once")
    return tuple(wanted)


def _on_data_loss(options: Mapping[str, str]) -> tuple[OnDataLoss, str | None]:
    """failOnDataLoss is Spark's option for the first two; onDataLoss wins."""
    fail = _boolean(options, "failOnDataLoss", True)
    value = options.get("ondataloss")
    path = options.get("quarantinepath") or None
    if value is None:
        return (OnDataLoss.FAIL if fail else OnDataLoss.SKIP), path
    try:
        chosen = OnDataLoss(value.strip().lower())
    except ValueError as error:
        raise OptionError(f"onDataLoss is '{value}'; it can be fail, skip or quarantine") from error
    if chosen is OnDataLoss.QUARANTINE and path is None:
        raise OptionError("onDataLoss=quarantine needs quarantinePath: the directory of the table of what was lost")
    return chosen, path


def _boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    value = options.get(name.lower())
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise OptionError(f"{name} is '{value}'; it can be true or false")
    return value.lower() == "true"


def _number(options: Mapping[str, str], name: str, default: int, largest: int = LARGEST) -> int:
    value = options.get(name.lower())
    return default if value is None else _whole(name, value, 0, largest)


def _whole(name: str, value: str, smallest: int, largest: int) -> int:
    """As Java reads it: a sign is allowed, spaces are not."""
    # the length is checked first: Python refuses to read a number of thousands of digits
    if not re.fullmatch(r"[+-]?\d{1,19}", value) or not smallest <= int(value) <= largest:
        raise OptionError(f"{name} is '{value}'; it must be a number from {smallest} to {largest}")
    return int(value)


def _positive(options: Mapping[str, str], name: str, largest: int = LARGEST) -> int | None:
    number = _number(options, name, -1, largest)
    if number == 0:
        raise OptionError(f"{name} must be positive")
    return None if number < 0 else number


def _duration_ms(options: Mapping[str, str], name: str, default: int) -> int:
    """Spark's time strings: 15m, 30s, 500ms; a bare number is milliseconds."""
    value = options.get(name.lower())
    if value is None:
        return default
    found = _DURATION.fullmatch(value)
    if found is None:
        raise OptionError(f"{name} is '{value}'; it must be a time like 15m, 30s or 500ms")
    return int(int(found[1]) * _UNIT_MS[(found[2] or "ms").lower()])
