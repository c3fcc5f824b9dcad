"""Machines on which nodes run: switched on, killed, cut off from power, frozen.

    start --> running --stop (by itself)--> ended --start--> running, next incarnation
                 |------kill-------------->   the page cache stays
                 |------power cut--------->   the disk keeps a random part of what was not flushed
                 |------pause, resume         sockets stay open, nothing runs

A machine runs anything that has a node's interface: the product's `Node`, and the simple nodes of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from heirlog.protocol.types import Endpoint
from heirlog.sim.connection import ServerConnection, SimConnection
from heirlog.sim.disk import SimDisk
from heirlog.sim.env import SimEnv
from heirlog.sim.network import Network
from heirlog.sim.world import Exit, Process, World


class Runnable(Protocol):
    """What a machine runs: `heirlog.node.node.Node`, or a simulated client without listeners."""

    def start(self) -> None: ...


class Machines:
    """All machines of a run."""

    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.network = network
        self._disks: dict[str, SimDisk] = {}

    def disk(self, name: str) -> SimDisk:
        found = self._disks.get(name)
        if found is None:
            found = self._disks[name] = SimDisk(self.world, self.world.host(name), self.world.stream(f"disk {name}"))
        return found

    def boot(self, name: str, as_seen: Callable[[Any], Any] | None = None) -> SimEnv:
        """Begin a new incarnation; what it runs is started with `launch`. as_seen: of `SimEnv`."""
        disk = self.disk(name)
        process = self.world.begin(self.world.host(name))
        process.on_end.append(lambda: self._ended(process, disk))
        return SimEnv(self.world, self.network, disk, process, as_seen)

    def launch(
        self,
        env: SimEnv,
        runnable: Runnable,
        listeners: Iterable[tuple[str, Endpoint]] = (),
        connected: Callable[[SimConnection], ServerConnection] | None = None,
    ) -> Process:
        """Listen, then start: both within the first event of the process."""
        process = env.process

        def begin() -> None:
            for listener, endpoint in listeners:
                assert connected is not None
                self.network.listen(endpoint, process, listener, connected)
            runnable.start()

        self.world.schedule(0, process, "start", begin)
        return process

    def kill(self, name: str, *, lose_unflushed: bool = False) -> int:
        """SIGKILL; with `lose_unflushed` as a power cut does to the disk. A machine that is down can lose power too.

        Returns the number of files and names that the disk has lost.
        """
        process = self.world.host(name).process
        if process is not None:
            self.world.end(process, Exit("killed", -9, "power cut" if lose_unflushed else "SIGKILL"))
        if not lose_unflushed:
            return 0
        lost = self.disk(name).power_cut()
        self.world.note(name, f"lost {lost}")
        self.world.counters["disk.lost"] += 1 if lost else 0
        return lost

    def replace_disk(self, name: str) -> None:
        """A new, empty one for a machine that is down."""
        assert self.running(name) is None, f"{name} still runs"
        number = self.world.host(name).incarnations
        self._disks[name] = SimDisk(self.world, self.world.host(name), self.world.stream(f"disk {name} {number}"))

    def back_up(self, name: str) -> SimDisk:
        """A copy of what the disk of that machine holds now."""
        copied = SimDisk(self.world, self.world.host(name), self.world.stream(f"copy {name}"))
        copied.copy_from(self.disk(name))
        return copied

    def pause(self, name: str) -> None:
        process = self.running(name)
        if process is not None:
            self.world.note(name, "pause")
            self.world.pause(process)

    def resume(self, name: str) -> None:
        process = self.running(name)
        if process is not None and process.paused:
            self.world.note(name, "resume")
            self.world.resume(process)

    def running(self, name: str) -> Process | None:
        """The live process of that machine, also a paused one."""
        process = self.world.host(name).process
        return process if process is not None and process.alive else None

    def _ended(self, process: Process, disk: SimDisk) -> None:
        self.network.process_ended(process)
        disk.process_ended()
