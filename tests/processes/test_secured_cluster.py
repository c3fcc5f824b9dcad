"""Three brokers and a controller behind closed doors: every channel between nodes is secured too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from heirlog.blocking import Client
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.security import security_from_properties
from heirlog.local import properties
from heirlog.testing import Cluster


def admin(cluster: Cluster, **more: str) -> Client:
    given = properties.read(cluster.data / "client.properties") | more
    return Client(cluster.bootstrap_servers, security=security_from_properties(given), timeout_s=20.0)


def modes(path: Path) -> dict[str, int]:
    files = [file for ending in ("pem", "key", "properties") for file in path.rglob(f"*.{ending}")]
    assert len(files) > 5
    return {file.name: file.stat().st_mode & 0o777 for file in files}


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_cluster_elects_replicates_and_takes_a_broker_back(protocol: str) -> None:
    with Cluster(nodes=3, security=protocol) as cluster:
        cluster.create_topic("t", 3, 3)
        with admin(cluster) as client:
            assert len(client.metadata([]).brokers) == 3
        leader = cluster.leader("t")
        cluster.kill(leader)
        assert cluster.leader("t") != leader
        cluster.start(leader)
        cluster.wait_until_ready()
        cluster.wait_until_in_sync()
        open_to_all = {name for name, mode in modes(cluster.data).items() if mode != 0o600}
        assert open_to_all <= {"ca.pem", "meta.properties"}
        if protocol != "SSL":
            wrong: Any = properties.read(cluster.data / "client.properties")["sasl.jaas.config"].replace(
                'password="', 'password="x'
            )
            with pytest.raises(AuthenticationFailed), admin(cluster, **{"sasl.jaas.config": wrong}) as client:
                client.metadata([])
            said = "".join(cluster.output(node) for node in cluster.node_ids)
            for file in cluster.data.rglob("*.properties"):
                for password in _passwords(file):
                    assert password not in said


def _passwords(file: Path) -> set[str]:
    words = [word for text in properties.read(file).values() for word in text.split('"')]
    return {word for word in words if len(word) == 24 and os.sep not in word}
