"""The sink with exactlyOnce: each row of a batch is in the topic once, whatever ends and is run again."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from patience import eventually
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark.committed import committed
from spark.topics import Topics

import heirlog.spark
from heirlog.blocking import Client, KafkaError, OpenTransaction
from heirlog.blocking.transactions import TransactionalBatchProducer
from heirlog.client.record_accumulator import ProducerIdAndEpoch
from heirlog.spark import exactly_once, ledger
from heirlog.spark.exactly_once import BatchAborted, Written
from heirlog.spark.ledger import LedgerLost
from heirlog.spark.sink_options import ExactlyOnce, SinkOptions, sink_options
from heirlog.testing.cluster import Cluster

PARTITIONS = 3
TRANSACTION_TIMEOUT_S = 60
_numbers = itertools.count()


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    cluster.wait_until_ready()
    return Topics(cluster)


def options(topics: Topics, topic: str, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": topics.servers,
        "topic": topic,
        "exactlyOnce": "true",
        "kafka.transactional.id": f"id-{topic}",
        "kafka.transaction.timeout.ms": str(TRANSACTION_TIMEOUT_S * 1000),
        **more,
    }


def numbers(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Half of the rows have a key."""
    return spark.range(first, end, numPartitions=4).selectExpr(
        "IF(id % 2 = 0, string(id), NULL) AS key", "string(id) AS value"
    )


def texts(*ranges: range) -> list[str]:
    return sorted(str(number) for some in ranges for number in some)


