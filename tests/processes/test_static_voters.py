"""Three controllers whose configuration names the voters (kraft.version 0), and the step to voters in the log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from patience import eventually

from heirlog.local.layout import HOST, NodeLayout
from heirlog.local.ports import PortReservation
from heirlog.local.processes import NodeProcess, wait_until_ready
from heirlog.protocol.types import uuid_text
from heirlog.testing.apache_kafka import CLUSTER_ID, write_properties

CONTROLLERS, BROKER = (1, 2, 3), 4
READY_TIMEOUT_S = 60.0


def heirlog(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "heirlog", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass
class Nodes:
    data: Path
    reservation: PortReservation
    bootstrap_server: str = ""
    processes: dict[int, NodeProcess] = field(default_factory=dict)

    def format(self) -> None:
        """Without --standalone and --initial-controllers: nothing on the disks says who votes."""
        ports = {node: self.reservation.reserve() for node in (*CONTROLLERS, BROKER)}
        self.bootstrap_server = f"{HOST}:{ports[BROKER]}"
        for node, port in ports.items():
            home = self.data / f"node-{node}"
            listener = "PLAINTEXT" if node == BROKER else "CONTROLLER"
            properties = {
                "process.roles": "broker" if node == BROKER else "controller",
                "node.id": node,
                "controller.quorum.voters": ",".join(f"{one}@{HOST}:{ports[one]}" for one in CONTROLLERS),
                "listeners": f"{listener}://{HOST}:{port}",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": home / "log",
            }
            write_properties(home, properties)
            config = str(home / "server.properties")
            heirlog("storage", "format", "--config", config, "--cluster-id", CLUSTER_ID, "--feature", "kraft.version=0")
            self.processes[node] = NodeProcess(NodeLayout(node, home), reuse_port=True)

    def start(self) -> None:
        for process in self.processes.values():
            if not process.running:
                process.start()
        controllers = [self.processes[node] for node in CONTROLLERS]
        wait_until_ready([self.processes[BROKER]], controllers, READY_TIMEOUT_S)

    def kill(self) -> None:
        for process in self.processes.values():
            if process.running:
                process.kill()

    def ask(self, *arguments: str) -> Any:
        return json.loads(heirlog(*arguments, "--json", "--bootstrap-server", self.bootstrap_server))

    def create(self, topic: str) -> None:
        heirlog("topics", "create", topic, "--bootstrap-server", self.bootstrap_server)

    def topics(self) -> set[str]:
        return set(heirlog("topics", "list", "--bootstrap-server", self.bootstrap_server).split())

    def directories(self) -> dict[int, str | None]:
        """Directory id of each voter, as the leader names it."""
        return {voter["id"]: voter["directoryId"] for voter in self.ask("quorum", "describe")["current_voters"]}

    def level(self) -> int:
        features = self.ask("features", "describe")
        return next(int(one["level"]) for one in features if one["feature"] == "kraft.version")

    def quorum_state(self, node: int) -> dict[str, Any]:
        path = self.data / f"node-{node}" / "log" / "__cluster_metadata-0" / "quorum-state"
        state: dict[str, Any] = json.loads(path.read_text().splitlines()[0])
        return state


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path, PortReservation())
    with ExitStack() as held:
        held.callback(made.reservation.release)
        held.callback(made.kill)
        yield made


def test_static_voters_elect_fail_over_and_move_into_the_log(nodes: Nodes) -> None:
    nodes.format()
    nodes.start()
    nodes.create("at-level-0")
    assert (nodes.level(), nodes.directories()) == (0, dict.fromkeys(CONTROLLERS))
    leader = int(nodes.ask("quorum", "describe")["leader_id"])
    assert nodes.quorum_state(leader)["currentVoters"] == [{"voterId": node} for node in CONTROLLERS]

    nodes.processes[leader].kill()
    eventually(lambda: int(nodes.ask("quorum", "describe")["leader_id"]) != leader, "another controller leads")
    nodes.create("after-a-fail-over")
    nodes.start()

    def raised() -> bool:
        """Each voter tells a new leader its directory id within some seconds."""
        upgrade = ["features", "upgrade", "--feature", "kraft.version=1", "--bootstrap-server", nodes.bootstrap_server]
        done = subprocess.run([sys.executable, "-m", "heirlog", *upgrade], capture_output=True, text=True, check=False)
        assert done.returncode == 0 or "has not told this leader its directory id" in done.stderr, done.stderr
        return done.returncode == 0

    eventually(raised, "the level is raised")
    eventually(lambda: nodes.level() == 1, "the broker has the level")
    in_log = nodes.directories()
    assert set(in_log) == set(CONTROLLERS) and None not in in_log.values()

    nodes.kill()
    nodes.start()
    eventually(lambda: nodes.topics() >= {"at-level-0", "after-a-fail-over"}, "the topics are there")
    assert nodes.directories() == in_log
    leader = int(nodes.ask("quorum", "describe")["leader_id"])
    state = nodes.quorum_state(leader)
    assert (state["data_version"], state["votedDirectoryId"]) == (1, in_log[leader])
    assert uuid_text(bytes(16)) not in in_log.values()
