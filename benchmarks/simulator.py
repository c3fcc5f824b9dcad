"""How many seeds of the simulator a core plays in a minute, and which parts of heirlog take the time.

Seeds of the swarm on two clusters. The time is CPU time of this process. The second run of the seeds is sampled: each
millisecond of CPU time (or as often as the kernel can) the innermost function that belongs to a part counts for it.
Codec and metadata count for the part that calls them.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import NamedTuple

from heirlog.sim.run import run_seed

SEEDS = range(1, 25)
CLUSTERS = ((4, 1), (3, 3))
"""Brokers, and controllers besides them."""
GOAL_VIRTUAL_S = 30
SAMPLE_S = 0.001
NETWORK = "network and event queue"
CHECKS = "checks, faults, judgement"
PARTS = {
    "heirlog.controller": "controllers and quorum",
    "heirlog.raft": "controllers and quorum",
    "heirlog.broker": "brokers",
    "heirlog.node": "connections and handlers",
    "heirlog.apis": "connections and handlers",
    "heirlog.storage": "storage and simulated disk",
    **dict.fromkeys(
        (f"heirlog.sim.{name}" for name in ("broken_disks", "disk", "disk_files", "inodes")),
        "storage and simulated disk",
    ),
    "heirlog.client": "clients",
    "heirlog.sim.clients": "clients",
    **dict.fromkeys(
        (f"heirlog.sim.{name}" for name in ("connection", "env", "link", "machines", "message_copies", "network")),
        NETWORK,
    ),
    "heirlog.sim.world": NETWORK,
    "heirlog.sim": CHECKS,
}
"""By package or module; the longest name counts."""


class Speed(NamedTuple):
    seeds: int
    cpu_s: float
    events: int
    virtual_s: float

    @property
    def seeds_per_minute(self) -> float:
        """Of one core, for seeds of 30 virtual seconds."""
        return 60 * self.virtual_s / GOAL_VIRTUAL_S / self.cpu_s


def speed(seeds: Sequence[int], nodes: int, controllers: int) -> Speed:
    events = virtual_ms = 0
    began = time.process_time()
    for seed in seeds:
        report = run_seed(seed, nodes=nodes, controllers=controllers)
        assert report.passed, report
        events += report.events
        virtual_ms += report.virtual_ms
    return Speed(len(seeds), time.process_time() - began, events, virtual_ms / 1000)


def shares(play: Callable[[], Speed]) -> tuple[dict[str, float], Speed]:
    """The share of each part in the CPU time of `play`, the largest first, and what it returns."""
    found: Counter[str] = Counter()

    def sample(_: int, frame: FrameType | None) -> None:
        found[_part_of(frame)] += 1

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    try:
        played = play()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return {part: count / found.total() for part, count in found.most_common()}, played


def _part_of(frame: FrameType | None) -> str:
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        while name:
            if name in PARTS:
                return PARTS[name]
            name = name.rpartition(".")[0]
        frame = frame.f_back
    return CHECKS


def report(scale: float) -> None:
    seeds = SEEDS[: max(int(len(SEEDS) * scale), 1)]
    run_seed(SEEDS[0])  # imports
    titles = (
        "simulator: brokers + controllers",
        "CPU s/seed",
        "virtual s/seed",
        "events/s",
        "seeds of 30 virtual s per core and minute",
    )
    print(f"\n| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for nodes, controllers in CLUSTERS:
        one = speed(seeds, nodes, controllers)
        figures = f"{one.cpu_s / one.seeds:.3f}", f"{one.virtual_s / one.seeds:.1f}", f"{one.events / one.cpu_s:,.0f}"
        print(
            f"| {nodes} brokers + {controllers} | {' | '.join(figures)} | {one.seeds_per_minute:.0f} |",
            flush=True,
        )
    for nodes, controllers in CLUSTERS:
        found, one = shares(partial(speed, seeds, nodes, controllers))
        print(f"\n| where the time goes, {nodes} + {controllers} | share | CPU ms/seed |\n|---|---|---|")
        for part, share in found.items():
            print(f"| {part} | {100 * share:.0f} % | {1000 * share * one.cpu_s / one.seeds:.0f} |", flush=True)
