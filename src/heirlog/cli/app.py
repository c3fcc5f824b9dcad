"""The command tree, and how it fails.

A command or group of commands is in the module of its name. Exceptions: `node` is below, next to its short way
(node.py); `groups reset-offsets` and the changes of the quorum have modules of their own.

Imported on the long way only (see main). A command raises CommandError, or lets an error of the client through, and
`run` turns it into one sentence on stderr and an exit code: 1 failed, 2 misused, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from heirlog.cli import (
    acls,
    audit,
    broker,
    cluster,
    configs,
    consume,
    container,
    context,
    delete_records,
    doctor,
    drill,
    dump,
    elect,
    features,
    groups,
    habits,
    hanging_transactions,
    log_dirs,
    offsets,
    perf,
    pipeline,
    produce,
    quorum,
    quorum_voters,
    quotas,
    reassign,
    recover,
    reset_offsets,
    sim,
    storage,
    sweep,
    tokens,
    topics,
    transactions,
    up,
    users,
)
from heirlog.cli.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.sections import Commands, Sectioned
from heirlog.local.errors import LocalError
from heirlog.local.node_command import NodeOptions, run_node
from heirlog.metadata.config_def import ConfigError
from heirlog.protocol.errors import KafkaError
from heirlog.version import __version__

OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Of a file without a name: what a command prints goes to one. Files that commands open have names."""

app = typer.Typer(
    name="heirlog",
    cls=Sectioned,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(up.up)
app.add_typer(context.app, name="context", cls=Commands)
app.command("container")(container.container)
app.add_typer(storage.app, name="storage", cls=Commands)
app.add_typer(topics.app, name="topics", cls=Commands)
app.add_typer(configs.app, name="configs", cls=Commands)
app.add_typer(groups.app, name="groups", cls=Commands)
app.add_typer(transactions.app, name="transactions", cls=Commands)
transactions.app.command("describe-producers")(hanging_transactions.describe_producers)
transactions.app.command("find-hanging")(hanging_transactions.find_hanging)
transactions.app.command("abort")(hanging_transactions.abort)
app.add_typer(acls.app, name="acls", cls=Commands)
app.add_typer(quotas.app, name="quotas", cls=Commands)
app.add_typer(users.app, name="users", cls=Commands)
app.add_typer(tokens.app, name="tokens", cls=Commands)
app.add_typer(broker.app, name="broker", cls=Commands)
app.add_typer(cluster.app, name="cluster", cls=Commands)
app.add_typer(perf.app, name="perf", cls=Commands)
app.command("offsets")(offsets.offsets)
app.add_typer(features.app, name="features", cls=Commands)
app.add_typer(quorum.app, name="quorum", cls=Commands)
quorum.app.command("add-controller")(quorum_voters.add_controller)
quorum.app.command("remove-controller")(quorum_voters.remove_controller)
app.command("reassign")(reassign.reassign)
groups.app.command("reset-offsets")(reset_offsets.reset_offsets)
app.command("log-dirs")(log_dirs.log_dirs)
app.command("delete-records")(delete_records.delete_records)
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.command("elect")(elect.elect)
app.add_typer(recover.app, name="recover", cls=Commands)
app.command("doctor")(doctor.doctor)
app.command("dump")(dump.dump)
app.command("audit")(audit.audit)
app.add_typer(pipeline.app, name="pipeline", cls=Commands)
app.add_typer(drill.app, name="drill", cls=Commands)
app.add_typer(sim.app, name="sim", cls=Commands)
sim.app.command("sweep")(sweep.sweep)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"heirlog {__version__}")
        raise typer.Exit


@app.callback()
def heirlog(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A Kafka-wire-compatible replicated log with eligible leader replicas."""


@app.command("node")
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
        result = app(habits.rewritten(_as_text(arguments)), prog_name="heirlog", standalone_mode=False)
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
