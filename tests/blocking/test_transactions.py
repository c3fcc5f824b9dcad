"""Transactions of our own producer on a real cluster: what consumers of committed records see of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from heirlog.blocking import (
    LATEST,
    READ_COMMITTED,
    Client,
    CommittedOffset,
    ErrorCode,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
)
from heirlog.blocking.transactions import TransactionalBatchProducer
from heirlog.client.aborted import AbortedTransactions
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.messages import CreateTopicsRequest, FindCoordinatorRequest, UpdateFeaturesRequest
from heirlog.testing.cluster import Cluster

PARTITIONS = 3


SAFE_DOWNGRADE = 2


@pytest.fixture(scope="module", params=[0, 2], ids=["transaction.version 0", "transaction.version 2"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    config = {
        "min.insync.replicas": 2,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
        "log.retention.check.interval.ms": 3_600_000,
    }
    with Cluster(nodes=3, config=config, ledger=False) as running:
        if not request.param:
            down = UpdateFeaturesRequest.FeatureUpdateKey(
                feature="transaction.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE
            )
            with Client(running.bootstrap_servers) as admin:
                assert not admin.send_to_any(UpdateFeaturesRequest(feature_updates=[down])).error_code
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    cluster.wait_until_ready()
    with Client(cluster.bootstrap_servers) as made:
        yield made


names = (f"t{number}" for number in itertools.count())


@pytest.fixture
def topic(client: Client) -> str:
    name = next(names)
    created = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=3)
    response = client.send_to_any(CreateTopicsRequest(topics=[created], timeout_ms=30_000))
    assert response.topics[0].error_code == 0, response
    return name


def batch(*numbers: int) -> bytearray:
    return encode_batch([(None, b"%d" % number, (), 0) for number in numbers])


def committed(client: Client, topic: str) -> list[int]:
    """The values that a consumer with read_committed gets, sorted."""
    found: list[int] = []
    for partition in range(PARTITIONS):
        end = client.list_offsets({(topic, partition): LATEST}, READ_COMMITTED)[topic, partition].offset
        for part in client.fetch(topic, partition, 0, end, isolation=READ_COMMITTED):
            aborted = AbortedTransactions(part.aborted)
            for position, header in walk(part.records):
                if not aborted.skips(part.records, position, header):
                    found += [int(record.value or b"") for record in decode_records(part.records, position)]
    return sorted(found)


def settled(client: Client, topic: str) -> list[int]:
    """`committed` when the markers of all transactions are there."""
    for partition in range(PARTITIONS):
        while True:
            ends = [client.list_offsets({(topic, partition): LATEST}, isolation) for isolation in (0, READ_COMMITTED)]
            if ends[0][topic, partition].offset == ends[1][topic, partition].offset:
                break
    return committed(client, topic)


def test_the_producer_follows_the_level_that_is_finalised(client: Client, request: pytest.FixtureRequest) -> None:
    with client.transactional_producer("level") as producer:
        producer.begin()
        assert producer.opened.adds_by_writing == (request.node.callspec.params["cluster"] == 2)


def test_committed_records_and_offsets_are_visible_and_aborted_ones_are_not(client: Client, topic: str) -> None:
    with client.transactional_producer("mixed") as producer:
        with producer.transaction():
            for partition in range(PARTITIONS):
                producer.send(topic, partition, batch(partition, 10 + partition))
            producer.send_offsets("mixed-group", {(topic, 1): CommittedOffset(7, leader_epoch=3, metadata="seven")})
        producer.begin()
        producer.send(topic, 0, batch(90))
        producer.flush()
        producer.send_offsets("mixed-group", {(topic, 1): CommittedOffset(9)})
        producer.abort()
        with producer.transaction():
            producer.send(topic, 0, batch(20))
            producer.send(topic, 0, batch(21))
    assert settled(client, topic) == [0, 1, 2, 10, 11, 12, 20, 21]
    assert client.committed("mixed-group", [(topic, 1)])[topic, 1] == CommittedOffset(7, 3, "seven")


def test_many_transactions_in_a_row_keep_their_order(client: Client, topic: str) -> None:
    with client.transactional_producer("row") as producer:
        for number in range(40):
            with producer.transaction():
                producer.send(topic, number % PARTITIONS, batch(number))
    assert settled(client, topic) == list(range(40))


def test_a_block_that_raises_aborts_and_the_next_transaction_commits(client: Client, topic: str) -> None:
    with client.transactional_producer("raises") as producer:
        with pytest.raises(RuntimeError, match="mine"), producer.transaction():
            producer.send(topic, 0, batch(1))
            producer.flush()
            raise RuntimeError("mine")
        with producer.transaction():
            producer.send(topic, 0, batch(2))
    assert settled(client, topic) == [2]


def test_a_transaction_without_records_and_one_whose_records_were_never_sent_end_without_a_request(
    client: Client, topic: str
) -> None:
    with client.transactional_producer("nothing") as producer:
        with producer.transaction():
            pass
        producer.begin()
        producer.abort()
        with producer.transaction():
            producer.send(topic, 0, batch(3))
    assert settled(client, topic) == [3]


def test_a_closed_producer_leaves_no_open_transaction(client: Client, topic: str) -> None:
    with client.transactional_producer("closed") as producer:
        producer.begin()
        producer.send(topic, 0, batch(1))
        producer.flush()
    assert settled(client, topic) == []


def test_a_later_producer_fences_the_earlier_one_and_can_be_fenced_back(client: Client, topic: str) -> None:
    old = client.transactional_producer("twice")
    old.initialize()
    old.begin()
    old.send(topic, 0, batch(1))
    old.flush()
    with client.transactional_producer("twice") as new, new.transaction():
        new.send(topic, 0, batch(2))
    with pytest.raises(ProducerFenced):
        old.commit()
    with pytest.raises(ValueError, match="is fenced"):
        old.begin()
    old.initialize()
    with old.transaction():
        old.send(topic, 0, batch(3))
    assert settled(client, topic) == [2, 3]


@pytest.mark.parametrize("step", ["send", "offsets", "commit", "next"])
def test_a_replaced_producer_is_refused_at_each_step(client: Client, topic: str, step: str) -> None:
    old = client.transactional_producer(f"replaced-{step}")
    old.initialize()
    old.begin()
    old.send(topic, 0, batch(1))
    old.flush()
    if step == "next":
        old.commit()
    with client.transactional_producer(f"replaced-{step}") as new:
        new.begin()
        new.send(topic, 0, batch(2))
        new.flush()
        with pytest.raises((ProducerFenced, TransactionAbortable)):
            _go_on(old, topic, step)
        new.commit()
    assert settled(client, topic) == ([1, 2] if step == "next" else [2])
    assert client.committed("replaced-group", [(topic, 0)]).get((topic, 0)) is None


def _go_on(producer: TransactionalBatchProducer, topic: str, step: str) -> None:
    if step == "next":
        producer.begin()
    if step in ("send", "next"):
        producer.send(topic, 1, batch(3))
        producer.flush()
    elif step == "offsets":
        producer.send_offsets("replaced-group", {(topic, 0): CommittedOffset(1)})
    producer.commit()


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_may_initialise_again(
    client: Client, topic: str
) -> None:
    with client.transactional_producer("late", transaction_timeout_ms=200) as producer:
        producer.begin()
        producer.send(topic, 0, batch(1))
        producer.flush()
        assert settled(client, topic) == []
        with pytest.raises(ProducerFenced):
            producer.commit()
        producer.initialize()
        with producer.transaction():
            producer.send(topic, 0, batch(2))
    assert settled(client, topic) == [2]


def test_a_refused_batch_makes_the_transaction_abortable(client: Client, topic: str) -> None:
    with client.transactional_producer("refused") as producer:
        producer.begin()
        producer.send(topic, 0, batch(1))
        producer.send(topic, 1, encode_batch([(None, bytes(2 << 20), (), 0)]))
        with pytest.raises(TransactionAbortable, match="abort the transaction") as failed:
            producer.flush()
        assert failed.value.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(ValueError, match="abort it"):
            producer.commit()
        producer.abort()
        with producer.transaction():
            producer.send(topic, 1, batch(4))
    assert settled(client, topic) == [4]


def test_offsets_of_a_topic_that_does_not_exist_are_refused(
    client: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client.transactional_producer("offsets") as producer:
        producer.begin()
        # both coordinators are there: what follows takes as long as it is allowed to
        producer.send_offsets("some-group", {(topic, 0): CommittedOffset(1)})
        with monkeypatch.context() as hasty, pytest.raises(TransactionAbortable):
            hasty.setattr(producer._transactions, "_call_timeout_s", 2.0)
            producer.send_offsets("some-group", {("no-such-topic", 0): CommittedOffset(1)})
        producer.abort()


def test_a_timeout_above_the_brokers_maximum_is_refused_with_the_name_of_the_setting(client: Client) -> None:
    with pytest.raises(KafkaError, match=r"transaction\.max\.timeout\.ms"):
        client.transactional_producer("long", transaction_timeout_ms=2**31 - 2).initialize()


def test_several_processes_write_in_one_transaction(cluster: Cluster, client: Client, topic: str) -> None:
    driver = client.transactional_producer("shared")
    driver.initialize()
    driver.begin()
    opened = driver.opened

    def write(partition: int) -> None:
        with Client(cluster.bootstrap_servers) as other, other.transactional_producer("shared", opened=opened) as task:
            for number in range(20):
                task.send(topic, partition, batch(100 * partition + number))
            task.flush()

    tasks = [threading.Thread(target=write, args=(partition,)) for partition in range(PARTITIONS)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert committed(client, topic) == []
    with Client(cluster.bootstrap_servers) as later:
        ending = later.transactional_producer("shared", opened=opened)
        ending.send_offsets("shared-ledger", {(topic, 0): CommittedOffset(1)})
        ending.commit()
    assert settled(client, topic) == [100 * partition + n for partition in range(PARTITIONS) for n in range(20)]


@pytest.mark.parametrize("step", ["begun", "written", "offsets"])
def test_a_transaction_is_committed_once_although_a_broker_is_killed(
    cluster: Cluster, client: Client, topic: str, step: str
) -> None:
    """At each step, the broker that coordinates the transaction: it also leads a partition and holds the others."""
    with client.transactional_producer(f"killed-{step}") as producer:
        victim = coordinator(client, f"killed-{step}")

        def kill(now: str) -> None:
            if now == step:
                cluster.kill(victim)

        try:
            producer.begin()
            kill("begun")
            for partition in range(PARTITIONS):
                producer.send(topic, partition, batch(partition))
            kill("written")
            producer.send_offsets("killed-group", {(topic, 0): CommittedOffset(5)})
            kill("offsets")
            try:
                producer.commit()
                expected = list(range(PARTITIONS))
            except TransactionAbortable:
                producer.abort()
                expected = []
        finally:
            cluster.start(victim)
            cluster.wait_until_ready()
        with producer.transaction():
            producer.send(topic, 0, batch(9))
    assert settled(client, topic) == [*expected, 9]


def coordinator(client: Client, transactional_id: str) -> int:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    (found,) = client.send_to_any(request).coordinators
    return int(found.node_id)
