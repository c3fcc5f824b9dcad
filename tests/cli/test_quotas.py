"""`heirlog quotas` against a real cluster, and what its options refuse before a cluster is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.conftest import Heirlog, rows
from confluent_kafka import Producer
from patience import eventually

from heirlog.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running:
        yield running


@pytest.mark.usefixtures("default_cluster")
def test_quotas_are_set_shown_and_removed(heirlog: Heirlog) -> None:
    both = ("--user", "alice", "--client-defaults")
    changed = heirlog("quotas", "alter", *both, "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    assert (changed.code, changed.out) == (0, "The quotas are changed.\n"), changed.err
    assert heirlog("quotas", "alter", "--ip-defaults", "--add-config", "connection_creation_rate=20").code == 0
    of_alice = {"user": "alice", "client_id": "<default>", "ip": None}
    assert rows(heirlog, "quotas", "describe") == [
        {"user": None, "client_id": None, "ip": "<default>", "quota": "connection_creation_rate", "value": 20.0},
        {**of_alice, "quota": "producer_byte_rate", "value": 1024.0},
        {**of_alice, "quota": "request_percentage", "value": 12.5},
    ]
    assert len(rows(heirlog, "quotas", "describe", "user", "alice")) == 2
    assert heirlog("quotas", "alter", "ip", "10.0.0.1", "connection_creation_rate=7").code == 0
    assert [row["value"] for row in rows(heirlog, "quotas", "describe", "ip", "10.0.0.1")] == [7.0]
    assert heirlog("quotas", "alter", "ip", "10.0.0.1", "--delete-config", "connection_creation_rate").code == 0
    assert "alice" in heirlog("quotas", "describe").out
    assert heirlog("quotas", "alter", *both, "--delete-config", "producer_byte_rate,request_percentage").code == 0
    assert rows(heirlog, "quotas", "describe", "--user", "alice") == []
    assert heirlog("quotas", "alter", "--ip-defaults", "--delete-config", "connection_creation_rate").code == 0


@pytest.mark.usefixtures("default_cluster")
def test_a_refused_change_is_one_sentence_and_a_validated_one_changes_nothing(heirlog: Heirlog) -> None:
    refused = heirlog("quotas", "alter", "--user", "alice", "--add-config", "producer_byte_rate=0")
    assert refused.code == 1 and refused.err.count("\n") == 1 and "must be greater than 0" in refused.err
    only = ("--validate-only", "producer_byte_rate=1", "consumer_byte_rate=1", "request_percentage=50")
    assert heirlog("quotas", "alter", "--user", "alice", *only).out == "The change is valid.\n"
    assert rows(heirlog, "quotas", "describe") == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["alter", "--add-config", "producer_byte_rate=1"], "say whose quotas"),
        (["alter", "--user", "a", "--user-defaults", "--add-config", "x=1"], "exclude each other"),
        (["alter", "--user", "a"], "nothing to change"),
        (["alter", "user", "a"], "nothing to change"),
        (["alter", "user", "a", "--user", "b", "x=1"], "exclude each other"),
        (["alter", "users", "a", "producer_byte_rate=1"], "say whose quotas"),
        (["describe", "user"], "say whose quotas"),
        (["alter", "ip", "10.0.0.1", "producer_byte_rate=1"], "an address, which has connection_creation_rate"),
        (["alter", "user", "a", "connection_creation_rate=1"], "a user or a client id, which has producer_byte_rate"),
        (["alter", "producer_byte_rate=1"], "say whose quotas"),
        (["alter", "user", "a", "producer_rate=1"], "producer_rate is no quota; there are producer_byte_rate"),
        (["alter", "--user", "a", "--add-config", "producer_byte_rate=fast"], "a quota is a number"),
    ],
)
def test_options_that_mean_nothing_are_refused_at_once(heirlog: Heirlog, arguments: list[str], sentence: str) -> None:
    refused = heirlog("quotas", *arguments)
    assert refused.code == 2 and sentence in refused.err


@pytest.mark.usefixtures("default_cluster")
def test_librdkafka_hears_how_long_its_producer_is_held_up(heirlog: Heirlog, cluster: Cluster) -> None:
    assert heirlog("topics", "create", "limited").code == 0
    quota = ("--client", "slow", "--add-config", "producer_byte_rate=20000")
    assert heirlog("quotas", "alter", *quota).code == 0
    waits: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "client.id": "slow",
            "linger.ms": 0,
            "throttle_cb": lambda event: waits.append(event.throttle_time),
        }
    )
    # 200 kB are what the window allows at once; each further 2 kB wait for a tenth of a second
    for size in (100_000, 100_000, 2_000, 2_000):
        producer.produce("limited", b"x" * size)
        producer.flush()

    def heard() -> bool:
        producer.poll(0)
        return any(waits)

    eventually(heard)
    assert max(waits) < 3
    assert heirlog("quotas", "alter", "--client", "slow", "--delete-config", "producer_byte_rate").code == 0
