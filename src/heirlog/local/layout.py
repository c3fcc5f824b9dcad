"""The files of a local cluster: what `heirlog up` and `heirlog.testing.Cluster` write, find again and start.

    <data>/broker-1/server.properties     Kafka's names; written once, then only read, so that edits survive (but see
                                          `data_folder` for a folder that was copied or moved, or is of an earlier
                                          version)
    <data>/broker-1/log/                  log.dirs
    <data>/broker-1/node.log              what the process printed
    <data>/controller-100/...             the same; absent with combined roles, where brokers 1, 2, ... are the
                                          controllers too
    <data>/.creating                      only while the files of all nodes are written; afterwards it is durably gone

Nothing else describes the cluster: which nodes it has, their roles and their ports are read from these files. So a
folder with `.creating` has none yet: a start that was killed has left the files of some nodes, none of which has run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from heirlog.client.security import Security
from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.local.secure import security_of, write_private
from heirlog.protocol.types import Endpoint

CONTROLLER_ID = 100
HOST = "127.0.0.1"
"""Not `localhost`: clients try its IPv6 address first and report a refused connection."""

PROPERTIES = "server.properties"
CREATING = ".creating"
RACK = "broker.rack"
METRICS = "heirlog.metrics.listener"
SHARE_STATE_REPLICAS = "share.coordinator.state.topic.replication.factor"

OWN_PROPERTIES = (
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "node.id",
    "process.roles",
)
"""Written per node here, hence not for a caller's `config`."""


@dataclass(frozen=True, slots=True)
class NodeLayout:
    node_id: int
    directory: Path

    @property
    def name(self) -> str:
        return self.directory.name.replace("-", " ")

    @property
    def is_only_controller(self) -> bool:
        """As its folder says, whatever its properties have become."""
        return self.directory.name.startswith("controller-")

    @property
    def properties_path(self) -> Path:
        return self.directory / PROPERTIES

    @property
    def log_dir(self) -> Path:
        return self.directory / "log"

    @property
    def rack(self) -> str | None:
        """Raises LocalError for a file that cannot be read."""
        return properties.read(self.properties_path).get(RACK)

    @property
    def output_path(self) -> Path:
        return self.directory / "node.log"

    @property
    def ledger_path(self) -> Path:
        return self.directory / "ledger"

    def client_address(self) -> str:
        """A broker's host:port for clients. Raises LocalError for an invalid file."""
        return str(properties.read_static(self.properties_path).advertised_listeners[0].endpoint)

    def client_security(self) -> Security:
        """How its node would connect to such an address. Raises LocalError."""
        config = properties.read_static(self.properties_path)
        return security_of(config, config.advertised_listeners[0].name)

    def controller_security(self) -> Security:
        """How a node connects to its controller listener. Raises LocalError."""
        config = properties.read_static(self.properties_path)
        return security_of(config, config.controller_listener_names[0])

    @property
    def is_controller(self) -> bool:
        """Raises LocalError for an invalid file."""
        return properties.read_static(self.properties_path).is_controller

    def controller_address(self) -> str | None:
        """host:port of its controller listener; None if it is no controller. Raises LocalError for an invalid file."""
        config = properties.read_static(self.properties_path)
        return str(config.advertised_controller_listeners[0].endpoint) if config.is_controller else None

    def ports(self) -> list[int]:
        """Of every listener, in the order of the file. Raises LocalError for a file that is wrong."""
        return [listener.endpoint.port for listener in properties.read_static(self.properties_path).all_listeners]

    def metrics_endpoint(self) -> Endpoint | None:
        """None where no metrics are served; with port 0 the node finds one. Raises LocalError as `ports`."""
        return properties.read_static(self.properties_path).metrics_listener


@dataclass(frozen=True, slots=True)
class Layout:
    data: Path
    brokers: tuple[NodeLayout, ...]
    controllers: tuple[NodeLayout, ...]
    """Dedicated ones; with combined roles there is none, and the first brokers are the controllers."""

    @property
    def nodes(self) -> tuple[NodeLayout, ...]:
        return self.brokers + self.controllers

    @property
    def combined(self) -> bool:
        return not self.controllers

    @property
    def controller_ids(self) -> list[int]:
        """The nodes that are controllers, alone or also as brokers. Raises LocalError for an invalid file."""
        return [node.node_id for node in self.nodes if node.is_controller]

    def start_order(self) -> tuple[NodeLayout, ...]:
        """Controllers first: brokers that find one need not ask again."""
        return self.controllers + self.brokers

    def stop_order(self) -> tuple[tuple[NodeLayout, ...], tuple[NodeLayout, ...]]:
        """First and last to stop: a broker's clean stop needs a controller."""
        if self.combined:
            last = len(self.controller_ids)
            return self.brokers[last:], self.brokers[:last]
        return self.brokers, self.controllers

    @property
    def bootstrap_servers(self) -> str:
        """Advertised client addresses, in the order of broker ids."""
        return ",".join(broker.client_address() for broker in self.brokers)


def standard_config(nodes: int) -> dict[str, str]:
    """What local clusters set differently from Kafka's defaults, which are meant for one broker on its own."""
    config = {
        "default.replication.factor": str(min(3, nodes)),
        "offsets.topic.replication.factor": str(min(3, nodes)),
        "transaction.state.log.replication.factor": str(min(3, nodes)),
        SHARE_STATE_REPLICAS: str(min(3, nodes)),
    }
    if nodes >= 3:
        config["min.insync.replicas"] = "2"
    return config


