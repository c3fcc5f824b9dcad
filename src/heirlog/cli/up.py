"""`heirlog up`: a cluster on this machine until Ctrl-C.

    no cluster in the folder --create, format--> started --Metadata names all--> up --signal--> stopped
    a cluster in the folder ---------------------^                               |
                                                        a node dies: reported, the others continue

The folder decides: what it holds is started again as it is, with the nodes, ports and properties of its files. Options
that contradict it are refused rather than ignored. A folder that was copied or moved works on its own files
(`data_folder`).

stdout gets the greeting, which a script may read; stderr what is waited for, what went wrong, and the end.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from heirlog.cli.connect import BOOTSTRAP_VARIABLE
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.interrupts import signals_interrupt
from heirlog.local import client_names, contexts, data_folder, fork_server, given_configs, properties, secure
from heirlog.local import layout as layouts
from heirlog.local.cluster import COMBINED_MAX, CONTROLLERS
from heirlog.local.errors import LocalError
from heirlog.local.layout import HOST, Layout, NodeLayout, counted
from heirlog.local.processes import NodeProcess, child_environment, stop_all, wait_until_ready

DEFAULT_NODES = 3
SECURE = "SASL_SSL"
DEFAULT_CONTROLLERS = 3
DEFAULT_PORT = 9092
METRICS_PORT_OFFSET = 1000
"""From the first listener's port: 10092 is far from the ports of a second cluster, and of Prometheus' own programs."""
READY_TIMEOUT_S = 60.0
LOADED_TIMEOUT_S = 600.0
"""With the data of before: 10,000 partitions that were not stopped cleanly take a minute on a busy machine."""
STOP_TIMEOUT_S = 60.0
WATCH_S = 0.2
SAID_EVERY_S = 3.0
KAFKA_DEFAULTS = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
}


def up(
    nodes: Annotated[
        int | None, typer.Option(min=1, max=99, help=f"Number of brokers; default {DEFAULT_NODES}.")
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder of the cluster's files; created if it does not exist.")] = Path(
        "data"
    ),
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64000,
            help="Port of broker 1; the other nodes use the ports after it, and metrics those from "
            f"{METRICS_PORT_OFFSET} further on. Default: {DEFAULT_PORT}.",
        ),
    ] = None,
    combined: Annotated[
        bool | None,
        typer.Option("--combined", help="The first three brokers are also the controllers, in the same processes."),
    ] = None,
    controllers: Annotated[
        int | None,
        typer.Option(
            help=f"Number of controllers, 1, 3 or 5; default {DEFAULT_CONTROLLERS}. Changes need a majority of them."
        ),
    ] = None,
    racks: Annotated[
        str | None,
        typer.Option(
            help="Racks of the brokers, separated by commas: a,b puts broker 1 into a, 2 into b, 3 into a, and so on."
        ),
    ] = None,
    is_secure: Annotated[
        bool | None,
        typer.Option(
            "--secure",
            help="Listeners speak SASL_SSL: the folder gets an authority, certificates, and client.properties of the "
            "user admin; no metrics are served. Needs the extra tls: pip install 'FOLDER[tls]'; a checkout's make "
            "setup installs it.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="For server.properties of every node of a new cluster; repeatable. Later, edit the files in the data "
            "folder.",
        ),
    ] = None,
    accept_older_metadata: Annotated[
        bool,
        typer.Option(
            "--accept-older-metadata",
            help="For this start only: brokers follow a controller whose metadata are older than their own copies.",
        ),
    ] = False,
) -> None:
    """Start a cluster on this machine. Ctrl-C stops it and keeps its data."""
    data_folder.refuse_name(data)
    try:
        configs = given_configs.parsed(config or ())
    except LocalError as error:
        raise UsageError(f"--config: {error}") from error
    if layouts.load(data) is None:
        # before anything is written
        data_folder.refuse_others(data)
        nodes, port = nodes or DEFAULT_NODES, port or DEFAULT_PORT
        _racks(racks, nodes)
        if is_secure:
            secure.refuse_without_certificates()
        controllers = controllers_of(controllers, nodes, bool(combined))
        metrics = () if is_secure else _metrics_ports(port, nodes, controllers, bool(combined))
        _refuse_busy_ports([*range(port, port + nodes + controllers), *metrics], data)
    held = data_folder.hold(data)
    # it imports while the folder is made
    fork_server.prepare(child_environment())
    try:
        _run(*_prepared(data, nodes, port, combined, racks, controllers, is_secure, configs), accept_older_metadata)
    finally:
        os.close(held)


def _prepared(
    data: Path,
    nodes: int | None,
    port: int | None,
    combined: bool | None,
    racks: str | None,
    controllers: int | None,
    is_secure: bool | None,
    configs: Mapping[str, str],
) -> tuple[Layout, bool]:
    """The cluster of the folder, formatted, and whether it was there before. Raises CommandError."""
    from heirlog.local.format import format_cluster

    layout = layouts.load(data)
    known = layout is not None
    closed: secure.ClosedCluster | None = None
    if layout is None:
        nodes, port = nodes or DEFAULT_NODES, port or DEFAULT_PORT
        voters = controllers_of(controllers, nodes, bool(combined))
        if is_secure:
            servers = ",".join(f"{HOST}:{number}" for number in range(port, port + nodes))
            closed = secure.close(data.resolve(), SECURE, servers)
        layout = layouts.create(
            data,
            range(port, port + nodes),
            range(port + nodes, port + nodes + voters),
            combined=bool(combined),
            racks=_racks(racks, nodes),
            # they have no password, and say who connects and what topics there are
            metrics_ports=() if is_secure else _metrics_ports(port, nodes, voters, bool(combined)),
            config={**({} if closed is None else closed.properties), **configs},
            listener="PLAINTEXT" if closed is None else closed.listener,
        )
    else:
        _refuse_contradictions(layout, nodes, port, combined, racks, controllers, is_secure)
        given_configs.refuse_others(layout, configs)
        metrics = [found.port for found in (node.metrics_endpoint() for node in layout.nodes) if found is not None]
        ports = [*(port for node in layout.nodes for port in node.ports()), *metrics]
        data_folder.refuse_running(layout)
        _refuse_busy_ports([port for port in ports if port], data, known=True)
        before = data_folder.taken_in(layout)
        if before is not None:
            print(f"the folder was copied or moved: log.dirs named {before}, and {layout.data} now", file=sys.stderr)
        data_folder.refuse_incomplete(layout.data)
        data_folder.complete(layout)
    lost = data_folder.lost_directories(layout)
    format_cluster(layout, {}, secure.first_users(layout.data))
    for node, path in lost:
        print(
            f"{node.name} has run, and {path} was not formatted: it is a new, empty log directory now. Other "
            "brokers have copies of its replicas; of partitions without a copy the records are gone",
            file=sys.stderr,
            flush=True,
        )
    return layout, known


def _metrics_ports(port: int, brokers: int, controllers: int, combined: bool) -> range:
    """Of all nodes, brokers first."""
    nodes = brokers if combined else brokers + controllers
    return range(port + METRICS_PORT_OFFSET, port + METRICS_PORT_OFFSET + nodes)


def controllers_of(given: int | None, brokers: int, combined: bool) -> int:
    """How many a new cluster has. Raises CommandError."""
    if given is None:
        return min(COMBINED_MAX, brokers) if combined else DEFAULT_CONTROLLERS
    if given not in CONTROLLERS:
        raise UsageError(f"--controllers {given}: give 1, 3 or 5")
    if combined and given > brokers:
        raise UsageError(f"--combined with {given} controllers needs as many brokers, not {brokers}")
    return given


def _racks(given: str | None, brokers: int) -> list[str]:
    """Of each broker; empty if no racks were given. Raises CommandError."""
    if given is None:
        return []
    names = given.split(",")
    try:
        layouts.refuse_racks(names)
    except LocalError as error:
        raise UsageError(f"--racks: {error}") from error
    if len(names) > brokers:
        raise UsageError(f"--racks names {len(names)} racks for {brokers} brokers; give one for each at most")
    return [names[number % len(names)] for number in range(brokers)]


def _run(layout: Layout, known: bool, accept_older_metadata: bool) -> None:
    """Until a signal comes or all nodes have stopped (CommandError)."""
    processes = {node.node_id: NodeProcess(node) for node in layout.start_order()}
    with signals_interrupt():
        try:
            for process in processes.values():
                process.start(accept_older_metadata=accept_older_metadata)
            wait_until_ready(
                [processes[node.node_id] for node in layout.brokers],
                [processes[node.node_id] for node in layout.controllers],
                LOADED_TIMEOUT_S if known else READY_TIMEOUT_S,
                WaitPrinter(),
            )
            _print_started(layout, processes, known)
            _watch(list(processes.values()))
        except KeyboardInterrupt:
            running = sum(process.running for process in processes.values())
            print(f"stopping {running} node{'' if running == 1 else 's'}", file=sys.stderr, flush=True)
        finally:
            _stop(layout, processes)


def _refuse_contradictions(
    layout: Layout,
    nodes: int | None,
    port: int | None,
    combined: bool | None,
    racks: str | None,
    controllers: int | None,
    is_secure: bool | None,
) -> None:
    where = f"{layout.data} holds a cluster with"
    instead = "leave the option out to start it, or give another --data folder"
    if nodes is not None and nodes != len(layout.brokers):
        raise CommandError(
            f"{where} {counted(len(layout.brokers), 'broker')}, not {nodes}; {instead} (the guide three-machines says "
            "how a cluster gets another broker)"
        )
    if controllers is not None and controllers != len(layout.controller_ids):
        raise CommandError(f"{where} {counted(len(layout.controller_ids), 'controller')}, not {controllers}; {instead}")
    if combined is not None and combined != layout.combined:
        raise CommandError(f"{where} controllers in processes of their own; {instead}")
    if is_secure and not (layout.data / secure.CLIENT_FILE).exists():
        raise CommandError(f"{where} listeners that are open to all; {instead}")
    if port is not None and port not in layout.brokers[0].ports():
        raise CommandError(f"{where} broker 1 on port {layout.brokers[0].ports()[0]}, not {port}; {instead}")
    if racks is not None and [broker.rack for broker in layout.brokers] != _racks(racks, len(layout.brokers)):
        racked = [broker.rack for broker in layout.brokers if broker.rack]
        there = f"in racks {','.join(racked)}" if racked else "without racks"
        raise CommandError(f"{where} brokers {there}; {instead}, or edit {layouts.RACK} of each broker")


def _refuse_busy_ports(ports: Sequence[int], data: Path, known: bool = False) -> None:
    instead = (
        # its nodes have the same ids: they would take the place of the other folder's
        f"the cluster in {data} keeps its ports, and a copy cannot run at the same time as what it was copied from"
        if known
        else f"or start a cluster next to it: {_this_command()} up --port {ports[0] + 100} --data "
        f"{data}-{ports[0] + 100}"
    )
    for port in ports:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # without it a port counts as busy for a minute after its last connection was closed
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise CommandError(
                    f"port {port} is in use; stop what listens there{':' if known else ','} {instead}"
                ) from error


def _print_started(layout: Layout, processes: dict[int, NodeProcess], known: bool) -> None:
    heirlog = _this_command()
    ids = ", ".join(str(broker.node_id) for broker in layout.brokers)
    controller_ids = ", ".join(map(str, layout.controller_ids))
    many = "s" if len(layout.controller_ids) > 1 else ""
    controller = (
        f"controller{many} {controller_ids}"
        if layout.controllers
        else f"broker{many} {controller_ids} as controller{many}"
    )
    bootstrap = layout.bootstrap_servers
    context = _written_context(layout)
    is_default = context is not None and context == contexts.current_name() and BOOTSTRAP_VARIABLE not in os.environ
    client_file = layout.data / secure.CLIENT_FILE
    login = f" --command-config {client_file}" if client_file.exists() else f" -b {bootstrap.split(',')[0]}"
    option = "" if is_default else login
    use = "the default" if is_default else f"to make it the default: {heirlog} context use {context}"
    print(
        f"heirlog is up: broker{'s' if len(layout.brokers) > 1 else ''} {ids} and {controller}"
        f"{', with its existing data' if known else ''}\n"
        f"\n"
        f"  bootstrap servers  {bootstrap}\n"
        f"  context            {context or 'none'}{f' ({use})' if context else ''}\n"
        f"  data folder        {layout.data}\n"
        f"  process ids        {_in_lines(f'{p.layout.name}: {p.pid}' for p in processes.values())}\n"
        f"{_doors(layout)}"
        f"  metrics            {_metrics(layout, processes)}\n"
        f"  a node's output    {layout.brokers[0].output_path}\n"
        f"  not as in Kafka    {_differences(layout.brokers[0])}\n"
        f"\n"
        f"  {heirlog} topics create greetings{option} --if-not-exists\n"
        f"  echo hello | {heirlog} produce greetings{option}\n"
        f"  {heirlog} consume greetings --from-beginning --max 1{option}\n"
        f"  {heirlog} topics describe greetings{option}\n"
        f"\n"
        f"Ctrl-C stops all nodes and keeps their data.",
        flush=True,
    )


def _in_lines(nodes: Iterable[str]) -> str:
    """One below the other: a terminal would break a long line in the middle of a number."""
    return f"\n{' ' * 21}".join(nodes)


def _written_context(layout: Layout) -> str | None:
    """The name of the context with the cluster's addresses; None where none can be written, which stderr tells."""
    port = layout.brokers[0].ports()[0]
    name = contexts.LOCAL if port == DEFAULT_PORT else f"{contexts.LOCAL}-{port}"
    try:
        for gone in contexts.delete_left_over():
            print(f"removed context {gone}: its data folder is gone", file=sys.stderr, flush=True)
        client_file = layout.data / secure.CLIENT_FILE
        given = properties.read(client_file) if client_file.exists() else {}
        given |= {contexts.SERVERS: layout.bootstrap_servers, contexts.DATA: str(layout.data)}
        contexts.write(name, given, "Written by heirlog up.")
    except LocalError as error:
        print(error, file=sys.stderr, flush=True)
        return None
    return name


