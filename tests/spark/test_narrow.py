"""What filters leave of a plan; and on a cluster, that they take no row that Spark would select."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from spark.topics import Topics

from heirlog.blocking import Client, Fetched
from heirlog.spark.narrow import narrowing
from heirlog.spark.option_values import LARGEST
from heirlog.spark.options import read_options
from heirlog.spark.plan import Range
from heirlog.spark.source import HeirlogReader, spark_schema
from heirlog.testing.cluster import Cluster

PLANNED = [Range("a", 0, 10, 90, last_epoch=4), Range("a", 1, 0, 50), Range("b", 0, 5, 6)]
START_MS = 1_700_000_000_000
PATH = ("offset",)


def at(ms: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=ms)


def left(*filters: Filter) -> list[tuple[str, int, int, int]]:
    ranges = narrowing(filters).ranges(PLANNED, lambda times: {})
    return [(one.topic, one.partition, one.start, one.stop) for one in ranges if one.size]


EVERYTHING = left()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("topic",), "b")], [("b", 0, 5, 6)]),
        ([EqualTo(("partition",), 1), IsNotNull(("partition",))], [("a", 1, 0, 50)]),
        ([In(("topic",), ("b", "c", None)), EqualNullSafe(("partition",), 0)], [("b", 0, 5, 6)]),
        ([Not(EqualTo(("topic",), "a"))], [("b", 0, 5, 6)]),
        ([StringStartsWith(("topic",), "b")], [("b", 0, 5, 6)]),
        ([GreaterThan(("partition",), 0)], [("a", 1, 0, 50)]),
        ([EqualTo(("partition",), 7)], []),
        ([EqualTo(PATH, 20)], [("a", 0, 20, 21), ("a", 1, 20, 21)]),
        ([GreaterThanOrEqual(PATH, 20), LessThan(PATH, 40)], [("a", 0, 20, 40), ("a", 1, 20, 40)]),
        ([GreaterThan(PATH, 85), LessThanOrEqual(PATH, 400)], [("a", 0, 86, 90)]),
        ([In(PATH, (7, None, 3))], [("a", 1, 3, 8), ("b", 0, 5, 6)]),
        ([LessThan(PATH, 0)], []),
        ([GreaterThan(PATH, LARGEST)], []),
    ],
)
def test_filters_leave_what_they_can_select(filters: list[Filter], expected: list[Any]) -> None:
    assert left(*filters) == expected


@pytest.mark.parametrize(
    "one",
    [
        EqualTo(("partition",), "1"),
        EqualTo(("partition",), True),
        In(("partition",), (1, "1")),
        EqualTo(("value",), b"x"),
        EqualTo(("headers", "topic"), "b"),
        Not(EqualTo(PATH, 3)),
        EqualTo(PATH, None),
        EqualNullSafe(PATH, None),
        In(PATH, (None,)),
        IsNotNull(("timestamp",)),
    ],
)
def test_a_filter_that_is_not_understood_leaves_everything(one: Filter) -> None:
    assert left(one) == EVERYTHING


@pytest.mark.parametrize(
    ("one", "since_ms"),
    [
        (GreaterThanOrEqual(("timestamp",), at(5)), 5),
        (GreaterThanOrEqual(("timestamp",), at(5.001)), 6),
        (GreaterThan(("timestamp",), at(5)), 6),
        (GreaterThan(("timestamp",), at(5.999)), 6),
        (EqualTo(("timestamp",), at(5)), 5),
        (In(("timestamp",), (at(9), None, at(7))), 7),
        (LessThan(("timestamp",), at(5)), None),
        (LessThanOrEqual(("timestamp",), at(5)), None),
        (Not(EqualTo(("timestamp",), at(5))), None),
        # without a time zone it is not known which time is meant
        (EqualTo(("timestamp",), at(5).replace(tzinfo=None)), None),
        (EqualTo(("timestamp",), at(5).astimezone(datetime.timezone(datetime.timedelta(hours=3)))), 5),
        # -1 and -2 would ask for the latest and the earliest offset
        (GreaterThanOrEqual(("timestamp",), at(-1)), None),
        (GreaterThan(("timestamp",), at(-1)), None),
    ],
)
def test_only_a_lower_bound_of_timestamps_is_asked_for(one: Filter, since_ms: int | None) -> None:
    assert narrowing([one]).since_ms == since_ms


def test_a_range_begins_at_the_first_record_that_is_late_enough() -> None:
    asked: list[dict[Any, int]] = []

    def offsets_at(times: dict[Any, int]) -> dict[Any, int]:
        asked.append(times)
        return {("a", 0): 30, ("a", 1): -1}

    filters = [GreaterThanOrEqual(("timestamp",), at(5)), EqualTo(("topic",), "a"), LessThan(PATH, 60)]
    ranges = narrowing(filters).ranges(PLANNED, offsets_at)
    assert asked == [{("a", 0): 5, ("a", 1): 5}]
    assert [one for one in ranges if one.size] == [Range("a", 0, 30, 60, last_epoch=-1)]


def test_pyspark_takes_the_reader_for_one_without_filters_where_they_are_switched_off() -> None:
    reader: Any = HeirlogReader(read_options(given("t"), streaming=False), spark_schema(("offset",)))
    # PySpark's own comparison, in pyspark.sql.worker.plan_data_source_read
    assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters


# -- on a cluster -----------------------------------------------------------------------------------------------

COLUMNS = ("topic", "partition", "offset", "timestamp")
RECORDS = 900
PARTITIONS = 3


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)


@pytest.fixture(scope="module")
def filled(topics: Topics) -> str:
    """Two topics, times that go back, batches of many sizes and codecs, aborted and deleted records among them."""
    draw = random.Random(18)
    names = [topics.create(PARTITIONS, message_timestamp_type=kind) for kind in ("CreateTime", "LogAppendTime")]
    for number, codec in enumerate(("none", "lz4", "gzip")):
        producer = Producer(
            {
                "bootstrap.servers": topics.servers,
                "compression.type": codec,
                "batch.num.messages": draw.choice((1, 7, 100)),
                "transactional.id": f"narrow-{number}",
            }
        )
        producer.init_transactions(60)
        for is_kept in (True, False, True):
            producer.begin_transaction()
            for _ in range(RECORDS // 9):
                producer.produce(
                    names[draw.randrange(2)],
                    b"v",
                    partition=draw.randrange(PARTITIONS),
                    timestamp=START_MS + draw.randrange(0, 60),
                )
            producer.commit_transaction(60) if is_kept else producer.abort_transaction(60)
    topics.delete_records(names[0], 1, 25)
    return ",".join(names)


def given(subscribe: str, servers: str = "localhost:1", **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "subscribe": subscribe, "pushFilters": "true", **more}


def read(options: dict[str, str], filters: Sequence[Filter]) -> list[dict[str, Any]]:
    """As Spark's planner and tasks call the reader."""
    reader: Any = HeirlogReader(read_options(options, streaming=False), spark_schema(COLUMNS))
    assert list(reader.pushFilters(list(filters))) == list(filters), "Spark evaluates all of them"
    batches: list[pa.RecordBatch] = [batch for part in reader.partitions() for batch in reader.read(part)]
    return [row for batch in batches for row in batch.to_pylist()]


