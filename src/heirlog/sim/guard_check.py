"""Whether a guard is needed: a seed that passes with it, and loses something without it."""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.sim.guards import GUARDS
from heirlog.sim.run import run_seed

SEEDS = range(1, 41)
"""Of the guard's scenario: tried until one shows the loss."""


@dataclass(frozen=True, slots=True)
class GuardCheck:
    """`seed` fails without the guard, with the violation `check`; both None if no seed does."""

    number: int
    scenario: str
    seed: int | None = None
    check: str | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.number,
            "loss_shown": self.seed is not None,
            "scenario": self.scenario,
            "seed": self.seed,
            "check": self.check,
        }


def checked(number: int) -> GuardCheck:
    """Run seeds of the guard's scenario without the guard until one fails."""
    scenario = GUARDS[number].scenario
    for seed in SEEDS:
        violation = run_seed(seed, scenario=scenario, without_guard=number).violation
        if violation is not None and run_seed(seed, scenario=scenario).passed:
            return GuardCheck(number, scenario, seed, violation.check)
    return GuardCheck(number, scenario)
