"""`heirlog storage example`: files for machines, used as a user would, on three addresses of the loopback range."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Heirlog, heirlog
from patience import eventually

from heirlog.blocking import Client
from heirlog.local import properties
from heirlog.local.ports import PortReservation
from heirlog.protocol.batch import encode_batch

__all__ = ["heirlog"]

MACHINES = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]


@pytest.mark.parametrize(
    ("count", "controllers", "min_isr", "replicas"),
    [(1, 1, "1", "1"), (2, 1, "1", "2"), (3, 3, "2", "3"), (6, 3, "2", "3")],
)
def test_how_many_machines_decides_what_can_be_lost(
    heirlog: Heirlog, tmp_path: Path, count: int, controllers: int, min_isr: str, replicas: str
) -> None:
    hosts = [f"machine-{number}" for number in range(count)]
    outcome = heirlog("storage", "example", *hosts, "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    assert len(list(tmp_path.glob("*/controller.properties"))) == controllers
    assert len(list(tmp_path.glob("*/format.sh"))) == count
    brokers = [properties.read(path) for path in tmp_path.glob("*/broker.properties")]
    assert sorted(broker["node.id"] for broker in brokers) == [str(number + 1) for number in range(count)]
    assert {broker["min.insync.replicas"] for broker in brokers} == {min_isr}
    assert {broker["default.replication.factor"] for broker in brokers} == {replicas}


def test_nothing_is_overwritten(heirlog: Heirlog, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    outcome = heirlog("storage", "example", "a", "b", "--out", tmp_path)
    assert outcome.code == 1 and "exists already" in outcome.err and "--out" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a", "a"], "an address of its own"),
        (["a/b"], "is not the name or the address of a machine"),
        (["a", "--broker-port", "9193"], "different ports"),
        (["a", "--data", "data"], "is not absolute"),
    ],
)
def test_what_cannot_be_a_cluster_is_refused(heirlog: Heirlog, tmp_path: Path, arguments: list[str], said: str) -> None:
    outcome = heirlog("storage", "example", *arguments, "--out", tmp_path / "out")
    assert outcome.code != 0 and said in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_backslash_in_a_folder_stays_one(heirlog: Heirlog, tmp_path: Path) -> None:
    assert heirlog("storage", "example", "a", "--data", r"/data\1", "--out", tmp_path).code == 0
    assert properties.read(tmp_path / "a" / "broker.properties")["log.dirs"] == r"/data\1/broker"


def test_addresses_of_the_newer_internet_protocol_have_brackets(heirlog: Heirlog, tmp_path: Path) -> None:
    assert heirlog("storage", "example", "2001:db8::1", "--out", tmp_path).code == 0
    broker = properties.read(tmp_path / "2001-db8--1" / "broker.properties")
    assert broker["listeners"] == "PLAINTEXT://[2001:db8::1]:9092"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8; CI runs on Linux")
def test_three_machines_that_lose_one_and_are_upgraded_in_turn(heirlog: Heirlog, tmp_path: Path) -> None:
    """Each machine has an address of its own, and the same ports and names of files as the others."""
    reserved = PortReservation()
    broker_port, controller_port = reserved.reserve(), reserved.reserve()
    reserved.release()
    ports = ["--broker-port", broker_port, "--controller-port", controller_port]
    out = tmp_path / "example"
    assert heirlog("storage", "example", *MACHINES, "--out", out, "--data", "/DATA", *ports).code == 0
    program = f'#!/bin/sh\nexec {sys.executable} -m heirlog "$@"\n'
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "heirlog").write_text(program)
    (tmp_path / "bin" / "heirlog").chmod(0o755)
    for host in MACHINES:
        etc = tmp_path / host
        shutil.copytree(out / host, etc)
        for path in etc.glob("*.properties"):
            path.write_text(path.read_text().replace("/DATA", str(tmp_path / f"data-{host}")))
        environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
        subprocess.run(["sh", etc / "format.sh"], env=environment, check=True, capture_output=True, timeout=60)
    nodes: dict[tuple[str, str], subprocess.Popen[bytes]] = {}

    def start(host: str) -> None:
        for role in ("controller", "broker"):
            with (tmp_path / f"{host}-{role}.log").open("ab") as log:
                command = [sys.executable, "-m", "heirlog", "node", "--config", tmp_path / host / f"{role}.properties"]
                nodes[host, role] = subprocess.Popen(command, stdout=log, stderr=log)

    servers = [f"{host}:{broker_port}" for host in MACHINES]
    bootstrap = ",".join(servers)

    def isr_is(count: int) -> bool:
        found = heirlog("topics", "describe", "orders", "--json", "-b", bootstrap)
        return found.code == 0 and '"partition": 0' in found.out and _isr(found.out) == [count] * 3

    try:
        for host in MACHINES:
            start(host)
        eventually(lambda: heirlog("broker", "list", "-b", bootstrap).out.count("127.0.0.") == 3, "three brokers")
        assert heirlog("topics", "create", "orders", "--partitions", "3", "-b", bootstrap).code == 0
        eventually(lambda: isr_is(3), "three replicas in each ISR")
        with Client(bootstrap) as client, client.producer() as producer:
            for round_, host in enumerate(MACHINES):
                for partition in range(3):
                    producer.send("orders", partition, encode_batch([(None, b"before", (), 0)]))
                producer.flush()
                # the first machine loses its power; the others are stopped for an upgrade
                for role in ("broker", "controller"):
                    node = nodes[host, role]
                    node.terminate() if round_ else node.kill()
                    node.wait(60)
                for partition in range(3):
                    producer.send("orders", partition, encode_batch([(None, b"without", (), 0)]))
                producer.flush()
                start(host)
                eventually(lambda: isr_is(3), f"the return of {host}")
            ends = client.list_offsets({("orders", partition): -1 for partition in range(3)})
        assert [at.offset for at in ends.values()] == [6, 6, 6]
    finally:
        for node in nodes.values():
            node.kill()
        for node in nodes.values():
            node.wait(60)


def _isr(out: str) -> list[int]:
    return [len(row["isr"]) for row in json.loads(out)]
