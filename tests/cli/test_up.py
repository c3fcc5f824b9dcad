"""`heirlog up` as a person runs it: a process, its output, and signals."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.request import urlopen

import pytest
from patience import eventually
from server.metrics.scraped import stored

import heirlog
from heirlog.blocking import Client
from heirlog.cli import up as up_command
from heirlog.cli.errors import CommandError
from heirlog.client.offsets import find_coordinator
from heirlog.local import contexts, properties
from heirlog.local import layout as layouts
from heirlog.protocol.types import CoordinatorType
from heirlog.security.jaas import parse_jaas

METRICS = re.compile(r"(broker \d+): (http://127\.0\.0\.1:\d+/metrics)")


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that nobody uses now; processes that test beside this one look elsewhere."""
    # the thousand after each even one is for metrics
    block = os.getpid() % 50
    for port in range(20000 + block // 10 * 2000 + block % 10 * 100, 31000, count):
        try:
            for number in (*range(port, port + count), *range(port + 1000, port + 1000 + count)):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port
    raise AssertionError("no free ports")


@contextmanager
def up(data: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The running command and its greeting."""
    process = subprocess.Popen(
        [sys.executable, "-m", "heirlog", "up", "--data", str(data), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        lines = list(greeting(process.stdout))
        assert lines or process.stderr is None, process.stderr.read()
        yield process, lines
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


def greeting(output: IO[str]) -> Iterator[str]:
    for line in output:
        yield line.rstrip("\n")
        if line.startswith("Ctrl-C"):
            return


def scraped(url: str) -> dict[str, str]:
    """Names and types."""
    with urlopen(url, timeout=120) as answer:
        return dict(line.split()[2:4] for line in answer.read().decode().splitlines() if line.startswith("# TYPE "))


def run(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "heirlog", *arguments], input=stdin, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_cluster_stops_cleanly_at_ctrl_c_and_comes_back_with_its_data(tmp_path: Path) -> None:
    port = free_ports(2)
    address = f"127.0.0.1:{port}"
    with up(tmp_path / "d", "--nodes", "1", "--controllers", "1", "--port", str(port)) as (process, lines):
        text = "\n".join(lines)
        assert f"bootstrap servers  {address}" in text
        assert contexts.read(f"local-{port}").bootstrap_servers == address
        assert f"local-{port} (to make it the default: " in text
        assert str(tmp_path / "d") in text
        assert "offsets.topic.replication.factor=1 (Kafka: 3)" in text
        run("topics", "create", "kept", "-b", address)
        run("produce", "kept", "-b", address, stdin="hello\n")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 0
    (broker,) = layouts.load(tmp_path / "d").brokers  # type: ignore[union-attr]
    assert (broker.log_dir / ".kafka_cleanshutdown").exists()
    with up(tmp_path / "d") as (process, lines):
        assert lines[0] == "heirlog is up: broker 1 and controller 100, with its existing data"
        assert run("consume", "kept", "-b", address, "--from-beginning", "--max", "1") == "hello\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        assert process.returncode == 0


def test_a_copy_and_a_moved_folder_work_on_their_own_files(tmp_path: Path) -> None:
    """The copy deleted the topic in the original, and the moved folder was formatted where it had been."""
    port = free_ports(2)
    address = f"127.0.0.1:{port}"
    with up(tmp_path / "a", "--nodes", "1", "--controllers", "1", "--port", str(port)) as (process, _):
        run("topics", "create", "precious", "-b", address)
        run("produce", "precious", "-b", address, stdin="hello\n")
        shutil.copytree(tmp_path / "a", tmp_path / "while-it-ran")
        second = refused(tmp_path / "a")
        assert f"another command runs the cluster in {tmp_path / 'a'}" in second
        if sys.platform == "linux":
            assert f" (process {process.pid})" in second
        copy = refused(tmp_path / "while-it-ran")
        assert f"port {port} is in use" in copy and "a copy cannot run at the same time" in copy
    alone = [
        sys.executable,
        "-m",
        "heirlog",
        "node",
        "--config",
        str(tmp_path / "a" / "broker-1" / "server.properties"),
    ]
    with subprocess.Popen(alone, stderr=subprocess.DEVNULL) as node:
        try:
            eventually(lambda: is_locked(tmp_path / "a" / "broker-1" / "log" / ".lock"), "the node has its directory")
            assert f"broker 1 of the cluster in {tmp_path / 'a'} runs already" in (said := refused(tmp_path / "a"))
            assert sys.platform != "linux" or f" (process {node.pid})" in said
        finally:
            node.kill()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with up(tmp_path / "b"):
        run("topics", "delete", "precious", "-b", address)
    (tmp_path / "a").rename(tmp_path / "moved")
    for data in ("moved", "while-it-ran"):
        with up(tmp_path / data):
            assert run("consume", "precious", "-b", address, "--from-beginning", "--max", "1") == "hello\n"
    assert not (tmp_path / "a").exists()


def is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def refused(data: Path, *options: str, code: int = 1) -> str:
    """What `up` says."""
    command = [sys.executable, "-m", "heirlog", "up", "--data", str(data), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done
    return done.stderr.replace("\n", " ")


def test_racks_are_dealt_out_in_turn_and_a_folder_keeps_its_own(tmp_path: Path) -> None:
    """New topics, new partitions, internal topics and proposed reassignments are spread over them."""
    port = free_ports(5)
    address = f"127.0.0.1:{port}"
    with up(tmp_path / "d", "--nodes", "4", "--controllers", "1", "--port", str(port), "--racks", "a,b"):
        found = json.loads(run("broker", "list", "--json", "-b", address))
        assert [(row["broker"], row["rack"]) for row in found] == [(1, "a"), (2, "b"), (3, "a"), (4, "b")]
        run("topics", "create", "wide", "--partitions", "40", "--replication-factor", "2", "-b", address)
        run("topics", "alter", "wide", "--partitions", "80", "-b", address)
        with Client(address, timeout_s=60.0) as client:
            client.send_to_any(find_coordinator("g", CoordinatorType.GROUP))
            names = ["wide", "__consumer_offsets"]
            eventually(lambda: all(topic.partitions for topic in client.metadata(names).topics), "the topics")
            of_two, of_three = client.metadata(names).topics
        assert len(of_two.partitions) == 80
        assert all(len({number % 2 for number in one.replica_nodes}) == 2 for one in of_two.partitions)
        assert all(len({number % 2 for number in one.replica_nodes}) == 2 for one in of_three.partitions)
        (tmp_path / "moved.json").write_text(json.dumps({"topics": [{"topic": "wide"}], "version": 1}))
        wanted = ("--topics-to-move-json-file", str(tmp_path / "moved.json"), "--broker-list", "1,2,3,4")
        said = run("reassign", "--generate", *wanted, "-b", address)
        _, proposed = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
        assert all(len({number % 2 for number in one["replicas"]}) == 2 for one in proposed["partitions"])
    assert "holds a cluster with brokers in racks a,b,a,b" in refused(tmp_path / "d", "--racks", "a,b,c")
    assert "5 racks for 3 brokers" in refused(tmp_path / "e", "--racks", "a,b,c,d,e", code=2)
    assert "cannot be the name of a rack" in refused(tmp_path / "e", "--racks", "a,,b", code=2)
    assert not (tmp_path / "e").exists()


def test_three_brokers_and_three_controllers_start_by_default_and_any_controller_may_die(tmp_path: Path) -> None:
    port = free_ports(6)
    address = f"127.0.0.1:{port}"
    with up(tmp_path, "--port", str(port)) as (process, lines):
        assert lines[0] == "heirlog is up: brokers 1, 2, 3 and controllers 100, 101, 102"
        status = json.loads(run("quorum", "describe", "--json", "-b", address))
        assert [voter["id"] for voter in status["current_voters"]] == [100, 101, 102]
        os.kill(pid_of(f"controller {status['leader_id']}", lines), signal.SIGKILL)
        run("topics", "create", "afterwards", "-b", address)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 0


def test_three_combined_brokers_are_the_controllers_and_say_what_they_set_differently(tmp_path: Path) -> None:
    port = free_ports(6)
    with up(tmp_path, "--combined", "--port", str(port)) as (_, lines):
        text = "\n".join(lines)
        assert "default.replication.factor=3 (Kafka: 1), min.insync.replicas=2 (Kafka: 1)" in text
        assert lines[0] == "heirlog is up: brokers 1, 2, 3 and brokers 1, 2, 3 as controllers"
        shown = {name: scraped(url) for name, url in METRICS.findall(text)}
        assert list(shown) == ["broker 1", "broker 2", "broker 3"]
        for types in shown.values():
            assert types["kafka_controller_kafkacontroller_activecontrollercount"] == "gauge"
            assert types["kafka_server_replicamanager_underminisrpartitioncount"] == "gauge"
            known = {name: kind for name, (kind, _) in stored().items()}
            assert {name: kind for name, kind in types.items() if known.get(name, kind) != kind} == {}
            assert len(types.keys() & known.keys()) > 40
    roles = [properties.read(tmp_path / f"broker-{n}" / "server.properties")["process.roles"] for n in (1, 2, 3)]
    assert roles == ["broker,controller"] * 3


def test_metrics_keep_their_ports_and_a_log_begins_with_who_says_it(tmp_path: Path) -> None:
    port = free_ports(2)
    for _ in range(2):
        with up(tmp_path, "--nodes", "1", "--controllers", "1", "--port", str(port)) as (_, lines):
            urls = dict(METRICS.findall("\n".join(lines)))
            assert urls == {"broker 1": f"http://127.0.0.1:{port + 1000}/metrics"}
            assert scraped(urls["broker 1"])
    (broker,) = layouts.load(tmp_path).brokers  # type: ignore[union-attr]
    first = json.loads(broker.output_path.read_text().splitlines()[0])
    assert (first["event"], first["version"], first["roles"]) == ("node-starting", heirlog.__version__, ["broker"])
    assert first["listeners"] == [f"PLAINTEXT://127.0.0.1:{port}"]
    assert first["cluster_id"] == properties.read(broker.log_dir / "meta.properties")["cluster.id"]


def test_a_start_that_fails_is_a_sentence_and_the_path_of_the_log(tmp_path: Path) -> None:
    port = free_ports(2)
    with up(tmp_path, "--nodes", "1", "--controllers", "1", "--port", str(port)):
        pass
    (broker,) = layouts.load(tmp_path).brokers  # type: ignore[union-attr]
    (broker.log_dir / ".lock").unlink()
    (broker.log_dir / ".lock").mkdir()
    why = refused(tmp_path)
    assert why.startswith("heirlog: while it started, broker 1 ended with exit code 1: ")
    assert why.endswith(f"; its output: {broker.output_path} ") and why.count("heirlog:") == 1
    assert "{" not in why


@pytest.mark.parametrize(
    ("path", "called", "shown"),
    [
        ("bin", "bin/heirlog", "heirlog"),
        ("", "bin/heirlog", "bin/heirlog"),
        ("bin", "other/heirlog", "other/heirlog"),
        ("bin", "src/heirlog/__main__.py", "python -m heirlog"),
    ],
)
def test_lines_to_paste_have_the_command_as_it_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, called: str, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("bin", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "heirlog").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / path) if path else "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for absolute in (str(tmp_path / called), called):
        monkeypatch.setattr(sys, "argv", [absolute])
        assert up_command._this_command() == shown


def test_the_advice_on_a_busy_port_has_the_command_as_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "heirlog").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/heirlog"])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f": bin/heirlog up --port {port + 100} --data data-{port + 100}$"):
            up_command._refuse_busy_ports([port], Path("data"))


def test_a_node_that_dies_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    port = free_ports(3)
    with up(tmp_path, "--nodes", "2", "--controllers", "1", "--port", str(port)) as (process, lines):
        os.kill(pid_of("broker 2", lines), signal.SIGKILL)
        assert process.stderr is not None
        report = process.stderr.readline()
        assert report.startswith("broker 2 was killed by SIGKILL; the other nodes continue")
        run("topics", "list", "-b", f"127.0.0.1:{port}")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 0


def pid_of(name: str, lines: list[str]) -> int:
    """`process ids  broker 1: 4711` of the greeting, and the lines below it."""
    found = re.search(rf"{name}: (\d+)$", "\n".join(lines), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_a_secured_cluster_takes_its_own_context_and_follows_its_folder(tmp_path: Path) -> None:
    port = free_ports(2)
    options = ("--nodes", "1", "--controllers", "1", "--port", str(port))
    tokens = ("--config", "delegation.token.secret.key=x y")
    with up(tmp_path / "a", "--secure", *tokens, *options) as (process, lines):
        client = tmp_path / "a" / "client.properties"
        said = "\n".join(lines)
        assert f"client properties  {client} (user admin" in said
        assert "metrics            not served" in said
        given = properties.read(client)
        for line in ("security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512", "sasl.username=admin"):
            assert f" {line}\n" in said
        assert f" ssl.ca.location={given['ssl.truststore.location']}\n" in said
        assert parse_jaas(given["sasl.jaas.config"]).options["password"] not in said
        run("context", "use", f"local-{port}")
        run("topics", "create", "precious")
        run("users", "set", "alice", stdin="secret\n")
        assert "HMAC" in run("tokens", "create")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    (tmp_path / "a").rename(tmp_path / "b")
    other = refused(tmp_path / "b", "--config", "delegation.token.secret.key=z")
    assert "has another delegation.token.secret.key: --config is for a new folder. Edit server.properties" in other
    with up(tmp_path / "b", "--secure", *tokens):
        login = ("--command-config", str(tmp_path / "b" / "client.properties"))
        assert "alice" in run("users", "list", *login)
        assert "precious" in run("topics", "list", *login)
    with up(tmp_path / "c", *options) as (process, _):
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert "listeners that are open to all" in refused(tmp_path / "c", "--secure")
