"""The port of one incarnation: `heirlog.env.Env` on virtual time, the simulated network and a simulated disk."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from heirlog.env import Cancel, OnResult
from heirlog.protocol.types import Endpoint
from heirlog.sim.disk import SimDisk
from heirlog.sim.disk_files import SimFiles
from heirlog.sim.network import Network
from heirlog.sim.world import Exit, Process, World


class SimEnv:
    """Ends with its process: callbacks that were registered through it never run afterwards."""

    def __init__(
        self,
        world: World,
        network: Network,
        disk: SimDisk,
        process: Process,
        as_seen: Callable[[Any], Any] | None = None,
    ) -> None:
        """as_seen: gets every request of the process and returns what leaves it (`heirlog.sim.releases`); None: the
        request itself leaves it.
        """
        self._world = world
        self._as_seen = as_seen
        self._network = network
        self._process = process
        self._host = process.host
        self.random: Random = world.stream(f"{process.host.name}#{process.number}")
        self.now_ms = process.host.monotonic_ms
        self.wall_ms = process.host.wall_ms
        self.files = SimFiles(disk, process)

    @property
    def process(self) -> Process:
        return self._process

    def log(self, level: str, event: str, /, **values: object) -> None:
        self._world.log(self._host.name, level, event, values)

    def send(
        self,
        to: Endpoint,
        channel: str,
        request: Any,
        on_result: OnResult,
        timeout_ms: int,
        newest: int | None = None,
    ) -> None:
        """newest: the newest version to use, for clients that speak an older one of an API."""
        if self._as_seen is not None:
            request = self._as_seen(request)
        host = self._host
        # as `true_delay_us` does, without the call
        timeout_us = timeout_ms * 1000 if host.drift_ppm == 0 else host.true_delay_us(timeout_ms)
        self._network.send(self._process, to, channel, request, on_result, timeout_us, newest)

    def disconnect(self, to: Endpoint) -> None:
        self._network.disconnect(self._process, to)

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Cancel:
        host = self._host
        delay_us = delay_ms * 1000 if host.drift_ppm == 0 else host.true_delay_us(delay_ms)
        label = f"timer {getattr(fn, '__qualname__', 'partial')}"
        return self._world.schedule(delay_us, self._process, label, fn).cancel

    def stop(self, exit_code: int, reason: str) -> None:
        """End the process after the current callback. What the callback sends is still sent."""
        self._world.schedule(
            0, self._process, "stop", lambda: self._world.end(self._process, Exit("stopped", exit_code, reason))
        )
