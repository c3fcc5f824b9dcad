"""`heirlog container`: a node in a container, configured by a file, by variables of the environment, or by both.

    KAFKA_NODE_ID=1                     node.id=1                     the rule of Apache Kafka's image: _ is a dot,
    KAFKA_HEIRLOG_METRICS_LISTENER=...  heirlog.metrics.listener=...  __ is _, ___ is -
    CLUSTER_ID                          as for Kafka's image
    INITIAL_CONTROLLERS                 how a controller is formatted: id@host:port:directory-id,... or `standalone`;
                                        `none` for one that joins a quorum later

What both say, the environment wins: it is what a Compose file or a manifest of Kubernetes shows. An empty volume is
formatted, any other is left as it is, so that the same command may always be run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.errors import CommandError
from heirlog.local import properties
from heirlog.local.node_command import NodeOptions, run_node

if TYPE_CHECKING:
    from heirlog.metadata.config_def import StaticConfig

PREFIX = "KAFKA_"
CLUSTER_ID = "CLUSTER_ID"
INITIAL_CONTROLLERS = "INITIAL_CONTROLLERS"
OF_JAVA = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "GC_LOG_OPTS",
        "HEAP_OPTS",
        "JMX_HOSTNAME",
        "JMX_OPTS",
        "JMX_PORT",
        "JVM_PERFORMANCE_OPTS",
        "LOG4J_LOGGERS",
        "LOG4J_OPTS",
        "LOG4J_ROOT_LOGLEVEL",
        "OPTS",
        "TOOLS_LOG4J_LOGLEVEL",
        "VERSION",
    )
)
"""What a file for Apache Kafka's image may set too: they are for its Java, and no properties."""
FILE = "server.properties"
LOGS = "log"


def container(
    config: Annotated[Path, typer.Option("--config", "-c", help="Properties of the node; may be missing.")] = Path(
        "/etc/heirlog/server.properties"
    ),
    data: Annotated[Path, typer.Option(help="The volume.")] = Path("/var/lib/heirlog"),
) -> None:
    """Run the node of a container, configured by KAFKA_* variables. Formats an empty volume, with CLUSTER_ID."""
    path, static = _written(config, data, os.environ)
    for directory in {static.metadata_log_dir, *static.log_dirs}:
        if not _is_kept(Path(directory), data):
            print(
                f"{directory} of log.dirs is in no volume: its records go with the container; leave log.dirs out, and "
                f"they are in {data / LOGS}",
                file=sys.stderr,
                flush=True,
            )
    for line in _format_once(static, os.environ):
        print(line, flush=True)
    raise typer.Exit(run_node(NodeOptions(str(path))))


def _is_kept(directory: Path, data: Path) -> bool:
    """In the volume of the image, or in another one that is mounted."""
    parents = [directory.absolute(), *directory.absolute().parents][:-1]
    return data.absolute() in parents or any(os.path.ismount(parent) for parent in parents)


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The properties that its variables set, by name."""
    return {
        _property(name.removeprefix(PREFIX)): value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and name not in OF_JAVA
    }


def _property(name: str) -> str:
    return name.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def _written(config: Path, data: Path, environment: Mapping[str, str]) -> tuple[Path, StaticConfig]:
    """The file for the node, in `data`, and what it says. Raises CommandError, LocalError."""
    found = properties.read(config) if config.exists() else {}
    given = {"log.dirs": str(data / LOGS), **found, **from_environment(environment)}
    if "node.id" not in given:
        raise CommandError(
            f"there is no node.id: mount a configuration at {config}, or set {PREFIX}NODE_ID and the other properties "
            "as variables"
        )
    from heirlog.local.secure import write_private

    path = data / FILE
    try:
        write_private(path, properties.render(given, f"Written at each start, from {config} and {PREFIX}*."))
    except OSError as error:
        raise CommandError(
            f"cannot write {path}: {error.strerror}; mount a volume at {data} that user {os.getuid()} may write"
        ) from error
    return path, properties.read_static(path)


def _format_once(static: StaticConfig, environment: Mapping[str, str]) -> list[str]:
    """A line for each log directory that was formatted now. Raises CommandError, LocalError."""
    from heirlog.cli import format_options
    from heirlog.local.format import format_node, inspect

    found, _ = inspect(static)
    wanted = {static.metadata_log_dir, *static.log_dirs}
    if all(found.get(path) is not None for path in wanted):
        return []
    cluster_id = environment.get(CLUSTER_ID, "")
    if not cluster_id:
        raise CommandError(
            f"the volume is not formatted: set {CLUSTER_ID}, the same for each node (heirlog storage random-uuid "
            "prints a new one), or mount the volume that belongs here"
        )
    first = environment.get(INITIAL_CONTROLLERS, "")
    if static.is_controller and not static.voters and not first:
        raise CommandError(
            f"this controller is not formatted: set {INITIAL_CONTROLLERS} to the voters of a new quorum "
            "(id@host:port:directory-id,...), to standalone if it is the only one, or to none if it joins a quorum"
        )
    formats = first if static.is_controller else ""
    named = formats if formats not in ("", "standalone", "none") else None
    voters = format_options.voters_wanted(static, formats == "standalone", named, formats == "none")
    features = format_options.features_wanted(static, None, [], voters != [])
    return format_node(static, cluster_id, features, voters, ignore_formatted=True)