def drawn_filters(draw: random.Random, names: list[str], lowest_ms: int, highest_ms: int) -> Iterator[Filter]:
    def value(column: str) -> Any:
        if column == "topic":
            return draw.choice([*names, "other"])
        if column == "partition":
            return draw.randrange(-1, PARTITIONS + 1)
        if column == "offset":
            return draw.randrange(-5, 250)
        return at(draw.randrange(lowest_ms - 3, highest_ms + 3) + draw.choice((0, 0, 0.001, 0.999)))

    for _ in range(draw.randrange(1, 4)):
        column = draw.choice(COLUMNS)
        kinds = [EqualTo, EqualNullSafe] if column == "topic" else [EqualTo, *ORDERED]
        if draw.random() < 0.25:
            yield In((column,), tuple(value(column) for _ in range(draw.randrange(1, 4))))
        else:
            one = draw.choice(kinds)((column,), value(column))
            yield Not(one) if draw.random() < 0.2 else one


ORDERED = (LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)


def passes(one: Filter, row: dict[str, Any]) -> bool:
    if isinstance(one, Not):
        return not passes(one.child, row)
    value, other = row[one.attribute[0]], one.value  # type: ignore[attr-defined]
    if isinstance(one, In):
        return value in other
    if isinstance(one, LessThan):
        return bool(value < other)
    if isinstance(one, LessThanOrEqual):
        return bool(value <= other)
    if isinstance(one, GreaterThan):
        return bool(value > other)
    if isinstance(one, GreaterThanOrEqual):
        return bool(value >= other)
    return bool(value == other)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_no_filter_takes_a_row_that_it_selects(topics: Topics, filled: str, isolation: str) -> None:
    options = given(filled, topics.servers, **{"kafka.isolation.level": isolation})
    everything = read(options, [])
    assert len({row["topic"] for row in everything}) == 2
    times = [row["timestamp"].timestamp() * 1000 for row in everything]
    by_log = sorted(everything, key=lambda row: (row["topic"], row["partition"], row["offset"]))
    assert any(after["timestamp"] < row["timestamp"] for row, after in pairwise(by_log))
    draw = random.Random(isolation)
    fewer = 0
    for _ in range(150):
        highest_ms = START_MS + 60 if draw.random() < 0.7 else int(max(times))
        filters = list(drawn_filters(draw, filled.split(","), START_MS, highest_ms))
        seen = read(options, filters)
        fewer += len(seen) < len(everything)
        expected = [row for row in by_log if all(passes(one, row) for one in filters)]
        selected = [row for row in seen if all(passes(one, row) for one in filters)]
        assert sorted(selected, key=lambda row: (row["topic"], row["partition"], row["offset"])) == expected, filters
    assert fewer > 75


