"""A controller whose disk was lost becomes a voter again by itself, in processes of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

from patience import eventually
from processes.test_controllers import active, create, topics

from heirlog.testing import Cluster


def heirlog(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "heirlog", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def quorum(cluster: Cluster) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(
        heirlog("quorum", "describe", "--json", "--bootstrap-server", cluster.bootstrap_servers)
    )
    return described


def voters(cluster: Cluster) -> dict[int, str]:
    """Directory id of each voter."""
    return {voter["id"]: voter["directoryId"] for voter in quorum(cluster)["current_voters"]}


def test_a_controller_whose_disk_was_lost_is_a_voter_again() -> None:
    with Cluster(nodes=1, controllers=3, config={"controller.quorum.auto.join.enable": True}) as cluster:
        create(cluster, "before", replicas=1)
        before = quorum(cluster)
        lost = next(node for node in cluster.controllers if node != active(cluster))
        cluster.kill(lost)
        folder = cluster.data / f"controller-{lost}"
        shutil.rmtree(folder / "log")
        properties = str(folder / "server.properties")
        cluster_id = before["cluster_id"]
        heirlog("storage", "format", "--config", properties, "--cluster-id", cluster_id, "--no-initial-controllers")
        cluster.start(lost)

        def is_back() -> bool:
            now = voters(cluster)
            return set(now) == set(cluster.controllers) and now[lost] != old[lost]

        old = {voter["id"]: voter["directoryId"] for voter in before["current_voters"]}
        eventually(is_back, "the controller is a voter with its new directory")
        other = next(node for node in cluster.controllers if node not in (lost, active(cluster)))
        cluster.kill(other)
        create(cluster, "with-its-vote", replicas=1)
        assert topics(cluster) == {"before", "with-its-vote"}
