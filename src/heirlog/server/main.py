"""One node as a process: lock, build, listen, start, run until it stops itself or a signal asks it to.

    locked --> built --> listening --> started --SIGTERM, SIGINT--> shutting down --env.stop--> gone

Traps. The listeners are open before the node starts, so that no client that knows the node's address is refused. An
exception inside a callback of the brain ends the node: half of a state change may have happened, and a replica that
continues with an unintended state is worse than one that is fenced. A second signal ends the node without the clean
stop.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.client.security import SecurityError
from heirlog.log_levels import LogLevels
from heirlog.metadata.config_def import StaticConfig
from heirlog.node.node import Node
from heirlog.protocol.types import Endpoint
from heirlog.server import exposures
from heirlog.server.allocator import keep_freed_memory
from heirlog.server.certificate_ends import CertificateEnds
from heirlog.server.certificates import Certificates
from heirlog.server.client_pool import ClientPool
from heirlog.server.connection_limits import connection_limits, exempt_listeners, listener_limits
from heirlog.server.connection_rates import AcceptRates, ConnectionRates
from heirlog.server.directory_watch import DirectoryWatch
from heirlog.server.door import Doors
from heirlog.server.env import ServerEnv
from heirlog.server.event_loop import new_event_loop
from heirlog.server.files import OsFiles
from heirlog.server.flusher import Deliver
from heirlog.server.logs import Logger
from heirlog.server.peers import Peers
from heirlog.server.stream import STAGING_SIZE
from heirlog.server.transport import BACKLOG, Server

if TYPE_CHECKING:
    from heirlog.server.issuer_keys import IssuerKeys
    from heirlog.server.metrics.listener import MetricsListener, Text

LOCK_NAME = ".lock"
GC_THRESHOLDS = (20_000, 10, 50)
"""Allocations between collections of the youngest objects, and how often those of the next age. Requests leave no
cycles, so looking for them is wasted time; among all partitions there are, it holds up everything that is under way."""


class StartRefused(Exception):
    """The node cannot start; one sentence for the operator."""


def run_node(
    config: StaticConfig,
    *,
    files: Callable[[Deliver], OsFiles] = OsFiles,
    reuse_port: bool = False,
    source: str = "",
    config_file: str = "",
    on_listening: Callable[[], None] | None = None,
) -> int:
    """Run until the node stops; its exit code. A reason other than a clean stop is one line on stderr.

    files: makes the node's disks. Only `heirlog.testing` and the drills give others, which note what was flushed
        (`heirlog.server.ledger_files`) or fail on demand.
    reuse_port: share the ports with a process that keeps them reserved (SO_REUSEPORT).
    source: the address from which the node connects to others, which only a drill gives; empty: the system chooses.
    config_file: where `config` was read.
    on_listening: called once when clients can connect.
    """
    raise_file_limit()
    unusable: dict[str, str] = {}
    try:
        locks = lock_directories(directories_of(config), unusable)
    except StartRefused as refused:
        return _print_refusal(str(refused))
    try:
        return NodeServer(config, files, reuse_port, unusable, source, config_file).run(on_listening)
    except StartRefused as refused:
        return _print_refusal(str(refused))
    finally:
        for lock in locks:
            os.close(lock)


def raise_file_limit() -> None:
    """To what the system allows, as a JVM does: a shell gives 1,024. A connection needs one, and a replica in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # macOS names a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def directories_of(config: StaticConfig) -> list[str]:
    """The log directories, and that of the metadata log, which may be one of them under another name."""
    own = config.metadata_log_dir
    found = [*config.log_dirs]
    with suppress(OSError):
        if any(os.path.samefile(own, path) for path in found if os.path.exists(path)):
            return found
    return [*found, own] if own not in found else found


def watched_directories(config: StaticConfig) -> list[str]:
    """By all names that the node uses: it stops where the metadata log's is not the same any more."""
    return list(dict.fromkeys((*config.log_dirs, config.metadata_log_dir)))


