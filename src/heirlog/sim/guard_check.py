"""Whether a guard is needed: a seed that passes with it, and loses something without it."""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.sim.guards import GUARDS
from heirlog.sim.run import run_seed

SEEDS = range(1, 41)
"""Of the guard's scenario: tried until one shows the loss."""
SEEDS_OF_NOT_NEEDED = range(1, 13)
"""Tried for a guard of which a proof says that none does."""


@dataclass(frozen=True, slots=True)
class GuardCheck:
    """`seed` fails without the guard, with the violation `check`; both None if no seed does.

    reason: why no seed does, of a guard that is known not to be needed.
    """

    number: int
    scenario: str
    seed: int | None = None
    check: str | None = None
    reason: str | None = None

    @property
    def is_as_known(self) -> bool:
        """A loss is shown exactly if the guard is needed."""
        return (self.seed is None) is (self.reason is not None)

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.number,
            "loss_shown": self.seed is not None,
            "scenario": self.scenario,
            "seed": self.seed,
            "check": self.check,
            "reason": self.reason,
        }


def checked(number: int) -> GuardCheck:
    """Run seeds of the guard's scenario without the guard until one fails."""
    guard = GUARDS[number]
    scenario, reason = guard.scenario, guard.not_needed or None
    for seed in SEEDS if reason is None else SEEDS_OF_NOT_NEEDED:
        violation = run_seed(seed, scenario=scenario, without_guard=number).violation
        if violation is not None and run_seed(seed, scenario=scenario).passed:
            return GuardCheck(number, scenario, seed, violation.check, reason)
    return GuardCheck(number, scenario, reason=reason)
