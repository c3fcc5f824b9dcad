"""What commands that run on Spark have in common: their options, and what a missing library or Spark itself says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer

from heirlog.cli.errors import CommandError, UsageError

Master = Annotated[str, typer.Option("--master", help="Spark's master, or sc://host:port for Spark Connect.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="NAME=VALUE of Spark; may be given more than once.")]


@contextmanager
def needs_spark(what: str) -> Iterator[None]:
    """What stops the command, as one sentence: the extra is missing, or Spark or a pipeline cannot run.

    what: what needs the extra, in the plural.
    """
    with _names_a_missing_library(what):
        from heirlog.spark.pipeline.spec import PipelineError

        try:
            yield
        except PipelineError as error:
            raise CommandError(str(error)) from error


@contextmanager
def _names_a_missing_library(what: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "heirlog":
            raise
        raise CommandError(f"{what} need {error.name}: pip install '.[spark]' in a clone of heirlog") from error


def settings_of(conf: list[str] | None) -> Mapping[str, str]:
    """The values of --conf. Raises UsageError."""
    settings = {}
    for item in conf or []:
        name, separator, value = item.partition("=")
        if not separator:
            raise UsageError(f"--conf takes NAME=VALUE, not {item!r}")
        settings[name.strip()] = value.strip()
    return settings
