"""Source, sink, exactlyOnce and pipelines on a cluster with TLS, passwords and ACLs, as a user with few permissions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import heirlog.spark
from heirlog.blocking import Client
from heirlog.client.acls import create_acls
from heirlog.client.security import security_from_properties
from heirlog.local import properties
from heirlog.metadata.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.spark.pipeline.run import run
from heirlog.testing.cluster import Cluster

ROWS = 200
TOPICS = ("orders", "copy", "once", "stream", "piped")
PIPELINE = """\
name = "secured"
checkpoint = "checkpoint"
[source]
topics = ["orders"]
bootstrap_servers = "{servers}"
options = {{ commandConfig = "{file}" }}
[sink]
topic = "piped"
options = {{ commandConfig = "{file}" }}
"""


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    with Cluster(nodes=1, combined=True, security="SASL_SSL", ledger=False) as running:
        for topic in TOPICS:
            running.create_topic(topic, 2, 1)
        yield running


@pytest.fixture(scope="module")
def admin(secured: Cluster) -> str:
    """The file of the user admin, as `heirlog up --secure` writes it."""
    return str(secured.data / "client.properties")


@pytest.fixture(scope="module")
def alice(secured: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a user who has what docs/reference/spark.md and the guide for pipelines ask for."""
    file = tmp_path_factory.mktemp("alice") / "client.properties"
    file.write_text(properties.render(secured.client_config("alice"), "Of alice."), encoding="utf-8")
    with Client(
        secured.bootstrap_servers,
        security=security_from_properties(properties.read(secured.data / "client.properties")),
    ) as client:
        for prefix in ("alice-", "heirlog-pipeline-"):
            transactions = allowed(ResourceType.TRANSACTIONAL_ID, prefix, AclOperation.WRITE)
            client.run(create_acls([transactions, allowed(ResourceType.GROUP, prefix, AclOperation.READ)]))
        for topic in TOPICS:
            both = AclOperation.READ, AclOperation.WRITE
            client.run(create_acls([allowed(ResourceType.TOPIC, topic, operation) for operation in both]))
    return str(file)


def allowed(kind: ResourceType, prefix: str, operation: AclOperation) -> Acl:
    return Acl(kind, prefix, PatternType.PREFIXED, "User:alice", "*", operation, AclPermissionType.ALLOW)


def orders(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS).selectExpr("string(id) AS key", "string(id) AS value")


@pytest.fixture(scope="module")
def filled(spark: SparkSession, alice: str) -> None:
    heirlog.spark.write(orders(spark), topic="orders", commandConfig=alice)


def read(spark: SparkSession, topic: str, file: str) -> list[int]:
    options = {"commandConfig": file, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    return sorted(int(row.value) for row in spark.read.format("heirlog").options(**options).load().collect())


@pytest.mark.usefixtures("filled")
def test_batch_stream_and_exactly_once(spark: SparkSession, admin: str, alice: str, tmp_path: Path) -> None:
    assert read(spark, "orders", admin) == list(range(ROWS))
    once = {"commandConfig": alice, "exactlyOnce": "true", "kafka.transactional.id": "alice-once"}
    for _ in range(2):
        heirlog.spark.write(orders(spark), **once, topic="once", batchId="only")
    assert read(spark, "once", alice) == list(range(ROWS))
    source = {"commandConfig": alice, "subscribe": "orders", "startingOffsets": "earliest"}
    rows = spark.readStream.format("heirlog").options(**source).load()
    rows = rows.select("key", "value")
    for topic, options in (("copy", {"commandConfig": alice}), ("stream", once)):
        options = {**options, "topic": topic}
        arranged = heirlog.spark.by_partition(rows, **options) if "exactlyOnce" in options else rows
        query = (
            arranged.writeStream.format("heirlog")
            .options(**options, checkpointLocation=str(tmp_path / topic))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert read(spark, "copy", alice) == read(spark, "stream", alice) == list(range(ROWS))


@pytest.mark.usefixtures("filled")
def test_a_pipeline(spark: SparkSession, secured: Cluster, alice: str, tmp_path: Path) -> None:
    file = tmp_path / "secured.toml"
    file.write_text(PIPELINE.format(servers=secured.bootstrap_servers, file=alice))
    first, again = (run(file, spark) for _ in range(2))
    assert (first.rows_out, again.rows_out) == (ROWS, 0)
    assert read(spark, "piped", alice) == list(range(ROWS))


@pytest.mark.usefixtures("filled")
def test_the_options_of_a_user_say_the_same_as_its_file(spark: SparkSession, secured: Cluster) -> None:
    given = secured.client_config("alice", "spark")
    rows = spark.read.format("heirlog").options(**given, subscribe="orders").load()
    assert rows.count() == ROWS


def test_what_a_user_may_not_do_is_named_and_no_secret_is_in_a_plan(
    spark: SparkSession, secured: Cluster, alice: str
) -> None:
    password = secured.client_config("alice")["sasl.jaas.config"].partition('password="')[2].partition('"')[0]
    assert password
    with pytest.raises(PySparkException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        heirlog.spark.write(
            orders(spark),
            topic="once",
            commandConfig=alice,
            exactlyOnce="true",
            **{"kafka.transactional.id": "of-another"},
        )
    rows = spark.read.format("heirlog").options(commandConfig=alice, subscribe="orders").load()
    assert password not in rows._jdf.queryExecution().toString()
