"""The files of packaging/ for containers. Without an engine: plain processes with the same variables are the nodes.

`make interop` judges the files by a linter and by the schemas of Compose and of Kubernetes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from patience import eventually

from heirlog.blocking import Client
from heirlog.cli import container
from heirlog.local import properties
from heirlog.local.ports import PortReservation

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"
COMMAND = [sys.executable, "-m", "heirlog"]
VOTERS = re.compile(r"(\d+)@([^,]*):([^:,]*)")


def compose() -> Any:
    return yaml.safe_load((PACKAGING / "compose.yaml").read_text("utf-8"))


def of_services() -> dict[str, dict[str, str]]:
    return {name: service["environment"] for name, service in compose()["services"].items()}


def of_pods() -> dict[str, dict[str, str]]:
    """The variables of each pod, as Kubernetes makes them."""
    objects = list(yaml.safe_load_all((PACKAGING / "kubernetes.yaml").read_text("utf-8")))
    (shared,) = (one["data"] for one in objects if one["kind"] == "ConfigMap")
    found = {}
    for stateful_set in (one for one in objects if one["kind"] == "StatefulSet"):
        (node,) = stateful_set["spec"]["template"]["spec"]["containers"]
        for index in range(stateful_set["spec"]["replicas"]):
            name = f"{stateful_set['metadata']['name']}-{index}"
            given = {"POD_INDEX": str(index), "POD_NAME": name}
            variables = dict(shared)
            for entry in node["env"]:
                value = given[entry["name"]] if "valueFrom" in entry else entry["value"]
                for named in re.findall(r"\$\((\w+)\)", value):
                    value = value.replace(f"$({named})", variables[named])
                variables[entry["name"]] = value
            found[name] = variables
    return found


def addresses(text: str) -> list[str]:
    return re.findall(r"([\w.-]+:\d+)", text)


@pytest.mark.parametrize("nodes", [of_services, of_pods])
def test_the_nodes_of_each_file_are_one_cluster(nodes: Any, tmp_path: Path) -> None:
    cluster = nodes()
    found = {}
    for name, variables in cluster.items():
        (tmp_path / name).mkdir()
        path, static = container._written(tmp_path / "none", tmp_path / name, variables)
        assert path.stat().st_mode & 0o777 == 0o600
        found[name] = static
    assert len({static.node_id for static in found.values()}) == len(found) == 6
    assert {static["min.insync.replicas"] for static in found.values()} == {2}
    assert len({variables["CLUSTER_ID"] for variables in cluster.values()}) == 1
    voters = {variables["INITIAL_CONTROLLERS"] for variables in cluster.values() if "INITIAL_CONTROLLERS" in variables}
    (named,) = ({(int(i), address) for i, address, _ in VOTERS.findall(text)} for text in voters)
    controllers = {name: static for name, static in found.items() if static.is_controller}
    assert {(static.node_id, name) for name, static in controllers.items()} == {
        (node, address.split(":")[0].split(".")[0]) for node, address in named
    }
    assert {str(endpoint) for static in found.values() for endpoint in static.bootstrap_servers} == {
        address for _, address in named
    }
    for name, static in found.items():
        if static.is_broker:
            internal = next(li for li in static.advertised_listeners if li.name == static.inter_broker_listener_name)
            assert internal.endpoint.host.split(".")[0] == name, "the other brokers must reach it"


def test_the_volumes_and_ports_are_those_of_the_image() -> None:
    image = (PACKAGING / "Containerfile").read_text("utf-8")
    (volume,) = re.findall(r"^VOLUME (\S+)$", image, re.MULTILINE)
    assert volume == "/var/lib/heirlog" and 'CMD ["container"]' in image and 'ENTRYPOINT ["heirlog"]' in image
    services = compose()["services"]
    assert all(service["volumes"] == [f"{name}:{volume}"] for name, service in services.items())
    assert set(compose()["volumes"]) == set(services)
    for name, service in services.items():
        for published in service.get("ports", ()):
            _, outside, inside = published.split(":")
            listeners = service["environment"]["KAFKA_ADVERTISED_LISTENERS"]
            assert f"localhost:{outside}" in listeners and inside == "9092", name


class Machine:
    """Where the host names of containers lead here."""

    def __init__(self, reserved: PortReservation) -> None:
        self._reserved = reserved
        self._ports: dict[str, int] = {}

    def here(self, name: str, variables: Mapping[str, str]) -> dict[str, str]:
        own = {
            "CONTROLLER://:9093": f"CONTROLLER://{name}:9093",
            "INTERNAL://:19092": f"INTERNAL://{name}:19092",
            "PLAINTEXT://:9092": f"PLAINTEXT://{name}:9092",
            f"PLAINTEXT://localhost:{9091 + int(name[-1])}": f"PLAINTEXT://{name}:9092",
        }
        found = {}
        for variable, value in variables.items():
            for there, address in own.items():
                value = value.replace(there, address)
            for address in re.findall(r"(?:controller|broker)-\d:\d+", value):
                value = value.replace(address, f"127.0.0.1:{self.port(address)}")
            found[variable] = value
        return found

    def port(self, address: str) -> int:
        if address not in self._ports:
            self._ports[address] = self._reserved.reserve()
        return self._ports[address]


@pytest.fixture
def reserved() -> Iterator[PortReservation]:
    reservation = PortReservation()
    yield reservation
    reservation.release()


def test_the_nodes_of_the_compose_file_start_stop_and_start_again(tmp_path: Path, reserved: PortReservation) -> None:
    machine = Machine(reserved)
    variables = {name: machine.here(name, given) for name, given in of_services().items()}
    running: dict[str, subprocess.Popen[bytes]] = {}

    def start(**changed: str) -> None:
        reserved.release()
        for name, given in variables.items():
            (tmp_path / name).mkdir(exist_ok=True)
            environment = {**os.environ, **given, **changed, "KAFKA_HEAP_OPTS": "-Xmx1G"}
            arguments = ["--config", str(tmp_path / "none"), "--data", str(tmp_path / name)]
            with (tmp_path / f"{name}.out").open("ab") as output:
                running[name] = subprocess.Popen(
                    [*COMMAND, "container", *arguments], env=environment, stdout=output, stderr=output
                )

    def stop() -> None:
        for name in sorted(running):  # brokers first
            running[name].terminate()
            assert running[name].wait(60) == 0, (tmp_path / f"{name}.out").read_text()

    servers = [f"127.0.0.1:{machine.port(f'broker-{number}:9092')}" for number in (1, 2, 3)]
    heirlog = {**os.environ, "HEIRLOG_BOOTSTRAP": ",".join(servers)}

    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments], env=heirlog, input=given, capture_output=True, text=True, timeout=60
        )

    try:
        start()
        with Client(servers) as client:
            eventually(lambda: _brokers(client) == {1, 2, 3}, "three brokers")
        assert run("topics", "create", "orders", "--partitions", "1").returncode == 0
        assert run("produce", "orders", given="first\n").returncode == 0
        stop()
        first = (tmp_path / "controller-1.out").read_text()
        assert first.count("Formatted ") == 1
        start(INITIAL_CONTROLLERS="none")
        eventually(lambda: run("consume", "orders", "-e").stdout == "first\n", "the record of before")
        stop()
        assert (tmp_path / "controller-1.out").read_text().count("Formatted ") == 1, (
            "what is formatted is left as it is"
        )
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _brokers(client: Client) -> set[int]:
    try:
        return set(client.brokers())
    except OSError:
        return set()


# the command


def refused(tmp_path: Path, **variables: str) -> str:
    data = tmp_path / "volume"
    data.mkdir(exist_ok=True)
    arguments = ["--config", str(tmp_path / "server.properties"), "--data", str(data)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    done = subprocess.run(
        [*COMMAND, "container", *arguments],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and done.stdout == ""
    return done.stderr


CONTROLLER = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "controller",
    "KAFKA_LISTENERS": "CONTROLLER://127.0.0.1:0",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "127.0.0.1:1",
}


def test_records_that_would_go_with_the_container_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "volume"
    for inside in (data, data / "logs"):
        assert container._is_kept(inside, data)
    monkeypatch.setattr("os.path.ismount", lambda path: path == tmp_path / "mounted")
    assert container._is_kept(tmp_path / "mounted" / "logs", data)
    assert not container._is_kept(tmp_path / "kraft-combined-logs", data)
    said = refused(tmp_path, **{**CONTROLLER, "KAFKA_LOG_DIRS": str(tmp_path / "kraft-combined-logs")})
    assert f"{tmp_path / 'kraft-combined-logs'} of log.dirs is in no volume" in said


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({}, "there is no node.id: mount a configuration at "),
        (CONTROLLER, "the volume is not formatted: set CLUSTER_ID"),
        ({**CONTROLLER, "CLUSTER_ID": "wkhC2w6aTjCM6eHyMNbtCw"}, "set INITIAL_CONTROLLERS to the voters"),
        ({**CONTROLLER, "KAFKA_NO_SUCH": "1"}, "no.such"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, variables: dict[str, str], sentence: str) -> None:
    said = refused(tmp_path, **variables)
    assert said.count("\n") == 1 and sentence in said


def test_names_of_variables_are_read_as_by_kafkas_image() -> None:
    given = {"KAFKA_LOG_DIRS": "/a", "KAFKA_SASL__X___Y_Z": "1", "KAFKA_OPTS": "-X", "PATH": "/bin", "MYKAFKA_A": "2"}
    assert container.from_environment(given) == {"log.dirs": "/a", "sasl_x-y.z": "1"}


def test_variables_win_over_the_file_and_secrets_stay_private(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=7\nmin.insync.replicas=2\n" + "".join(f"{n}={v}\n" for n, v in _plain(CONTROLLER).items()))
    path, static = container._written(file, tmp_path, {"KAFKA_MIN_INSYNC_REPLICAS": "3", "KAFKA_NODE_ID": "9"})
    assert (static.node_id, static["min.insync.replicas"]) == (9, 3)
    assert properties.read(path)["log.dirs"] == str(tmp_path / "log")


def _plain(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in container.from_environment(variables).items() if name != "node.id"}
