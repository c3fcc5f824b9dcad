"""What is typed from habit, by who knows other tools, leads to what it is called here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from cli.conftest import Heirlog

from heirlog.cli.app import tree
from heirlog.cli.sections import Commands


def groups() -> Iterator[Any]:
    waiting: list[Any] = [typer.main.get_command(tree())]
    while waiting:
        group = waiting.pop()
        yield group
        waiting += [command for command in group.commands.values() if hasattr(command, "commands")]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["topics", "--list"], "`heirlog topics list` is a command here"),
        (["acls", "--add"], "`heirlog acls add` is a command here"),
        (["users", "create", "alice"], "Did you mean 'set'?"),
        (["topics", "rm", "t"], "Did you mean 'delete'?"),
        (["quorum", "status"], "Did you mean 'describe'?"),
        (["context", "switch", "x"], "Did you mean 'use'?"),
        (["topic", "list"], "Did you mean 'topics'?"),
        (["frobnicate"], "`heirlog --help` lists the commands"),
        (["topics", "frobnicate"], "`heirlog topics --help` lists the commands"),
        (["consume", "t", "--property", "print.key=true"], "consume has --print-key"),
        (["produce", "--broker-list", "localhost:9092", "t"], "--bootstrap-server (-b) names the brokers"),
        (["produce", "--brokers", "localhost:9092", "t"], "--bootstrap-server (-b) names the brokers"),
        (["up", "--brokers", "3"], "--nodes says how many brokers"),
        (["consume", "-C", "-t", "t"], "consume needs no such option"),
        (["consume", "t", "--formatter-property", "print.key=true"], "consume has --print-key"),
        (["produce", "t", "--reader-property", "parse.key=true"], "produce has --key-separator"),
        (["consume", "t", "--command-property", "a=b"], "--command-config FILE has the client properties"),
        (["consume", "t", "-e", "-q"], "leave it out"),
        (["consume", "t", "-u"], "leave it out"),
        (["produce", "t", "--acks", "0"], "with 0 no record could be said"),
        (["consume", "t", "-o", "e@5"], "s@MS for the time in ms"),
        (["consume", "t", "-f", "%v"], "there are %s (value)"),
        (["produce", "t", "-X", "acks=1"], "--command-config FILE has the client properties"),
        (["users", "set", "a", "--password", "p"], "read from the standard input"),
        (["quotas", "alter", "--entity-type", "users"], "--user, --client and --ip name whose quotas"),
        (
            ["configs", "alter", "--entity-type", "users"],
            "there are `heirlog users list` and `heirlog quotas describe`",
        ),
        (["configs", "alter", "user", "bob", "a=1"], "heirlog users list"),
        (["dump", "--files", "f.log"], "name the files without an option"),
        (["dump", "f.log", "--print-data-log"], "--deep prints the records"),
        (["tokens", "renew", "--hmac", "h"], "name the token by its id"),
        (["offsets", "t", "--partitions", "0"], "name partitions after the topic: TOPIC:0,1"),
        (["consumer-groups", "list"], "Did you mean 'groups'?"),
        (["-b", "localhost:9092", "topics", "list"], "it goes after the command"),
        (["topics", "-b", "localhost:9092", "list"], "it goes after the command"),
        (["--context", "prod", "topics", "list"], "heirlog topics list --context NAME"),
        (["topics", "list", "--profile", "prod"], "--context NAME is a cluster of `heirlog context list`"),
        (["topics", "alter", "t", "--replication-factor", "3"], "`heirlog reassign --execute` gives a partition"),
        (["status"], "`heirlog cluster info` shows the state"),
        (["stop"], "Ctrl-C in the terminal of `heirlog up`"),
        (["nodes"], "`heirlog broker list` shows the brokers"),
        (["perf", "produce", "t", "--producer-props", "acks=1"], "perf produce has --acks"),
        (["perf", "produce", "t", "--print-metrics"], "what was measured is always shown"),
        (["perf", "consume", "t", "--messages", "5"], "--num-records says how many"),
        (["groups", "list", "--state", "Stabel"], "--state Stabel does not exist; there are PreparingRebalance"),
        (["groups", "list", "--type", "foo"], "there are classic, consumer, share"),
        (["transactions", "list", "--state", "Foo"], "there are Empty, Ongoing"),
        (["topics", "describe", "gr\udcfcppe"], r"the argument gr\xfcppe is not UTF-8"),
        (["up", "--controllers", "2"], "give 1, 3 or 5"),
        (["up", "--racks", ""], "--racks: '' cannot be the name of a rack"),
        (["groups", "delete", "g", "--force"], "this command does not ask"),
        (["topics", "create", "--create", "--topic", "t"], "leave it out: the command is its name"),
        (["configs", "alter", "--entity-type", "topics", "--alter"], "leave it out: the command is its name"),
        (["topics", "alter", "t", "--config", "retention.ms=5"], "`heirlog configs alter topic TOPIC NAME=VALUE`"),
        (["consume", "t", "--include", "t.*"], "they exclude each other"),
        (["consume", "t", "--partitoin", "1"], "Possible options: --partition"),
    ],
)
def test_the_sentence_names_what_to_type(heirlog: Heirlog, typed: list[str], sentence: str) -> None:
    outcome = heirlog(*typed)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err and outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    "typed",
    [["delete-records", "t", "--yes"], ["groups", "delete", "-y"], ["transactions", "force-terminate", "--yes"]],
)
def test_a_yes_is_taken_also_where_nothing_is_asked(heirlog: Heirlog, typed: list[str]) -> None:
    outcome = heirlog(*typed)
    assert outcome.code == 2 and "--yes" not in outcome.err and "name" in outcome.err, "what else is missing"


def test_help_and_version_are_commands_too(heirlog: Heirlog) -> None:
    assert heirlog("help").out == heirlog("--help").out
    assert heirlog("help", "topics", "create").out == heirlog("topics", "create", "--help").out != ""
    assert heirlog("version").out == heirlog("--version").out


def test_every_group_shows_the_whole_first_sentence_of_each_command(heirlog: Heirlog) -> None:
    assert all(isinstance(group, Commands) for group in groups())
    shown = heirlog("transactions", "--help").out
    assert "its..." not in shown
    assert "Abort the open transaction of an id and fence its producer, which cannot commit any more." in " ".join(
        shown.split()
    )
