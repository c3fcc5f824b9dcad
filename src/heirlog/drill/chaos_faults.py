"""Plays planned faults on a `ChaosCluster`, and remembers when each began and ended.

    step(now)   ends the faults that have lasted long enough, then starts those that are due
    a long fault waits for all others to end, is played at once, and blocks `step` meanwhile
    finish()    ends everything, repairs disks and links, and starts every node

Limits: at most the smaller half of the brokers, and of the controllers, is down or cut off at the same time, long
faults excepted. A fault whose victims are taken is skipped and counted.

A node that ends by itself is a finding, unless its disk is full. It is started again, so that the drill continues.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from heirlog.drill.chaos_cluster import ChaosCluster
from heirlog.drill.chaos_plan import (
    BROKER_FAULTS,
    CONTROLLER_FAULTS,
    LAST_REPLICA_STANDING,
    LONG_FAULTS,
    PlannedFault,
)
from heirlog.drill.chaos_record import KEPT, PARTITIONS, now_ms
from heirlog.drill.link_proxy import CLIENTS
from heirlog.drill.observe import partitions_of
from heirlog.drill.servers import Servers

STATE_S = 15.0
"""A long fault waits so long for a state; then it continues without it."""
START_S = 20.0
POLL_S = 0.05
FULL_AFTER_BYTES = 65_536
SLOW_CALL_MS = 8.0
SLOW_FLUSH_MS = (50.0, 1_500.0)
DELAY_MS = (20, 400)
OUTPUT_SHOWN = 1_500
"""Characters of a node's last lines in a finding."""

Pair = tuple[int, int]


@dataclass(slots=True)
class FaultEvent:
    """A fault that happened. Times of `now_ms`; no end while it lasts."""

    kind: str
    nodes: tuple[int, ...]
    begin_ms: int
    end_ms: int | None = None
    text: str = ""


@dataclass(slots=True)
class _Active:
    event: FaultEvent
    end_s: float
    end: Callable[[], None]
    down: tuple[int, ...] = ()
    """Nodes that count as down."""
    pairs: tuple[Pair, ...] = ()


@dataclass(slots=True)
class FaultLog:
    events: list[FaultEvent] = field(default_factory=list)
    skipped: int = 0
    ended: list[str] = field(default_factory=list)
    """A sentence for each node that ended by itself."""
    unclean_ends: dict[int, list[int]] = field(default_factory=dict)
    """By node, when it stopped uncleanly; a full disk counts when it is filled and when the node is started again."""

    def ended_uncleanly(self, node: int) -> None:
        self.unclean_ends.setdefault(node, []).append(now_ms())

    @property
    def counts(self) -> dict[str, int]:
        return dict(sorted(Counter(event.kind for event in self.events).items()))


