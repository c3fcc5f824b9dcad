"""Virtual time: one seed, one order of events, one hash.

    schedule --> [heap by (time, sequence)] --> run: trace, callback, observer

A *host* is a machine: its name, its clocks, its disk. A *process* is one incarnation of what runs on it. Rules:

* An event belongs to a process, or to none (the network, the script). The events of a process that has ended never
  run. Those of a paused process wait, and run in their order when it is resumed.
* Time is an integer count of microseconds. Events of the same moment run in the order in which they were scheduled.
* Chance comes in named streams (`stream("network")`), each seeded from the run's seed and the name, so that one more
  draw in one place does not change what happens in another.
* Each event that runs feeds (time, node, event, state before it) into a running hash. Nothing in it depends on
  `hash()`, on ids of objects or on the version of Python: of `random.Random` only `random`, `getrandbits`, `randrange`,
  `randbytes` and `shuffle` are used, which are the same in 3.11 - 3.14.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b, sha256
from heapq import heappop, heappush
from random import Random
from typing import TypeAlias

START_WALL_MS = 1_700_000_000_000
_TRACE_FLUSH = 4 * 512
_LINE = "%s %s %s %s\n"
"""Of an event in the trace. Numbers as `str` has them, because `%d` and `%x` take twice as long."""


class Event:
    """Something that will happen, unless it is cancelled."""

    __slots__ = ("is_cancelled",)
    is_cancelled: bool
    """`World` sets it: half of all events have one, and `__init__` would be another call."""

    def cancel(self) -> None:
        self.is_cancelled = True


Scheduled: TypeAlias = "tuple[int, int, Process | None, str, Callable[[], None], Event | None]"
"""Time, sequence, process, label, what to call, and the event if it can be cancelled; a message cannot."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. `kind`: "stopped" (on its own) or "killed"."""

    kind: str
    code: int
    reason: str
    finished: bool = False
    """Killed after it had written everything: its disk says that it stopped cleanly, and has lost nothing."""


class Process:
    """One incarnation of what runs on a host."""

    __slots__ = ("exit", "held", "host", "number", "on_end", "paused")

    def __init__(self, host: Host, number: int) -> None:
        self.host = host
        self.number = number
        self.paused = False
        self.held: list[Scheduled] = []
        self.exit: Exit | None = None
        self.on_end: list[Callable[[], None]] = []
        """What the body does when the process is gone: close its connections, free its ports."""

    @property
    def alive(self) -> bool:
        return self.exit is None

    def __repr__(self) -> str:
        return f"{self.host.name}#{self.number}"


class Host:
    """A machine. Clocks: what its processes read is true time, plus an offset, times a rate.

    The rate may change (`drift`): a clock continues from its current time, faster or slower, and never jumps.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.process: Process | None = None
        self.incarnations = 0
        self.power_cuts = 0
        """Each of them began another start of the machine (`Files.boot_id`)."""
        self.monotonic_offset_ms = 0
        self.wall_offset_ms = 0
        self.drift_ppm = 0
        self._since_us = 0
        """When the rate was set, in true time ..."""
        self._then_us = 0
        """... and on this host's clock."""
        self.fingerprint = 0
        """What the trace records as the state of this node: the disk keeps a running checksum of all writes here."""

    def monotonic_ms(self) -> int:
        if self.drift_ppm == 0:  # as below: asked once per event
            return self.monotonic_offset_ms + (self._then_us + self.world.now_us - self._since_us) // 1000
        return self.monotonic_offset_ms + self._elapsed_us() // 1000

    def wall_ms(self) -> int:
        if self.drift_ppm == 0:
            passed_us = self._then_us + self.world.now_us - self._since_us
            return START_WALL_MS + self.wall_offset_ms + passed_us // 1000
        return START_WALL_MS + self.wall_offset_ms + self._elapsed_us() // 1000

    def true_delay_us(self, delay_ms: int) -> int:
        """How long `delay_ms` of this host's clock take."""
        if self.drift_ppm == 0:
            return delay_ms * 1000
        return delay_ms * 1_000_000_000 // (1_000_000 + self.drift_ppm)

    def _elapsed_us(self) -> int:
        passed_us = self.world.now_us - self._since_us
        if self.drift_ppm != 0:
            passed_us = passed_us * (1_000_000 + self.drift_ppm) // 1_000_000
        return self._then_us + passed_us

    def drift(self, ppm: int) -> None:
        """From now on its clocks run so many microseconds per second too fast (or too slow)."""
        self._then_us, self._since_us = self._elapsed_us(), self.world.now_us
        self.drift_ppm = ppm


