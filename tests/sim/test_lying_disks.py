"""Disks that report flushes which they do not do: the loss is named, and excused in these runs only."""

from __future__ import annotations

import pytest

from heirlog.sim.history import Finding
from heirlog.sim.lying_disks import RESTS_ON_FLUSHES, excused_by_lies
from heirlog.sim.plan import RunPlan
from heirlog.sim.run import run_seed
from heirlog.sim.simulation import Simulation

SEEDS = (4, 6)
"""A broker's disk lies, and that of the only controller."""


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_lying_disk_loses_is_named_and_not_lost_if_it_tells_the_truth(seed: int) -> None:
    lied = run_seed(seed, scenario="lying-disks")
    assert lied.passed, str(lied)
    assert lied.tolerated is not None and lied.tolerated.check in RESTS_ON_FLUSHES
    assert "lost what a flush had called durable" in str(lied)
    assert not lied.complete
    lies = {fault.number for fault in lied.numbered_faults if fault.what.startswith("lie ")}
    honest = run_seed(seed, scenario="lying-disks", without_faults=lies)
    assert lies and honest.passed and honest.complete and honest.tolerated is None and honest.lost == 0, str(honest)


def test_only_rules_that_rest_on_flushes_are_excused_and_only_by_a_disk_that_lost_what_it_had_claimed() -> None:
    simulation = Simulation(1, RunPlan())
    disk = simulation.cluster.machines.disk("broker-2")
    disk.lies = True
    assert excused_by_lies(simulation, Finding("R1", "gone")) is None
    disk.has_lost_flushed = True
    assert excused_by_lies(simulation, Finding("R1", "gone")) == Finding(
        "R1", "broker-2 lost what a flush had called durable; gone"
    )
    assert excused_by_lies(simulation, Finding("T2", "two lists")) is None
    assert excused_by_lies(simulation, Finding("crash", "AssertionError")) is None
