"""Producers that brokers have forgotten: their transactional id, or what a partition knew of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from patience import eventually

from heirlog.blocking import Client, KafkaError
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import (
    CreateTopicsRequest,
    DescribeProducersRequest,
    IncrementalAlterConfigsRequest,
    ListTransactionsRequest,
)
from heirlog.testing import Cluster

TOPIC, ID = "forgetful", "forgotten"
BROKER, CONFIG_OF_BROKERS, SET = 1, 4, 0
SOON_MS, A_DAY_MS = 100, 86_400_000


@contextmanager
def forgetting(**config: int) -> Iterator[Client]:
    checks = {
        "transaction.remove.expired.transaction.cleanup.interval.ms": 100,
        "producer.id.expiration.check.interval.ms": 100,
    }
    names = {name.replace("_", "."): value for name, value in config.items()}
    with Cluster(nodes=1, config=checks | names, ledger=False) as cluster, Client(cluster.bootstrap_servers) as client:
        topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        (created,) = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
        assert not created.error_code, created
        yield client


def ids(client: Client) -> list[str]:
    return [
        each.transactional_id for each in client.send_to_broker(BROKER, ListTransactionsRequest()).transaction_states
    ]


def producers(client: Client) -> list[tuple[int, int]]:
    """Ids and epochs that the partition knows."""
    asked = DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])
    answer = client.send_to_broker(BROKER, DescribeProducersRequest(topics=[asked]))
    (partition,) = answer.topics[0].partitions
    assert not partition.error_code, partition
    return [(each.producer_id, each.producer_epoch) for each in partition.active_producers]


def remember_for(client: Client, ms: int) -> None:
    """For all brokers, from now on."""
    config = IncrementalAlterConfigsRequest.AlterableConfig(
        name="producer.id.expiration.ms", config_operation=SET, value=str(ms)
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=CONFIG_OF_BROKERS, resource_name="", configs=[config]
    )
    (answer,) = client.send_to_any(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert not answer.error_code, answer


def batch(number: int) -> bytearray:
    return encode_batch([(None, b"%d" % number, (), 0)])


def test_a_producer_whose_transactional_id_has_expired_may_initialise_again() -> None:
    with forgetting(transactional_id_expiration_ms=SOON_MS) as client, client.transactional_producer(ID) as producer:
        with producer.transaction():
            producer.send(TOPIC, 0, batch(1))
        eventually(lambda: ids(client) == [], "the end of the id")
        (before,) = producers(client)
        producer.begin()
        producer.send(TOPIC, 0, batch(2))
        with pytest.raises(KafkaError, match="INVALID_PRODUCER_ID_MAPPING"):
            producer.flush()
        producer.initialize()
        with producer.transaction():
            producer.send(TOPIC, 0, batch(3))
        assert {producer_id for producer_id, _ in producers(client)} - {before[0]}, "it has another producer id"


def test_a_producer_that_a_partition_has_forgotten_has_the_same_id_and_a_later_epoch() -> None:
    """How long partitions remember a producer is changed while they do."""
    with forgetting() as client:
        with client.transactional_producer(ID) as producer, producer.transaction():
            producer.send(TOPIC, 0, batch(1))
        (before,) = producers(client)
        remember_for(client, SOON_MS)
        eventually(lambda: producers(client) == [], "the end of what the partition knew of the producer")
        remember_for(client, A_DAY_MS)
        with client.transactional_producer(ID) as producer, producer.transaction():
            producer.send(TOPIC, 0, batch(2))
        (after,) = producers(client)
        assert (after[0], after[1] > before[1]) == (before[0], True)
