"""A quorum that commits when it is told to, and an Env whose clock stands still until it is moved."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from heirlog.context import Context
from heirlog.controller.controller import Controller
from heirlog.log_levels import LogLevels
from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.raft.leader import BatchTooLarge
from heirlog.raft.values import MAX_BATCH_BYTES, MAX_RECORDS_PER_BATCH, batch_bytes_max

CLUSTER = "cluster"
CONTROLLER_ID = 3000


def static(**more: str) -> StaticConfig:
    properties = {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "listeners": "CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{CONTROLLER_ID}@localhost:9093",
    }
    return parse_static(properties | {name.replace("_", "."): value for name, value in more.items()})


def voters(*ids: int) -> tuple[Any, ...]:
    return tuple(SimpleNamespace(id=number) for number in ids)


@dataclass
class Batch:
    base_offset: int
    last_offset: int
    epoch: int
    records: Sequence[Any]


class FakeQuorum:
    def __init__(self) -> None:
        self.log_end_offset = 0
        self.epoch = 1
        self.voters: tuple[Any, ...] = voters(CONTROLLER_ID)
        self.kraft_version = 1
        self.uncommitted: list[Batch] = []
        self.log: list[Batch] = []

    def append(self, records: Sequence[Any]) -> int:
        if len(records) > MAX_RECORDS_PER_BATCH or batch_bytes_max(records) > MAX_BATCH_BYTES:
            raise BatchTooLarge("split them")
        base = self.log_end_offset
        self.log_end_offset += len(records)
        batch = Batch(base, self.log_end_offset - 1, self.epoch, list(records))
        self.uncommitted.append(batch)
        self.log.append(batch)
        return base

    def raise_kraft_version(self, *, validate_only: bool) -> int:
        """As a leader whose voters all support level 1."""
        if validate_only:
            return -1
        self.kraft_version = 1
        self.log_end_offset += 2
        self.uncommitted.append(Batch(self.log_end_offset - 2, self.log_end_offset - 1, self.epoch, []))
        return self.log_end_offset - 2

    def take_back(self) -> None:
        """What another leader's log does to the uncommitted end of this one."""
        for _ in self.uncommitted:
            self.log.pop()
        if self.uncommitted:
            self.log_end_offset = self.uncommitted[0].base_offset
        self.uncommitted.clear()


class FakeEnv:
    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.files: Any = None
        self._now_ms = 1_000_000
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self.events: list[tuple[str, dict[str, object]]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def wall_ms(self) -> int:
        return self._now_ms

    def log(self, level: str, event: str, /, **values: object) -> None:
        # what the server's log lines have already; a node that repeats them dies of a TypeError
        assert not values.keys() & {"event", "level", "logger", "node_id", "timestamp"}, values
        self.events.append((event, values))

    def send(self, *args: Any) -> None:
        raise AssertionError("the controller sends nothing")

    def stop(self, exit_code: int, reason: str) -> None:
        raise AssertionError(reason)

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Callable[[], None]:
        entry = [self._now_ms + delay_ms, self._count, fn]
        self._count += 1
        heapq.heappush(self._timers, entry)  # type: ignore[arg-type]

        def cancel() -> None:
            entry[2] = lambda: None

        return cancel

    def advance(self, ms: int) -> None:
        until = self._now_ms + ms
        while self._timers and self._timers[0][0] <= until:
            due, _, fn = heapq.heappop(self._timers)
            self._now_ms = max(self._now_ms, due)
            fn()
        self._now_ms = until

    def sleep_through(self, ms: int) -> None:
        """The process does not run for a while; its timers fire late."""
        self._now_ms += ms
        self.advance(0)


class Connection:
    """What heartbeats come on."""

    def when_closed(self, fn: Callable[[], None]) -> None:
        """It never closes by itself: tests call the controller."""


class Harness:
    """One controller on fakes."""

    def __init__(self, config: StaticConfig | None = None, **more: str) -> None:
        self.static = config or static(**more)
        self.env = FakeEnv()
        self.quorum = FakeQuorum()
        self.controller = Controller(self.env, self.static, self.quorum, cluster_id=CLUSTER)

    def load(self, records: Iterable[Any]) -> None:
        """Records that another leader committed."""
        records = list(records)
        base = self.quorum.append(records)
        self.quorum.uncommitted.clear()
        self.controller.on_commit([Batch(base, base + len(records) - 1, 1, records)])

    def lead(self) -> None:
        self.quorum.epoch += 1
        self.controller.on_leader_change(CONTROLLER_ID, self.quorum.epoch, True)

    def lose(self) -> None:
        self.quorum.take_back()
        self.controller.on_leader_change(-1, self.quorum.epoch + 1, False)

    def commit(self) -> list[Any]:
        """Everything appended; the records."""
        batches, self.quorum.uncommitted = self.quorum.uncommitted, []
        self.controller.on_commit(batches)
        return [record for batch in batches for record in batch.records]

    def ask(self, method: str, request: Any, version: int = 99, connection: object = None) -> Any:
        """The response, after all its turns, and a commit if one is needed."""
        answer = self.leave(method, request, version, connection)
        self.env.advance(0)
        self.commit()
        return answer.get()

    def leave(self, method: str, request: Any, version: int = 99, connection: object = None) -> Answer:
        context = Context(version, "client", "host", "CONTROLLER", connection or Connection())
        served = import_module(f"heirlog.apis.{method}").API.controller
        # ACLs are refused without an authorizer
        node = SimpleNamespace(
            controller=self.controller,
            quorum=self.quorum,
            config=self.static,
            log_levels=LogLevels(),
            authorizer=object(),
        )
        return Answer(served.handle(node, request, context))


class Answer:
    def __init__(self, given: Any) -> None:
        self._responses: list[Any] = []
        if hasattr(given, "then"):
            given.then(self._responses.append)
        else:
            self._responses.append(given)

    @property
    def is_there(self) -> bool:
        return bool(self._responses)

    def get(self) -> Any:
        (response,) = self._responses
        return response
