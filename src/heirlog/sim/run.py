"""One seed, one run, one report.

Whatever breaks first is *the* violation: a rule (T1 ... R1), a history check, a node that failed, or a cluster that did
not come back in time (liveness).
"""

from __future__ import annotations

import gc
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass

from heirlog.sim import guards, judgement
from heirlog.sim.fault_numbers import NumberedFault, as_ranges
from heirlog.sim.history import Finding
from heirlog.sim.loss_report_checker import reported_by
from heirlog.sim.lying_disks import excused_by_lies
from heirlog.sim.oracle import Violation
from heirlog.sim.scenarios import scenario_named
from heirlog.sim.simulation import Simulation
from heirlog.sim.world import World


@dataclass(slots=True)
class RunReport:
    seed: int
    scenario: str
    without_guard: int | None
    hash: str
    counters: Counter[str]
    acknowledged: int
    acknowledged_by_leader: int
    readable: int
    lost: int
    """Acknowledged with acks=all and not readable in the end, excused or not."""
    lost_reported: int
    """Those of them that are in the range of a loss report."""
    losses: list[str]
    """Which elections gave them up, and how many each."""
    tolerated: Finding | None
    """The first break of T4 by Kafka's rule: the last member of an ISR lost records while the ELR was off. Or what a
    disk that lies about flushes has lost (`heirlog.sim.lying_disks`).
    """
    violation: Finding | None
    complete: bool
    """Played to its end, and everything was read: neither a violation nor an excuse has cut it off."""
    faults: list[str]
    numbered_faults: list[NumberedFault]
    last_events: list[str]
    last_logs: list[str]
    events: int
    virtual_ms: int
    traceback: list[str]
    """Of the violation \"crash\"."""
    nodes: int | None = None
    """Brokers, if not as many as the seed draws."""
    controllers: int | None = None
    """The same for controllers."""
    without_faults: Set[int] = frozenset()
    """Numbers of faults that were left out."""

    @property
    def passed(self) -> bool:
        return self.violation is None

    @property
    def replay_command(self) -> str:
        command = f"heirlog sim replay {self.seed}"
        if self.scenario != "swarm":
            command += f" --scenario {self.scenario}"
        if self.without_guard is not None:
            command += f" --without-guard {self.without_guard}"
        if self.nodes is not None:
            command += f" --nodes {self.nodes}"
        if self.controllers is not None:
            command += f" --controllers {self.controllers}"
        if self.without_faults:
            command += f" --without-faults {as_ranges(self.without_faults)}"
        return command

    def __str__(self) -> str:
        verdict = "passed" if self.violation is None else f"FAILED {self.violation.check}: {self.violation.sentence}"
        lines = [
            f"seed {self.seed} ({self.scenario}) {verdict}",
            f"  {self.acknowledged} acknowledged, {self.lost} of them lost, {self.lost_reported} of those reported, "
            f"{self.events} events, "
            f"{self.virtual_ms / 1000:.1f} virtual seconds, hash {self.hash}",
        ]
        if self.passed and self.losses:
            lines.append(
                "  no failure: with these settings an election may give records up, and a report names each that did:"
            )
            lines += [f"    {sentence}" for sentence in self.losses]
        if self.tolerated is not None:
            lines.append(f"  expected with these settings: {self.tolerated.check}: {self.tolerated.sentence}")
        if self.violation is not None:
            lines += ["  faults:", *(f"    {fault}" for fault in self.faults)]
            lines += ["  last log lines:", *(f"    {line}" for line in self.last_logs)]
            lines += ["  last events:", *(f"    {event}" for event in self.last_events)]
            lines += [f"    {line}" for line in self.traceback]
            lines.append(f"  replay: {self.replay_command}")
        return "\n".join(lines)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the garbage collector: it takes a sixth of a run. The few megabytes are freed at the end.

    Until then all of them are of the youngest generation. The run must have gone out of scope: a collection that finds
    it alive takes as long and frees nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.collect(0)
            gc.enable()


@_uncollected()
def run_seed(
    seed: int,
    *,
    without_guard: int | None = None,
    scenario: str = "swarm",
    elr: bool | None = None,
    wire: bool = False,
    nodes: int | None = None,
    controllers: int | None = None,
    without_faults: Set[int] = frozenset(),
    watch: Callable[[Simulation], object] | None = None,
) -> RunReport:
    """Run one seed to its end or to the first violation.

    nodes, controllers: how many brokers and controllers a swarm has; None: as many as the seed draws.
    without_faults: numbers of faults that are left out (`heirlog.sim.fault_numbers`).
    watch: called before the run begins, to look on.
    """
    chosen = scenario_named(scenario)
    plan = chosen.plan(World(seed).stream("plan"))
    plan.wire, plan.without_faults = wire, without_faults
    if elr is not None:
        plan.elr = elr
    plan.brokers = nodes or plan.brokers
    plan.controllers = controllers or plan.controllers
    simulation = Simulation(seed, plan)
    if watch is not None:
        watch(simulation)
    if without_guard is not None:
        simulation.checker.ignored_rule = guards.guard(without_guard).restated_by
    violation: Finding | None = None
    excused: Finding | None = None
    traced: list[str] = []
    complete = False
    with guards.without(without_guard):
        try:
            simulation.begin()
            chosen.play(simulation)
            simulation.heal()
            simulation.audit()
            complete = True
            judgement.judge(simulation)
        except Violation as broken:
            violation = Finding(broken.rule, broken.sentence)
            excused = excused_by_lies(simulation, violation)
            violation = None if excused is not None else violation
        except Exception as error:  # whatever escapes a node would end its process: that is a finding, too
            where = traceback.extract_tb(error.__traceback__)[-1]
            violation = Finding("crash", f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})")
            traced = traceback.format_exc().splitlines()
    report = _report(simulation, scenario, without_guard, violation, traced)
    report.complete = complete
    report.tolerated = report.tolerated or excused
    report.nodes, report.controllers, report.without_faults = nodes, controllers, without_faults
    return report


def _report(
    simulation: Simulation, scenario: str, without_guard: int | None, violation: Finding | None, traced: list[str]
) -> RunReport:
    world = simulation.world
    counters = Counter(world.counters)
    counters["truncation"] = counters.get("log.log-truncated", 0)
    lost = judgement.lost(simulation)
    reported = reported_by(simulation.checker.oracle, lost)
    return RunReport(
        seed=simulation.seed,
        scenario=scenario,
        without_guard=without_guard,
        hash=world.trace_hash(),
        counters=counters,
        acknowledged=len(simulation.history.acknowledged),
        acknowledged_by_leader=simulation.history.acknowledged_by_leader,
        readable=len({(one.partition, one.offset) for one in simulation.history.observed}),
        lost=len(lost),
        lost_reported=sum(count for _, count in reported),
        losses=[
            f"{report.topic}-{report.partition}: {count} acknowledged records, when broker {report.election.leader} "
            f"became leader in epoch {report.election.leader_epoch} ({report.election.basis.name})"
            for report, count in reported
        ],
        tolerated=next(iter(simulation.checker.oracle.lost_without_elr), None),
        violation=violation,
        complete=False,
        faults=list(simulation.cluster.faults),
        numbered_faults=simulation.cluster.numbers.happened,
        last_events=[f"{time_us / 1e6:10.6f} {node:14} {label}" for time_us, node, label in world.last_events],
        last_logs=[str(line) for line in list(world.logs)[-60:]],
        events=world.events_run,
        virtual_ms=world.now_us // 1000,
        traceback=traced,
    )
