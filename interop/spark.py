"""Spark's own Kafka connector beside the source `heirlog`: equal rows, equal refusals, on heirlog and on Apache Kafka.

The connector's jars are resolved by Maven one by one, without what they depend on (Spark has that), and checked against
spark-jars.sha256. They stay in .cache/interop/spark-jars. Newest complete set: see JARS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jars
from confluent_kafka import Producer
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

READS: list[dict[str, str]] = [
    {},
    {"includeHeaders": "true"},
    {"startingOffsets": '{"T":{"0":7,"1":-2,"2":100}}', "endingOffsets": '{"T":{"0":20,"1":-1,"2":100}}'},
    {"startingTimestamp": str(TIME_MS + 100), "endingTimestamp": str(TIME_MS + 400)},
    {"startingOffsetsByTimestamp": json.dumps({"T": {"0": TIME_MS + 50, "1": TIME_MS, "2": TIME_MS + 500}})},
    {"startingTimestamp": str(TIME_MS * 2), "startingOffsetsByTimestampStrategy": "latest"},
    {"minPartitions": "7"},
    {"maxRecordsPerPartition": "11"},
    {"subscribe": "", "subscribePattern": "T.*"},
    {"subscribe": "", "assign": '{"T":[0,2]}'},
    {"kafka.isolation.level": "read_committed"},
]
REFUSED: list[dict[str, str]] = [
    {"subscribe": ""},
    {"assign": '{"T":[0]}'},
    {"startingOffsets": "latest"},
    {"endingOffsets": "earliest"},
    {"startingOffsets": '{"T":{"0":7}}'},
    {"startingOffsets": "soon"},
    {"startingTimestamp": str(TIME_MS * 2)},
    {"startingOffsetsByTimestampStrategy": "guess", "startingTimestamp": "5"},
    {"endingOffsets": '{"T":{"0":-2,"1":-1,"2":-1}}'},
    {"minPartitions": "0"},
    {"kafka.auto.offset.reset": "latest"},
    {"kafka.key.deserializer": "x"},
    {"kafka.enable.auto.commit": "true"},
    {"kafka.interceptor.classes": "x"},
    {"subscribe": "there-is-no-such-topic"},
]


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
        spark = session.start("local[2]", {"spark.jars": connector_jars}, "heirlog interop")
        stack.callback(spark.stop)
        security = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": jaas("SCRAM-SHA-512", USER, PASSWORD),
        }
        heirlog = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
        apache = {"kafka.bootstrap.servers": kafka.address("SASLP"), **security}
        _Comparison(spark, heirlog, cluster.bootstrap_servers).run()
        _Comparison(spark, apache, kafka.address("PLAIN")).run()
    return f"{len(READS)} reads, {len(REFUSED)} refusals, streams and writes, on heirlog and on Apache Kafka with SCRAM"


class _Comparison:
    """options: how Spark connects. plain: where librdkafka fills topics."""

    def __init__(self, spark: Any, options: dict[str, str], plain: str) -> None:
        self._spark = spark
        self._options = options
        self._plain = plain

    def run(self) -> None:
        _fill(self._plain, "T")
        for options in READS:
            self._reads(options)
        for options in REFUSED:
            self._refuses(options)
        self._writes("kafka", "heirlog")
        self._writes("heirlog", "kafka")
        self._streams()

    def _load(self, kind: str, options: dict[str, str]) -> Any:
        chosen = {"subscribe": "T", **options}
        if not chosen["subscribe"] and len(options) > 1:
            del chosen["subscribe"]
        return self._spark.read.format(kind).options(**self._options, **chosen).load()

    def _reads(self, options: dict[str, str]) -> None:
        from pyspark.testing import assertDataFrameEqual

        theirs, ours = self._load("kafka", options), self._load("heirlog", options)
        assert theirs.schema == ours.schema, f"{options}: {theirs.schema} {ours.schema}"
        assertDataFrameEqual(ours, theirs)
        if "minPartitions" in options:
            parts = theirs.rdd.getNumPartitions(), ours.rdd.getNumPartitions()
            assert parts[0] == parts[1], f"{options}: {parts} partitions"

    def _refuses(self, options: dict[str, str]) -> None:
        for kind in ("kafka", "heirlog"):
            try:
                self._load(kind, options).collect()
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

    def _streams(self) -> None:
        """The same batches under the same limit; and what the connector's checkpoint says, ours goes on from."""
        batches = {}
        ends = {}
        with tempfile.TemporaryDirectory() as directory:
            for kind in ("kafka", "heirlog"):
                chosen = {"subscribe": "T", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "200"}
                reader = self._spark.readStream.format(kind).options(**self._options, **chosen)
                query = (
                    reader.load()
                    .writeStream.format("noop")
                    .trigger(availableNow=True)
                    .option("checkpointLocation", f"{directory}/{kind}")
                    .start()
                )
                assert query.awaitTermination(CONNECT_TIMEOUT_S)
                progress = [one for one in query.recentProgress if one.numInputRows]
                batches[kind] = [one.numInputRows for one in progress]
                ends[kind] = json.loads(progress[0].sources[0].endOffset)
        assert batches["kafka"] == batches["heirlog"], batches
        assert ends["kafka"]["T"] == ends["heirlog"]["T"]
        rest = self._load("heirlog", {"startingOffsets": json.dumps(ends["kafka"])}).count()
        assert rest == RECORDS - batches["kafka"][0]


def connect() -> str:
    """The source through Spark Connect, whose server and client live in a process of their own."""
    with Cluster(nodes=3, ledger=False) as cluster:
        for topic in ("T", "copy"):
            _create(cluster.bootstrap_servers, topic)
        _fill(cluster.bootstrap_servers, "T", create=False)
        script = [sys.executable, str(HERE / "spark_connect.py"), cluster.bootstrap_servers]
        ended = subprocess.run(script, capture_output=True, text=True, timeout=CONNECT_TIMEOUT_S)
        assert ended.returncode == 0, ended.stderr[-3000:]
        return ended.stdout.strip().splitlines()[-1]


def _create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(60)


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
            "headers": [("a", b"1"), ("b", None)] if number % 3 == 0 else None,
            "timestamp": TIME_MS + number,
            "partition": number % PARTITIONS,
        }