@dataclass(slots=True)  # hundreds in a run: frozen, each takes three times as long
class LogLine:
    time_us: int
    node: str
    level: str
    event: str
    values: dict[str, object]

    def __str__(self) -> str:
        values = " ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.time_us / 1e6:10.6f} {self.node:12} {self.level} {self.event} {values}".rstrip()


class World:
    """The event queue of one run."""

    def __init__(self, seed: int, *, kept_events: int = 200, kept_logs: int = 2000) -> None:
        self.seed = seed
        self.now_us = 0
        self.events_run = 0
        self.hosts: dict[str, Host] = {}
        self.counters: Counter[str] = Counter()
        self.logs: deque[LogLine] = deque(maxlen=kept_logs)
        self.event_listeners: list[Callable[[Process | None], None]] = []
        """Called after each event with the process that it belonged to: where invariants are checked."""
        self.log_listeners: list[Callable[[LogLine], None]] = []
        self.rmdir_listeners: list[Callable[[str, str], None]] = []
        """Called before a directory is removed with everything in it: the host's name, the path."""
        self._heap: list[Scheduled] = []
        self._sequence = 0
        self._hash = blake2b(digest_size=16)
        self._kept_events = kept_events
        self._hashed: list[int | str] = []
        """The newest ones, which a report shows."""
        self._unhashed: list[int | str] = []
        """Time, node, event, state of the node; and so on for the next event."""

    # chance

    def stream(self, name: str) -> Random:
        """A source of chance of its own."""
        return Random(int.from_bytes(sha256(f"{self.seed}/{name}".encode()).digest()[:16], "big"))

    # hosts and processes

    def host(self, name: str) -> Host:
        """The host of that name, made on first use."""
        found = self.hosts.get(name)
        if found is None:
            found = self.hosts[name] = Host(self, name)
        return found

    def begin(self, host: Host) -> Process:
        """A new incarnation on `host`, whose former one must have ended."""
        assert host.process is None or not host.process.alive, f"{host.process} still runs"
        host.incarnations += 1
        host.process = Process(host, host.incarnations)
        return host.process

    def end(self, process: Process, exit: Exit) -> None:
        """Nothing that this process scheduled runs any more. Ending it twice has no effect."""
        if process.exit is not None:
            return
        process.exit = exit
        process.held.clear()
        self.note(process.host.name, f"{exit.kind} {exit.code}")
        for fn in process.on_end:
            fn()

    def pause(self, process: Process) -> None:
        """Like SIGSTOP: its sockets stay open, its clocks continue, and none of its events run."""
        process.paused = True

    def resume(self, process: Process) -> None:
        process.paused = False
        held, process.held = process.held, []
        for _, _, _, label, fn, event in held:
            self._sequence += 1
            heappush(self._heap, (self.now_us, self._sequence, process, label, fn, event))

    # events

    def schedule(self, delay_us: int, process: Process | None, label: str, fn: Callable[[], None]) -> Event:
        event = Event()
        event.is_cancelled = False
        self._sequence += 1
        heappush(self._heap, (self.now_us + delay_us, self._sequence, process, label, fn, event))
        return event

    def schedule_at(self, time_us: int, process: Process | None, label: str, fn: Callable[[], None]) -> Event:
        event = Event()
        event.is_cancelled = False
        self._sequence += 1
        heappush(self._heap, (max(time_us, self.now_us), self._sequence, process, label, fn, event))
        return event

    def deliver_at(self, time_us: int, process: Process | None, label: str, fn: Callable[[], None]) -> None:
        """As `schedule_at`, for a time that is not over, and nothing can cancel it."""
        self._sequence += 1
        heappush(self._heap, (time_us, self._sequence, process, label, fn, None))

    def run_until(self, time_ms: int) -> None:
        """Run everything that happens up to and including that moment."""
        end_us = time_ms * 1000
        self._run(end_us, None)
        self.now_us = max(self.now_us, end_us)

    def run_for(self, duration_ms: int) -> None:
        self.run_until(self.now_us // 1000 + duration_ms)

    def run_while(self, waiting: Callable[[], bool], timeout_ms: int) -> bool:
        """Run until `waiting()` is false; True if that happened within the time."""
        end_us = self.now_us + timeout_ms * 1000
        if not self._run(end_us, waiting):
            self.now_us = end_us
            return False
        return True

    def step(self, end_us: int) -> bool:
        """Run the next event; False when there is none up to and including that moment."""
        events = self.events_run
        return self._run(end_us, lambda: self.events_run == events)

    def _run(self, end_us: int, waiting: Callable[[], bool] | None) -> bool:
        """Run event after event, up to and including that moment, or until `waiting()` is false: True then."""
        heap, unhashed, listeners = self._heap, self._unhashed, self.event_listeners
        while waiting is None or waiting():
            if not heap:
                return False
            time_us, _, process, label, fn, event = entry = heappop(heap)
            if time_us > end_us:
                heappush(heap, entry)
                return False
            if event is not None and event.is_cancelled:
                continue
            if process is None:
                unhashed += (time_us, "-", label, 0)
            elif process.exit is not None:
                continue
            elif process.paused:
                process.held.append(entry)
                continue
            else:
                host = process.host
                unhashed += (time_us, host.name, label, host.fingerprint)
            self.now_us = time_us
            self.events_run += 1
            if len(unhashed) >= _TRACE_FLUSH:
                self._flush_trace()
            fn()
            for listener in listeners:
                listener(process)
        return True

    # traces

    @property
    def last_events(self) -> list[tuple[int, str, str]]:
        """The newest events and notes, with their times and nodes; the last one may be under way."""
        kept = [*self._hashed, *self._unhashed][-4 * self._kept_events :]
        return [(int(kept[at]), str(kept[at + 1]), str(kept[at + 2])) for at in range(0, len(kept), 4)]

    @property
    def last_node(self) -> str:
        """The node of the newest event or note; "-" for the network and the script."""
        return str((self._unhashed or self._hashed)[-3])

    def note(self, node: str, what: str) -> None:
        """Add something that is not an event (a fault, a digest of a message) to the hash."""
        self._unhashed += (self.now_us, node, what, 0)

    def trace_hash(self) -> str:
        """Of all that has happened so far, and of the state of all nodes now."""
        self._flush_trace()
        hash = self._hash.copy()
        hash.update(" ".join(f"{host.name} {host.fingerprint:x}" for host in self.hosts.values()).encode())
        return hash.hexdigest()

    def log(self, node: str, level: str, event: str, values: dict[str, object]) -> None:
        self.counters[f"log.{event}"] += 1
        line = LogLine(self.now_us, node, level, event, values)
        self.logs.append(line)
        for listener in self.log_listeners:
            listener(line)

    def _flush_trace(self) -> None:
        unhashed = self._unhashed
        # one format for all of them takes half of the time of one for each
        self._hash.update((_LINE * (len(unhashed) // 4) % tuple(unhashed)).encode())
        self._hashed = [*self._hashed, *unhashed][-4 * self._kept_events :]
        unhashed.clear()
