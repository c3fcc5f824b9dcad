"""A command that takes groups of options has the command line of one that declares each option itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from heirlog.cli.option_groups import grouped

Names = Annotated[list[str] | None, typer.Option("--name", help="May be repeated.")]
Limit = Annotated[int, typer.Option("--limit", min=1)]
Quiet = Annotated[bool, typer.Option("--quiet")]
Required = Annotated[str, typer.Option("--required")]


@dataclass(frozen=True, slots=True)
class Things:
    names: Names = None
    limit: Limit = 3


@dataclass(frozen=True, slots=True)
class Needed:
    required: Required


def output(command, *arguments: str) -> str:
    app = typer.Typer(rich_markup_mode=None)
    app.command("do")(command)
    return CliRunner().invoke(app, list(arguments)).output


def test_the_help_is_that_of_the_single_options_in_their_order() -> None:
    def single(
        place: Annotated[str, typer.Argument()],
        required: Required,
        names: Names = None,
        limit: Limit = 3,
        q: Quiet = False,
    ) -> None:
        """Do it."""

    def by_groups(place: Annotated[str, typer.Argument()], needed: Needed, things: Things, q: Quiet = False) -> None:
        """Do it."""

    shown = output(grouped(by_groups), "--help")
    assert "--limit" in shown
    assert shown == output(single, "--help")


def test_the_command_receives_each_group_as_a_value() -> None:
    @grouped
    def command(things: Things, needed: Needed, quiet: Quiet = False) -> None:
        print(things, needed, quiet)

    assert output(command, "--required", "r").split("\n")[0] == f"{Things(None, 3)} {Needed('r')} False"
    given = output(command, "--name", "a", "--quiet", "--required", "r", "--name", "b", "--limit", "7")
    assert given.split("\n")[0] == f"{Things(['a', 'b'], 7)} {Needed('r')} True"


def test_an_option_of_a_group_is_checked_and_may_be_required() -> None:
    @grouped
    def command(things: Things, needed: Needed) -> None:
        raise AssertionError("not called")

    assert "--required" in output(command)
    assert "--limit" in output(command, "--required", "r", "--limit", "0")


def test_two_options_of_one_name_are_refused_when_the_command_is_defined() -> None:
    def twice(things: Things, limit: Limit = 1) -> None: ...

    with pytest.raises(ValueError, match="limit"):
        grouped(twice)