def test_fewer_bytes_are_fetched(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """In proportion to what a filter leaves, give or take the batch in which it begins."""
    topic = topics.create(2)
    records = (
        {"value": bytes(500), "partition": number % 2, "timestamp": START_MS + number} for number in range(20_000)
    )
    topics.produce(topic, records, **{"batch.num.messages": 100})
    fetched = Counter[str]()

    def counting(self: Client, *args: Any, **kwargs: Any) -> Iterator[Fetched]:
        for part in original(self, *args, **kwargs):
            fetched["bytes"] += len(part.records)
            yield part

    original = Client.fetch
    monkeypatch.setattr(Client, "fetch", counting)

    def fetched_for(*filters: Filter) -> int:
        fetched.clear()
        read(given(topic, topics.servers), filters)
        return fetched["bytes"]

    everything = fetched_for()
    assert everything > 20_000 * 500
    assert fetched_for(EqualTo(("partition",), 1)) < everything * 0.51
    assert fetched_for(GreaterThanOrEqual(("timestamp",), at(START_MS + 15_000))) < everything * 0.26
    assert fetched_for(GreaterThan(PATH, 4000), LessThan(PATH, 5000)) < everything * 0.2
    assert fetched_for(GreaterThanOrEqual(("timestamp",), at(START_MS + 20_000))) == 0
    assert fetched_for(EqualTo(("topic",), "other")) == 0
    # an upper bound is no bound: a late record may be anywhere
    assert fetched_for(LessThan(("timestamp",), at(START_MS + 5000))) == everything


# -- through Spark ----------------------------------------------------------------------------------------------

PUSHED = "spark.sql.python.filterPushdown.enabled"
WHERE = [
    ("partition = 1 AND offset BETWEEN 3 AND 40", True),
    ("partition IN (0, 2) AND cast(value AS STRING) = 'v'", True),
    ("topic LIKE '{create}%' AND partition <> 0", True),
    ("timestamp >= timestamp_millis({start} + 50)", True),
    ("timestamp = timestamp_millis({start} + 30) OR offset = 3", False),
    ("timestamp < timestamp_millis({start} + 30)", False),
    ("timestamp BETWEEN timestamp_millis({start} + 58) AND timestamp_millis({start} + 61) AND offset > 20", True),
    ("timestamp > '2023-11-14 23:13:20.030'", True),
]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    spark.conf.unset(PUSHED)


@pytest.mark.parametrize(("where", "is_narrowed"), WHERE)
def test_spark_selects_the_same_rows_with_and_without_pushdown(
    session: SparkSession, topics: Topics, filled: str, where: str, is_narrowed: bool
) -> None:
    create, _ = filled.split(",")

    def rows(is_pushed: bool) -> tuple[list[Any], int]:
        session.conf.set(PUSHED, str(is_pushed).lower())
        options = given(create, topics.servers, columns="topic,partition,offset,timestamp,value")
        frame = session.read.format("heirlog").options(**options).load()
        selected = frame.where(where.format(create=create, start=START_MS))
        found = sorted(map(tuple, selected.collect()))
        (scan,) = scans(selected._jdf.queryExecution().executedPlan())
        return found, scan.metrics().apply("numOutputRows").value()

    (selected, without), (pushed, narrowed) = rows(False), rows(True)
    assert selected == pushed
    assert (narrowed < without) == is_narrowed


def scans(plan: Any) -> list[Any]:
    leaves = plan.collectLeaves()
    return [leaves.apply(index) for index in range(leaves.size())]


def test_without_the_option_a_session_that_pushes_filters_reads_everything(
    session: SparkSession, topics: Topics, filled: str
) -> None:
    """PySpark 4.2 and 4.3 keep one plan for all queries of a load(): what a filter excludes is missing in the next."""
    session.conf.set(PUSHED, "true")

    def counts(**more: str) -> list[int]:
        options = {**given(filled, topics.servers), **more}
        frame = session.read.format("heirlog").options(**options).load()
        return [frame.where("partition = 0").count(), frame.count()]

    one, everything = counts(pushFilters="false")
    assert one < everything == len(read(given(filled, topics.servers), []))
    # if this fails, Spark is mended: make the option the default, and say so in docs/reference/spark.md
    assert counts() == [one, one]
