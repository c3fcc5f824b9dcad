"""Spark's own Kafka connector beside the source `heirlog`: equal rows, equal refusals, on heirlog and on Apache Kafka.

The connector's jars are resolved by Maven one by one, without what they depend on (Spark has that), and checked against
spark-jars.sha256. They stay in .cache/interop/spark-jars. Newest complete set: see JARS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import jars
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from secured_kafka import PASSWORD, USER, jaas, secured_kafka

from heirlog.testing.cluster import Cluster

HERE = Path(__file__).resolve().parent
CACHE = jars.CACHE / "spark-jars"
JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)
RECORDS = 600
PARTITIONS = 3
TIME_MS = 1_700_000_000_000
CONNECT_TIMEOUT_S = 600


def _offsets(*offsets: float, topic: str = "T") -> str:
    """Of the first partitions of a topic."""
    return json.dumps({topic: {str(partition): offset for partition, offset in enumerate(offsets)}})


LATE_MS = TIME_MS * 2
"""No record is as late."""
# T and aTb are filled alike; of `cut` the first CUT records of partition 0 are deleted
READS: list[dict[str, str]] = [
    {},
    {"includeHeaders": "TRUE"},
    {"startingOffsets": " Earliest", "endingOffsets": "LATEST"},
    {"startingOffsets": _offsets(7, -2, 100), "endingOffsets": _offsets(20, -1, 100)},
    {"startingOffsets": _offsets(200, 200, 200)},
    {"endingOffsets": _offsets(0, 0, 0)},
    {"startingTimestamp": str(TIME_MS + 100), "endingTimestamp": str(TIME_MS + 400)},
    {"startingTimestamp": "0", "endingTimestamp": str(LATE_MS), "startingOffsets": "nonsense"},
    {"startingTimestamp": "-2", "endingTimestamp": " -1 "},
    {"startingOffsetsByTimestamp": _offsets(TIME_MS + 50, TIME_MS, TIME_MS + 500)},
    {"endingOffsetsByTimestamp": _offsets(TIME_MS + 50, LATE_MS, TIME_MS), "endingOffsets": "earliest"},
    {"startingTimestamp": str(LATE_MS), "startingOffsetsByTimestampStrategy": "latest"},
    {
        "startingOffsetsByTimestamp": _offsets(LATE_MS, TIME_MS, LATE_MS),
        "startingOffsetsByTimestampStrategy": "LATEST",
    },
    *({"minPartitions": str(number)} for number in (1, 3, 7, 20)),
    {"minPartitions": "7", "startingOffsets": _offsets(0, 150, 200), "endingOffsets": _offsets(200, 151, 200)},
    {"minPartitions": "9", "maxRecordsPerPartition": "50"},
    {"minPartitions": "+7", "maxOffsetsPerTrigger": "x"},
    {"maxRecordsPerPartition": "11"},
    {"subscribe": " T ,, T"},
    {"subscribe": "T,aTb"},
    *(
        {"subscribe": "", "subscribePattern": pattern}
        for pattern in ("T", "^T$", "T.+", "(?i)^t$", "no-such", " T", r"^\QT\E\z")
    ),
    *(
        {"subscribe": "", "assign": assigned}
        for assigned in ('{"T":[0,2]}', ' {"T":[2,0,2], "aTb":[1]}', '{"T":[1,7]}')
    ),
    {"subscribe": "", "assign": '{"T":[1]}', "STARTINGOFFSETS": '{"T":{"1":3}}'},
    {"subscribe": "cut"},
    {"subscribe": "cut", "startingOffsets": _offsets(0, 0, 0, topic="cut"), "failOnDataLoss": "false"},
    {"endingOffsets": _offsets(999, 5, 5), "FAILONDATALOSS": "False"},
    {"kafka.isolation.level": "read_committed", "groupIdPrefix": "g", "kafka.group.id": ""},
    {"kafkaConsumer.pollTimeoutMs": "20000", "fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "1"},
    {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "2", "maxTriggerDelay": "1s", "unknown": "option"},
]
REFUSED: list[dict[str, str]] = [
    {"subscribe": ""},
    {"subscribe": ","},
    {"subscribe": "T,there-is-no-such-topic"},
    {"subscribe": "not a name"},
    {"assign": '{"T":[0]}'},
    {"subscribe": "", "subscribePattern": "("},
    *({"subscribe": "", "assign": assigned} for assigned in ("T", '{"T":0}', '{"T":["x"]}', '{"there-is-none":[0]}')),
    *({"startingOffsets": value} for value in ("latest", "soon", "", "{}", "[1]", '"earliest"', _offsets(0, 0, 0, 0))),
    *({"startingOffsets": _offsets(*offsets)} for offsets in ((7,), (0, 0, -1), (0, 0, -3), (999, 0, 0))),
    *({"endingOffsets": value} for value in ("earliest", "", "{}", _offsets(1))),
    *({"endingOffsets": _offsets(*offsets)} for offsets in ((-2, -1, -1), (-3, -1, -1), (999, 5, 5))),
    {"startingOffsets": _offsets(9, 9, 9), "endingOffsets": _offsets(9, 9, 8)},
    {"startingOffsets": _offsets(9, 9, 9), "endingOffsets": _offsets(9, 9, 8), "failOnDataLoss": "false"},
    {"startingOffsetsByTimestamp": _offsets(2, 2, 2), "endingOffsetsByTimestamp": _offsets(2, 2, 1)},
    {"startingTimestamp": str(TIME_MS + 400), "endingTimestamp": str(TIME_MS + 100)},
    {"subscribe": "cut", "endingOffsets": _offsets(3, -1, -1, topic="cut")},
    {"subscribe": "cut", "startingOffsets": _offsets(0, 0, 0, topic="cut")},
    *({"startingTimestamp": value} for value in ("", "noon", "5.5", str(2**63), str(LATE_MS))),
    {"startingOffsetsByTimestamp": _offsets(TIME_MS)},
    {"startingOffsetsByTimestamp": _offsets(TIME_MS, TIME_MS, TIME_MS, TIME_MS)},
    {"startingOffsetsByTimestamp": "earliest"},
    {"endingOffsetsByTimestamp": _offsets(TIME_MS)},
    {"endingTimestamp": "late"},
    {"startingOffsetsByTimestampStrategy": "guess", "startingTimestamp": "5"},
    *({"minPartitions": value} for value in ("0", "-1", "x", "", " 7", str(2**31))),
    *({"maxRecordsPerPartition": value} for value in ("0", "-1", "x", str(2**63))),
    {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
    {"failOnDataLoss": " true"},
    *({name: "yes"} for name in ("includeHeaders", "failOnDataLoss", "kafkaConsumer.pollTimeoutMs")),
    *({f"fetchOffset.{name}": "x"} for name in ("numRetries", "retryIntervalMs")),
    *({f"kafka.{name}": "x"} for name in ("auto.offset.reset", "key.deserializer", "VALUE.deserializer")),
    *({f"kafka.{name}": "false"} for name in ("enable.auto.commit", "interceptor.classes")),
    {"kafka.isolation.level": "READ"},
    {"kafka.security.protocol": "TELEPATHY"},
    {"kafka.bootstrap.servers": "no-port"},
]
FROM_BEGIN = {"startingOffsets": "earliest"}
STREAMS: list[dict[str, str]] = [
    {**FROM_BEGIN, "maxOffsetsPerTrigger": "200"},
    {"startingOffsets": _offsets(198, 197, 199), "maxOffsetsPerTrigger": "2"},
    {"startingOffsets": _offsets(-2, -1, 150)},
    {"startingOffsets": _offsets(999, -1, 150), "failOnDataLoss": "false"},
    {"startingTimestamp": str(TIME_MS + 300), "minPartitions": "5", "maxRecordsPerPartition": "20"},
    {"startingTimestamp": str(LATE_MS), "startingOffsetsByTimestampStrategy": "latest"},
    {**FROM_BEGIN, "minOffsetsPerTrigger": "9999", "maxTriggerDelay": "1min"},
    {**FROM_BEGIN, "subscribe": "", "subscribePattern": "T$"},
    {**FROM_BEGIN, "subscribe": "", "assign": '{"T":[1,7]}'},
    {"subscribe": "cut", "startingOffsets": _offsets(0, 0, 0, topic="cut"), "failOnDataLoss": "false"},
]
STREAMS_REFUSED: list[dict[str, str]] = [
    *({f"ending{kind}": "latest"} for kind in ("Offsets", "OffsetsByTimestamp")),
    *({"startingOffsets": value} for value in ("soon", _offsets(7), _offsets(0, 0, 0, 0), _offsets(999, 0, 0))),
    {"startingTimestamp": str(LATE_MS)},
    {"startingOffsetsByTimestamp": _offsets(TIME_MS)},
    {**FROM_BEGIN, "maxOffsetsPerTrigger": "many"},
    {**FROM_BEGIN, "minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
    *({**FROM_BEGIN, "maxTriggerDelay": value} for value in ("", "soon", "1.5s", "2 hours", "1minutes")),
    {"subscribe": "there-is-no-such-topic"},
    {"subscribe": "", "assign": '{"there-is-none":[0]}'},
    {"subscribe": "cut", "startingOffsets": _offsets(0, 0, 0, topic="cut")},
    {"kafka.enable.auto.commit": "true"},
]
HEADER = "array(struct({} key, cast('x' as binary) value)) headers"
WRITES_REFUSED: list[tuple[list[str], dict[str, str]]] = [
    (["id value"], {}),
    (["null value"], {}),
    (["'x' nothing"], {}),
    (["'v' VALUE"], {}),
    *((["'v' value", f"{wrong} key"], {}) for wrong in ("id", "null", "1.5")),
    *((["'v' value", f"{wrong} partition"], {}) for wrong in ("1L", "'1'", "99", "-1")),
    *((["'v' value", f"{wrong} headers"], {}) for wrong in ("'h'", "null", "map('a', cast('b' as binary))")),
    (["'v' value", HEADER.format("cast(null as string)")], {}),
    (["'v' value"], {"topic": ""}),
    (["'v' value"], {"topic": "not a name"}),
    *(
        (["'v' value", f"{wrong} topic"], {"topic": ""})
        for wrong in ("1", "null", "cast(null as string)", "'no name!'")
    ),
    (["repeat('v', 2000000) value"], {}),
    *((["'v' value"], {f"kafka.{side}.serializer": "x"}) for side in ("key", "VALUE")),
    *((["'v' value"], {"kafka.acks": wrong}) for wrong in ("2", "most")),
    *((["'v' value"], {"kafka.compression.type": wrong}) for wrong in ("brotli", "producer")),
    *((["'v' value"], {"mode": wrong}) for wrong in ("overwrite", "ignore")),
]
CUT = 20
EVERY_ON_KAFKA = 3
"""Most cases are about options and not about the cluster, and all of them take minutes."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A thousand queries of a few rows, none of which lives long enough for Java that is generated and compiled for it."""
IMPATIENT = {
    "fetchOffset.numRetries": "2",
    "kafkaConsumer.pollTimeoutMs": "5000",
    "kafka.default.api.timeout.ms": "20000",
    "kafka.request.timeout.ms": "10000",
}
HASTY = {"fetchOffset.retryIntervalMs": "1"}
"""For what is refused: both ask three times for offsets that no answer can make right, by default a second apart."""


