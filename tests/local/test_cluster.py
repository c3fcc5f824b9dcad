"""A real cluster of processes, and what becomes of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import eventually
from processes.observing import alive

from heirlog.blocking import Client
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing import Cluster
from heirlog.testing.cluster import ClusterError


def brokers_known_to(address: str) -> set[int]:
    with Client(address, timeout_s=30.0) as client:
        return {broker.node_id for broker in client.metadata([]).brokers}


def test_it_is_ready_when_every_broker_knows_every_broker() -> None:
    with Cluster(nodes=3) as cluster:
        assert sorted(cluster.pids) == [1, 2, 3, 100]
        assert cluster.brokers == [1, 2, 3]
        for address in cluster.bootstrap_servers.split(","):
            assert brokers_known_to(address) == {1, 2, 3}
        data = cluster.data
    assert not data.exists()


def test_a_node_can_be_killed_stopped_and_started_again() -> None:
    with Cluster(nodes=1) as cluster:
        before = cluster.pids[1]
        cluster.kill(1)
        assert 1 not in cluster.pids
        cluster.start(1)
        cluster.wait_until_ready()
        assert cluster.pids[1] != before
        cluster.stop(1)
        assert 1 not in cluster.pids
        cluster.start(1)
        cluster.wait_until_ready()
        assert brokers_known_to(cluster.bootstrap_servers) == {1}


@pytest.mark.heirlog(nodes=1, combined=True)
def test_a_node_that_runs_cannot_be_started_again(heirlog_cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="broker 1 is already running"):
        heirlog_cluster.start(1)
    assert sorted(heirlog_cluster.pids) == [1]


@pytest.mark.heirlog(nodes=1, combined=True)
def test_a_paused_node_answers_nothing_until_it_goes_on(heirlog_cluster: Cluster) -> None:
    heirlog_cluster.pause(1)
    with pytest.raises(ClusterError, match="broker 1 is paused already"):
        heirlog_cluster.pause(1)
    with Client(heirlog_cluster.bootstrap_servers, timeout_s=0.3) as client, pytest.raises(OSError):
        client.metadata([])
    heirlog_cluster.resume(1)
    with pytest.raises(ClusterError, match="broker 1 is not paused"):
        heirlog_cluster.resume(1)
    assert brokers_known_to(heirlog_cluster.bootstrap_servers) == {1}
    heirlog_cluster.pause(1)
    heirlog_cluster.kill(1)
    with pytest.raises(ClusterError, match="broker 1 is not running"):
        heirlog_cluster.pause(1)
    heirlog_cluster.start(1)
    heirlog_cluster.wait_until_ready()
    heirlog_cluster.pause(1)
    heirlog_cluster.stop(1)


@pytest.mark.heirlog(nodes=2, combined=True, config={"num.partitions": 5})
def test_the_fixture_takes_its_parameters_from_the_marker(heirlog_cluster: Cluster) -> None:
    assert sorted(heirlog_cluster.pids) == heirlog_cluster.controllers == [1, 2]
    with Client(heirlog_cluster.bootstrap_servers) as client:
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=-1, replication_factor=-1)
        created = client.send_to_any(CreateTopicsRequest(topics=[topic])).topics[0]
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 5, 2)


def test_data_with_a_place_of_their_own_survive_the_cluster(tmp_path: Path) -> None:
    with Cluster(nodes=1, data=tmp_path) as cluster, Client(cluster.bootstrap_servers) as client:
        topic = CreateTopicsRequest.CreatableTopic(name="kept", num_partitions=1, replication_factor=1)
        assert client.send_to_any(CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0
        address = cluster.bootstrap_servers
    for contradiction, sentence in (({"nodes": 3}, "1 broker, not 3"), ({"config": {"num.partitions": 4}}, "not 4")):
        with pytest.raises(ClusterError, match=sentence):
            Cluster(data=tmp_path, **contradiction).open()
    with Cluster(data=tmp_path) as again, Client(again.bootstrap_servers) as client:
        with pytest.raises(ClusterError, match="another command runs the cluster in"):
            Cluster(data=tmp_path).open()
        assert again.bootstrap_servers == address
        assert [topic.name for topic in client.metadata().topics] == ["kept"]


def topics(cluster: Cluster) -> list[str | None]:
    with Client(cluster.bootstrap_servers, timeout_s=30.0) as client:
        return [topic.name for topic in client.metadata().topics]


def create_topic(cluster: Cluster, name: str, partitions: int = 1) -> None:
    with Client(cluster.bootstrap_servers, timeout_s=30.0) as client:
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        assert client.send_to_any(CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0


def test_a_copy_of_given_data_works_on_its_own_files_and_never_beside_the_original(tmp_path: Path) -> None:
    # a broker that was killed together with its controller comes back when its session has ended
    sessions = {"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 500}
    with Cluster(nodes=1, data=tmp_path / "a", config=sessions) as cluster:
        create_topic(cluster, "kept")
        for node in cluster.node_ids:
            cluster.kill(node)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        with pytest.raises(ClusterError, match=r"port \d+ of the cluster is in use"):
            Cluster(data=tmp_path / "b").open()
        assert (tmp_path / "b" / "broker-1" / "ledger").exists(), "of the original's files"
    before = files_of(tmp_path / "a")
    with Cluster(data=tmp_path / "b") as copy:
        copy.wait_until_ready()
        assert "kept" in topics(copy)
        create_topic(copy, "in-the-copy")
        copy.kill(1)
        copy.kill(100)
        lost = [copy.lose_unflushed(node) for node in (1, 100)]
        assert all(str(tmp_path / "b") in cut.path for report in lost for cut in report.cuts)
        assert all(str(tmp_path / "b") in text for report in lost for text in report.undone)
        copy.start(100)
        copy.start(1)
        copy.wait_until_ready()
        assert "kept" in topics(copy)
    assert files_of(tmp_path / "a") == before


def files_of(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}


def test_a_node_that_was_killed_before_it_opened_a_file_has_nothing_to_lose() -> None:
    with Cluster(nodes=1, combined=True) as cluster:
        cluster.kill(1)
        cluster.lose_unflushed(1)
        lost = cluster.lose_unflushed(1)
        assert (lost.cuts, lost.undone) == ([], [])
        cluster.start(1)
        cluster.lose_unflushed(1)
        cluster.start(1)
        cluster.wait_until_ready()


def test_a_ledger_that_failed_is_named_instead_of_a_power_cut() -> None:
    with Cluster(nodes=1, combined=True) as cluster:
        cluster.kill(1)
        (cluster.data / "broker-1" / "ledger").write_bytes(bytes(4096))
        cluster.start(1)
        cluster.wait_until_ready()
        assert "the ledger" in cluster.output(1) and "failed (ValueError" in cluster.output(1)
        create_topic(cluster, "still-served")
        with pytest.raises(ClusterError, match=r"broker 1: the ledger .* a power cut cannot be played on this node"):
            cluster.lose_unflushed(1)


def test_each_broker_has_the_rack_it_was_given(tmp_path: Path) -> None:
    with Cluster(racks=["a", "b"], data=tmp_path) as cluster, Client(cluster.bootstrap_servers) as client:
        assert {broker.node_id: broker.rack for broker in client.metadata([]).brokers} == {1: "a", 2: "b"}
    with pytest.raises(ClusterError, match="brokers in racks \\['a', 'b'\\], not \\['b', 'a'\\]"):
        Cluster(racks=["b", "a"], data=tmp_path).open()


@pytest.mark.parametrize(("nodes", "racks"), [(3, ["a", "b"]), (2, ["a", "b", "a"]), (None, []), (None, "ab")])
def test_racks_of_another_number_than_brokers_are_refused(nodes: int | None, racks: Any) -> None:
    with pytest.raises(ClusterError, match="one name for each broker"):
        Cluster(nodes=nodes, racks=racks)


@pytest.mark.parametrize("more", [{"racks": ["a", ""]}, {"racks": ["a"], "config": {"broker.rack": "b"}}])
def test_racks_that_cannot_be_are_refused(more: Any) -> None:
    with pytest.raises(ClusterError, match=r"rack"):
        Cluster(**more).open()


@pytest.mark.parametrize(
    "more", [{"controllers": 2}, {"controllers": 0}, {"nodes": 2, "controllers": 3, "combined": True}]
)
def test_numbers_of_controllers_that_cannot_be_are_refused(more: Any) -> None:
    with pytest.raises(ClusterError, match="controllers"):
        Cluster(**more)


def test_a_quorum_with_a_controller_that_lost_its_files_is_not_started(tmp_path: Path) -> None:
    """An empty controller could vote for a leader that lacks committed records."""
    with Cluster(nodes=1, controllers=3, data=tmp_path) as cluster:
        assert cluster.active_controller() in (100, 101, 102)
    shutil.rmtree(tmp_path / "controller-101" / "log")
    with pytest.raises(ClusterError, match="controller 101 has no files: put its folder back"):
        Cluster(data=tmp_path).open()
    with pytest.raises(ClusterError, match="holds a cluster with 3 controllers, not 1"):
        Cluster(data=tmp_path, controllers=1).open()


def test_a_cluster_that_is_not_open_says_so() -> None:
    with pytest.raises(ClusterError, match="1 to 99 brokers, not 0"):
        Cluster(nodes=0)
    with pytest.raises(ClusterError, match="not '3'"):
        Cluster(nodes="3")  # type: ignore[arg-type]
    cluster = Cluster()
    for call in (cluster.kill, cluster.start, cluster.output):
        with pytest.raises(ClusterError, match="not started: use it in a `with` statement"):
            call(1)


@pytest.mark.heirlog(nodes=1, combined=True)
def test_a_closed_cluster_starts_no_node(heirlog_cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="already started"):
        heirlog_cluster.open()
    heirlog_cluster.close()
    with pytest.raises(ClusterError, match="the cluster is closed"):
        heirlog_cluster.start(1)
    with pytest.raises(ClusterError, match="the cluster is not running"):
        _ = heirlog_cluster.bootstrap_servers


def test_a_node_that_cannot_start_is_reported_with_its_own_words() -> None:
    with pytest.raises(ClusterError, match="log\\.segmnt\\.bytes"), Cluster(nodes=1, config={"log.segmnt.bytes": 5}):
        pass


@pytest.mark.heirlog(nodes=1, combined=True)
def test_a_node_that_ended_before_the_wait_is_reported(heirlog_cluster: Cluster) -> None:
    os.kill(heirlog_cluster.pids[1], signal.SIGKILL)
    eventually(lambda: 1 not in heirlog_cluster.pids, "the end of broker 1")
    with pytest.raises(ClusterError, match=r"^broker 1 was killed by SIGKILL$"):
        heirlog_cluster.wait_until_ready()
    heirlog_cluster.start(1)
    heirlog_cluster.wait_until_ready()
    heirlog_cluster.kill(1)
    heirlog_cluster.wait_until_ready()


@pytest.mark.parametrize("last_step", ["", "cluster.pause(1)"])
def test_nodes_stop_cleanly_when_the_process_that_started_them_is_killed(tmp_path: Path, last_step: str) -> None:
    program = (
        "from heirlog.testing import Cluster\n"
        f"with Cluster(nodes=1, data={str(tmp_path)!r}) as cluster:\n"
        f"    {last_step or 'pass'}\n"
        "    print(*cluster.pids.values(), flush=True)\n"
        "    input()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2 and all(map(alive, pids))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.communicate()
    eventually(lambda: not any(map(alive, pids)), "the nodes to end")
    assert (tmp_path / "broker-1" / "log" / ".kafka_cleanshutdown").exists()


def test_a_temporary_folder_goes_when_the_process_that_made_it_is_killed() -> None:
    program = (
        "from heirlog.local import cluster as module\n"
        "module.ORPHANS_END_S = 0\n"
        "with module.Cluster(nodes=1, combined=True) as cluster:\n"
        "    print(cluster.data, flush=True)\n"
        "    cluster.kill(1)\n"
        "    input()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        data = Path(parent.stdout.readline().strip())
        assert data.is_dir() and data.name.startswith("heirlog-")
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.communicate()
    eventually(lambda: not data.exists(), "the folder to go")