def _doors(layout: Layout) -> str:
    """How clients log in to a cluster that is not open to all."""
    path = layout.data / secure.CLIENT_FILE
    if not path.exists():
        return ""
    given = client_names.in_names_of("librdkafka", properties.read(path))
    # a terminal is scrolled back, and the output of a service is kept
    shown = {name: value for name, value in given.items() if name not in ("bootstrap.servers", "sasl.password")}
    lines = [f"{name}={value}" for name, value in shown.items()]
    return (
        f"  client properties  {path} (user {secure.ADMIN}, for --command-config and Kafka's tools)\n"
        f"  librdkafka, kcat   {lines[0]}\n"
        + "".join(f"                     {line}\n" for line in lines[1:])
        + f"                     sasl.password= as password= in {path.name}\n"
    )


def _metrics(layout: Layout, processes: dict[int, NodeProcess]) -> str:
    """Where Prometheus may ask."""
    found = [(node.name, processes[node.node_id].metrics_address()) for node in layout.nodes]
    served = [f"{name}: http://{address}/metrics" for name, address in found if address is not None]
    return _in_lines(served) or "not served (heirlog.metrics.listener)"


def _differences(broker: NodeLayout) -> str:
    """Settings in the file that differ from Kafka's defaults, including later edits."""
    given = properties.read(broker.properties_path)
    changed = [
        f"{name}={given[name]} (Kafka: {default})"
        for name, default in KAFKA_DEFAULTS.items()
        if given.get(name, default) != default
    ]
    return ", ".join(changed) or "nothing"