def fetch_connector() -> list[Path]:
    """Raises as jars.fetch_single does."""
    return jars.fetch_single(JARS, CACHE, HERE / "spark-jars.sha256")


def connector() -> str:
    """Both sources in one session, over the same topics."""
    from heirlog.spark import session

    connector_jars = ",".join(map(str, fetch_connector()))
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(nodes=3, ledger=False))
        kafka = stack.enter_context(secured_kafka())
        spark = session.start("local[2]", {"spark.jars": connector_jars, **INTERPRETED}, "heirlog interop")
        stack.callback(spark.stop)
        # what is refused is compared; Spark logs each with its traces, under which the lines of the checks drown
        spark.sparkContext.setLogLevel("OFF")
        security = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": jaas("SCRAM-SHA-512", USER, PASSWORD),
        }
        heirlog = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
        apache = {"kafka.bootstrap.servers": kafka.address("SASLP"), **security}
        _Comparison(spark, heirlog, cluster.bootstrap_servers).run()
        _Comparison(spark, apache, kafka.address("PLAIN"), every=EVERY_ON_KAFKA).run()
    refused = len(REFUSED) + len(STREAMS_REFUSED) + len(WRITES_REFUSED)
    compared = f"{len(READS)} reads and {len(STREAMS)} streams, {refused} refusals, writes"
    return f"{compared} on heirlog, every {EVERY_ON_KAFKA}rd on Apache Kafka with SCRAM"


