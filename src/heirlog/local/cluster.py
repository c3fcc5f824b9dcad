"""A cluster of node processes on this machine, for tests and drills.

    with Cluster(nodes=3, config={"log.segment.bytes": "1048576"}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(1)              # SIGKILL
        cluster.lose_unflushed(1)    # ... and the power was cut
        cluster.start(1)

Brokers are 1..nodes, controllers are 100, 101, ...; with `combined` the first brokers have both roles. Nodes keep a
ledger of what they flushed (`heirlog.server.ledger`), so that a power cut can be played on their files. Whatever ends
the test, the nodes end too: on leaving the `with` block, at the interpreter's exit, or, where neither runs, because
their standard input ends with the parent. Of a folder that was not given nothing is left in any of these ways.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heirlog.blocking import Client
from heirlog.client.security import Security
from heirlog.local import client_names, data_folder, fork_server, properties, secure, topics
from heirlog.local import layout as layouts
from heirlog.local.errors import LocalError
from heirlog.local.format import format_cluster
from heirlog.local.layout import CONTROLLER_ID, HOST, Layout, NodeLayout, counted
from heirlog.local.ports import PortReservation
from heirlog.local.processes import (
    NodeProcess,
    cancel_run,
    child_environment,
    run_when_we_end,
    stop_all,
    wait_until_ready,
)
from heirlog.local.ready import led_epoch
from heirlog.metadata.config_def import ConfigError
from heirlog.metadata.image import ELR_VERSION
from heirlog.server.ledger import LedgerFailed, PowerCut, apply_power_cut, has_failed

DEFAULT_NODES = 3
CONTROLLERS = (1, 3, 5)
"""An even number of voters survives no more failures than one voter less."""
COMBINED_MAX = 3
"""With combined roles this many brokers are controllers, unless another number is given."""
TEST_CONFIG = {"group.initial.rebalance.delay.ms": "0"}
"""What a new cluster sets in addition to `layout.standard_config`: a test's consumer group need not wait for others."""
READY_TIMEOUT_S = 120.0
TOPIC_TIMEOUT_S = 30.0
MISSING_S = 2.0
"""How long all running brokers must know nothing of a topic: they learn of a new one within milliseconds."""
SHOWN = 5
"""Partitions in a message."""
STOP_TIMEOUT_S = 120.0
"""Of nodes that hang: a busy machine takes half a minute to start four of them."""
ORPHANS_END_S = 20
"""By then nodes without their parent have ended (`heirlog.local.node_command`)."""


class ClusterError(Exception):
    """The cluster did not do what the test asked of it: one line that says which node, and why."""


