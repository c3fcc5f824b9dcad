"""The help of groups of commands, and what they answer to a command that they do not have.

`heirlog --help` has a heading for what belongs together, the first day's work first. Typer would list the commands
before the groups of commands, and cut their first sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from heirlog.cli import cluster_options, habits
from heirlog.cli.habits import synonyms_of

SECTIONS: Final = {
    "Start a cluster": ("up", "context", "node", "container", "storage"),
    "Records": ("produce", "consume", "offsets", "delete-records", "perf"),
    "Topics, groups and their settings": (
        "topics",
        "groups",
        "transactions",
        "configs",
        "acls",
        "quotas",
        "users",
        "tokens",
    ),
    "Brokers and controllers": ("cluster", "broker", "quorum", "features", "log-dirs", "reassign"),
    "Leaders and recovery": ("elect", "recover", "doctor", "audit", "dump"),
    "Data pipelines": ("pipeline",),
    "Rehearsals": ("drill", "sim"),
}
"""Every command is in one; a test looks for those that are not."""
YES: Final = ("--yes", "-y")
GUESSED = "Did you mean"


class Commands(TyperGroup):
    """A group whose help has the whole first sentence of each command."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in self.commands.values():
            cluster_options.add_to(command)
            _take_yes(command)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        for parameter in command.params if command is not None else ():
            _show_plain_type(parameter)
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        self._format(
            formatter, "Commands", [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        )

    def _format(self, formatter: Any, heading: str, names: Sequence[str]) -> None:
        # padded: one column for all sections
        width = max(map(len, self.commands))
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(width), _first_sentence(self.commands[name])) for name in names])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            meant = synonyms_of(args[0], self.commands) if args else []
            if args and args[0] in habits.COMMANDS and isinstance(self, Sectioned):
                error.message = f"No such command '{args[0]}'; {habits.COMMANDS[args[0]]}"
                raise
            # another tool's word for a command says more than letters in common
            if (meant or GUESSED not in error.message) and not args[0].startswith("-"):
                sentence = error.message.partition(f" {GUESSED}")[0].rstrip(".")
                if meant:
                    error.message = f"{sentence}. {GUESSED} {', '.join(map(repr, meant))}?"
                else:
                    error.message = f"{sentence}; `{ctx.command_path} --help` lists the commands"
            raise


class Sectioned(Commands):
    """A group whose help has a heading for each section."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in SECTIONS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, names in SECTIONS.items():
            self._format(formatter, heading, names)


def _take_yes(command: Any) -> None:
    """`--yes` for a command that does not ask: a script gives it to all, and need not know which ones ask."""
    if hasattr(command, "commands") or any({*YES} & {*parameter.opts} for parameter in command.params):
        return
    command.params.append(_unasked_yes())


@cache
def _unasked_yes() -> Any:
    """The option, as typer reads it; commands share it."""
    declaring = typer.Typer(add_completion=False)
    declaring.command()(_declared)
    return typer.main.get_command(declaring).params[0]


def _declared(yes: Annotated[bool, typer.Option(*YES, hidden=True, expose_value=False)] = False) -> None:
    """The option."""


def _show_plain_type(parameter: Any) -> None:
    """An option's `<list[str]>` and `<int range>` become `<str>` and `<int>`, and an argument has its name only."""
    typers = getattr(parameter, "display_type", None)
    if typers is None or "display_type" in vars(parameter):
        return  # an older typer, which has other words; or done before

    def display_type(ctx: Any) -> str:
        if parameter.param_type_name == "argument":
            return ""
        label: str = typers(ctx).strip("<>").removesuffix(" range")
        return f"<{label.removeprefix('list[').removesuffix(']')}>"

    parameter.display_type = display_type


def _first_sentence(command: Any) -> str:
    sentence, _, _ = " ".join((command.help or "").split()).partition(". ")
    return sentence.rstrip(".") + "."