class _Comparison:
    """options: how Spark connects. plain: where librdkafka fills topics. every: of how many cases one is tried."""

    def __init__(self, spark: Any, options: dict[str, str], plain: str, every: int = 1) -> None:
        self._spark = spark
        self._options = options
        self._plain = plain
        self._every = every

    def run(self) -> None:
        for topic in ("T", "aTb", "cut"):
            _fill(self._plain, topic)
        _cut(self._plain, "cut")
        for options in READS[:: self._every]:
            self._reads(options)
        for options in REFUSED[:: self._every]:
            self._refuses(options, lambda kind, options: self._load(kind, options).collect())
        self._writes("kafka", "heirlog")
        self._writes("heirlog", "kafka")
        for expressions, options in WRITES_REFUSED[:: self._every]:
            self._refuses(options, partial(self._write, expressions))
        self._streams()

    def _load(self, kind: str, options: dict[str, str]) -> Any:
        return self._spark.read.format(kind).options(**self._chosen(options)).load()

    def _chosen(self, options: dict[str, str]) -> dict[str, str]:
        chosen = {"subscribe": "T", **IMPATIENT, **self._options, **options}
        if "kafka.group.id" in chosen:
            # the connector keeps its consumers by group, whatever cluster they are of
            chosen["kafka.group.id"] = self._plain
        if not chosen["subscribe"] and options.keys() & {"subscribePattern", "assign"}:
            del chosen["subscribe"]
        return chosen

    def _reads(self, options: dict[str, str]) -> None:
        from pyspark.testing import assertDataFrameEqual

        theirs, ours = self._load("kafka", options), self._load("heirlog", options)
        assert theirs.schema == ours.schema, f"{options}: {theirs.schema} {ours.schema}"
        assertDataFrameEqual(ours, theirs)
        if "minPartitions" in options:
            parts = theirs.rdd.getNumPartitions(), ours.rdd.getNumPartitions()
            assert parts[0] == parts[1], f"{options}: {parts} partitions"

    def _refuses(self, options: dict[str, str], run: Callable[[str, dict[str, str]], object]) -> None:
        for kind in ("kafka", "heirlog"):
            try:
                run(kind, {**HASTY, **options})
            except Exception:  # each has its own class of errors; that there is one is what counts
                continue
            raise AssertionError(f"{kind} took {options}")

    def _writes(self, writer: str, reader: str) -> None:
        topic = f"written-by-{writer}"
        _create(self._plain, topic)
        rows = self._spark.range(500).selectExpr(
            "if(id % 5 = 0, null, cast(id as string)) key",
            "encode(repeat('v', cast(id as int) % 30), 'utf-8') value",
            "array(struct('h' key, encode('x', 'utf-8') value)) headers",
        )
        target = rows.write.format(writer).mode("append").options(**self._options)
        target.option("topic", topic).option("kafka.compression.type", "lz4").save()
        chosen = {"subscribe": topic, "includeHeaders": "true"}
        seen = self._load(reader, chosen).select("key", "value", "headers", "partition")
        from pyspark.testing import assertDataFrameEqual

        written = rows.selectExpr("cast(key as binary) key", "value", "headers")
        assertDataFrameEqual(seen.select("key", "value", "headers"), written)
        by_key = self._load("kafka", {"subscribe": topic}).where("key is not null").select("key", "partition")
        assertDataFrameEqual(seen.where("key is not null").select("key", "partition"), by_key)

    def _write(self, expressions: list[str], kind: str, options: dict[str, str]) -> None:
        chosen = {"topic": "written-by-kafka", "kafka.max.block.ms": "2000", **IMPATIENT, **self._options, **options}
        if not chosen["topic"]:
            del chosen["topic"]
        # one task: Spark gives up the Python process of each that fails
        rows = self._spark.range(0, 2, 1, 1).selectExpr(*expressions)
        rows.write.format(kind).mode(chosen.pop("mode", "append")).options(**chosen).save()

    def _streams(self) -> None:
        """The same batches under the same limits; and what the connector's checkpoint says, ours goes on from."""
        for options in STREAMS[:: self._every]:
            theirs, ours = self._stream("kafka", options), self._stream("heirlog", options)
            assert theirs == ours, f"{options}: {theirs} {ours}"
        for options in STREAMS_REFUSED[:: self._every]:
            self._refuses(options, self._stream)
        batches, end = self._stream("kafka", STREAMS[0])
        rest = self._load("heirlog", {"startingOffsets": json.dumps(end)}).count()
        assert sum(batches) == RECORDS and not rest, (batches, rest)

    def _stream(self, kind: str, options: dict[str, str]) -> tuple[list[int], dict[str, Any]]:
        """How many rows each batch had, and where the last one ended."""
        with tempfile.TemporaryDirectory() as directory:
            reader = self._spark.readStream.format(kind).options(**self._chosen(options))
            writer = reader.load().writeStream.format("noop").trigger(availableNow=True)
            query = writer.option("checkpointLocation", directory).start()
            assert query.awaitTermination(CONNECT_TIMEOUT_S)
            progress = query.recentProgress
            end = json.loads(progress[-1].sources[0].endOffset)
            return [one.numInputRows for one in progress if one.numInputRows], {
                topic: offsets for topic, offsets in end.items() if not topic.startswith("@")
            }