def create(
    data: Path,
    ports: Sequence[int],
    controller_ports: Sequence[int],
    *,
    combined: bool = False,
    config: Mapping[str, str] | None = None,
    racks: Sequence[str] = (),
    advertised: Mapping[int, int] | None = None,
    metrics_ports: Sequence[int] = (),
    listener: str = "PLAINTEXT",
) -> Layout:
    """Write server.properties for brokers 1..len(ports), and for one controller on each of `controller_ports`.

    combined: the first brokers are the controllers; else these are nodes of their own, from `CONTROLLER_ID` on.
    racks: `broker.rack` of each broker, in the order of their ids; none: no broker has one.
    advertised: by the port of a listener, the port to which clients and other nodes connect instead.
    metrics_ports: where each node serves its metrics, brokers first; none: as `config` says.
    listener: the name of the brokers' listener.
    config: further properties of every node (a controller decides by some that Kafka's documentation lists under
    brokers, such as min.insync.replicas). Raises LocalError for a property that differs from node to node, and for a
    folder that cannot be written. Files that an interrupted call has left are replaced.
    """
    refused = sorted(set(config or ()) & set(OWN_PROPERTIES))
    if refused:
        raise LocalError(f"{refused[0]} is different on each node of a local cluster and cannot be given for all")
    if racks and RACK in (config or {}):
        raise LocalError(f"{RACK} is given for all brokers and for each of them; leave one out")
    advertised = advertised or {}
    common = {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(
            f"{HOST}:{advertised.get(port, port)}" for port in controller_ports
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        **standard_config(len(ports)),
        **(config or {}),
    }
    controller_ids = range(CONTROLLER_ID, CONTROLLER_ID + len(controller_ports))
    layout = _layout(data, range(1, len(ports) + 1), () if combined else controller_ids)
    metrics = {node: {METRICS: f"{HOST}:{port}"} for node, port in zip(layout.nodes, metrics_ports, strict=False)}
    _begin(layout)
    for broker, port in zip(layout.brokers, ports, strict=True):
        both = combined and broker.node_id <= len(controller_ports)
        own = {listener: port, **({"CONTROLLER": controller_ports[broker.node_id - 1]} if both else {})}
        _write(
            broker,
            {
                "process.roles": "broker,controller" if both else "broker",
                "node.id": str(broker.node_id),
                **_listeners(own, advertised),
                "inter.broker.listener.name": listener,
                "log.dirs": str(broker.log_dir),
                **({RACK: racks[broker.node_id - 1]} if racks else {}),
                **common,
                **metrics.get(broker, {}),
            },
        )
    for controller, port in zip(layout.controllers, controller_ports, strict=False):
        _write(
            controller,
            {
                "process.roles": "controller",
                "node.id": str(controller.node_id),
                **_listeners({"CONTROLLER": port}, advertised),
                # where controllers ask brokers what their logs have, and whether they still run
                "inter.broker.listener.name": listener,
                "log.dirs": str(controller.log_dir),
                **common,
                **metrics.get(controller, {}),
            },
        )
    _finish(layout.data)
    return layout


def _begin(layout: Layout) -> None:
    data = layout.data
    with _writing_to(data):
        layout.brokers[0].directory.mkdir(parents=True, exist_ok=True)
        (data / CREATING).touch()
        for kind in ("broker", "controller"):
            for node_id in _ids(data, kind):
                (data / f"{kind}-{node_id}" / PROPERTIES).unlink()


def _finish(data: Path) -> None:
    with _writing_to(data):
        (data / CREATING).unlink()
        # without it a power cut could bring the file back, and with it a new cluster in the place of one that has run
        directory = os.open(data, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def _writing_to(data: Path) -> Iterator[None]:
    """Raises LocalError for what the operating system refuses."""
    try:
        yield
    except OSError as error:
        raise LocalError(
            f"cannot create a cluster in {data}: {error.strerror}: {error.filename}; give a data folder that can be "
            "written"
        ) from error


def _listeners(ports: Mapping[str, int], advertised: Mapping[int, int]) -> dict[str, str]:
    """The properties for listeners with these names and ports."""
    return {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(
            f"{name}://{HOST}:{advertised.get(port, port)}" for name, port in ports.items()
        ),
    }


def refuse_racks(racks: Sequence[str]) -> None:
    """Names that broker.rack cannot have. Raises LocalError."""
    for rack in racks:
        if not rack or rack != rack.strip() or not rack.isprintable() or rack.endswith("\\"):
            raise LocalError(f"{rack!r} cannot be the name of a rack: give a word")


def _write(node: NodeLayout, given: Mapping[str, str]) -> None:
    comment = "Written when the local cluster was created; edits survive; log.dirs follows the folder."
    with _writing_to(node.directory.parent):
        node.directory.mkdir(parents=True, exist_ok=True)
        write_private(node.properties_path, properties.render(given, comment))


def load(data: Path) -> Layout | None:
    """The cluster that was created in `data`; None if there is none."""
    if (data / CREATING).exists():
        return None
    brokers = _ids(data, "broker")
    return _layout(data, brokers, _ids(data, "controller")) if brokers else None


def _ids(data: Path, kind: str) -> list[int]:
    found = [path.parent.name.removeprefix(f"{kind}-") for path in data.glob(f"{kind}-*/{PROPERTIES}")]
    # a copy, such as broker-1.old, is not one of its nodes
    return sorted(int(node_id) for node_id in found if node_id.isdecimal())


def _layout(data: Path, broker_ids: Sequence[int], controller_ids: Sequence[int]) -> Layout:
    data = data.resolve()
    return Layout(
        data,
        tuple(NodeLayout(node_id, data / f"broker-{node_id}") for node_id in broker_ids),
        tuple(NodeLayout(node_id, data / f"controller-{node_id}") for node_id in controller_ids),
    )


def counted(count: int, what: str) -> str:
    """As a sentence has it: 1 broker, 3 brokers."""
    return f"{count} {what}{'' if count == 1 else 's'}"
