"""Two of three controllers are lost for good, on real processes."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli.conftest import Heirlog, heirlog  # noqa: F401  # the fixture
from patience import eventually
from processes.observing import create, read, topics, wait_for
from processes.test_controllers import active
from processes.test_lost_controller import RECORDS, produce
from processes.test_quorum_commands import added, done, observes, quorum, refusal, voters

from heirlog.testing import Cluster

BROKERS = [1, 2, 3]


@pytest.mark.parametrize("combined", [False, True])
def test_the_controller_that_is_left_becomes_the_quorum_and_the_others_are_added_again(
    heirlog: Heirlog,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    combined: bool,
) -> None:
    """combined: a machine that is lost takes a broker with it, so its replicas are copied again."""
    with Cluster(nodes=3, controllers=3, combined=combined, ledger=False) as cluster:
        monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)
        create(cluster, "orders", BROKERS)
        produce(cluster, "orders")
        cluster_id, old = quorum(heirlog)["cluster_id"], voters(heirlog)
        left = next(node for node in cluster.controllers if node != active(cluster))
        lost = [node for node in cluster.controllers if node != left]
        folders = {node: cluster.data / f"{'broker' if combined else 'controller'}-{node}" for node in old}
        for node in lost:
            cluster.kill(node)
        address = re.search(r"CONTROLLER://([^,\n]+)", (folders[left] / "server.properties").read_text())
        assert address is not None
        said = refusal(heirlog, "quorum", "describe", "--bootstrap-controller", address[1])
        assert "no controller is active: start a majority" in said
        # at once: without a controller, each broker waits for a session before it stops
        with ThreadPoolExecutor() as machines:
            list(machines.map(cluster.stop, {left, *BROKERS} & cluster.pids.keys()))
        for node in lost:
            shutil.rmtree(folders[node] / "log")

        at_hand = [cluster.data / f"broker-{node}" / "log" for node in BROKERS if node not in lost]
        command = ["recover", "controller", "--config", str(folders[left] / "server.properties")]
        command += [option for path in at_hand for option in ("--from", str(path))]
        assert "--majority-lost" in refusal(heirlog, *command)
        logs = files(at_hand)
        said = done(heirlog, *command, "--majority-lost")
        assert f"Never start the controllers {lost[0]}, {lost[1]} with their old disks" in said
        assert files(at_hand) == logs

        cluster.start(left)
        for node in lost:
            config = str(folders[node] / "server.properties")
            done(heirlog, "storage", "format", "--config", config, "--cluster-id", cluster_id, "-N")
        for node in [*BROKERS, *lost]:
            if node not in cluster.pids:
                cluster.start(node)
        cluster.wait_until_ready()
        assert set(voters(heirlog)) == {left}
        for node in lost:
            eventually(lambda node=node: observes(heirlog, node), f"controller {node} follows")  # type: ignore[misc]
            added(heirlog, str(folders[node] / "server.properties"))
        now = voters(heirlog)
        assert set(now) == set(old) and now[left] == old[left] and all(now[node] != old[node] for node in lost)

        wait_for(cluster, "orders", lambda view: view.leader >= 0 and len(view.isr) == len(BROKERS))
        assert read(cluster, "orders") == [b"%d" % number for number in range(RECORDS)]
        cluster.kill(left)
        active(cluster, other_than=left)
        create(cluster, "later", [lost[0] if combined else 1])
        assert {"orders", "later"} <= set(topics(cluster))


def files(folders: list[Path]) -> dict[Path, bytes]:
    return {path: path.read_bytes() for folder in folders for path in folder.glob("orders-*/*.log")}
