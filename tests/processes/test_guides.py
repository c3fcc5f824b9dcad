"""The commands of tutorials and guides that talk to a cluster, run as the pages have them.

A block of `sh` runs in a shell; a block of `text` below it must be in what the block has printed. Blocks without a
language start what the test has running already, or need what a test does not have: systemd as root
(docs/guides/systemd.md), a container engine (docs/guides/container-image.md: test_container.py runs its nodes, and
tests/test_package.py does the steps of its build). Other pages have tests of their own: docs/guides/recover.md in
test_recovery.py, docs/tutorials/spark.md
in tests/spark/test_tutorial.py, docs/tutorials/tests.md in tests/testing/test_page.py, `heirlog recover controller`
of docs/guides/operate.md in tests/cli/test_recover_controller.py, the commands of docs/guides/pipelines.md in
tests/spark/pipeline.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path
from types import MappingProxyType

import pytest
from patience import eventually

from heirlog.cli import quorum
from heirlog.local.ports import PortReservation
from heirlog.testing import Cluster

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 240


def blocks(page: str) -> list[tuple[str, str]]:
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert any(kind == "sh" for kind, _ in found), f"{page} has no commands any more"
    return found


class Shell:
    """One terminal in which blocks run, one after the other; exported variables stay."""

    def __init__(self, folder: Path, **environment: str) -> None:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        source = f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"
        self._environment = {**os.environ, "PATH": path, "PYTHONPATH": source, **environment}
        self._folder = folder

    def run(self, *command: str) -> str:
        ended = subprocess.run(
            command, cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert ended.returncode == 0, f"{command[-1]}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def play(self, page: str, places: Mapping[str, Path] = MappingProxyType({})) -> None:
        """places: folders of the page, and where they are in this test."""
        printed = ""
        for kind, text in blocks(page):
            for named, place in places.items():
                text = text.replace(named, str(place))
            if kind == "sh":
                printed = self.run("bash", "-e", "-c", text)
            elif kind == "python":
                self.run(sys.executable, "-c", text)
            elif kind == "text":
                missing = [line for line in text.splitlines() if line not in printed]
                assert not missing, f"{page}: {missing} not in:\n{printed}"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3, config={"broker.heartbeat.interval.ms": 500}) as cluster:
        cluster.wait_until_ready()
        yield cluster


def test_the_readme_and_then_the_first_cluster(cluster: Cluster, tmp_path: Path) -> None:
    pids = {f"BROKER_{node}": str(cluster.pids[node]) for node in (1, 2)}
    shell = Shell(tmp_path, HEIRLOG_BOOTSTRAP=cluster.bootstrap_servers, **pids)
    # a reader comes from there, with its topic and its records
    (tour,) = (text for kind, text in blocks("../README.md") if kind == "sh")
    assert shell.run("bash", "-e", "-c", tour).count("hola") == 1
    shell.play("tutorials/first-cluster.md")
    assert sorted(cluster.pids) == [3, 100], "the page has killed the brokers 1 and 2"


def test_the_upgrade_the_monitor_and_quotas(cluster: Cluster, tmp_path: Path) -> None:
    shell = Shell(tmp_path, HEIRLOG_BOOTSTRAP=cluster.bootstrap_servers)
    shell.play("guides/upgrade.md")
    shell.play("guides/monitor.md")
    shell.play("guides/quotas.md")


def test_acls_as_the_page_sets_them(tmp_path: Path) -> None:
    (configuration,) = (text for kind, text in blocks("guides/secure.md") if kind == "properties")
    config = dict(line.split("=", 1) for line in configuration.splitlines())
    with Cluster(nodes=1, combined=True, ledger=False, config=config) as cluster:
        shell = Shell(tmp_path, HEIRLOG_BOOTSTRAP=cluster.bootstrap_servers)
        shell.play("guides/secure.md")
        left = shell.run("heirlog", "acls", "list", "--json")
    assert "10.0.0.2" in left and "alice" not in left, "the last command removed the ACLs of the topic"


def test_a_stopped_node_looked_into(tmp_path: Path) -> None:
    with Cluster(nodes=1, combined=True, ledger=False, data=tmp_path) as cluster:
        shell = Shell(tmp_path, HEIRLOG_BOOTSTRAP=cluster.bootstrap_servers)
        shell.run("bash", "-e", "-c", "heirlog topics create orders && echo first | heirlog produce orders")
        shell.run("bash", "-e", "-c", "heirlog groups reset-offsets --group g --topic orders --to-earliest --execute")
        shell.run("heirlog", "configs", "alter", "group", "s", "share.auto.offset.reset=earliest")
        shell.run("heirlog", "consume", "--share-group", "s", "--topic", "orders", "--max", "1")
        cluster.stop(1)
    (log_directory,) = (found.parent for found in tmp_path.rglob("orders-0"))
    places = {"/var/lib/heirlog": tmp_path, "/disk1 /disk2": log_directory}
    Shell(log_directory).play("guides/operate.md", places)


def test_the_rehearsal_of_a_failure(tmp_path: Path) -> None:
    Shell(tmp_path).play("tutorials/rehearse-a-failure.md")


class Machines:
    """docs/guides/three-machines.md, with this machine in the place of all three."""

    def __init__(self, folder: Path, ports: dict[str, int]) -> None:
        self._folder = folder
        self._ports = ports

    def here(self, text: str) -> str:
        for address, port in self._ports.items():
            text = text.replace(address, f"127.0.0.1:{port}")
        return text.replace("/var/lib/heirlog", f"{self._folder}/data").replace("/etc/heirlog", str(self._folder))

    def properties_of(self, machine: int, text: str) -> str:
        """The page says which lines differ on the machines 2 and 3."""
        text = text.replace("node.id=100", f"node.id={99 + machine}")
        text = text.replace("node.id=1\n", f"node.id={machine}\n")
        text = text.replace("broker.rack=a", f"broker.rack={'abcd'[machine - 1]}")
        text = text.replace("//10.0.0.1:", f"//10.0.0.{machine}:")
        return self.of_machine(machine, self.here(text))

    def of_machine(self, machine: int, text: str) -> str:
        """Files that have the same names on all machines."""
        for file in ("broker.properties", "controller.properties", "data/broker", "data/controller"):
            name, dot, suffix = file.partition(".")
            text = text.replace(file, f"{name}-{machine}{dot}{suffix}")
        return text


def test_three_machines(tmp_path: Path) -> None:
    addresses = [f"10.0.0.{machine}:{port}" for machine in (1, 2, 3, 4) for port in (9193, 9092)]
    reserved = PortReservation()
    machines = Machines(tmp_path, {address: reserved.reserve() for address in addresses})
    found = blocks("guides/three-machines.md")
    configurations = [text for kind, text in found if kind == "properties"]
    ids, formatting, checking, joining, moving, leaving, backup, restore = (
        machines.here(text) for kind, text in found if kind == "sh"
    )
    names = [f"{role}-{machine}" for role in ("controller", "broker") for machine in (1, 2, 3)]
    for role, text in zip(("controller", "broker"), configurations, strict=True):
        for machine in (1, 2, 3, 4):
            (tmp_path / f"{role}-{machine}.properties").write_text(machines.properties_of(machine, text))
    shell = Shell(tmp_path)
    exported = shell.run("bash", "-e", "-c", ids)
    for machine in (1, 2, 3):
        shell.run("bash", "-e", "-c", exported + machines.of_machine(machine, formatting))
    nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(name: str) -> None:
        command = [sys.executable, "-m", "heirlog", "node", "--config", str(tmp_path / f"{name}.properties")]
        with (tmp_path / f"{name}.log").open("wb") as output:
            nodes[name] = subprocess.Popen([*command, "--reuse-port"], stdout=output, stderr=output)

    try:
        for name in names:
            start(name)
        export = checking.splitlines()[0]
        listed = f"{export}; heirlog broker list 2>/dev/null || true"
        eventually(lambda: shell.run("bash", "-c", listed).count("127.0.0.1") >= 3, "three brokers")
        assert "orders" in shell.run("bash", "-e", "-c", checking)
        # a fourth broker, to which partitions move
        shell.run("bash", "-e", "-c", f"{export}\n{machines.of_machine(4, joining)}")
        start("broker-4")
        eventually(lambda: shell.run("bash", "-c", listed).count("127.0.0.1") >= 4, "four brokers")
        shell.run("bash", "-e", "-c", f"{export}\n{moving}")
        verify = f"{export}; heirlog reassign --verify --reassignment-json-file moves.json"
        eventually(lambda: shell.run("bash", "-c", verify).count("is completed.") == 6, "all partitions have arrived")
        replicas = json.loads(shell.run("bash", "-c", f"{export}; heirlog topics describe orders --json"))
        assert any(4 in row["isr"] for row in replicas)
        # it goes again
        shell.run("bash", "-e", "-c", f"{export}\n{leaving}")
        moved = json.loads((tmp_path / "moves.json").read_text())["partitions"]
        eventually(
            lambda: shell.run("bash", "-c", verify).count("is completed.") == len(moved), "all partitions have left"
        )
        nodes.pop("broker-4").send_signal(signal.SIGTERM)
        unregister = f"{export}; heirlog broker unregister 4 --yes 2>&1"
        assert "still have a replica" not in shell.run("bash", "-e", "-c", unregister)
        # the loss of a machine
        for name in ("controller-1", "broker-1"):
            nodes[name].kill()
        creating = f"{export}; heirlog topics create more 2>/dev/null && heirlog topics list || true"
        eventually(lambda: "more" in shell.run("bash", "-c", creating), "two controllers continue")
        # until then, commands that ask all brokers ask this one too
        eventually(lambda: "fenced" in shell.run("bash", "-c", listed), "the broker of that machine is fenced")
        # a deletion by mistake: the second backup holds what came after the first
        produce = "heirlog produce orders --key-separator :"
        configs = "retention.ms=86400000 'cleanup.policy=[compact,delete]'"
        shell.run("bash", "-e", "-c", f"{export}\nheirlog configs alter topic orders {configs}")
        shell.run("bash", "-e", "-c", f"{export}\nprintf 'a:1\\nb:2\\na:3\\n' | {produce} -H from=here\n{backup}")
        again = backup[backup.index("heirlog consume") :]
        shell.run("bash", "-e", "-c", f"{export}\nprintf 'b:4\\n' | {produce}\n{again}")
        shell.run("bash", "-e", "-c", f"{export}\nheirlog topics delete orders\n{restore}")
        described = shell.run("bash", "-e", "-c", f"{export}\nheirlog topics describe orders")
        assert "cleanup.policy=[compact,delete], retention.ms=86400000" in described
        restored = shell.run("bash", "-e", "-c", f"{export}\nheirlog consume orders -e -f '%k%s%h '")
        assert sorted(restored.split()) == ["a1from=here", "a3from=here", "b2from=here", "b4"]
        assert restored.index("a1") < restored.index("a3") and restored.index("b2") < restored.index("b4")
    finally:
        for node in nodes.values():
            node.terminate()
        for node in nodes.values():
            node.wait(60)
        reserved.release()


def test_controllers_are_replaced_lost_and_backed_up(tmp_path: Path) -> None:
    look, without_broker, remove, form, add, majority_lost, wait, back_up, use = (
        text for kind, text in blocks("guides/controllers.md") if kind == "sh"
    )
    with Cluster(nodes=3, controllers=3, ledger=False, data=tmp_path / "data") as cluster:
        folders = {node: cluster.data / f"controller-{node}" for node in cluster.controllers}
        properties = (folders[100] / "server.properties").read_text("utf-8")
        (line,) = re.findall(r"^controller.quorum.bootstrap.servers=(.*)$", properties, re.MULTILINE)
        controllers = dict(zip(("10.0.0.1:9193", "10.0.0.2:9193", "10.0.0.3:9193"), line.split(","), strict=True))

        def play(text: str, controller: int, **environment: str) -> str:
            places = {
                "/etc/heirlog/controller.properties": str(folders[controller] / "server.properties"),
                "/var/lib/heirlog/controller": str(folders[controller] / "log"),
                "/backup/controller": str(tmp_path / "backup"),
                "/copies": str(tmp_path / "copies"),
                **controllers,
            }
            for named, place in places.items():
                text = text.replace(named, place)
            shell = Shell(tmp_path, HEIRLOG_BOOTSTRAP=cluster.bootstrap_servers, **environment)
            return shell.run("bash", "-e", "-c", text)

        def stop_all() -> None:
            for node in [*cluster.brokers, *cluster.controllers]:
                if node in cluster.pids:
                    cluster.stop(node)

        def copy_brokers() -> None:
            def not_needed(folder: str, names: list[str]) -> list[str]:
                is_metadata = "__cluster_metadata-0" in folder
                return (
                    [] if is_metadata else [name for name in names if name.endswith((".log", ".index", ".timeindex"))]
                )

            shutil.rmtree(tmp_path / "copies", ignore_errors=True)
            for broker in cluster.brokers:
                folder = cluster.data / f"broker-{broker}" / "log"
                shutil.copytree(folder, tmp_path / "copies" / f"broker-{broker}", ignore=not_needed)

        def start(*nodes: int) -> None:
            for node in nodes:
                cluster.start(node)
            cluster.wait_until_ready()

        assert "LastFetchTimestamp" in play(look, 100)
        assert "CurrentVoters" in play(without_broker, 100)
        play("heirlog topics create orders; echo first | heirlog produce orders", 100)
        described = json.loads(play("heirlog quorum describe --json", 100))
        ids = {voter["id"]: voter["directoryId"] for voter in described["current_voters"]}
        environment = {"LOST_DIRECTORY_ID": ids[101], "CLUSTER_ID": described["cluster_id"]}

        cluster.kill(101)
        shutil.rmtree(folders[101] / "log")
        eventually(lambda: cluster.active_controller() not in (None, 101), "a leader among the others")
        info = "heirlog cluster info --json"
        eventually(lambda: json.loads(play(info, 100))["silent_controllers"] == [101], "the dead controller is named")
        assert quorum.SILENT in play(without_broker, 100)
        play(remove, 101, **environment)
        play(form, 101, **environment)
        cluster.start(101)
        rows = "heirlog quorum describe --replication --json"
        eventually(
            lambda: [
                row
                for row in json.loads(play(rows, 101))
                # the leader lists the lost disk for a while, which had caught up as well
                if row["node_id"] == 101 and row["directory_id"] != ids[101] and row["last_caught_up_timestamp"] > 0
            ],
            "the new disk has caught up",
        )
        assert "Added controller 101" in play(add, 101)

        stop_all()
        for node in (101, 102):
            shutil.rmtree(folders[node] / "log")
        copy_brokers()
        assert "May be lost" in play(majority_lost, 100)
        start(100, *cluster.brokers)
        eventually(lambda: "orders" not in play(wait, 100), "the partition has a leader")
        assert "first" in play("heirlog consume orders --from-beginning --max 1", 100)

        cluster.stop(100)
        play(back_up, 100)
        start(100)
        play("heirlog topics create later", 100)
        stop_all()
        for lost in (folders[100] / "log", *(cluster.data.glob("broker-*/log/__cluster_metadata-0"))):
            shutil.rmtree(lost)
        copy_brokers()
        play(use, 100)
        start(100, *cluster.brokers)
        listed = play("heirlog topics list", 100)
        assert "orders" in listed and "later" not in listed
        assert list(cluster.data.glob("broker-*/log/later-*-stray")), "nothing is deleted"
        eventually(lambda: "orders" not in play(wait, 100), "the partition has a leader")


def test_the_unit_of_systemd_runs_a_command_that_exists() -> None:
    unit = ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's names have capital letters
    unit.read(ROOT / "packaging" / "heirlog@.service")
    program, *arguments = unit["Service"]["ExecStart"].split()
    assert program.endswith("/bin/heirlog")
    assert arguments == ["node", "--config", "/etc/heirlog/%i.properties"]
    page = (DOCS / "guides" / "systemd.md").read_text("utf-8")
    explained = re.findall(r"^\| `(\w+)=(\S+)` \|", page, re.MULTILINE)
    assert explained and all(unit.has_option("Service", k) or unit.has_option("Unit", k) for k, _ in explained)
    assert all(value in {unit["Service"].get(key), unit["Unit"].get(key)} for key, value in explained)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd's own check of units is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (ROOT / "packaging" / "heirlog@.service").read_text("utf-8")
    # verify wants the program to exist
    (tmp_path / "heirlog@.service").write_text(text.replace("/opt/heirlog/bin/heirlog", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "heirlog@.service")]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stderr


def test_the_container_file_copies_what_the_build_needs() -> None:
    """Where there is no container engine: at least the files that `pip wheel` needs are let through."""
    let_through = {
        line[1:]
        for line in (ROOT / "packaging" / "Containerfile.dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    assert {"src", "pyproject.toml", "README.md", "LICENSE", "NOTICE"} == let_through
    assert all((ROOT / name).exists() for name in let_through)
