"""Apache Kafka's tools on three controllers of heirlog with voters in the log (kraft.version 1), and on their files."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jars
from apache_kafka import eventually
from clients import output_of

from heirlog.blocking import Client
from heirlog.local.layout import HOST, NodeLayout
from heirlog.local.processes import NodeProcess
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import free_ports, write_properties

METADATA = "__cluster_metadata-0"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
STORAGE = "kafka.tools.StorageTool"
DUMP = "kafka.tools.DumpLogSegments"
SHELL = "org.apache.kafka.shell.MetadataShell"
ADDED = 900
"""Node id of a controller that is added."""


def check() -> str:
    """kafka-metadata-quorum, kafka-storage, kafka-dump-log and kafka-metadata-shell."""
    jars.fetch()
    config = {"metadata.log.max.record.bytes.between.snapshots": 2000}
    with (
        tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory,
        Cluster(nodes=1, controllers=3, data=Path(directory) / "data", config=config, ledger=False) as cluster,
    ):
        homes = [cluster.data / f"controller-{node}" for node in cluster.controllers]
        addresses = ",".join(str(NodeLayout(0, home).controller_address()) for home in homes)
        roles = [line.split()[-1] for line in replication(cluster)[1:]]
        assert sorted(roles) == ["Follower", "Follower", "Leader", "Observer"], roles
        add_and_remove(cluster, addresses)
        said = tool(STORAGE, "info", "-c", str(homes[0] / "server.properties"))
        assert f"node.id={cluster.controllers[0]}" in said and "problem" not in said, said
        metadata = homes[0] / "log" / METADATA
        return f"kafka-metadata-quorum, kafka-storage; {read_files(cluster, metadata)}"


def tool(name: str, *arguments: str) -> str:
    """What a tool of Apache Kafka printed, in a JVM of its own. Raises RuntimeError with what it said if it fails."""
    return output_of(["java", "-Xmx256m", "-cp", jars.classpath(), name, *arguments])


def records(segments: Sequence[Path]) -> dict[int, str]:
    """Each record as kafka-dump-log shows it, by offset."""
    said = tool(DUMP, "--cluster-metadata-decoder", "--files", ",".join(map(str, segments)))
    lines = [re.fullmatch(r"\| offset: (\d+) (.*)", line) for line in said.splitlines()]
    return {int(line[1]): line[2] for line in lines if line}


def status(addresses: str) -> dict[str, Any]:
    said = tool(QUORUM, "--bootstrap-controller", addresses, "describe", "--status")
    found = dict(re.findall(r"^(\w+): +(.*)$", said, re.MULTILINE))
    return {name: json.loads(value) if value[0] in "[{" else value for name, value in found.items()}


def replication(cluster: Cluster) -> list[str]:
    said = tool(QUORUM, "--bootstrap-server", cluster.bootstrap_servers, "describe", "--replication")
    return [line for line in said.splitlines() if line.strip()]


def add_and_remove(cluster: Cluster, addresses: str) -> None:
    """A controller whose folder Kafka's tool has formatted."""
    home = cluster.data / f"controller-{ADDED}"
    properties = {
        "process.roles": "controller",
        "node.id": ADDED,
        "listeners": f"CONTROLLER://{HOST}:{free_ports(1)[0]}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": addresses,
        "log.dirs": home / "log",
    }
    write_properties(home, properties)
    config = str(home / "server.properties")
    before = status(addresses)
    assert {voter["id"] for voter in before["CurrentVoters"]} == set(cluster.controllers), before
    tool(STORAGE, "format", "-t", before["ClusterId"], "-c", config, "--no-initial-controllers")
    with ExitStack() as held:
        process = NodeProcess(NodeLayout(ADDED, home))
        process.start()
        held.callback(process.kill)
        eventually(lambda: any(line.startswith(f"{ADDED} ") for line in replication(cluster)), "it is an observer")
        at = ("--bootstrap-controller", addresses, "--command-config", config)
        assert "DRY RUN of adding" in tool(QUORUM, *at, "add-controller", "--dry-run")
        assert f"Added controller {ADDED} with directory id" in tool(QUORUM, *at, "add-controller")
        after = status(addresses)["CurrentVoters"]
        (key,) = [voter["directoryId"] for voter in after if voter["id"] == ADDED]
        named = ("--controller-id", str(ADDED), "--controller-directory-id", key)
        said = tool(QUORUM, "--bootstrap-server", cluster.bootstrap_servers, "remove-controller", *named)
        assert f"controller {ADDED} with directory id {key}" in said, said
        assert status(addresses)["CurrentVoters"] == before["CurrentVoters"]


def read_files(cluster: Cluster, metadata: Path) -> str:
    """A log and a snapshot of heirlog."""
    topics: list[str] = []
    before = set(metadata.glob("*.checkpoint"))
    with Client(cluster.bootstrap_servers) as client:

        def snapshots() -> list[Path]:
            topic = CreateTopicsRequest.CreatableTopic(name=f"t-{len(topics)}", num_partitions=1, replication_factor=1)
            client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
            topics.append(topic.name)
            # the first new one may have been in the making before there was a topic
            return sorted(set(metadata.glob("*.checkpoint")) - before)[1:]

        newest = eventually(snapshots, "a snapshot")[-1]
    shown = records(sorted(metadata.glob("*.log")))
    assert "LeaderChange" in shown[0], shown[0]
    assert any('"TOPIC_RECORD"' in record and f'"name":"{topics[0]}"' in record for record in shown.values())
    of_snapshot = records([newest])
    for kind in ("SnapshotHeader", "KRaftVersion", "KRaftVoters"):
        assert any(kind in record for record in list(of_snapshot.values())[:3]), kind
    assert "SnapshotFooter" in of_snapshot[max(of_snapshot)]
    listed = set(tool(SHELL, "--snapshot", str(newest), "ls", "/image/topics/byName").split())
    assert listed and listed <= set(topics), listed
    return f"kafka-dump-log {len(shown)} records, kafka-metadata-shell {len(listed)} topics"