def _this_command() -> str:
    """How the person called us, so that the printed lines can be pasted, also where nothing is activated."""
    called = Path(sys.argv[0])
    if called.name != "heirlog":
        return f"{_from_here(sys.executable)} -m heirlog"
    found = shutil.which(called.name)
    if found is not None and os.path.abspath(found) == os.path.abspath(called):
        # a shell gives the whole path of what it found
        return called.name
    return _from_here(called) if os.sep in sys.argv[0] else called.name


def _from_here(path: str | Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


def _watch(processes: list[NodeProcess]) -> None:
    """Say which node died, until none is left (CommandError) or a signal comes (KeyboardInterrupt)."""
    while processes:
        # os.waitid would wake us at once, but macOS has it only since Python 3.13
        time.sleep(WATCH_S)
        for process in [process for process in processes if not process.running]:
            processes.remove(process)
            others = "the other nodes continue; " if any(other.running for other in processes) else ""
            print(
                f"{process.end_sentence()}; {others}its output: {process.layout.output_path}; start "
                f"it again with: {_this_command()} node --config {process.layout.properties_path}",
                file=sys.stderr,
                flush=True,
            )
    raise CommandError("all nodes have stopped")


class WaitPrinter:
    """Says what is waited for, on stderr, if it takes long."""

    def __init__(self) -> None:
        self._began = self._said_at = time.monotonic()

    def __call__(self, sentence: str) -> None:
        now = time.monotonic()
        if now - self._said_at >= SAID_EVERY_S:
            self._said_at = now
            print(f"{sentence} ({now - self._began:.0f} s)", file=sys.stderr, flush=True)


def _stop(layout: Layout, processes: dict[int, NodeProcess]) -> None:
    first, last = layout.stop_order()
    try:
        killed = stop_all(
            [processes[node.node_id] for node in first],
            [processes[node.node_id] for node in last],
            STOP_TIMEOUT_S,
            WaitPrinter(),
        )
    except KeyboardInterrupt:
        killed = [process for process in processes.values() if process.running]
        for process in killed:
            process.kill()
    if killed:
        names = ", ".join(process.layout.name for process in killed)
        raise CommandError(f"{names} did not stop cleanly and had to be killed; the next start will check the logs")
