"""Which cluster a command talks to if it is not told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from cli.conftest import Heirlog, rows

from heirlog.cli import connect
from heirlog.cli.app import tree
from heirlog.client.security import security_from_properties
from heirlog.local import contexts
from heirlog.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2) as running:
        yield running


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for variable in ("HEIRLOG_BOOTSTRAP", contexts.VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def test_a_context_is_made_chosen_shown_and_removed(heirlog: Heirlog) -> None:
    assert rows(heirlog, "context", "list") == []
    assert heirlog("context", "create", "prod", "-b", "a:1,b:2").code == 0
    assert heirlog("context", "create", "test", "-b", "c:3").code == 0
    assert heirlog("context", "use", "test").out == "Commands talk to test (c:3) by default.\n"
    shown = [(row["context"], row["is_default"], row["bootstrap_servers"]) for row in rows(heirlog, "context", "list")]
    assert shown == [("prod", False, "a:1,b:2"), ("test", True, "c:3")]
    starred = [line.split() for line in heirlog("context", "list").out.splitlines() if "*" in line]
    assert [line[:2] for line in starred] == [["*", "test"]]
    again = heirlog("context", "create", "prod", "-b", "a:1")
    assert (again.code, "heirlog context delete prod" in again.err) == (1, True)
    assert heirlog("context", "delete", "prod").code == 0
    assert [row["context"] for row in rows(heirlog, "context", "list")] == ["test"]


def test_commands_talk_to_the_default_with_one_of_its_brokers_down(heirlog: Heirlog, cluster: Cluster) -> None:
    contexts.write("local", {contexts.SERVERS: cluster.bootstrap_servers}, "for a test")
    cluster.kill(1)
    try:
        assert heirlog("topics", "list").code == 0
    finally:
        cluster.start(1)
        cluster.wait_until_ready()


def test_an_option_and_the_variable_come_before_it(
    heirlog: Heirlog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heirlog.cli.connect.REACH_TIMEOUT_S", 0.05)
    contexts.write("local", {contexts.SERVERS: "127.0.0.1:1"}, "for a test")
    nobody = heirlog("topics", "list")
    assert (nobody.code, "no broker answers (context local; heirlog context list shows others)" in nobody.err) == (
        1,
        True,
    )
    monkeypatch.setattr("heirlog.cli.connect.REACH_TIMEOUT_S", 30)
    assert heirlog("topics", "list", "-b", cluster.bootstrap_servers).code == 0
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)
    assert heirlog("topics", "list").code == 0


def test_the_first_that_is_given_says_which_cluster(heirlog: Heirlog, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what a command says where nobody answers."""
    monkeypatch.setattr("heirlog.cli.connect.REACH_TIMEOUT_S", 0.01)
    for port, name in ((1, "option"), (2, "variable"), (3, "selected")):
        contexts.write(name, {contexts.SERVERS: f"127.0.0.1:{port}"}, "for a test")
    contexts.use("selected")
    option = ("--context", "option")
    for arguments, bootstrap, named, port, shown in (
        ((), None, None, 3, "(context selected;"),
        ((), None, "variable", 2, "(context variable;"),
        ((), "127.0.0.1:4", None, 4, "no broker answers: "),
        ((), "127.0.0.1:4", "variable", 4, "(context variable;"),
        (option, None, "variable", 1, "(context option;"),
        (option, "127.0.0.1:4", "variable", 1, "(context option;"),
        ((*option, "-b", "127.0.0.1:5"), "127.0.0.1:4", "variable", 5, "(context option;"),
        (("-b", "127.0.0.1:5"), None, None, 5, "no broker answers: "),
    ):
        for variable, value in (("HEIRLOG_BOOTSTRAP", bootstrap), (contexts.VARIABLE, named)):
            monkeypatch.setenv(variable, value or "")
        failed = heirlog("topics", "list", *arguments)
        assert failed.code == 1 and f"127.0.0.1:{port}" in failed.err and shown in failed.err, failed.err


