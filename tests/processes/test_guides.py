"""The commands of tutorials and guides that talk to a cluster, run as the pages have them.

A block of `sh` runs in a shell; a block of `text` below it must be in what the block has printed. Blocks without a
language start what the test has running already, or need what a test does not have: systemd as root
(docs/guides/systemd.md), a container engine (docs/guides/container-image.md; tests/test_package.py does the steps of
its build). Other pages have tests of their own: docs/guides/recover.md in test_recovery.py, docs/tutorials/spark.md
in tests/spark/test_tutorial.py, docs/tutorials/tests.md in tests/testing/test_page.py, `heirlog recover controller`
of docs/guides/operate.md in tests/cli/test_recover_controller.py, the commands of docs/guides/pipelines.md in
tests/spark/pipeline.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path
from types import MappingProxyType

import pytest
from patience import eventually

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


def test_the_first_cluster(cluster: Cluster, tmp_path: Path) -> None:
    pids = {f"BROKER_{node}": str(cluster.pids[node]) for node in (1, 2)}
    Shell(tmp_path, HEIRLOG_BOOTSTRAP=cluster.bootstrap_servers, **pids).play("tutorials/first-cluster.md")
    assert sorted(cluster.pids) == [3, 100], "the page has killed the brokers 1 and 2"


def test_the_readme_and_the_upgrade(cluster: Cluster, tmp_path: Path) -> None:
    shell = Shell(tmp_path, HEIRLOG_BOOTSTRAP=cluster.bootstrap_servers)
    (tour,) = (text for kind, text in blocks("../README.md") if kind == "sh")
    assert shell.run("bash", "-e", "-c", tour).count("hola") == 1
    shell.play("guides/upgrade.md")
    shell.play("guides/monitor.md")


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

    def properties_of(self, broker: int, text: str) -> str:
        """The page says which three lines differ on the machines 2 and 3."""
        text = text.replace("node.id=1", f"node.id={broker}").replace(
            "broker.rack=a", f"broker.rack={'abc'[broker - 1]}"
        )
        text = text.replace("//10.0.0.1:9092", f"//10.0.0.{broker}:9092")
        return self.here(text).replace("/data/broker", f"/data/broker-{broker}")


def test_three_machines(tmp_path: Path) -> None:
    addresses = ["10.0.0.1:9193", *(f"10.0.0.{machine}:9092" for machine in (1, 2, 3))]
    reserved = PortReservation()
    machines = Machines(tmp_path, {address: reserved.reserve() for address in addresses})
    found = blocks("guides/three-machines.md")
    controller, broker = (text for kind, text in found if kind == "properties")
    formatting, checking = (text for kind, text in found if kind == "sh")
    (tmp_path / "controller.properties").write_text(machines.here(controller))
    for node in (1, 2, 3):
        (tmp_path / f"broker-{node}.properties").write_text(machines.properties_of(node, broker))
    # the broker's line of the page, once for each machine
    *common, line = machines.here(formatting).strip().splitlines()
    lines = [line.replace("broker.properties", f"broker-{node}.properties") for node in (1, 2, 3)]
    shell = Shell(tmp_path)
    shell.run("bash", "-e", "-c", "\n".join([*common, *lines]))
    nodes = []
    try:
        for name in ("controller", "broker-1", "broker-2", "broker-3"):
            command = [sys.executable, "-m", "heirlog", "node", "--config", str(tmp_path / f"{name}.properties")]
            with (tmp_path / f"{name}.log").open("wb") as output:
                nodes.append(subprocess.Popen([*command, "--reuse-port"], stdout=output, stderr=output))
        commands = machines.here(checking)
        listing = commands.partition("heirlog topics")[0].strip()
        listed = f"{listing} 2>/dev/null || true"
        eventually(lambda: shell.run("bash", "-c", listed).count("127.0.0.1") >= 3, "three brokers")
        assert "orders" in shell.run("bash", "-e", "-c", commands)
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait(60)
        reserved.release()


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
    assert 'CMD ["node", "--config", "/etc/heirlog/server.properties"]' in (
        ROOT / "packaging" / "Containerfile"
    ).read_text("utf-8")