def lock_directories(paths: Sequence[str], unusable: dict[str, str]) -> list[int]:
    """Descriptors that hold the directories' `.lock`, as Kafka names it. Raises Refused where another process has one.

    A directory that is not there is left to the node, which knows what to say about it. One whose lock cannot even be
    opened is entered into `unusable` with the reason: the node may live without it.
    """
    locks: list[int] = []
    for path in paths:
        if not os.path.isdir(path):
            continue
        try:
            lock = os.open(os.path.join(path, LOCK_NAME), os.O_RDWR | os.O_CREAT, 0o644)
            locks.append(lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            for held in locks:
                os.close(held)
            raise StartRefused(
                f"{path} is in use by another process; stop that process, or give this node its own directory"
            ) from None
        except OSError as error:
            unusable[path] = (
                f"{path} cannot be locked: {error.strerror}; {LOCK_NAME} in it must be a file that this user may write"
            )
    return locks


class NodeServer:
    def __init__(
        self,
        config: StaticConfig,
        files: Callable[[Deliver], OsFiles],
        reuse_port: bool,
        unusable: Mapping[str, str],
        source: str = "",
        config_file: str = "",
    ) -> None:
        self._config = config
        self._config_file = config_file
        self._reuse_port = reuse_port
        levels = LogLevels(config["log.level"])
        self._log = log = Logger(config.node_id, levels)
        self._loop = new_event_loop()
        self._exit_code = 0
        self._signalled = False
        staging = memoryview(bytearray(STAGING_SIZE))
        self._files = files(self._loop.call_soon_threadsafe)
        try:
            self._doors = Doors(self._loop, config)
            self._peers = Peers(self._loop, config, log)
            self._issuer_keys = self._keys_of_issuers()
            self._certificates = Certificates(self._doors, self._peers, self._issuer_keys, log)
            self._certificate_ends = CertificateEnds(self._loop, self._certificates.shown, log)
        except SecurityError as error:
            raise StartRefused(str(error)) from error
        self._pool = ClientPool(
            self._loop,
            f"heirlog-{config.node_id}",
            staging,
            config.int("socket.connection.setup.timeout.ms"),
            self._peers.of_channel,
            source,
        )
        self._env = ServerEnv(self._loop, self._files, self._pool, log, self._stopped)
        windows = config.int("quota.window.num"), config.int("quota.window.size.seconds") * 1000
        self._node = Node(self._env, config, unusable, levels, time.monotonic_ns, self._issuer_keys, self._certificates)
        self._server = Server(
            self._loop,
            self._node.accepted,
            log,
            frame_limit=config["socket.request.max.bytes"],
            max_idle_ms=config["connections.max.idle.ms"],
            limits=lambda: connection_limits(self._node.server_value),
            listener_limits=lambda listener: listener_limits(partial(self._node.listener_limit, listener)),
            exempt=exempt_listeners(config),
            staging=staging,
            doors=self._doors.by_listener,
            rates=ConnectionRates(lambda host: self._node.image.client_quotas.ip_limit(host), self._now_ms, *windows),
            accept_rates=AcceptRates(self._now_ms, *windows),
            backlog=config["socket.listen.backlog.size"] if "socket.listen.backlog.size" in config.given else BACKLOG,
        )

        self._watch = DirectoryWatch(
            self._loop,
            (path for path in watched_directories(config) if path not in unusable),
            self._node.directory_replaced,
        )
        self._metrics: MetricsListener | None = None
        self._metrics_at: Endpoint | None = None
        if config.metrics_listener is not None:
            from heirlog.server.metrics.listener import MetricsListener

            self._metrics = MetricsListener(self._loop, self._load_metrics, log)

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _reload(self) -> None:
        self._certificates.reload()
        self._look_around()

    def _look_around(self) -> None:
        self._certificate_ends.look()
        exposures.look(self._config, self._config_file, self._log)

    def _keys_of_issuers(self) -> Mapping[str, IssuerKeys]:
        """By listener. Its modules are imported only where tokens are taken. Raises SecurityError."""
        config = self._config
        if all(config.security(listener.name).bearer is None for listener in config.all_listeners):
            return {}
        from heirlog.server.issuer_keys import issuer_keys

        return issuer_keys(self._loop, config, self._log)

    def _load_metrics(self) -> Text:
        from heirlog.server.metrics.exposition import written
        from heirlog.server.metrics.families import NodeFamilies

        families = NodeFamilies(self._node, self._server.connections_by_listener)
        return lambda: written(families.all())

    def run(self, on_listening: Callable[[], None] | None) -> int:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(self._failed)
        try:
            # before another process can see the node, and ask it to stop
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self._asked_to_stop)
            self._loop.add_signal_handler(signal.SIGHUP, self._reload)
            self._listen()
            self._look_around()
            self._watch.look()
            for keys in self._issuer_keys.values():
                keys.start()
            self._loop.call_soon(self._start, on_listening)
            self._loop.run_forever()
        finally:
            self._end()
        return self._exit_code

    def _listen(self) -> None:
        for name, endpoint in self._node.listeners:
            try:
                self._server.listen(name, endpoint, self._reuse_port)
            except OSError as error:
                raise StartRefused(f"listener {name} cannot listen on {endpoint}: {error.strerror or error}") from error
        if self._metrics is not None:
            self._listen_for_metrics(self._metrics)

    def _listen_for_metrics(self, metrics: MetricsListener) -> None:
        endpoint = self._config.metrics_listener
        assert endpoint is not None, "there is a listener only where it is configured"
        try:
            found = metrics.listen(endpoint)
        except OSError as error:
            raise StartRefused(
                f"heirlog.metrics.listener cannot listen on {endpoint}: {error.strerror or error}; free that port or "
                "choose another one (0: any)"
            ) from error
        self._metrics_at = found

    def _start(self, on_listening: Callable[[], None] | None) -> None:
        # what a node loads it keeps: looking for garbage takes almost half of the time of loading many partitions
        gc.disable()
        try:
            self._node.start()
        finally:
            gc.enable()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.collect()
        gc.freeze()
        keep_freed_memory()
        if self._metrics_at is not None and not self._exit_code:
            self._log("info", "metrics-listening", host=self._metrics_at.host, port=self._metrics_at.port)
        if on_listening is not None:
            on_listening()

    def _asked_to_stop(self) -> None:
        if self._signalled:
            self._env.stop(1, "stopped by a second signal, before the clean stop was done")
            return
        self._signalled = True
        self._node.shutdown()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        trace = "".join(traceback.format_exception(error)) if error is not None else ""
        self._log("error", "internal-error", what=context.get("message"), exception=trace)
        self._env.stop(1, f"an internal error ended the node: {error!r}; the log line before this one says where")

    def _stopped(self, exit_code: int, reason: str) -> None:
        self._exit_code = exit_code
        self._log("info" if exit_code == 0 else "error", "stopped", exit_code=exit_code, reason=reason)
        if exit_code:
            _print_refusal(reason)
        self._server.silence()
        self._files.silence()
        self._loop.stop()

    def _end(self) -> None:
        if self._metrics is not None:
            self._metrics.stop()
        self._watch.stop()
        self._server.stop()
        self._pool.stop()
        self._files.stop()
        self._loop.run_until_complete(asyncio.sleep(0))  # lets cancelled connection attempts end
        asyncio.set_event_loop(None)
        self._loop.close()


def _print_refusal(sentence: str) -> int:
    # the disk that is full may be the one to which the node's output goes: the node would never end
    with suppress(OSError):
        print(f"heirlog: {sentence}", file=sys.stderr, flush=True)
    return 1
