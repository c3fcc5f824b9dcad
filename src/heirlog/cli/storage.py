"""`heirlog storage format|info|random-uuid`: Kafka's options, Kafka's files (`heirlog.node.format` makes them)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from heirlog.cli.errors import EXIT_FAILED, UsageError
from heirlog.cli.render import Json, show_json
from heirlog.local import properties

app = typer.Typer(
    help="Format a node's log directories, and inspect them; write files for a new cluster.", no_args_is_help=True
)

_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")
"""What random-uuid prints; Kafka and heirlog take any text."""
Config = Annotated[str, typer.Option("--config", "-c", help="server.properties of the node.")]


@app.command("random-uuid")
def random_uuid() -> None:
    """Print a new cluster id."""
    from heirlog.local.format import new_uuid
    from heirlog.protocol.types import uuid_text

    print(uuid_text(new_uuid()))


@app.command("format")
def format_directories(
    config: Config,
    cluster_id: Annotated[
        str, typer.Option("--cluster-id", "-t", help="Cluster id, the same for every node of the cluster.")
    ],
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", help="Leave formatted directories as they are.")
    ] = False,
    standalone: Annotated[
        bool, typer.Option("--standalone", "-s", help="This controller is the only voter of a new quorum.")
    ] = False,
    initial_controllers: Annotated[
        str | None,
        typer.Option("--initial-controllers", "-I", help="Voters of a new quorum: id@host:port:directory-id,..."),
    ] = None,
    no_initial_controllers: Annotated[
        bool, typer.Option("--no-initial-controllers", "-N", help="This controller joins an existing quorum.")
    ] = False,
    release_version: Annotated[
        str | None, typer.Option("--release-version", "-r", help="metadata.version, such as 4.1 or 4.1-IV1.")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="Repeatable.")
    ] = None,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            "-S",
            metavar="MECHANISM=[...]",
            help="A user of the new cluster: 'SCRAM-SHA-512=[name=alice,password=...]'. Repeatable.",
        ),
    ] = None,
) -> None:
    """Format the log directories of one node. A node refuses to start on a directory that is not formatted."""
    from heirlog.cli import format_options
    from heirlog.local.format import format_node

    if not cluster_id.strip():
        raise UsageError("--cluster-id is empty: heirlog storage random-uuid prints a new one")
    static = properties.read_static(config)
    voters = format_options.voters_wanted(static, standalone, initial_controllers, no_initial_controllers)
    features = format_options.features_wanted(static, release_version, feature or [], voters != [])
    users = format_options.scram_wanted(add_scram or [])
    for line in format_node(static, cluster_id, features, voters, ignore_formatted=ignore_formatted, records=users):
        print(line)
    if not _CLUSTER_ID.fullmatch(cluster_id):
        print(
            f"warning: the cluster id {cluster_id!r} is not one of heirlog storage random-uuid (22 letters, digits, - "
            "and _); a node works only with nodes that have the same",
            file=sys.stderr,
        )


@app.command("example")
def example(
    hosts: Annotated[
        list[str],
        typer.Argument(metavar="HOST...", help="Name or address of each machine, as the others and clients reach it."),
    ],
    out: Annotated[Path, typer.Option(help="Folder that gets a folder for each machine.")] = Path("heirlog-example"),
    data: Annotated[str, typer.Option(help="Folder on the machines in which nodes keep their records.")] = (
        "/var/lib/heirlog"
    ),
    broker_port: Annotated[int, typer.Option(min=1, max=65_535, help="Of each broker.")] = 9092,
    controller_port: Annotated[int, typer.Option(min=1, max=65_535, help="Of each controller.")] = 9193,
) -> None:
    """Write properties files for a new cluster, a broker on each machine and a controller on the first one or three.

    Each machine also gets format.sh, with the ids that all machines share. Nothing is started.
    """
    from heirlog.local.example import ExampleCluster, ExamplePorts

    if broker_port == controller_port:
        raise UsageError("brokers and controllers need different ports")
    if not os.path.isabs(data):
        raise UsageError(f"--data {data} is not absolute: nodes would look for it in the folder where they are started")
    for host in hosts:
        if not re.fullmatch(r"[A-Za-z0-9_.:-]+", host) or host.startswith("-"):
            raise UsageError(f"{host!r} is not the name or the address of a machine")
    cluster = ExampleCluster(hosts, data, ExamplePorts(broker_port, controller_port))
    for path in cluster.write(out):
        print(path)
    print(
        "\nCopy the files of each folder to /etc/heirlog on its machine and read them. Run format.sh once, and then\n"
        "heirlog node --config FILE for each properties file."
    )


@app.command("info")
def info(config: Config, as_json: Json = False) -> None:
    """Show the log directories of one node, their metadata and what is wrong; exit code 1 if there is a problem."""
    from heirlog.local.format import inspect

    found, problems = inspect(properties.read_static(config))
    if as_json:
        show_json({"directories": found, "problems": problems})
    else:
        _print_info(found, problems)
    if problems:
        raise typer.Exit(EXIT_FAILED)


def _print_info(found: dict[str, dict[str, Any] | None], problems: list[str]) -> None:
    if found:
        print(f"Found log {'directory' if len(found) == 1 else 'directories'}:")
    for path in found:
        print(f"  {path}")
    for path, metadata in found.items():
        if metadata is not None:
            content = ", ".join(f"{name}={value}" for name, value in sorted(metadata.items()))
            print(f"\nFound metadata in {path}: {{{content}}}")
    if problems:
        gap = "\n" if found else ""
        print(f"{gap}Found problem{'s' if len(problems) > 1 else ''}:")
        for problem in problems:
            print(f"  {problem}")
