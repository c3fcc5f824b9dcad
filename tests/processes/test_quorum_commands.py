"""`heirlog quorum add-controller` and `remove-controller` on real processes: the voters change, and writes continue."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from cli.conftest import Heirlog, heirlog  # noqa: F401  # the fixture
from patience import eventually
from processes.observing import read
from processes.test_controllers import active, create, topics

from heirlog.blocking import Client
from heirlog.local import properties
from heirlog.local.layout import NodeLayout
from heirlog.local.ports import PortReservation
from heirlog.local.processes import NodeProcess
from heirlog.protocol.batch import encode_batch
from heirlog.testing import Cluster

NEW = 103


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with Cluster(nodes=1, controllers=3, ledger=False) as running:
        monkeypatch.setenv("HEIRLOG_BOOTSTRAP", running.bootstrap_servers)
        yield running


@pytest.fixture
def new_controller(cluster: Cluster) -> Iterator[NodeProcess]:
    """Configured, and neither formatted nor started."""
    known = properties.read(cluster.data / "controller-100" / "server.properties")
    layout = NodeLayout(NEW, cluster.data / f"controller-{NEW}")
    layout.directory.mkdir()
    ports = PortReservation()
    listener = f"CONTROLLER://127.0.0.1:{ports.reserve()}"
    own = {"node.id": str(NEW), "log.dirs": str(layout.log_dir)}
    own |= {"listeners": listener, "advertised.listeners": listener}
    layout.properties_path.write_text(properties.render({**known, **own}, "a fourth controller"))
    process = NodeProcess(layout, reuse_port=True)
    yield process
    process.kill()
    ports.release()


def done(heirlog: Heirlog, *arguments: str) -> str:  # noqa: F811
    outcome = heirlog(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out


def refusal(heirlog: Heirlog, *arguments: str) -> str:  # noqa: F811
    outcome = heirlog(*arguments)
    assert outcome.code == 1, outcome.out
    return outcome.err


def quorum(heirlog: Heirlog, *options: str) -> dict[str, Any]:  # noqa: F811
    described: dict[str, Any] = json.loads(done(heirlog, "quorum", "describe", "--json", *options))
    return described


def voters(heirlog: Heirlog) -> dict[int, str]:  # noqa: F811
    """Directory id of each voter."""
    return {voter["id"]: voter["directoryId"] for voter in quorum(heirlog)["current_voters"]}


def removal(node: int, directory_id: str) -> tuple[str, ...]:
    return "quorum", "remove-controller", "--controller-id", str(node), "--controller-directory-id", directory_id


def observes(heirlog: Heirlog, node: int) -> bool:  # noqa: F811
    return node in {observer["id"] for observer in quorum(heirlog)["current_observers"]}


def added(heirlog: Heirlog, config: str) -> str:  # noqa: F811
    """The output of `add-controller`, repeated until the controller has caught up."""
    return eventually(lambda: heirlog("quorum", "add-controller", "--config", config).out, "the controller is added")


def test_a_controller_is_added_and_the_active_one_removed_while_writes_continue(
    cluster: Cluster,
    new_controller: NodeProcess,
    heirlog: Heirlog,  # noqa: F811
) -> None:
    create(cluster, "orders", replicas=1)
    config = str(new_controller.layout.properties_path)
    adding = ("quorum", "add-controller", "--config", config)
    assert "is not formatted" in refusal(heirlog, *adding)
    cluster_id = quorum(heirlog)["cluster_id"]
    done(heirlog, "storage", "format", "--config", config, "--cluster-id", cluster_id, "--no-initial-controllers")
    assert "start it with heirlog node" in refusal(heirlog, *adding)
    new_controller.start()
    eventually(lambda: observes(heirlog, NEW), "the new controller follows")

    identity = properties.read(new_controller.layout.log_dir / "meta.properties")["directory.id"]
    listener = properties.read(config)["listeners"]
    named = f"controller {NEW} with directory id {identity} and endpoints: {listener}\n"
    assert done(heirlog, *adding, "--dry-run") == f"DRY RUN of adding {named}"
    assert NEW not in voters(heirlog)
    assert added(heirlog, config) == f"Added {named}"
    assert voters(heirlog)[NEW] == identity
    assert "is a voter already" in refusal(heirlog, *adding)

    first = active(cluster)
    theirs = voters(heirlog)[first]
    assert f"the voters are 100 ({voters(heirlog)[100]})" in refusal(heirlog, *removal(first, identity))
    assert done(heirlog, *removal(first, theirs), "--dry-run").startswith("DRY RUN of removing")
    assert first in voters(heirlog)
    with Client(cluster.bootstrap_servers) as client, client.producer() as producer:
        producer.send("orders", 0, encode_batch([(None, b"before", (), 0)]))
        removed = done(heirlog, *removal(first, theirs))
        producer.send("orders", 0, encode_batch([(None, b"after", (), 0)]))
    assert removed == f"Removed KRaft controller {first} with directory id {theirs}\n"
    create(cluster, "without-it", replicas=1)
    assert set(voters(heirlog)) == {100, 101, 102, NEW} - {first}
    cluster.stop(first)

    lost = next(node for node in cluster.controllers if node != first)
    cluster.kill(lost)
    create(cluster, "with-the-vote-of-the-new-one", replicas=1)
    assert topics(cluster) == {"orders", "without-it", "with-the-vote-of-the-new-one"}
    assert read(cluster, "orders") == [b"before", b"after"]


def test_a_lost_disk_is_replaced_and_a_removal_that_could_not_be_committed_is_refused(
    cluster: Cluster,
    heirlog: Heirlog,  # noqa: F811
) -> None:
    create(cluster, "before", replicas=1)
    cluster_id, old = quorum(heirlog)["cluster_id"], voters(heirlog)
    lost, other = (node for node in cluster.controllers if node != active(cluster))
    folder = cluster.data / f"controller-{lost}"
    cluster.kill(lost)
    assert f"because {lost} does not fetch" in refusal(heirlog, *removal(other, old[other]))
    assert set(voters(heirlog)) == {100, 101, 102}

    shutil.rmtree(folder / "log")
    config = str(folder / "server.properties")
    done(heirlog, "storage", "format", "--config", config, "--cluster-id", cluster_id, "--no-initial-controllers")
    cluster.start(lost)
    eventually(lambda: observes(heirlog, lost), "the emptied controller follows")
    _, advice = refusal(heirlog, "quorum", "add-controller", "--config", config).split("remove it first: heirlog ")
    done(heirlog, *advice.split())
    added(heirlog, config)
    assert set(voters(heirlog)) == {100, 101, 102} and voters(heirlog)[lost] != old[lost]

    cluster.kill(other)
    create(cluster, "with-its-vote", replicas=1)
    assert topics(cluster) == {"before", "with-its-vote"}


def test_the_controllers_describe_their_quorum_without_brokers(cluster: Cluster, heirlog: Heirlog) -> None:  # noqa: F811
    servers = properties.read(cluster.data / "controller-100" / "server.properties")
    addresses = servers["controller.quorum.bootstrap.servers"]
    broker = cluster.bootstrap_servers
    assert "listener of brokers" in refusal(heirlog, "quorum", "describe", "--bootstrap-controller", broker)
    both = heirlog("quorum", "describe", "-b", broker, "--bootstrap-controller", addresses)
    assert (both.code, "exclude each other" in both.err) == (2, True), "the variable is set too, and is no choice"
    cluster.kill(1)
    for address in addresses.split(","):
        found = quorum(heirlog, "--bootstrap-controller", address)
        assert {voter["id"] for voter in found["current_voters"]} == {100, 101, 102}
        assert found["leader_id"] == active(cluster) and found["cluster_id"]
    lost = [node for node in cluster.controllers if node != active(cluster)]
    for node in lost:
        cluster.kill(node)
    describe = ("quorum", "describe", "--bootstrap-controller", addresses)
    eventually(lambda: "no controller is active" in heirlog(*describe).err, "the last controller resigns")
