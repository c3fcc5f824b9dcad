"""The environment of the product while a scenario runs: a clock that the file moves, disks in memory, a quorum that
commits at once, and requests that wait for the file's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from heirlog.env import Cancel
from heirlog.protocol.types import Endpoint
from heirlog.sim.disk import SimDisk
from heirlog.sim.disk_files import SimFiles
from heirlog.sim.world import Exit, World


@dataclass(frozen=True, slots=True)
class Sent:
    to: Endpoint
    channel: str
    request: Any
    on_result: Callable[[Any], None]


class ManualEnv:
    """`heirlog.env.Env` whose clock stands until `advance`; `sent` holds requests until the file answers them."""

    def __init__(self) -> None:
        self.world = World(1)
        self._host = self.world.host("node")
        self.disk = SimDisk(self.world, self._host, self.world.stream("disk"))
        self.disk.flush_us = (1, 2)
        self.process = self.world.begin(self._host)
        self.files = SimFiles(self.disk, self.process)
        self.random = self.world.stream("node")
        self.sent: list[Sent] = []

    def restart(self) -> None:
        """The process ends as it is, and another one begins on the same disks."""
        self.world.end(self.process, Exit("killed", -9, "as the file says"))
        self.process = self.world.begin(self._host)
        self.files = SimFiles(self.disk, self.process)
        self.sent.clear()

    def log(self, level: str, event: str, /, **values: object) -> None:
        """Ignored."""

    def now_ms(self) -> int:
        return self.world.now_us // 1000

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms()

    def send(self, to: Endpoint, channel: str, request: Any, on_result: Callable[[Any], None], timeout_ms: int) -> None:
        self.sent.append(Sent(to, channel, request, on_result))

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Cancel:
        return self.world.schedule(delay_ms * 1000, self.process, "timer", fn).cancel

    def stop(self, exit_code: int, reason: str) -> None:
        """The node has ended; the file continues and checks what the node has left."""

    def advance(self, ms: int) -> None:
        self.world.run_for(ms)

    def take(self, channel: str) -> Sent:
        """The oldest unanswered request on a channel."""
        found = next((sent for sent in self.sent if sent.channel == channel), None)
        if found is None:
            raise LookupError(f"no request waits on the {channel} channel")
        self.sent.remove(found)
        return found


@dataclass(frozen=True, slots=True)
class Batch:
    """`controller.Batch`."""

    base_offset: int
    last_offset: int
    epoch: int
    records: Sequence[Any]


class Quorum:
    """`controller.QuorumPort`: appends to memory; `commit` hands out what is new."""

    epoch = 1
    kraft_version = 1
    voters: Sequence[Any] = (SimpleNamespace(id=1), SimpleNamespace(id=2))
    """Not the only voter: a registration of its own id is no earlier process of its node."""

    def __init__(self) -> None:
        self.log_end_offset = 0
        self._uncommitted: list[Batch] = []

    def append(self, records: Sequence[Any], /) -> int:
        base = self.log_end_offset
        self.log_end_offset += len(records)
        self._uncommitted.append(Batch(base, self.log_end_offset - 1, self.epoch, list(records)))
        return base

    def take(self) -> list[Batch]:
        batches, self._uncommitted = self._uncommitted, []
        return batches