def test_a_batch_is_written_by_several_tasks_in_one_transaction(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(PARTITIONS)
    for first in (0, 1000):
        heirlog.spark.write(numbers(spark, first, first + 1000), **options(topics, topic))
    assert committed(topics.servers, topic, PARTITIONS) == texts(range(2000))
    assert {message.partition() for message in keyed(topics, topic)} == set(range(PARTITIONS))


def keyed(topics: Topics, topic: str) -> list:  # type: ignore[type-arg]
    """Three partitions hold rows: by the first message of each."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": topics.servers, "group.id": "unused", "enable.auto.commit": False})
    try:
        found = []
        for partition in range(PARTITIONS):
            consumer.assign([TopicPartition(topic, partition, 0)])
            message = consumer.poll(60)
            assert message is not None and message.error() is None
            found.append(message)
        return found
    finally:
        consumer.close()


def test_a_key_has_the_partition_that_the_plain_sink_gives_it(spark: SparkSession, topics: Topics) -> None:
    plain, once = topics.create(PARTITIONS), topics.create(PARTITIONS)
    rows = spark.range(200).selectExpr("string(id) AS key", "string(id) AS value", "NULL AS headers").drop("headers")
    heirlog.spark.write(rows, **{"kafka.bootstrap.servers": topics.servers, "topic": plain})
    heirlog.spark.write(rows, **options(topics, once))
    where = [
        {
            (row.key, row.partition)
            for row in spark.read.format("heirlog")
            .options(**{"kafka.bootstrap.servers": topics.servers, "subscribe": topic})
            .load()
            .collect()
        }
        for topic in (plain, once)
    ]
    assert where[0] == where[1] and len(where[0]) == 200


def test_a_column_of_topics_is_one_transaction_too(spark: SparkSession, topics: Topics) -> None:
    first, second = topics.create(2), topics.create(1)
    rows = spark.range(100).selectExpr(f"IF(id < 60, '{first}', '{second}') AS topic", "string(id) AS value")
    given = options(topics, first)
    del given["topic"]
    for _ in range(2):
        heirlog.spark.write(rows, **given, batchId="only")
    assert committed(topics.servers, first, 2) == texts(range(60))
    assert committed(topics.servers, second, 1) == texts(range(60, 100))


def test_a_batch_with_a_name_that_was_committed_is_not_written_again(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(PARTITIONS)
    for name, first in (("a", 0), ("a", 0), ("b", 100), ("b", 100)):
        heirlog.spark.write(numbers(spark, first, first + 50), **options(topics, topic, batchId=name))
    assert committed(topics.servers, topic, PARTITIONS) == texts(range(50), range(100, 150))


def test_a_batch_with_a_name_is_refused_once_the_ledger_is_gone(spark: SparkSession, topics: Topics) -> None:
    """As after offsets.retention.minutes. It may be the batch that was committed last."""
    topic = topics.create(PARTITIONS)
    first = options(topics, topic, batchId="a")
    heirlog.spark.write(numbers(spark, 0, 50), **first)
    forget(topics, f"id-{topic}")
    for _ in range(2):
        with pytest.raises(PySparkException, match=r"offsets\.retention\.minutes"):
            heirlog.spark.write(numbers(spark, 0, 50), **first)
    assert committed(topics.servers, topic, PARTITIONS) == texts(range(50))
    heirlog.spark.write(numbers(spark, 50, 60), **{**first, "kafka.transactional.id": f"next-{topic}"})
    assert committed(topics.servers, topic, PARTITIONS) == texts(range(60))


def forget(topics: Topics, ledger: str) -> None:
    """Delete the group of a ledger, as the broker does after offsets.retention.minutes."""
    admin = AdminClient({"bootstrap.servers": topics.servers})
    # a commit is answered once it is decided; the group has its offsets once the marker is written
    eventually(lambda: ledger in {group.group_id for group in admin.list_consumer_groups().result().valid})
    admin.delete_consumer_groups([ledger])[ledger].result()


def test_a_batch_with_a_new_name_is_written_although_the_ledger_is_gone(spark: SparkSession, topics: Topics) -> None:
    """It was not committed before: the batch that was about to be has another name."""
    topic = topics.create(PARTITIONS)
    heirlog.spark.write(numbers(spark, 0, 50), **options(topics, topic, batchId="a"))
    forget(topics, f"id-{topic}")
    for _ in range(2):
        heirlog.spark.write(numbers(spark, 50, 60), **options(topics, topic, batchId="b"))
    assert committed(topics.servers, topic, PARTITIONS) == texts(range(60))


def test_batches_without_a_name_need_no_ledger_and_renew_it(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(PARTITIONS)
    for first, more in ((0, {}), (50, {"batchId": "a"}), (50, {"batchId": "a"})):
        heirlog.spark.write(numbers(spark, first, first + 50), **options(topics, topic, **more))
    assert committed(topics.servers, topic, PARTITIONS) == texts(range(100))


def test_an_empty_batch_commits_nothing(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(PARTITIONS)
    heirlog.spark.write(numbers(spark, 0, 0), **options(topics, topic))
    heirlog.spark.write(numbers(spark, 0, 1), **options(topics, topic))
    assert committed(topics.servers, topic, PARTITIONS) == ["0"]


def test_a_batch_that_fails_leaves_nothing_visible(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(PARTITIONS)
    rows = numbers(spark, 0, 1000).selectExpr("key", "IF(value = '777', assert_true(false, 'bad row'), value) AS value")
    with pytest.raises(PySparkException, match="bad row"):
        heirlog.spark.write(rows, **options(topics, topic))
    assert committed(topics.servers, topic, PARTITIONS) == []
    heirlog.spark.write(numbers(spark, 0, 10), **options(topics, topic))
    assert committed(topics.servers, topic, PARTITIONS) == texts(range(10))


def test_tasks_that_share_a_partition_are_refused_and_nothing_is_visible(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(1)
    with pytest.raises(PySparkException, match=r"several tasks wrote to|OUT_OF_ORDER_SEQUENCE_NUMBER"):
        numbers(spark, 0, 1000).write.format("heirlog").mode("append").options(**options(topics, topic)).save()
    assert committed(topics.servers, topic, 1) == []
    rows = numbers(spark, 0, 1000).coalesce(1)
    rows.write.format("heirlog").mode("append").options(**options(topics, topic)).save()
    assert committed(topics.servers, topic, 1) == texts(range(1000))


def test_a_batch_whose_transaction_is_aborted_meanwhile_is_not_committed(spark: SparkSession, topics: Topics) -> None:
    """As by the coordinator after kafka.transaction.timeout.ms, or by another query with the same id."""
    topic = topics.create(1)
    given = options(topics, topic)
    servers, transactional_id = topics.servers, given["kafka.transactional.id"]

    def fence(batches):  # type: ignore[no-untyped-def]
        yield from batches
        with Client(servers) as client:
            client.transactional_producer(transactional_id).initialize()

    rows = numbers(spark, 0, 10).coalesce(1)
    with pytest.raises(PySparkException, match=r"PRODUCER|abort"):
        rows.mapInArrow(fence, rows.schema).write.format("heirlog").mode("append").options(**given).save()
    assert committed(topics.servers, topic, 1) == []


def test_two_writes_with_one_id_fence_each_other(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(1)
    given = options(topics, topic)
    with Client(topics.servers) as client, client.transactional_producer(given["kafka.transactional.id"]) as earlier:
        earlier.begin()
        heirlog.spark.write(numbers(spark, 0, 5), **given)
        with pytest.raises(KafkaError):
            earlier.send_offsets("g", {(topic, 0): exactly_once.CommittedOffset(1)})
    assert committed(topics.servers, topic, 1) == texts(range(5))


# kills of the driver


class Killed(Exception):
    pass


def finish(topics: Topics, topic: str, name: str) -> None:
    """A batch without rows, as the driver begins and commits it."""
    given = sink_options(options(topics, topic, batchId=name))
    assert given.exactly_once is not None
    begun = exactly_once.begin(given, given.exactly_once)
    written = Written(0, frozenset({(topic, 0)}), begun.opened, name)
    exactly_once.commit(given, [written])


@pytest.mark.parametrize(
    ("killed_before", "after_an_hour"), [("send_offsets", "written"), ("note", "written"), ("commit", "refused")]
)
@pytest.mark.parametrize("is_late", [False, True])
def test_what_becomes_of_a_first_batch_whose_driver_is_killed(
    topics: Topics, killed_before: str, after_an_hour: str, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an entry only the note tells later runs of it. Between the note and the commit it may be wrong."""

    def kill(*_: object) -> None:
        raise Killed

    topic = topics.create(1)
    with monkeypatch.context() as killing:
        killing.setattr(ledger if killed_before == "note" else TransactionalBatchProducer, killed_before, kill)
        with pytest.raises(Killed):
            finish(topics, topic, "a")
    if is_late:
        later_ms = ledger._now_ms() + ledger.MAY_HAVE_EXPIRED_MS
        monkeypatch.setattr(ledger, "_now_ms", lambda: later_ms)
    with pytest.raises(LedgerLost) if is_late and after_an_hour == "refused" else nullcontext():
        finish(topics, topic, "a")


def test_a_batch_whose_transaction_was_aborted_in_time_is_written_however_late_it_runs_again(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create(1)
    original = exactly_once.begin

    def aborted(given: SinkOptions, settings: ExactlyOnce) -> exactly_once.Begun:
        """As by the coordinator after kafka.transaction.timeout.ms."""
        begun = original(given, settings)
        with Client(topics.servers) as client:
            client.transactional_producer(settings.transactional_id).initialize()
        return begun

    with monkeypatch.context() as aborting:
        aborting.setattr(exactly_once, "begin", aborted)
        with pytest.raises(KafkaError):
            finish(topics, topic, "a")
    later_ms = ledger._now_ms() + ledger.MAY_HAVE_EXPIRED_MS
    monkeypatch.setattr(ledger, "_now_ms", lambda: later_ms)
    finish(topics, topic, "a")


def test_a_batch_whose_driver_is_killed_before_the_commit_runs_again_at_once(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait until the coordinator aborts the transaction, which has an entry in the ledger."""

    def kill(*_: object) -> None:
        raise Killed

    topic = topics.create(1)
    finish(topics, topic, "a")
    with monkeypatch.context() as killing:
        killing.setattr(TransactionalBatchProducer, "commit", kill)
        with pytest.raises(Killed):
            finish(topics, topic, "b")
    began = time.monotonic()
    # also after an hour: of a batch before there is an entry
    later_ms = ledger._now_ms() + ledger.MAY_HAVE_EXPIRED_MS
    monkeypatch.setattr(ledger, "_now_ms", lambda: later_ms)
    finish(topics, topic, "b")
    assert time.monotonic() - began < TRANSACTION_TIMEOUT_S / 2


# streams


def run_stream(spark: SparkSession, topics: Topics, source: str, sink: str, checkpoint: Path) -> None:
    rows = (
        spark.readStream.format("heirlog")
        .options(**{"kafka.bootstrap.servers": topics.servers, "subscribe": source, "startingOffsets": "earliest"})
        .option("maxOffsetsPerTrigger", "40")
        .load()
        .select("key", "value")
    )
    given = options(topics, sink)
    query = (
        heirlog.spark.by_partition(rows, **given)
        .writeStream.format("heirlog")
        .options(**given)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def test_a_stream_writes_a_batch_once_that_spark_does_not_know_to_be_committed(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """As after a kill between the transaction's commit and Spark's, of the second of three batches."""
    source, sink = topics.create(2), topics.create(PARTITIONS)
    topics.fill(source, 80, 2)
    run_stream(spark, topics, source, sink, tmp_path / "checkpoint")
    assert committed(topics.servers, sink, PARTITIONS) == texts(range(80))
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    topics.produce(source, ({"value": str(number), "partition": 0} for number in range(80, 90)))
    run_stream(spark, topics, source, sink, tmp_path / "checkpoint")
    assert committed(topics.servers, sink, PARTITIONS) == texts(range(90))


def test_a_stream_is_refused_once_nothing_says_whether_its_batch_was_committed(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """Killed between the transaction's commit and Spark's, and started again after offsets.retention.minutes."""
    source, sink = topics.create(1), topics.create(1)
    topics.fill(source, 80)
    run_stream(spark, topics, source, sink, tmp_path / "checkpoint")
    forget(topics, f"id-{sink}")
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    # also the second time, when the coordinator no longer says how the last transaction ended
    for _ in range(2):
        with pytest.raises(PySparkException, match=r"is gone \(it expired after offsets\.retention\.minutes"):
            run_stream(spark, topics, source, sink, tmp_path / "checkpoint")
    assert committed(topics.servers, sink, 1) == texts(range(80))


def test_a_stream_that_ended_well_continues_however_long_it_was_stopped(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, sink = topics.create(1), topics.create(1)
    topics.fill(source, 40)
    run_stream(spark, topics, source, sink, tmp_path / "checkpoint")
    forget(topics, f"id-{sink}")
    topics.produce(source, ({"value": str(number), "partition": 0} for number in range(40, 60)))
    run_stream(spark, topics, source, sink, tmp_path / "checkpoint")
    assert committed(topics.servers, sink, 1) == texts(range(60))


def test_a_new_checkpoint_is_another_query_and_writes_its_batches(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    source, sink = topics.create(1), topics.create(1)
    topics.fill(source, 10)
    for checkpoint in ("one", "two"):
        run_stream(spark, topics, source, sink, tmp_path / checkpoint)
    assert committed(topics.servers, sink, 1) == texts(range(10), range(10))


# claims


def opened(epoch: int, name: str) -> OpenTransaction:
    return OpenTransaction(name, ProducerIdAndEpoch(1, epoch), adds_by_writing=True)


def test_a_task_is_claimed_once_in_a_batch_and_again_in_the_next(topics: Topics) -> None:
    with Client(topics.servers) as client:
        for epoch in (3, 4, 5):
            exactly_once.claim(client, opened(epoch, "claims"))
            for _ in range(2):
                with pytest.raises(BatchAborted, match="has written in this batch before"):
                    exactly_once.claim(client, opened(epoch, "claims"))


def test_of_attempts_that_claim_a_task_at_the_same_time_at_most_one_may_write(topics: Topics) -> None:
    for epoch in range(10):
        won: list[int] = []
        start = threading.Barrier(4)

        def attempt(number: int, epoch: int = epoch, won: list[int] = won, start: threading.Barrier = start) -> None:
            with Client(topics.servers) as client:
                client.metadata([])
                start.wait()
                try:
                    exactly_once.claim(client, opened(epoch, "race"))
                except BatchAborted:
                    return
                won.append(number)

        attempts = [threading.Thread(target=attempt, args=(number,)) for number in range(4)]
        for one in attempts:
            one.start()
        for one in attempts:
            one.join()
        assert len(won) <= 1
