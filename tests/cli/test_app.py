"""How commands fail: an exit code and one sentence on stderr."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from cli.conftest import Heirlog

from heirlog.cli.app import tree
from heirlog.cli.errors import CommandError
from heirlog.cli.sections import SECTIONS
from heirlog.cli.up import controllers_of


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["frobnicate"], 2, "frobnicate"),
        (["topics", "create", "--partitions", "many", "t"], 2, "--partitions"),
        (["elect"], 2, "--election-type"),
        (["topics", "create"], 2, "at least one topic"),
        (["topics", "create", "t", "--replica-assignment", "1:2,x"], 2, "ID:ID,ID:ID"),
        (["topics", "create", "t", "--replica-assignment", "1", "--partitions", "1"], 2, "leave the others out"),
        (["topics", "alter", "t", "--replica-assignment", "1,2", "--partitions", "3"], 2, "for 2 partitions"),
        (["topics", "describe", "t", "--include", "t.*"], 2, "--include goes without"),
        (["configs", "describe", "topic", "t", "--topic", "t"], 2, "name one entity"),
        (["configs", "describe", "tables"], 2, "tables has no configurations"),
        (["configs", "describe", "broker-defaults", "1"], 2, "goes without a name"),
        (["configs", "alter", "topic", "--add-config", "a=b"], 2, "heirlog configs alter topic NAME"),
        (["broker", "unregister"], 2, "name one broker: as the argument ID, or with --id"),
        (["broker", "unregister", "3", "--id", "3"], 2, "name one broker"),
        (["transactions", "describe"], 2, "name one transactional id"),
        (["transactions", "force-terminate"], 2, "name one transactional id"),
        (["elect", "--election-type", "preferred", "t", "--all-topic-partitions"], 2, "TOPIC or TOPIC:0,1"),
        (["delete-records", "t", "--topic", "t", "--partition", "0", "--offset", "1"], 2, "name one topic"),
        (["topics", "create", "t", "--config", "novalue"], 2, "NAME=VALUE"),
        (["elect", "--election-type", "preferred", "--topic", "t"], 2, "--partition"),
        (["elect", "--election-type", "unclean"], 2, "--all-topic-partitions"),
        (["node", "--config", "/nowhere/server.properties"], 1, "/nowhere/server.properties"),
        (["storage", "info", "-c", "/nowhere/server.properties"], 1, "/nowhere/server.properties"),
        (["produce", "t", "--key", "a", "--key-separator", ":"], 2, "exclude each other"),
        (["topics", "list", "--bootstrap-server", "non sense"], 2, "non sense"),
        (["topics", "list", "--bootstrap-server", "localhost:99999"], 2, "localhost:99999"),
        (["produce", "t", "--acks", "0"], 2, "Invalid value for '--acks': '0' is not one of"),
        (["sim", "replay", "1", "--scenario", "none"], 2, "there is no scenario none; there are"),
        (["sim", "replay", "1", "--without-guard", "99"], 2, "heirlog sim guards"),
    ],
)
def test_misuse_is_one_sentence_on_stderr(heirlog: Heirlog, arguments: list[str], code: int, sentence: str) -> None:
    outcome = heirlog(*arguments)
    assert outcome.code == code
    assert outcome.out == ""
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_command_is_in_the_module_of_its_name() -> None:
    app = tree()
    for command in app.registered_commands:
        if command.name != "node":
            name = str(command.name).replace("-", "_")
            assert command.callback is getattr(import_module(f"heirlog.cli.{name}"), name)
    for group in app.registered_groups:
        assert group.typer_instance is import_module(f"heirlog.cli.{group.name}").app


def test_of_a_named_command_nothing_else_is_read_or_imported() -> None:
    assert [group.name for group in tree(["topics", "list"]).registered_groups] == ["topics"]
    assert [command.name for command in tree(["node", "--help"]).registered_commands] == ["node"]
    everything = [group.name for group in tree().registered_groups]
    assert [group.name for group in tree(["topic", "list"]).registered_groups] == everything
    program = "import sys; from heirlog.cli.app import tree; tree(['topics']); print(*sys.modules)"
    imported = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert "heirlog.cli.topics" in imported
    assert not {"heirlog.cli.up", "heirlog.cli.users", "heirlog.local.cluster"} & set(imported)


def test_the_help_has_each_command_once_under_a_heading(heirlog: Heirlog) -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    app = tree()
    registered = [*app.registered_commands, *app.registered_groups]
    assert sorted(listed) == sorted(str(each.name) for each in registered)
    text = heirlog("--help").out
    assert [line.rstrip(":") for line in text.splitlines() if line.rstrip(":") in SECTIONS] == list(SECTIONS)
    # a first sentence is whole, also where it needs more than one line
    assert "which directories are offline." in " ".join(text.split())


@pytest.mark.parametrize(
    ("command", "shown"),
    [("topics create", "  TOPIC  Topic names."), ("up", "  --nodes <int> "), ("dump", "  FILE... ")],
)
def test_help_has_no_types_of_python(heirlog: Heirlog, command: str, shown: str) -> None:
    for _ in range(2):
        text = heirlog(*command.split(), "--help").out
        assert shown in text
        assert "list[" not in text and " range>" not in text and "<Path>" not in text


@pytest.mark.parametrize("arguments", [[], ["topics"], ["storage"]])
def test_a_group_without_a_command_shows_its_help(heirlog: Heirlog, arguments: list[str]) -> None:
    outcome = heirlog(*arguments)
    assert outcome.code == 2
    assert outcome.out.startswith("Usage: heirlog")
    assert "Options:" in outcome.out


def test_where_nobody_listens_the_address_is_named(heirlog: Heirlog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heirlog.cli.connect.REACH_TIMEOUT_S", 0.05)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        monkeypatch.setenv("HEIRLOG_BOOTSTRAP", f"127.0.0.1:{port}")
        outcome = heirlog("topics", "list")
    assert outcome.code == 1
    assert f"127.0.0.1:{port}" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_file_of_partitions_that_is_no_such_file_is_refused(heirlog: Heirlog, tmp_path: Path) -> None:
    file = tmp_path / "partitions.json"
    file.write_text('{"partitions": [{"topic": "t"}]}')
    command = ["elect", "--election-type", "preferred", "--path-to-json-file"]
    outcome = heirlog(*command, str(file))
    assert outcome.code == 1
    assert "partitions.json is not of the form" in outcome.err
    assert "nowhere.json: No such file" in heirlog(*command, str(tmp_path / "nowhere.json")).err
    file.write_text('{"partitions": [{"topic": "t", "partition": 1}, {"topic": "t", "partition": 1}]}')
    assert "partitions.json names t-1 twice" in heirlog(*command, str(file)).err


def test_the_version_is_shown_without_a_command(heirlog: Heirlog) -> None:
    outcome = heirlog("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("heirlog 0.")


def test_up_refuses_a_busy_port_and_writes_nothing(heirlog: Heirlog, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        outcome = heirlog("up", "--nodes", "1", "--port", str(port), "--data", str(tmp_path / "data"))
    assert outcome.code == 1
    assert f"port {port} is in use" in outcome.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--nodes", "3"], "1 broker, not 3"),
        (["--port", "7000"], "not 7000"),
        (["--combined"], "processes of their own"),
    ],
)
def test_up_refuses_options_that_contradict_the_data_folder(
    heirlog: Heirlog, tmp_path: Path, options: list[str], sentence: str
) -> None:
    from heirlog.local import layout as layouts

    layouts.create(tmp_path, [19092], [19093])
    outcome = heirlog("up", "--data", str(tmp_path), *options)
    assert outcome.code == 1
    assert sentence in outcome.err


@pytest.mark.parametrize(
    ("nodes", "combined", "given", "expected"),
    [
        (3, False, None, 3),
        (1, False, None, 3),
        (3, False, 1, 1),
        (5, True, None, 3),
        (2, True, None, 2),
        (5, True, 5, 5),
    ],
)
def test_a_new_cluster_has_three_controllers_unless_it_has_fewer_combined_nodes(
    nodes: int, combined: bool, given: int | None, expected: int
) -> None:
    assert controllers_of(given, nodes, combined) == expected


def test_an_even_number_of_controllers_is_refused_and_so_are_more_than_there_are_combined_nodes() -> None:
    for given, combined in ((2, False), (4, True), (5, True)):
        with pytest.raises(CommandError):
            controllers_of(given, 3, combined)


def test_a_shell_completes_the_name_of_a_command() -> None:
    environment = {**os.environ, "_HEIRLOG_COMPLETE": "complete_bash", "COMP_WORDS": "heirlog top", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "heirlog"], env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["topics"], done.stderr
