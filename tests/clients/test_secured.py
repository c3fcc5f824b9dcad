"""Clients that are not ours against a cluster with SASL_SSL: right and wrong passwords, authorities and host names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local.authorities import authority
from patience import eventually

from heirlog.blocking import Client
from heirlog.client.acls import create_acls
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.scram import describe_users
from heirlog.client.security import security_from_properties
from heirlog.metadata.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.testing import Cluster

TOPIC, GROUP = "orders", "billing"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, combined=True, security="SASL_SSL") as running:
        running.create_topic(TOPIC, 1, 1)
        given = running.client_config()
        with Client(running.bootstrap_servers, security=security_from_properties(given)) as client:
            client.run(create_acls([allowed(ResourceType.TOPIC, TOPIC), allowed(ResourceType.GROUP, GROUP)]))
        yield running


def allowed(kind: ResourceType, name: str) -> Acl:
    return Acl(kind, name, PatternType.LITERAL, "User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW)


def librdkafka(cluster: Cluster, **more: Any) -> dict[str, Any]:
    return {**cluster.client_config("alice", "librdkafka"), "log_level": 0, **more}


def test_librdkafka_writes_and_reads(cluster: Cluster) -> None:
    from confluent_kafka import Consumer, Producer

    failed: list[Any] = []
    producer = Producer(librdkafka(cluster, acks="all"))
    for number in range(1000):
        producer.produce(TOPIC, str(number).encode(), on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(30) == 0 and set(failed) == {None}
    consumer = Consumer(librdkafka(cluster, **{"group.id": GROUP, "auto.offset.reset": "earliest"}))
    consumer.subscribe([TOPIC])
    read: set[bytes] = set()
    while len(read) < 1000:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        read.add(message.value())
    consumer.close()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [({"sasl.password": "wrong"}, "authentication"), ({"sasl.mechanism": "PLAIN"}, "authentication")],
    ids=["password", "mechanism"],
)
def test_librdkafka_learns_what_is_wrong_with_its_login(cluster: Cluster, wrong: dict[str, str], sentence: str) -> None:
    from confluent_kafka import KafkaException, Producer

    errors: list[str] = []
    producer = Producer(librdkafka(cluster, error_cb=lambda error: errors.append(error.str()), **wrong))
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=1.0)

    def is_said() -> bool:
        producer.poll(0.1)
        return any(sentence in error.lower() for error in errors)

    eventually(is_said, sentence)


def test_kafka_python_writes_and_reads(cluster: Cluster) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    given = cluster.client_config("alice", "kafka-python")
    producer = KafkaProducer(**given)
    offset = producer.send(TOPIC, b"by kafka-python").get(30).offset
    producer.close()
    consumer = KafkaConsumer(**given, consumer_timeout_ms=30_000)
    consumer.assign([TopicPartition(TOPIC, 0)])
    consumer.seek(TopicPartition(TOPIC, 0), offset)
    assert next(iter(consumer)).value == b"by kafka-python"
    consumer.close()


def test_aiokafka_writes_and_reads(cluster: Cluster) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async def scenario() -> None:
        given = cluster.client_config("alice", "aiokafka")
        async with AIOKafkaProducer(**given) as producer:
            sent = await producer.send_and_wait(TOPIC, b"by aiokafka")
        async with AIOKafkaConsumer(**given) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            consumer.seek(TopicPartition(TOPIC, 0), sent.offset)
            assert (await asyncio.wait_for(consumer.getone(), 30)).value == b"by aiokafka"

    asyncio.run(scenario())


def ours(cluster: Cluster, **more: str) -> Client:
    given = cluster.client_config("alice") | more
    return Client(cluster.bootstrap_servers, security=security_from_properties(given), timeout_s=10)


def test_another_authority_is_not_trusted(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(authority("stranger").certificate_pem)
    with (
        pytest.raises(AuthenticationFailed, match="certificate is not accepted"),
        ours(cluster, **{"ssl.truststore.location": str(tmp_path / "ca.pem")}) as client,
    ):
        client.metadata([])


def test_a_name_that_the_certificate_does_not_have_is_not_trusted(cluster: Cluster) -> None:
    """127.1 is another way to write 127.0.0.1, for which the certificate is."""
    servers = cluster.bootstrap_servers.replace("127.0.0.1", "127.1")
    security = security_from_properties(cluster.client_config("alice"))
    with pytest.raises(AuthenticationFailed, match="not accepted"), Client(servers, security=security) as client:
        client.metadata([])


def test_a_new_user_has_a_password_and_no_rights(cluster: Cluster) -> None:
    given = cluster.client_config("dora")
    assert given == cluster.client_config("dora")
    with Client(cluster.bootstrap_servers, security=security_from_properties(given)) as client:
        assert client.topic_names() == []
    admin = security_from_properties(cluster.client_config())
    with Client(cluster.bootstrap_servers, security=admin) as client:
        assert {"admin", "dora"} <= set(client.run(describe_users()))
