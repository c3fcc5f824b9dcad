"""The data client against Apache Kafka 4.2 behind every kind of door, and what it says where it is not let in.

Besides: aborted and open transactions of the Java producer (read_committed), sessions that end, committed offsets.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import jars
from secured_kafka import MECHANISMS, PASSWORD, STORE_PASSWORD, SecuredKafka, jaas, make_java_stores, secured_kafka

from heirlog.blocking import (
    LATEST,
    READ_COMMITTED,
    AuthenticationFailed,
    Client,
    CommittedOffset,
    SecurityError,
    security_from_properties,
)
from heirlog.protocol.batch import decode_records, encode_batch, walk

JAVA = Path(__file__).resolve().parent / "java"
TOPIC = "secured"
WRONG = "wrong-pässword"
TIMEOUT_S = 20.0
Properties = dict[str, str]


def doors() -> str:
    with secured_kafka() as kafka:
        make_java_stores(kafka)
        ways = ways_in(kafka)
        for listener, properties in ways:
            use(kafka, listener, properties)
        refused = ways_not_in(kafka)
        for listener, host, properties, complaint in refused:
            refuse(kafka.address(listener, host), properties, complaint)
        outlive_a_session(kafka)
        transactions(kafka)
    return f"{len(ways)} ways in, {len(refused)} refusals, a session that ends, transactions"


def ways_in(kafka: SecuredKafka) -> list[tuple[str, Properties]]:
    ca = trusting(kafka)
    pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": kafka.file("client.pem")}
    key, certificate = (Path(kafka.file(name)).read_text() for name in ("client.key", "client.crt"))
    inline = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": Path(kafka.file("ca.pem")).read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": certificate,
    }
    locked = {**pem, "ssl.keystore.location": kafka.file("client-locked.pem"), "ssl.key.password": STORE_PASSWORD}
    java = {
        "ssl.truststore.location": kafka.file("trust.jks"),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.keystore.location": kafka.file("client.jks"),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    pkcs12 = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": kafka.file("trust.p12"),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": kafka.file("client.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    tls = {"security.protocol": "SSL"}
    ways: list[tuple[str, Properties]] = [("PLAIN", {}), ("TLS", {**tls, **ca})]
    ways += [("MTLS", {**tls, **store}) for store in ({**ca, **pem}, {**ca, **locked}, inline, java, pkcs12)]
    ways += [("SASLP", sasl("SASL_PLAINTEXT", mechanism)) for mechanism in MECHANISMS]
    ways += [("SASLS", {**sasl("SASL_SSL", mechanism), **ca}) for mechanism in MECHANISMS]
    return ways


def ways_not_in(kafka: SecuredKafka) -> list[tuple[str, str, Properties, str]]:
    """Listener, host, properties, and what the error has to say."""
    ca, tls = trusting(kafka), {"security.protocol": "SSL"}
    wrong_passwords = [
        ("SASLP", "localhost", sasl("SASL_PLAINTEXT", mechanism, WRONG), mechanism)
        for mechanism in MECHANISMS
        if mechanism != "OAUTHBEARER"
    ]
    nobody = sasl("SASL_PLAINTEXT", "OAUTHBEARER")
    nobody["sasl.jaas.config"] = nobody["sasl.jaas.config"].replace(";", ' unsecuredLoginLifetimeSeconds="-60";')
    stranger = {"ssl.truststore.type": "PEM", "ssl.truststore.location": kafka.file("stranger.pem")}
    return [
        *wrong_passwords,
        ("SASLP", "localhost", nobody, "OAUTHBEARER"),
        ("TLS", "127.0.0.1", {**tls, **ca}, "not valid for '127.0.0.1'"),
        ("TLS", "localhost", {**tls, **stranger}, "certificate is not accepted"),
        ("MTLS", "localhost", {**tls, **ca}, "certificate"),
        ("PLAIN", "localhost", sasl("SASL_PLAINTEXT", "PLAIN"), "does not accept PLAIN"),
    ]


def trusting(kafka: SecuredKafka) -> Properties:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": kafka.file("ca.pem")}


def sasl(protocol: str, mechanism: str, password: str = PASSWORD) -> Properties:
    config = jaas(mechanism, password=password)
    return {"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": config}


def use(kafka: SecuredKafka, listener: str, properties: Properties) -> None:
    """Write, read and commit through this door."""
    security = security_from_properties(properties)
    now_ms = int(time.time() * 1000)
    with Client(kafka.address(listener), security=security, timeout_s=TIMEOUT_S) as client:
        with client.producer(delivery_timeout_s=TIMEOUT_S) as producer:
            producer.send(TOPIC, 0, encode_batch([(b"k", bytes(100), (), now_ms)] * 1000))
        end = client.list_offsets({(TOPIC, 0): LATEST})[TOPIC, 0]
        reached = [p.next_offset for p in client.fetch(TOPIC, 0, max(end.offset - 1000, 0), end.offset)]
        assert reached[-1] == end.offset, listener
        assert client.end_offset_for_epoch({(TOPIC, 0): 0})[TOPIC, 0].end_offset == end.offset
        client.commit("secured", {(TOPIC, 0): CommittedOffset(end.offset, 0, listener)})
        assert client.committed("secured", [(TOPIC, 0)])[TOPIC, 0].metadata == listener


def refuse(address: str, properties: Properties, complaint: str) -> None:
    began = time.monotonic()
    try:
        with Client(address, security=security_from_properties(properties), timeout_s=TIMEOUT_S) as client:
            client.topic_names()
    except (AuthenticationFailed, SecurityError) as failure:
        assert complaint in str(failure), failure
        assert PASSWORD not in str(failure), "a secret in an error"
        assert WRONG not in str(failure), "a secret in an error"
        assert time.monotonic() - began < TIMEOUT_S / 2, "it was tried again although that cannot help"
    else:
        raise AssertionError(f"{address} let in whom it should have refused ({complaint})")


def outlive_a_session(kafka: SecuredKafka) -> None:
    """The broker closes connections that did not authenticate anew after two seconds: nobody notices."""
    security = security_from_properties(sasl("SASL_PLAINTEXT", "SCRAM-SHA-512"))
    with Client(kafka.address("SHORT"), security=security, timeout_s=TIMEOUT_S) as client:
        end = client.list_offsets({(TOPIC, 0): LATEST})[TOPIC, 0].offset
        reading = client.fetch(TOPIC, 0, 0, end, max_bytes=1)
        next(reading)
        time.sleep(2.5)
        assert [part.next_offset for part in reading][-1] == end


def transactions(kafka: SecuredKafka) -> None:
    """What the Java producer committed, aborted and left open, as a reader of committed records sees it."""
    address = kafka.address("PLAIN")
    command = ["java", "-Xmx256m", "-cp", jars.classpath(), str(JAVA / "Transactions.java"), address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S * 4)
    assert done.returncode == 0, done.stderr[-2000:]
    with Client(address, timeout_s=TIMEOUT_S) as client:
        place = ("transactions", 0)
        stable = client.list_offsets({place: LATEST}, isolation=READ_COMMITTED)[place].offset
        latest = client.list_offsets({place: LATEST})[place].offset
        assert stable < latest, "a transaction is open"
        seen: list[str] = []
        aborted: set[int] = set()
        for part in client.fetch(*place, 0, stable, isolation=READ_COMMITTED):
            waiting = list(part.aborted)
            for at, header in walk(part.records):
                while waiting and waiting[0][1] <= header.last_offset:
                    aborted.add(waiting.pop(0)[0])
                if header.is_control:
                    aborted.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborted):
                    seen += [(record.value or b"").decode() for record in decode_records(part.records, at)]
        expected = [f"committed-{n}" for n in range(200)] + ["plain"]
        assert sorted(seen) == sorted(expected), f"{len(seen)} of {len(expected)}"
