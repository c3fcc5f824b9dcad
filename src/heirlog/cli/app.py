"""The command tree, and how it fails.

A command or group of commands is in the module of its name. Exceptions: `node` is below, next to its short way
(node.py), and some commands of groups have modules of their own (`ELSEWHERE`).

Only the command or group that a command line names is imported and read by typer: all of them take a fifth of a
second, and as much again.

Imported on the long way only (see main). A command raises CommandError, or lets an error of the client through, and
`run` turns it into one sentence on stderr and an exit code: 1 failed, 2 misused, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from heirlog.cli import habits
from heirlog.cli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.sections import SECTIONS, Commands, Sectioned
from heirlog.local.errors import LocalError
from heirlog.local.node_command import NodeOptions, run_node
from heirlog.metadata.config_def import ConfigError
from heirlog.protocol.errors import KafkaError
from heirlog.version import __version__

OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Of a file without a name: what a command prints goes to one. Files that commands open have names."""
ELSEWHERE: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "transactions": {"hanging_transactions": ("describe-producers", "find-hanging", "abort")},
    "quorum": {"quorum_voters": ("add-controller", "remove-controller")},
    "groups": {"reset_offsets": ("reset-offsets",)},
    "sim": {"sweep": ("sweep",)},
}
"""Group: the modules that have more commands of it."""


def tree(arguments: Sequence[str] = ()) -> typer.Typer:
    """The command or group that the first argument names; all of them if it names none."""
    names = [name for names in SECTIONS.values() for name in names]
    app = typer.Typer(
        name="heirlog",
        cls=Sectioned,
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(heirlog)
    for name in arguments[:1] if set(arguments[:1]) & set(names) else names:
        command = node if name == "node" else _command(name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, cls=Commands)
        else:
            app.command(name)(command)
    return app


@cache
def _command(name: str) -> Any:
    """The function of a command, or a group of commands."""
    module = _module(name)
    group = getattr(module, "app", None)
    if group is None:
        return getattr(module, name.replace("-", "_"))
    for other, commands in ELSEWHERE.get(name, {}).items():
        for command in commands:
            group.command(command)(getattr(_module(other), command.replace("-", "_")))
    return group


def _module(name: str) -> Any:
    return import_module(f"heirlog.cli.{name.replace('-', '_')}")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"heirlog {__version__}")
        raise typer.Exit


def heirlog(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A Kafka-wire-compatible replicated log with eligible leader replicas."""


def node(
    config: Annotated[str, typer.Option("--config", "-c", help="server.properties of the node.")],
    ledger: Annotated[
        str | None, typer.Option(help="Record in this file how many bytes of each file have been flushed.", hidden=True)
    ] = None,
    output: Annotated[str | None, typer.Option(help="File for the node's log.", hidden=True)] = None,
    accept_older_metadata: Annotated[
        bool,
        typer.Option(
            "--accept-older-metadata",
            help="For this start only: follow a controller whose metadata are older than the broker's own copy.",
        ),
    ] = False,
    reuse_port: Annotated[bool, typer.Option("--reuse-port", hidden=True)] = False,
    stop_with_stdin: Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)] = False,
) -> None:
    """Run one node in the foreground; the configuration uses Kafka's names."""
    raise typer.Exit(run_node(NodeOptions(config, ledger, output, reuse_port, accept_older_metadata, stop_with_stdin)))


def run(arguments: list[str]) -> int:
    """Run one command line; returns the exit code."""
    try:
        words = habits.rewritten(_as_text(arguments))
        result = tree(words)(words, prog_name="heirlog", standalone_mode=False)
        sys.stdout.flush()
        # typer hands back the code of an Exit instead of raising it
        return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage:"):
            # a command group without a command: what typer raises is its help text
            print(message)
            return EXIT_USAGE
        return _fail(_with_habit(message.replace("Value error, ", ""), error), EXIT_USAGE)
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except (LocalError, ConfigError) as error:
        return _fail(str(error), EXIT_FAILED)
    except KafkaError as error:
        return _fail(with_next_step(str(error), error.code), EXIT_FAILED)
    except BrokenPipeError:
        # the reader of our output has seen enough (`| head`); nothing may be written to it any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except UnicodeEncodeError as error:
        return _fail(_unprintable(error), EXIT_FAILED)
    except OSError as error:
        if error.errno in OUTPUT_ERRORS and error.filename is None:
            return _fail(f"standard output cannot be written: {error.strerror}", EXIT_FAILED)
        return _fail(str(error), EXIT_FAILED)
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED


def _unprintable(error: UnicodeEncodeError) -> str:
    part = error.object[max(error.start - 20, 0) : error.end + 20]
    return f"{part!a} cannot be shown in the encoding {error.encoding}: set the environment variable PYTHONUTF8=1"


def _as_text(arguments: list[str]) -> list[str]:
    """What is not UTF-8 would fail wherever it is printed or sent. Raises UsageError."""
    found = []
    for argument in arguments:
        try:
            # in a terminal whose encoding is not UTF-8, Python could not read what is
            found.append(os.fsencode(argument).decode())
        except UnicodeDecodeError as error:
            shown = os.fsencode(argument).decode(errors="backslashreplace")
            raise UsageError(
                f"the argument {shown} is not UTF-8: write it in a terminal whose encoding is UTF-8 (produce reads "
                "other bytes from files and from the standard input)"
            ) from error
    return found


def _with_habit(message: str, error: typer.TyperException) -> str:
    """With what the option is called here, if it is one of another tool."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or context is None or not message.startswith("No such option"):
        elsewhere = habits.of_value(message)
        return f"{message.rstrip('.')}; {elsewhere}" if elsewhere else message
    instead = habits.of_option(option, context.command, context.command_path)
    return f"No such option: {option}; {instead}" if instead else message


def _fail(sentence: str, code: int) -> int:
    print(f"heirlog: {' '.join(sentence.split())}", file=sys.stderr)
    return code