def test_a_context_that_is_named_says_how_to_log_in_at_other_addresses_too(
    heirlog: Heirlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts.write("prod", {contexts.SERVERS: "127.0.0.1:1", "security.protocol": "NONSENSE"}, "for a test")
    for command in ("topics list", "produce t", "perf consume t", "quorum describe", "quorum describe"):
        refused = heirlog(*command.split(), "--context", "prod", "-b", "127.0.0.1:5")
        assert (refused.code, "prod.properties" in refused.err) == (2, True), refused.err
    asked = heirlog("quorum", "describe", "--bootstrap-controller", "127.0.0.1:1", "--context", "prod")
    assert asked.code == 2 and "security.protocol" in asked.err
    contexts.use("prod")
    monkeypatch.setattr("heirlog.cli.connect.REACH_TIMEOUT_S", 0.01)
    assert "no broker answers" in heirlog("topics", "list", "-b", "127.0.0.1:1").err


def test_what_names_no_context_is_refused(heirlog: Heirlog, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no context nope" in heirlog("topics", "list", "--context", "nope").err
    assert heirlog("topics", "list", "--context", "").code == 2
    both = heirlog("topics", "list", "--context", "a", "--command-config", "b")
    assert (both.code, "exclude each other" in both.err) == (2, True)
    monkeypatch.setenv(contexts.VARIABLE, "nope")
    assert "there is no context nope" in heirlog("topics", "list").err


def test_the_terminal_may_have_another_default(heirlog: Heirlog, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        assert heirlog("context", "create", name, "-b", "a:1").code == 0
    contexts.use("one")
    monkeypatch.setenv(contexts.VARIABLE, "two")
    assert [row["context"] for row in rows(heirlog, "context", "list") if row["is_default"]] == ["two"]
    used = heirlog("context", "use", "one")
    assert (used.code, "they talk to two" in used.err) == (0, True)
    assert heirlog("context", "delete", "two").code == 0
    monkeypatch.delenv(contexts.VARIABLE)
    assert contexts.current_name() == "one", "what was deleted was not the one that is selected"


def every_command() -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[str, Any]] = [("heirlog", typer.main.get_command(tree()))]
    while waiting:
        name, command = waiting.pop()
        if not hasattr(command, "commands"):
            yield name, command
        waiting += [(f"{name} {each}", below) for each, below in getattr(command, "commands", {}).items()]


def test_every_command_that_connects_has_the_options() -> None:
    found = 0
    for name, command in every_command():
        options = [option for parameter in command.params for option in parameter.opts]
        if "--bootstrap-server" in options and name != "heirlog context create":
            found += 1
            assert options.count("--context") == options.count("--command-config") == 1, name
        else:
            assert "--context" not in options, name
    assert found > 40


def test_a_file_of_client_properties_becomes_a_context(heirlog: Heirlog, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=NONSENSE\n")
    refused = heirlog("context", "create", "prod", "--command-config", str(file))
    assert (refused.code, str(file) in refused.err) == (1, True)
    file.write_text("bootstrap.servers=a:1\nsecurity.protocol=SSL\n")
    assert heirlog("context", "create", "prod", "--command-config", str(file), "-b", "b:2").code == 0
    assert contexts.read("prod").properties == {"bootstrap.servers": "b:2", "security.protocol": "SSL"}
    assert heirlog("context", "create", "empty").code == 2
    contexts.path_of("wrong").write_text("no servers")
    assert "give --context prod" in connect._how_to_log_in("c:3,b:2")
    assert "--command-config FILE" in connect._how_to_log_in("c:3")


def test_the_context_of_a_local_cluster_whose_data_are_gone_is_marked_and_then_removed(
    heirlog: Heirlog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name, folder in (("local-19092", tmp_path / "gone"), ("local", here)):
        contexts.write(name, {contexts.SERVERS: "127.0.0.1:1", contexts.DATA: str(folder)}, "for a test")
    contexts.write("by-hand", {contexts.SERVERS: "127.0.0.1:1"}, "for a test")
    contexts.path_of("wrong").write_text("no servers")
    assert heirlog("context", "list").code == 1, "a wrong file is named"
    contexts.path_of("wrong").unlink()
    marked = {row["context"]: row["data_is_gone"] for row in rows(heirlog, "context", "list")}
    assert marked == {"by-hand": False, "local": False, "local-19092": True}
    assert heirlog("context", "list").out.count("its data folder is gone") == 1
    monkeypatch.setenv("HOME", str(contexts.folder().parents[1]))
    assert "~/heirlog/contexts/local.properties" in heirlog("context", "list").out
    contexts.path_of("wrong").write_text("no servers")
    assert contexts.delete_left_over() == ["local-19092"]
    assert contexts.names() == ["by-hand", "local", "wrong"]


def test_kafkas_client_properties_make_a_context(heirlog: Heirlog, tmp_path: Path) -> None:
    """As a file for Kafka's tools has them, also those that mean nothing to heirlog."""
    file = tmp_path / "client.properties"
    file.write_text(
        """\
# of the Java tools
security.protocol = SASL_SSL
sasl.mechanism = SCRAM-SHA-512
sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" \\
    password="a\\\\"b;c";
ssl.truststore.type = PEM
ssl.truststore.location = /etc/heirlog/ca.pem
ssl.endpoint.identification.algorithm =
client.id = tool
request.timeout.ms = 5000
"""
    )
    made = heirlog("context", "create", "prod", "--command-config", str(file), "-b", "a:1")
    assert made.code == 0, made.err
    security = security_from_properties(contexts.read("prod").properties)
    assert (security.protocol, security.mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (security.username, security.password) == ("alice", 'a"b;c')
    assert not security.check_host_name
    assert oct(contexts.path_of("prod").stat().st_mode)[-3:] == "600"
