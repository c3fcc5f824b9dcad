"""The files of a cluster that does not exist yet: properties for each machine, and the commands that format it.

<folder>/<host>/controller.properties      on the first one or three machines
<folder>/<host>/broker.properties          on each
<folder>/<host>/format.sh                  formats both, once, with ids that are the same everywhere
"""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.local.format import new_uuid
from heirlog.local.layout import CONTROLLER_ID
from heirlog.protocol.types import uuid_text

CONTROLLERS = 3
REPLICAS = 3
METRICS = 9404, 9405
FORMAT = "format.sh"
CHANGE_FOLDER = 'cd "$(dirname "$0")"'


@dataclass(frozen=True, slots=True)
class ExamplePorts:
    broker: int = 9092
    controller: int = 9193


@dataclass(frozen=True, slots=True)
class ExampleCluster:
    """hosts: names or addresses at which the machines reach each other. data: where the nodes will keep their logs."""

    hosts: Sequence[str]
    data: str
    ports: ExamplePorts

    @property
    def controllers(self) -> Sequence[str]:
        """An odd number: one more of two or four could not lose more of them."""
        return self.hosts[:CONTROLLERS] if len(self.hosts) >= CONTROLLERS else self.hosts[:1]

    def write(self, folder: Path) -> Iterator[Path]:
        """Each file that was written. Raises LocalError before the first one, if a folder is there already."""
        folders = {host: folder / host.replace(":", "-") for host in self.hosts}
        if len(folders) < len(self.hosts):
            raise LocalError("each machine must have an address of its own")
        for path in folders.values():
            if path.exists():
                raise LocalError(f"{path} exists already; name another folder with --out")
        files = dict(zip(folders.values(), self._files(), strict=True))
        try:
            for path, texts in files.items():
                path.mkdir(parents=True)
                for name, text in texts.items():
                    (path / name).write_text(text, encoding="utf-8")
                    yield path / name
        except OSError as error:
            raise LocalError(
                f"cannot write {error.filename}: {error.strerror}; name another folder with --out"
            ) from None

    def _files(self) -> Iterator[dict[str, str]]:
        cluster_id = uuid_text(new_uuid())
        voters = ",".join(
            f"{CONTROLLER_ID + number}@{_address(host, self.ports.controller)}:{uuid_text(new_uuid())}"
            for number, host in enumerate(self.controllers)
        )
        for number, host in enumerate(self.hosts):
            texts = {"broker.properties": self._broker(number + 1, host)}
            formatted = [f"heirlog storage format --config broker.properties --cluster-id {cluster_id}"]
            if host in self.controllers:
                texts = {"controller.properties": self._controller(CONTROLLER_ID + number, host), **texts}
                formatted.append(
                    f"heirlog storage format --config controller.properties --cluster-id {cluster_id} "
                    f"--initial-controllers {shlex.quote(voters)}"
                )
            said = "# Formats the nodes of this machine, once. Run it as the user that will run them."
            lines = ["#!/bin/sh", said, "set -e", CHANGE_FOLDER]
            texts[FORMAT] = "\n".join([*lines, *formatted]) + "\n"
            yield texts

    def _controller(self, node: int, host: str) -> str:
        return self._node("controller", node, f"CONTROLLER://{_address(host, self.ports.controller)}", host, METRICS[1])

    def _broker(self, node: int, host: str) -> str:
        return self._node("broker", node, f"PLAINTEXT://{_address(host, self.ports.broker)}", host, METRICS[0])

    def _node(self, role: str, node: int, listener: str, host: str, metrics: int) -> str:
        """The configurations that a user has to know about, with what each is for."""
        replicas = min(REPLICAS, len(self.hosts))
        servers = ",".join(_address(each, self.ports.controller) for each in self.controllers)
        lines = [
            f"# {role} {node} of a cluster of {len(self.hosts)} machines.",
            f"process.roles={role}",
            "",
            "# Each node has an id of its own. It never changes.",
            f"node.id={node}",
            "",
            "# Where this node listens. The other machines and the clients must reach it by this address.",
            f"listeners={listener}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            f"controller.quorum.bootstrap.servers={servers}",
            "",
            "# The records. Use a disk of its own; several folders, one for each disk, are separated by commas."
            if role == "broker"
            else "# The metadata log. Use a folder of its own, best on a disk that brokers do not fill.",
            properties.rendered("log.dirs", f"{self.data.rstrip('/')}/{role}"),
            "",
            "# A record is acknowledged (acks=all) when so many replicas have it, and each topic has so many replicas",
            "# unless it asks for others. The same on all nodes.",
            f"min.insync.replicas={max(1, replicas - 1)}",
            f"default.replication.factor={replicas}",
            "",
            "# Metrics for Prometheus. There is no password: let only the machine of Prometheus connect.",
            f"#heirlog.metrics.listener={_address(host, metrics)}",
        ]
        if role == "broker":
            lines += [
                "",
                "# Replicas of a partition are placed in different racks, if brokers have one.",
                "#broker.rack=a",
            ]
        return "\n".join(lines) + "\n"


def _address(host: str, port: int) -> str:
    try:
        is_v6 = ipaddress.ip_address(host).version == 6
    except ValueError:
        is_v6 = False
    return f"[{host}]:{port}" if is_v6 else f"{host}:{port}"
