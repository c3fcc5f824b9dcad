"""A controller that was restored from an old copy, then one that is seeded from the brokers, on real processes.

docs/guides/operate.md, "A lost controller": what the page says is done here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Heirlog, heirlog  # noqa: F401  # the fixture
from patience import eventually
from processes.observing import create, read, topics, wait_for

from heirlog.blocking import Client
from heirlog.protocol.batch import encode_batch
from heirlog.testing.cluster import Cluster

CONTROLLER = 100
BROKERS = (1, 2, 3)
RECORDS = 20
OLDER = "older than this broker's own copy"


def folder(cluster: Cluster, node: int) -> Path:
    name = f"controller-{node}" if node == CONTROLLER else f"broker-{node}"
    return cluster.data / name / "log"


def logs(cluster: Cluster) -> dict[str, bytes]:
    found = [path for node in BROKERS for path in folder(cluster, node).glob("orders-*/*.log")]
    return {str(path): path.read_bytes() for path in sorted(found)}


def produce(cluster: Cluster, topic: str) -> None:
    with Client(cluster.bootstrap_servers) as client, client.producer(acks=-1, idempotent=True) as producer:
        for number in range(RECORDS):
            producer.send(topic, 0, encode_batch([(b"key", b"%d" % number, (), 1_700_000_000_000)]))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    config = {"min.insync.replicas": 2, "unclean.recovery.manager.enabled": True, "broker.heartbeat.interval.ms": 500}
    with Cluster(nodes=3, config=config, data=tmp_path / "data", ledger=False) as running:
        yield running


@pytest.mark.parametrize("meets", ["running brokers", "brokers that start"])
def test_an_old_backup_of_the_controller_costs_nothing_and_a_seeded_controller_has_everything(
    cluster: Cluster,
    heirlog: Heirlog,  # noqa: F811
    tmp_path: Path,
    meets: str,
) -> None:
    create(cluster, "orders-old", [1, 2, 3])
    cluster.stop(CONTROLLER)
    backup = tmp_path / "backup"
    shutil.copytree(folder(cluster, CONTROLLER), backup)
    cluster.start(CONTROLLER)
    cluster.wait_until_ready()
    create(cluster, "orders-new", [1, 2, 3])
    for topic in ("orders-old", "orders-new"):
        produce(cluster, topic)
    before = topics(cluster)
    if meets == "brokers that start":
        for broker in BROKERS:
            cluster.stop(broker)
    cluster.kill(CONTROLLER)
    held = logs(cluster)

    shutil.rmtree(folder(cluster, CONTROLLER))
    shutil.copytree(backup, folder(cluster, CONTROLLER))
    cluster.start(CONTROLLER)
    for broker in BROKERS:
        if meets == "brokers that start":
            cluster.start(broker)
        eventually(lambda broker=broker: broker not in cluster.pids, f"broker {broker} to stop")  # type: ignore[misc]
        assert OLDER in cluster.output(broker) and "heirlog recover controller" in cluster.output(broker)
        assert (folder(cluster, broker) / ".kafka_cleanshutdown").exists(), "its logs were closed cleanly"
    assert logs(cluster) == held, "nothing was deleted, and nothing cut"

    cluster.kill(CONTROLLER)
    config = str(folder(cluster, CONTROLLER).parent / "server.properties")
    sources = [option for broker in BROKERS for option in ("--from", str(folder(cluster, broker)))]
    refused = heirlog("recover", "controller", "--config", config, *sources)
    assert refused.code == 1 and "move the folder away" in refused.err
    (folder(cluster, CONTROLLER) / "__cluster_metadata-0").rename(tmp_path / "older")
    done = heirlog("recover", "controller", "--config", config, *sources)
    assert done.code == 0, done.err
    assert logs(cluster) == held
    cluster.start(CONTROLLER)
    for broker in BROKERS:
        cluster.start(broker)
    cluster.wait_until_ready()
    for topic in ("orders-old", "orders-new"):
        wait_for(cluster, topic, lambda view: view.leader >= 0 and len(view.isr) == len(BROKERS))
        assert read(cluster, topic) == [b"%d" % number for number in range(RECORDS)]
    after = topics(cluster)
    assert {name: after[name] for name in before} == before
    produce(cluster, "orders-new")


def lead(cluster: Cluster, topic: str) -> int:
    return wait_for(cluster, topic, lambda view: view.leader >= 0 and len(view.isr) == len(BROKERS)).leader


def test_older_metadata_that_an_operator_accepts_set_logs_aside_which_come_back_with_the_newer_metadata(
    cluster: Cluster, tmp_path: Path
) -> None:
    create(cluster, "orders-old", [1, 2, 3])
    cluster.stop(CONTROLLER)
    backup, newer = tmp_path / "backup", tmp_path / "newer"
    shutil.copytree(folder(cluster, CONTROLLER), backup)
    cluster.start(CONTROLLER)
    cluster.wait_until_ready()
    create(cluster, "orders-new", [1, 2, 3])
    produce(cluster, "orders-new")
    for _ in range(2):
        # in leader epochs that the backup does not know
        leader = lead(cluster, "orders-old")
        cluster.stop(leader)
        cluster.start(leader)
        lead(cluster, "orders-old")
        produce(cluster, "orders-old")
    for broker in BROKERS:
        cluster.stop(broker)
    cluster.stop(CONTROLLER)
    for kept, put in ((newer, backup), (tmp_path / "accepted", newer)):
        folder(cluster, CONTROLLER).rename(kept)
        shutil.copytree(put, folder(cluster, CONTROLLER))
        cluster.start(CONTROLLER)
        for broker in BROKERS:
            cluster.start(broker, accept_older_metadata=True)
        cluster.wait_until_ready()
        if put is backup:
            assert "orders-new" not in topics(cluster)
            lead(cluster, "orders-old")
            assert read(cluster, "orders-old") == [b"%d" % number for number in range(RECORDS)] * 2
            for broker in BROKERS:
                assert list(folder(cluster, broker).glob("orders-new-0.*-stray"))
                assert list(folder(cluster, broker).glob("__cluster_metadata-0.*-stray"))
            for broker in BROKERS:
                cluster.stop(broker)
            cluster.stop(CONTROLLER)
    wait_for(cluster, "orders-new", lambda view: view.leader >= 0)
    assert read(cluster, "orders-new") == [b"%d" % number for number in range(RECORDS)]


def test_after_a_seeding_aggressive_elects_the_first_replica_and_the_others_keep_apart_what_it_lacks(
    cluster: Cluster,
    heirlog: Heirlog,  # noqa: F811
) -> None:
    create(cluster, "orders", [1, 2, 3], config={"unclean.recovery.strategy": "Aggressive"})
    produce(cluster, "orders")
    cluster.kill(3)
    produce(cluster, "orders")
    for node in (1, 2, CONTROLLER):
        cluster.stop(node)
    shutil.rmtree(folder(cluster, CONTROLLER) / "__cluster_metadata-0")
    config = str(folder(cluster, CONTROLLER).parent / "server.properties")
    sources = [option for broker in BROKERS for option in ("--from", str(folder(cluster, broker)))]
    assert heirlog("recover", "controller", "--config", config, *sources).code == 0
    cluster.start(CONTROLLER)
    cluster.start(3)
    wait_for(cluster, "orders", lambda view: view.leader == 3)
    for broker in (1, 2):
        cluster.start(broker)
    cluster.wait_until_ready()
    wait_for(cluster, "orders", lambda view: len(view.isr) == len(BROKERS))
    assert read(cluster, "orders") == [b"%d" % number for number in range(RECORDS)]
    for broker in (1, 2):
        assert list(folder(cluster, broker).glob("orders-0/discarded/*.log")), "what was given up can be salvaged"
