"""What a restart of one node, of the controller or of all finds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest
from patience import eventually
from processes.observing import (
    client_of,
    create,
    latest,
    log_files,
    metadata_records,
    read,
    topics,
    wait_for,
    write,
)

from heirlog.protocol.messages import DescribeConfigsRequest
from heirlog.testing.cluster import Cluster

TOPIC_RESOURCE = 2
MANY_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": 2_000,
    "metadata.max.retention.bytes": 1,
    "metadata.log.segment.ms": 200,
    "broker.heartbeat.interval.ms": 500,
}


def config_of(cluster: Cluster, topic: str, name: str) -> str | None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=[name]
    )
    with client_of(cluster) as client:
        result = client.send_to_any(DescribeConfigsRequest(resources=[resource])).results[0]
    assert result.error_code == 0, result
    value: str | None = result.configs[0].value
    return value


@pytest.mark.parametrize("combined", [False, True], ids=["dedicated", "combined"])
def test_data_ids_offsets_and_configs_survive_a_restart_of_the_whole_cluster(tmp_path: Path, combined: bool) -> None:
    with Cluster(nodes=3, data=tmp_path, combined=combined) as cluster:
        create(cluster, "kept", [1, 2, 3], config={"retention.ms": "123456789"})
        for value in (b"a", b"b", b"c"):
            assert write(cluster, "kept", value).error_code == 0
        ids, end, servers = ours(cluster), latest(cluster, "kept"), cluster.bootstrap_servers
        assert end == 3
    with Cluster(nodes=3, data=tmp_path, combined=combined) as again:
        assert again.bootstrap_servers == servers
        assert ours(again) == ids
        wait_for(again, "kept", lambda view: len(view.isr) == 3)
        assert latest(again, "kept") == end
        assert read(again, "kept") == [b"a", b"b", b"c"]
        assert config_of(again, "kept", "retention.ms") == "123456789"
        answer = write(again, "kept", b"d")
        assert (answer.error_code, answer.base_offset) == (0, 3)


def test_a_node_with_both_roles_is_back_soon_after_a_kill() -> None:
    session_s = 120
    with Cluster(nodes=1, combined=True, config={"broker.session.timeout.ms": session_s * 1000}) as cluster:
        create(cluster, "kept", [1])
        write(cluster, "kept", b"a")
        cluster.kill(1)
        started = time.monotonic()
        cluster.start(1)
        cluster.wait_until_ready()
        wait_for(cluster, "kept", lambda view: view.leader == 1)
        assert time.monotonic() - started < session_s / 2, "it waited for the session of its own dead process"
        assert read(cluster, "kept") == [b"a"]


def test_a_cluster_of_which_every_process_was_killed_comes_back_with_its_data() -> None:
    """No power cut: what was written is in the page cache. Nobody stopped cleanly, so all replicas are asked."""
    with Cluster(nodes=3, config={"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 500}) as cluster:
        create(cluster, "kept", [1, 2, 3])
        for value in (b"a", b"b", b"c"):
            assert write(cluster, "kept", value).error_code == 0
        for node in cluster.node_ids:
            cluster.kill(node)
        for node in cluster.node_ids:
            cluster.start(node)
        cluster.wait_until_ready()
        wait_for(cluster, "kept", lambda view: len(view.isr) == 3)
        assert read(cluster, "kept") == [b"a", b"b", b"c"]


def test_a_stop_while_a_node_starts_is_clean_however_early_it_comes() -> None:
    with Cluster(nodes=1) as cluster:
        create(cluster, "kept", [1])
        assert write(cluster, "kept", b"a").error_code == 0
        clean_file = cluster.data / "broker-1" / "log" / ".kafka_cleanshutdown"
        cluster.stop(1)
        begun = cluster.output(1)
        cluster.start(1)
        cluster.stop(1)
        assert clean_file.exists()
        cluster.start(1)
        eventually(lambda: cluster.output(1) != begun, "the first sign of life")
        cluster.stop(1)
        assert clean_file.exists()
        cluster.start(1)
        cluster.wait_until_ready()
        assert read(cluster, "kept") == [b"a"]


def test_brokers_go_on_without_their_controller_and_with_its_next_process() -> None:
    with Cluster(nodes=3, config={"broker.session.timeout.ms": 6_000, "broker.heartbeat.interval.ms": 500}) as cluster:
        create(cluster, "t", [1, 2, 3])
        for stop in (cluster.kill, cluster.stop):
            stop(100)
            for _ in range(10):
                assert write(cluster, "t", b"without a controller").error_code == 0
            cluster.start(100)
            cluster.wait_until_ready()
            create(cluster, f"after-{stop.__name__}", [3, 2, 1])
        assert latest(cluster, "t") == 20
        # sessions were derived again: a broker that dies now is fenced, one that stops is let go
        cluster.kill(1)
        wait_for(cluster, "t", lambda view: 1 not in view.isr and view.leader in (2, 3))
        cluster.start(1)
        wait_for(cluster, "t", lambda view: len(view.isr) == 3)
        cluster.stop(2)
        wait_for(cluster, "t", lambda view: 2 not in view.isr)
        assert read(cluster, "t") == [b"without a controller"] * 20


def test_snapshots_shorten_the_metadata_log_and_who_was_away_fetches_one() -> None:
    with Cluster(nodes=3, config=MANY_SNAPSHOTS) as cluster:
        create(cluster, "before", [1, 2, 3])
        cluster.stop(3)
        last_known, _ = metadata_records(cluster, 3)[-1]

        numbers = count()

        def cut() -> bool:
            topic = f"t-{next(numbers)}"
            create(cluster, topic, partitions=20)
            segments = log_files(cluster, 100, "__cluster_metadata-0")
            return bool(segments) and int(segments[0].stem) > last_known + 1

        eventually(cut, "the metadata log to lose what broker 3 has not read")
        assert snapshots_of(cluster, 100)
        eventually(lambda: snapshots_of(cluster, 1), "broker 1's own snapshot")
        cluster.start(3)
        cluster.wait_until_ready()
        wait_for(cluster, "before", lambda view: len(view.isr) == 3)
        assert "metadata-snapshot-download" in cluster.output(3)

        expected = ours(cluster)
        cluster.kill(100)
        cluster.start(100)
        cluster.stop(1)
        cluster.start(1)
        cluster.wait_until_ready()
        create(cluster, "after", [1, 2, 3])
        wait_for(cluster, "before", lambda view: len(view.isr) == 3)
        assert {name: id_ for name, id_ in ours(cluster).items() if name != "after"} == expected


def ours(cluster: Cluster) -> dict[str, bytes]:
    """Without the topics that a cluster makes for itself, when it needs them."""
    return {name: id_ for name, id_ in topics(cluster).items() if not name.startswith("__")}


def snapshots_of(cluster: Cluster, node: int) -> list[Path]:
    return [path for path in log_files(cluster, node, "__cluster_metadata-0", ".checkpoint") if int(path.stem[:20])]


def run_node(properties: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "heirlog", "node", "--config", str(properties), *options],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_second_process_on_the_same_directory_is_refused_with_a_sentence() -> None:
    with Cluster(nodes=1) as cluster:
        for directory in ("broker-1", "controller-100"):
            ended = run_node(cluster.data / directory / "server.properties")
            assert ended.returncode == 1
            (sentence,) = ended.stderr.splitlines()
            assert "is in use by another process" in sentence
        assert sorted(cluster.pids) == [1, 100]


def test_an_unformatted_directory_is_refused_naming_the_command_that_formats_it() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.stop(1)
        directory = cluster.data / "broker-1"
        shutil.rmtree(directory / "log")
        for _ in ("missing", "empty"):
            # the cluster keeps the port for the node's next process
            ended = run_node(directory / "server.properties", "--reuse-port")
            assert ended.returncode == 1
            (sentence,) = [line for line in ended.stderr.splitlines() if line.startswith("heirlog: ")]
            assert "heirlog storage format" in sentence
            assert "Traceback" not in ended.stderr
            (directory / "log").mkdir(exist_ok=True)