def connect() -> str:
    """The source and the sink through Spark Connect, whose server and client are in a process of their own."""
    with Cluster(nodes=3, security="SASL_SSL", ledger=False) as cluster:
        for topic in ("T", "copy", "once", "stream"):
            cluster.create_topic(topic, PARTITIONS, 3)
        script = [sys.executable, str(HERE / "spark_connect.py"), str(cluster.data / "client.properties")]
        ended = subprocess.run(script, capture_output=True, text=True, timeout=CONNECT_TIMEOUT_S)
        assert ended.returncode == 0, ended.stderr[-3000:]
        return ended.stdout.strip().splitlines()[-1]


def _create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    # records as old as TIME_MS would be deleted on the way
    admin.create_topics([NewTopic(topic, PARTITIONS, config={"retention.ms": "-1"})])[topic].result(60)


def _cut(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for deleted in admin.delete_records([TopicPartition(topic, 0, CUT)]).values():
        deleted.result(60)


def _fill(servers: str, topic: str, create: bool = True) -> None:
    if create:
        _create(servers, topic)
    producer = Producer({"bootstrap.servers": servers, "compression.type": "zstd"})
    for record in _records():
        producer.produce(topic, **record)
    assert not producer.flush(60)


def _records() -> Iterator[dict[str, Any]]:
    for number in range(RECORDS):
        yield {
            "key": None if number % 5 == 0 else f"k{number % 17}",
            "value": None if number % 7 == 0 else "v" * (number % 50),
            "headers": [("a", b"1"), ("b", None), ("a", b"")] if number % 3 == 0 else None,
            "timestamp": TIME_MS + number,
            "partition": number % PARTITIONS,
        }