class Injector:
    """planned: in the order of their times. calm: held while only faults may change the cluster."""

    def __init__(
        self, cluster: ChaosCluster, planned: Sequence[PlannedFault], calm: threading.Lock, say: Callable[[str], None]
    ) -> None:
        self.log = FaultLog()
        self._cluster = cluster
        self._client = Servers.of(cluster).client()
        self._planned = list(planned)
        self._active: list[_Active] = []
        self._calm = calm
        self._say = say
        self._down: set[int] = set()
        """Nodes that are not expected to run."""
        self._ladders = 0

    def close(self) -> None:
        self._client.close()

    # time

    def step(self, now_s: float) -> None:
        for one in [one for one in self._active if one.end_s <= now_s]:
            self._end(one)
        self._watch()
        while self._planned and self._planned[0].at_s <= now_s:
            fault = self._planned.pop(0)
            if fault.kind in LONG_FAULTS:
                self._play_long(fault)
                return
            self._start(fault, now_s)

    def finish(self) -> None:
        self._planned.clear()
        for one in list(self._active):
            self._end(one)
        nodes = [CLIENTS, *self._cluster.node_ids]
        self._cluster.links.heal((source, target) for source in nodes for target in nodes if source != target)
        for node in self._cluster.node_ids:
            self._cluster.disk(node).repair()
            if self._cluster.is_paused(node):
                self._cluster.resume(node)
            self._run(node)

    def _end(self, active: _Active) -> None:
        self._active.remove(active)
        active.end()
        active.event.end_ms = now_ms()

    def _watch(self) -> None:
        for node in self._cluster.node_ids:
            if node not in self._cluster.pids and node not in self._down:
                self.log.ended.append(
                    f"node {node} ended by itself (exit code {self._cluster.exit_code(node)}): "
                    f"{self._cluster.why_it_ended(node)[-OUTPUT_SHOWN:]}"
                )
                self.log.ended_uncleanly(node)
                self._cluster.start(node)

    # one fault

    def _start(self, fault: PlannedFault, now_s: float) -> None:
        if fault.kind in BROKER_FAULTS:
            active = self._on_node(fault, fault.kind, self._free(self._cluster.brokers))
        elif fault.kind in CONTROLLER_FAULTS:
            active = self._on_node(fault, fault.kind.removeprefix("controller-"), self._free_controllers(fault))
        else:
            active = self._on_links(fault)
        if active is None:
            self.log.skipped += 1
            return
        active.end_s = now_s + fault.lasts_s
        self._active.append(active)
        self.log.events.append(active.event)
        self._say(f"{fault.kind} {active.event.text}for {fault.lasts_s:g} s")

    def _taken(self) -> set[int]:
        return {node for one in self._active for node in one.event.nodes}

    def _free(self, nodes: Sequence[int]) -> list[int]:
        """Those that can have a fault; none if as many are down as may be."""
        down = {node for one in self._active for node in one.down} & set(nodes)
        if len(down) >= max(1, (len(nodes) - 1) // 2):
            return []
        taken = self._taken()
        return [node for node in nodes if node in self._cluster.pids and node not in taken]

    def _free_controllers(self, fault: PlannedFault) -> list[int]:
        free = self._free(self._cluster.controllers)
        active = self._cluster.active_controller() if fault.other % 2 and free else None
        return [active] if active in free else free

    def _on_node(self, fault: PlannedFault, way: str, nodes: Sequence[int]) -> _Active | None:
        if not nodes:
            return None
        node = nodes[fault.pick % len(nodes)]
        event = FaultEvent(fault.kind, (node,), now_ms(), text=f"{self._named(node)} ")
        if way == "slow-disk":
            random = Random(fault.seed)
            self._cluster.disk(node).slow(random.uniform(0, SLOW_CALL_MS), random.uniform(*SLOW_FLUSH_MS))
            return _Active(event, 0, self._cluster.disk(node).repair)
        return _Active(event, 0, self._take_down(node, way, fault.seed), down=(node,))

    def _take_down(self, node: int, way: str, seed: int) -> Callable[[], None]:
        """What brings it back."""
        if way == "pause":
            self._cluster.pause(node)
            return lambda: self._cluster.resume(node)
        self._down.add(node)
        if way != "stop":
            self.log.ended_uncleanly(node)
        if way == "kill":
            self._cluster.kill(node)
        elif way == "power-cut":
            self._cluster.lose_unflushed(node, seed)
        elif way == "stop":
            self._cluster.ask_to_stop(node)
        else:
            self._cluster.disk(node).fill(seed % FULL_AFTER_BYTES)
        return lambda: self._run(node)

    def _run(self, node: int) -> None:
        """It runs again. A clean stop that has not ended yet is cut short; a failed one is a finding."""
        was_full = self._cluster.disk(node).is_limited
        self._cluster.disk(node).repair()
        if was_full:
            self.log.ended_uncleanly(node)
        if node in self._cluster.pids:
            if was_full or node not in self._down:
                self._down.discard(node)
                return  # nothing was written to the full disk
            self.log.ended_uncleanly(node)
            self._cluster.kill(node)
        elif not was_full and self._cluster.exit_code(node) not in (0, -signal.SIGTERM, -signal.SIGKILL):
            self.log.ended.append(
                f"node {node} stopped with exit code {self._cluster.exit_code(node)}: "
                f"{self._cluster.why_it_ended(node)[-OUTPUT_SHOWN:]}"
            )
        self._down.discard(node)
        self._cluster.start(node)

    # links

    def _on_links(self, fault: PlannedFault) -> _Active | None:
        random = Random(fault.seed)
        nodes = self._cluster.node_ids
        node = nodes[fault.pick % len(nodes)]
        others = [other for other in nodes if other != node]
        alone = random.random() < 0.5
        if fault.kind == "clients-cut":
            node = self._cluster.brokers[fault.pick % len(self._cluster.brokers)]
            alone, others = False, [CLIENTS]
        elif not alone:
            others = [others[fault.other % len(others)]]
        kin = self._cluster.brokers if node in self._cluster.brokers else self._cluster.controllers
        if alone and fault.kind not in ("delay", "reset") and node not in self._free(kin):
            return None
        pairs = self._pairs(fault.kind, node, others, random)
        if any(pair in one.pairs for one in self._active for pair in pairs):
            return None
        self._disturb(fault.kind, pairs, random)
        whom = "everything" if alone else "clients" if others == [CLIENTS] else self._named(others[0])
        event = FaultEvent(fault.kind, (node,), now_ms(), text=f"between {self._named(node)} and {whom} ")
        down = (node,) if alone else ()
        return _Active(event, 0, lambda: self._cluster.links.heal(pairs), down, tuple(pairs))

    def _pairs(self, kind: str, node: int, others: Iterable[int], random: Random) -> list[Pair]:
        """Both directions, or one."""
        there = [(node, other) for other in others]
        back = [(target, source) for source, target in there]
        if kind in ("hold-one-way", "half-close"):
            return there if random.random() < 0.5 else back
        return there + back

    def _disturb(self, kind: str, pairs: list[Pair], random: Random) -> None:
        links = self._cluster.links
        if kind in ("hold", "hold-one-way"):
            links.hold(pairs)
        elif kind == "delay":
            links.delay(pairs, random.randint(*DELAY_MS))
        elif kind == "half-close":
            links.half_close(pairs)
        elif kind == "reset":
            links.reset(pairs)
        else:
            links.cut(pairs)

    # long faults

    def _play_long(self, fault: PlannedFault) -> None:
        for one in list(self._active):
            self._end(one)
        with self._calm:
            self._say(fault.kind)
            random = Random(fault.seed)
            if fault.kind == LAST_REPLICA_STANDING:
                self._last_replica_standing(fault.pick, random)
            elif fault.kind == "two-power-cuts":
                self._lose_power(random.sample(self._cluster.brokers, 2), fault.kind, random)
            elif fault.kind == "blackout":
                self._lose_power(self._cluster.node_ids, fault.kind, random)
            elif fault.kind == "majority-kill":
                self._kill_majority(random)
            else:
                self._roll()

    @contextmanager
    def _noted(self, kind: str, *nodes: int) -> Iterator[FaultEvent]:
        event = FaultEvent(kind, nodes, now_ms(), text=" ".join(map(self._named, nodes)))
        self.log.events.append(event)
        yield event
        event.end_ms = now_ms()

    def _last_replica_standing(self, pick: int, random: Random) -> None:
        """The replicas of a partition stop one after the other; the last one loses power, and returns last.

        The first time all others stop cleanly: then only eligible leader replicas keep what was acknowledged, and
        nothing excuses a loss. Later they may be killed or lose power, too.
        """
        place = (KEPT, pick % PARTITIONS[KEPT])
        self._until(lambda: self._is_whole(place), STATE_S)
        replicas = self._replicas(place)
        random.shuffle(replicas)
        ways = ["stop"] * len(replicas)
        if self._ladders:
            ways = [random.choice(("stop", "kill", "power-cut")) for _ in replicas]
        self._ladders += 1
        events = [FaultEvent(LAST_REPLICA_STANDING, (node,), 0) for node in replicas]
        for node, way, event in zip(replicas[:-1], ways, events, strict=False):
            event.begin_ms, event.text = now_ms(), f"{self._named(node)}: {way}"
            self._take_down(node, way, random.getrandbits(32))
            self.log.events.append(event)
            self._wait_until_gone(place, node, way)
            time.sleep(random.uniform(0.3, 1.0))
        last = replicas[-1]
        events[-1].begin_ms, events[-1].text = now_ms(), f"{self._named(last)}: power-cut"
        self.log.events.append(events[-1])
        self._take_down(last, "power-cut", random.getrandbits(32))
        for node, event in zip(replicas, events, strict=True):
            self._run(node)
            event.end_ms = now_ms()
            time.sleep(random.uniform(0.5, 2.0))

    def _lose_power(self, nodes: Sequence[int], kind: str, random: Random) -> None:
        """At once; they return one after the other."""
        for node in nodes:
            # all of them before the first disk changes: power goes at one moment
            self._down.add(node)
            self.log.ended_uncleanly(node)
            self._cluster.kill(node)
        order = random.sample(list(nodes), len(nodes))
        events = [FaultEvent(kind, (node,), now_ms(), text=self._named(node)) for node in order]
        self.log.events += events
        for node in nodes:
            self._cluster.lose_unflushed(node, random.getrandbits(32))
        for node, event in zip(order, events, strict=True):
            time.sleep(random.uniform(0.2, 1.5))
            self._run(node)
            event.end_ms = now_ms()

    def _kill_majority(self, random: Random) -> None:
        controllers = self._cluster.controllers
        nodes = random.sample(controllers, len(controllers) // 2 + 1)
        with self._noted("majority-kill", *nodes):
            for node in nodes:
                self._take_down(node, "kill", 0)
            time.sleep(random.uniform(0.5, 4.0))
            for node in nodes:
                self._run(node)

    def _roll(self) -> None:
        """Every broker, one after the other, as an operator restarts them."""
        for node in self._cluster.brokers:
            self._restart(node)

    def _restart(self, node: int) -> None:
        with self._noted("rolling", node):
            self._take_down(node, "stop", 0)
            self._until(lambda: node not in self._cluster.pids, STATE_S)
            self._run(node)
        self._until(lambda: self._leads_or_follows(node), START_S)

    # what the cluster says

    def _until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition() and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _is_whole(self, place: tuple[str, int]) -> bool:
        found = partitions_of(self._client, [place[0]]).get(place)
        return found is not None and set(found.isr_nodes) == set(found.replica_nodes)

    def _isr(self, place: tuple[str, int]) -> list[int]:
        found = partitions_of(self._client, [place[0]]).get(place)
        return list(self._cluster.brokers if found is None else found.isr_nodes)

    def _replicas(self, place: tuple[str, int]) -> list[int]:
        found = partitions_of(self._client, [place[0]]).get(place)
        return list(self._cluster.brokers[:3] if found is None else found.replica_nodes)

    def _wait_until_gone(self, place: tuple[str, int], node: int, way: str) -> None:
        self._until(lambda: node not in self._isr(place), STATE_S)
        if way == "stop":
            # others learn of it before it has ended
            self._until(lambda: node not in self._cluster.pids, STATE_S)

    def _leads_or_follows(self, node: int) -> bool:
        found = partitions_of(self._client, [KEPT]).values()
        return bool(found) and all(node in one.isr_nodes for one in found if node in one.replica_nodes)

    def _named(self, node: int) -> str:
        return f"broker {node}" if node in self._cluster.brokers else f"controller {node}"