class Cluster:
    """Brokers 1 to `nodes` and controllers from 100 on, each in a process. A `with` block starts and stops them.

    nodes: number of brokers. None: as many as `data` has, one for each of `racks`, or 3.
    controllers: number of controllers, 1, 3 or 5. None: as many as `data` has, or 1, with `combined` every broker up to
        three. The cluster accepts changes while a majority of them runs.
    config: server.properties for every node, in addition to the defaults; values may be str, int or bool.
    combined: the first brokers are also the controllers, which have no processes of their own.
    data: a directory that is kept after the end. A cluster that it already contains is started unchanged, and
        arguments that contradict it are refused. None: a temporary directory, removed at the end.
    elr: False formats the cluster with eligible.leader.replicas.version=0.
    ledger: False: do not record what is flushed, for measurements; `lose_unflushed` then fails.
    racks: `broker.rack` of each broker, in the order of their ids.
    security: SSL, SASL_PLAINTEXT or SASL_SSL: what a new cluster speaks on all of its listeners, with certificates and
        passwords of its own; `client_config` is how a user connects.
    """

    def __init__(
        self,
        nodes: int | None = None,
        config: Mapping[str, Any] | None = None,
        combined: bool = False,
        data: str | Path | None = None,
        elr: bool = True,
        ledger: bool = True,
        racks: Sequence[str] | None = None,
        controllers: int | None = None,
        security: str = "PLAINTEXT",
    ) -> None:
        if controllers is not None and controllers not in CONTROLLERS:
            raise ClusterError(f"a cluster has 1, 3 or 5 controllers, not {controllers}")
        if nodes is not None and not (isinstance(nodes, int) and 0 < nodes < CONTROLLER_ID):
            raise ClusterError(f"a cluster has 1 to {CONTROLLER_ID - 1} brokers, not {nodes!r}")
        if combined and (controllers or 1) > (nodes or len(racks or ()) or DEFAULT_NODES):
            raise ClusterError(f"{controllers} brokers are to be controllers too, and there are fewer brokers")
        if racks is not None and (isinstance(racks, str) or not racks or nodes not in (None, len(racks))):
            raise ClusterError(f"racks has one name for each broker, in a list; {racks!r} is not that")
        if security != "PLAINTEXT" and security not in secure.PROTOCOLS:
            raise ClusterError(f"security is PLAINTEXT or one of {', '.join(secure.PROTOCOLS)}, not {security}")
        self._closed_by = None if security == "PLAINTEXT" else security
        self._nodes = nodes if racks is None else len(racks)
        self._racks = None if racks is None else list(racks)
        self._config = {name: _text(value) for name, value in (config or {}).items()}
        self._combined = combined
        self._controllers = controllers
        self._elr = elr
        self._ledger = ledger
        self._keep_data = data is not None
        self._given_data = data
        self._data: Path | None = None
        self._layout: Layout | None = None
        self._ports = PortReservation()
        self._processes: dict[int, NodeProcess] = {}
        self._remover: subprocess.Popen[bytes] | None = None
        self._is_open = False
        self._lock: int | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Start every node, and return once every broker knows all brokers. Raises ClusterError."""
        if self._is_open:
            raise ClusterError("the cluster is already started")
        # it imports while the folder is made; and at the interpreter's exit it is still there when the nodes end
        fork_server.prepare(child_environment())
        self._data = Path(self._given_data or tempfile.mkdtemp(prefix="heirlog-")).resolve()
        atexit.register(self.close)
        if not self._keep_data:
            self._remover = run_when_we_end(f'sleep {ORPHANS_END_S}; rm -rf -- "$0"', str(self._data))
        try:
            # as given: a link that leads nowhere is not followed
            self._lock = data_folder.hold(Path(self._given_data or self._data))
            self._layout = self._prepare(self._data)
            self._processes = {node.node_id: self._process_for(node) for node in self._layout.start_order()}
            self._is_open = True
            for process in self._processes.values():
                process.start()
            self.wait_until_ready()
        except (LocalError, ConfigError) as error:
            self.close()
            raise ClusterError(str(error)) from None
        except BaseException:
            self.close()
            raise

    def _prepare(self, data: Path) -> Layout:
        layout = layouts.load(data)
        closed: secure.ClosedCluster | None = None
        if layout is not None:
            self._refuse_contradictions(layout)
            for node in layout.nodes:
                for port in node.ports():
                    self._ports.reserve(port)
            data_folder.taken_in(layout)
        else:
            ports = [self._ports.reserve() for _ in range(self._nodes or DEFAULT_NODES)]
            controllers = self._controllers or (min(COMBINED_MAX, len(ports)) if self._combined else 1)
            controller_ports = [self._ports.reserve() for _ in range(controllers)]
            layouts.refuse_racks(self._racks or ())
            if self._closed_by is not None:
                advertised = self._advertised([*ports, *controller_ports])
                servers = ",".join(f"{HOST}:{advertised.get(port, port)}" for port in ports)
                closed = secure.close(data, self._closed_by, servers)
            layout = layouts.create(
                data,
                ports,
                controller_ports,
                combined=self._combined,
                config={**TEST_CONFIG, **({} if closed is None else closed.properties), **self._config},
                racks=self._racks or (),
                advertised=self._advertised([*ports, *controller_ports]),
                listener="PLAINTEXT" if closed is None else closed.listener,
            )
        format_cluster(layout, {} if self._elr else {ELR_VERSION: 0}, secure.first_users(data))
        return layout

    def _process_for(self, node: NodeLayout) -> NodeProcess:
        return NodeProcess(node, ledger=self._ledger, reuse_port=True)

    def _advertised(self, ports: Sequence[int]) -> Mapping[int, int]:
        """Ports to which others connect instead of the listener's own. `heirlog.drill` puts proxies there."""
        return {}

    def _refuse_contradictions(self, layout: Layout) -> None:
        holds = f"{layout.data} holds a cluster with"
        if self._nodes not in (None, len(layout.brokers)):
            raise ClusterError(f"{holds} {counted(len(layout.brokers), 'broker')}, not {self._nodes}")
        if self._controllers not in (None, len(layout.controller_ids)):
            raise ClusterError(f"{holds} {counted(len(layout.controller_ids), 'controller')}, not {self._controllers}")
        racks = [broker.rack for broker in layout.brokers]
        if self._racks not in (None, racks):
            raise ClusterError(f"{holds} brokers in racks {racks}, not {self._racks}")
        for node in layout.nodes:
            there = properties.read(node.properties_path)
            for name, value in self._config.items():
                if there.get(name) != value:
                    raise ClusterError(f"{holds} {name}={there.get(name)}, not {value}; edit {node.properties_path}")

    def close(self) -> None:
        """Stop every node. A temporary data directory is removed."""
        atexit.unregister(self.close)
        self._is_open = False
        # these data are not needed again, unless the caller gave their folder
        if self._keep_data and self._layout is not None:
            brokers, controllers = self._stop_order()
            stop_all(brokers, controllers, STOP_TIMEOUT_S)
        for process in self._processes.values():
            process.kill()
        self._ports.release()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if not self._keep_data and self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)
        if self._remover is not None:
            cancel_run(self._remover)
            self._remover = None

    def wait_until_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until every running broker knows all running brokers; paused brokers do not count.

        Raises ClusterError: not in time, or a node ended that was started and neither stopped nor killed here.
        """
        self._known()
        for process in self._processes.values():
            if process.failed:
                raise ClusterError(process.end_sentence())
        brokers, others = self._active(self._known().brokers), self._active(self._known().controllers)
        try:
            wait_until_ready(brokers, others, timeout_s)
        except LocalError as error:
            raise ClusterError(str(error)) from None

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        config: Mapping[str, Any] | None = None,
        timeout_s: float = TOPIC_TIMEOUT_S,
    ) -> None:
        """Create a topic, and wait until every running broker knows a leader of each partition.

        partitions, replication_factor: None: the cluster's default. config: of the topic; values as for the cluster.

        Raises ClusterError: the topic exists, its name or config is invalid, too few brokers, not in time.
        """
        given = {key: _text(value) for key, value in (config or {}).items()}
        try:
            topics.create(self._addresses(), name, partitions, replication_factor, given, timeout_s, self._security())
        except LocalError as error:
            raise ClusterError(str(error)) from None

    def leader(self, topic: str, partition: int = 0, timeout_s: float = TOPIC_TIMEOUT_S) -> int:
        """Id of the running broker that leads the partition; waits for one, as after the death of the last leader.

        Raises ClusterError: none in time, or for two seconds no running broker knows of the partition.
        """
        found: set[int] = set()

        security = self._security()
        missing_since_s: float | None = None

        def is_missing() -> bool:
            return all(topics.is_missing(address, topic, partition, security) for address in self._addresses())

        def led() -> bool:
            nonlocal missing_since_s
            running = {process.node_id for process in self._active(self._known().brokers)}
            leaders = {topics.leader(address, topic, partition, security) for address in self._addresses()}
            found.clear()
            found.update(running & leaders)
            if leaders != {None} or not is_missing():
                missing_since_s = None
            elif missing_since_s is None:
                missing_since_s = time.monotonic()
            elif time.monotonic() - missing_since_s > MISSING_S:
                raise ClusterError(f"no running broker knows of {topic}-{partition}: it does not exist")
            return len(found) == 1

        try:
            topics.wait_until(led, timeout_s, f"the running brokers agree on a leader of {topic}-{partition}")
        except LocalError as error:
            raise ClusterError(f"{error}; {topic}-{partition} does not exist" if is_missing() else str(error)) from None
        return found.pop()

    def wait_until_in_sync(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until the ISR of every partition has all of its replicas, as every running broker knows it.

        Raises ClusterError: not in time, with the partitions that are missing.
        """
        late: list[str] = []

        security = self._security()

        def in_sync() -> bool:
            late[:] = sorted({one for address in self._addresses() for one in topics.out_of_sync(address, security)})
            return not late

        try:
            self._wait(in_sync, timeout_s, "all replicas in sync")
        except ClusterError as error:
            more = f" and {len(late) - SHOWN} more" if len(late) > SHOWN else ""
            which = f"; out of sync: {', '.join(late[:SHOWN])}{more}" if late else ""
            raise ClusterError(f"{error}{which}") from None

    def _wait(self, holds: Callable[[], bool], timeout_s: float, what: str) -> None:
        try:
            topics.wait_until(holds, timeout_s, what)
        except LocalError as error:
            raise ClusterError(str(error)) from None

    def _security(self) -> Security:
        """Of a node, which may do everything."""
        return self._known().brokers[0].client_security()

    def _addresses(self) -> list[str]:
        """Of the running brokers for clients. Raises ClusterError without one."""
        found = [process.layout.client_address() for process in self._active(self._known().brokers)]
        if not found:
            raise ClusterError("no broker is running")
        return found

    def client_config(self, user: str = secure.ADMIN, library: str = "java") -> dict[str, Any]:
        """How `user` connects, in the names of a client library.

        library: "java" (Kafka's client properties), "librdkafka", "kafka-python", "aiokafka" or "spark".

        A user that does not exist is created, with a password for SCRAM-SHA-512 (with SSL: with a certificate). `admin`
        may do everything, other users need ACLs.
        """
        layout = self._known()
        try:
            client_names.check(library)
            given = secure.client_config(layout.data, user, lambda: self._client())
            return client_names.in_names_of(library, {"bootstrap.servers": layout.bootstrap_servers, **given})
        except (LocalError, OSError) as error:
            raise ClusterError(str(error)) from None

    def _client(self) -> Client:
        return Client(self._addresses(), security=self._security(), timeout_s=TOPIC_TIMEOUT_S)

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers, `host:port` separated by commas."""
        try:
            return self._known().bootstrap_servers
        except LocalError as error:
            raise ClusterError(f"the cluster is not running: {error}") from None

    @property
    def data(self) -> Path:
        """Directory with the properties, the log directory and the output (`broker-1/node.log`) of each node."""
        return self._known().data

    @property
    def pids(self) -> dict[int, int]:
        """Process ids of the running nodes, by node id."""
        return {node_id: process.pid for node_id, process in self._processes.items() if process.pid is not None}

    @property
    def brokers(self) -> list[int]:
        """Ids of all brokers, running or not."""
        return [node.node_id for node in self._known().brokers]

    @property
    def controllers(self) -> list[int]:
        """Ids of all controllers, running or not; with `combined` these are brokers."""
        return self._known().controller_ids

    def active_controller(self) -> int | None:
        """Id of the node that leads the metadata quorum; None while none of the running ones does."""
        epochs: dict[int, int] = {}
        for process in self._active(self._known().nodes):
            address = process.layout.controller_address()
            epoch = None if address is None else led_epoch(address, process.layout.controller_security())
            if epoch is not None:
                epochs[epoch] = process.node_id
        return epochs[max(epochs)] if epochs else None

    @property
    def node_ids(self) -> list[int]:
        """Ids of all nodes, running or not."""
        return list(self._processes)

    def output(self, node: int) -> str:
        """What the node has printed since the cluster was created, over all its starts."""
        return self._process(node).layout.output_path.read_text(encoding="utf-8", errors="replace")

    def kill(self, node: int) -> None:
        """Kill the node (SIGKILL) and wait for its end. Its files keep everything that it wrote; see
        `lose_unflushed`."""
        self._process(node).kill()

    def stop(self, node: int, timeout_s: float | None = None) -> None:
        """Stop the node cleanly (SIGTERM) and wait for its end. Raises ClusterError if its exit code is not 0.

        timeout_s: None: two minutes, and longer for thousands of partitions.
        """
        process = self._process(node)
        timeout_s = process.stop_timeout_s(STOP_TIMEOUT_S) if timeout_s is None else timeout_s
        if not process.running:
            raise ClusterError(f"{process.layout.name} is not running")
        process.ask_to_stop()
        if not process.wait(timeout_s):
            process.kill()
            raise ClusterError(f"{process.layout.name} did not stop within {timeout_s:g} s, and was killed")
        # ended by the signal itself: the process was not yet far enough to catch it, hence had not touched its files
        if process.exit_code not in (0, -signal.SIGTERM):
            raise ClusterError(process.end_sentence())

    def pause(self, node: int) -> None:
        """Pause the node (SIGSTOP): its sockets stay open and it answers nothing, like a machine that hangs.

        After `broker.session.timeout.ms` (9 s) its partitions get other leaders.

        Raises ClusterError for a node that does not run, or is paused.
        """
        process = self._process(node)
        if not process.running or process.paused:
            raise ClusterError(f"{process.layout.name} is {'paused already' if process.paused else 'not running'}")
        process.pause()

    def resume(self, node: int) -> None:
        """Continue a paused node (SIGCONT). Raises ClusterError if it is not paused."""
        process = self._process(node)
        if not process.paused:
            raise ClusterError(f"{process.layout.name} is not paused")
        process.resume()

    def start(self, node: int, *, accept_older_metadata: bool = False) -> None:
        """Start a stopped or killed node. Returns at once; `wait_until_ready` waits for all nodes.

        accept_older_metadata: a broker follows a controller whose metadata are older than the broker's own copy;
            otherwise it refuses to start.

        Raises ClusterError for a node that runs.
        """
        process = self._process(node)
        if not self._is_open:
            raise ClusterError("the cluster is closed")
        if process.running:
            raise ClusterError(f"{process.layout.name} is already running")
        process.start(accept_older_metadata=accept_older_metadata)

    def lose_unflushed(self, node: int, seed: int | None = None) -> PowerCut:
        """Change the files of `node` as a power cut does. A running node is killed first.

        Every file is truncated to its flushed length. With a seed it is truncated to a length between flushed and
        written, so that a batch may be torn. Creates, renames and unlinks are undone if their directory was not synced.

        Returns what was lost. Raises ClusterError, and changes nothing, if the ledger does not know what was flushed.
        """
        process = self._process(node)
        if not self._ledger:
            raise ClusterError("this cluster keeps no ledger of what its nodes flushed")
        process.kill()
        if not process.layout.ledger_path.exists() and not has_failed(str(process.layout.ledger_path)):
            return PowerCut()  # killed before it had opened its first file
        try:
            return apply_power_cut(str(process.layout.ledger_path), seed)
        except LedgerFailed as error:
            raise ClusterError(f"{process.layout.name}: {error}") from error

    def _process(self, node: int) -> NodeProcess:
        self._known()
        found = self._processes.get(node)
        if found is None:
            raise ClusterError(f"there is no node {node!r}; nodes are {', '.join(map(str, self._processes))}")
        return found

    def _active(self, nodes: Iterable[NodeLayout]) -> list[NodeProcess]:
        """Those that run and are not paused."""
        processes = [self._processes[node.node_id] for node in nodes]
        return [process for process in processes if process.running and not process.paused]

    def _stop_order(self) -> tuple[list[NodeProcess], list[NodeProcess]]:
        first, last = self._known().stop_order()
        return [self._processes[node.node_id] for node in first], [self._processes[node.node_id] for node in last]

    def _known(self) -> Layout:
        if self._layout is None:
            raise ClusterError("the cluster is not started: use it in a `with` statement")
        return self._layout


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
