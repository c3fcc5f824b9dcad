"""The order of the commands in `heirlog --help`: what belongs together under one heading, the first day's work first.

Typer would list the commands before the groups of commands, and cut their first sentences.
"""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperGroup

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


class Sectioned(TyperGroup):
    """A group whose help has a heading for each section."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in SECTIONS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                # padded: one column for all sections
                formatter.write_dl([(name.ljust(width), _first_sentence(self.commands[name])) for name in names])


def _first_sentence(command: Any) -> str:
    sentence, _, _ = " ".join((command.help or "").split()).partition(". ")
    return sentence.rstrip(".") + "."
