"""The options of the data source: their names, meanings and refusals are those of Spark's own Kafka source.

    subscribe | subscribePattern | assign      which partitions: exactly one of them
    starting..., ending...                     where to begin and to end (`offset_limits.py`)
    kafka.*                                    properties of Kafka's client, their names without this prefix

Only this source has `columns`, `startingOffsetsDefault` and `endingOffsetsDefault`, `onDataLoss`, `quarantinePath`,
`commitGroup`, `pushFilters` and `commandConfig` (a file of properties of Kafka's client). A misspelled option is
refused (`option_names.py`).

Values of `kafka.*` may be secrets: no message here repeats one, and `Options` keeps them out of its repr.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from heirlog.spark import patterns
from heirlog.spark.columns import COLUMNS, PLAIN_COLUMNS
from heirlog.spark.offset_limits import (
    EARLIEST,
    LATEST,
    OffsetRangeLimit,
    TopicPartition,
    offset_limit,
    refuse_for_batch,
    refuse_reversed,
)
from heirlog.spark.option_names import STRATEGIES
from heirlog.spark.option_values import (
    DEFAULT_POLL_TIMEOUT_MS,
    LARGEST_INT,
    OptionError,
    boolean,
    complete,
    duration_ms,
    kafka_properties,
    number,
    positive,
    refuse_misspelled,
)

DEFAULT_MAX_TRIGGER_DELAY_MS = 15 * 60 * 1000
DEFAULT_RETRY_INTERVAL_MS = 1000

_REFUSED = {
    "auto.offset.reset": "instead set the option startingOffsets to 'earliest' or 'latest' ; "
    "Spark itself keeps the offsets that follow",
    "key.deserializer": "keys are read as byte arrays; decode them with DataFrame operations",
    "value.deserializer": "values are read as byte arrays; decode them with DataFrame operations",
    "enable.auto.commit": "the source commits no offsets; commitGroup writes them for tools that watch the lag",
    "interceptor.classes": "interceptors are Java classes, and no Java runs here",
}
ISOLATIONS = ("read_uncommitted", "read_committed")
_TRIGGER_LIMITS = {"minoffsetspertrigger", "maxoffsetspertrigger"}
"""Options of streams. In a batch Spark's source only compares them with each other."""


class OnDataLoss(Enum):
    FAIL = "fail"
    SKIP = "skip"
    QUARANTINE = "quarantine"


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
    refuse_misspelled(given)
    options = complete(given)
    topics, pattern, assigned = _strategy(options)
    of_client = kafka_properties(options, _REFUSED)
    isolation = of_client.get("isolation.level", ISOLATIONS[0]).strip()
    if isolation not in ISOLATIONS:
        raise OptionError(f"kafka.isolation.level is '{isolation}'; it can be {' or '.join(ISOLATIONS)}")
    starting = offset_limit(options, "starting", LATEST if streaming else EARLIEST)
    ending = offset_limit(options, "ending", LATEST)
    triggers = options if streaming or options.keys() >= _TRIGGER_LIMITS else {}
    min_offsets = positive(triggers, "minOffsetsPerTrigger")
    max_offsets = positive(triggers, "maxOffsetsPerTrigger")
    if min_offsets is not None and max_offsets is not None and min_offsets > max_offsets:
        raise OptionError(
            f"the value of minOffsetsPerTrigger ({min_offsets}) should be less than or equal to "
            f"the value of maxOffsetsPerTrigger ({max_offsets})"
        )
    delays = options if streaming else {}
    max_trigger_delay_ms = duration_ms(delays, "maxTriggerDelay", DEFAULT_MAX_TRIGGER_DELAY_MS)
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
        min_partitions=positive(options, "minPartitions", LARGEST_INT),
        max_records=positive(options, "maxRecordsPerPartition"),
        max_bytes=positive(options, "maxBytesPerPartition"),
        on_data_loss=on_data_loss,
        quarantine_path=quarantine_path,
        commit_group=options.get("commitgroup") or None,
        poll_timeout_ms=number(options, "kafkaConsumer.pollTimeoutMs", DEFAULT_POLL_TIMEOUT_MS),
        attempts=max(number(options, "fetchOffset.numRetries", 1), 1),
        retry_interval_ms=number(options, "fetchOffset.retryIntervalMs", DEFAULT_RETRY_INTERVAL_MS),
        push_filters=boolean(options, "pushFilters", False),
    )
    # checked last, so that an option that is wrong for a batch and for a stream gets the same error in both
    if streaming:
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if name.lower() in options:
                raise OptionError(f"{name} is not valid in streaming queries")
    else:
        refuse_for_batch(starting, "starting", LATEST, "latest")
        refuse_for_batch(ending, "ending", EARLIEST, "earliest")
        refuse_reversed("startingOffsets", starting.offsets, "endingOffsets", ending.offsets)
        refuse_reversed(
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


def _columns(options: Mapping[str, str]) -> tuple[str, ...]:
    include_headers = boolean(options, "includeHeaders", False)
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
    fail = boolean(options, "failOnDataLoss", True)
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
