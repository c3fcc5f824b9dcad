"""A smaller set of faults with which a seed still breaks the same rule.

    all faults of the run --leave out a half, a quarter, ... one--> those without which it does not fail

Leaving out one fault may change what follows, so each attempt is a run of its own; it counts if it breaks the same
check. What remains is minimal in the sense that no single fault can be left out (delta debugging, Zeller 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeAlias

from heirlog.sim.run import RunReport

Attempt: TypeAlias = Callable[[Set[int]], RunReport]
"""Runs the seed without these faults."""


def shrunk(first: RunReport, attempt: Attempt, runs_max: int, on_run: Callable[[RunReport], object]) -> RunReport:
    """The report of the smallest failing run that was found; `first` itself if no fault can be left out.

    on_run: called after each attempt with the smallest run so far.
    """
    assert first.violation is not None, "only a run that fails can be made smaller"
    smallest, runs = first, 0
    size = max(1, len(first.numbered_faults) // 2)
    while True:
        before = smallest
        # the last faults first: those after the violation never mattered
        position = len(smallest.numbered_faults)
        while position > 0 and runs < runs_max:
            begin = max(0, position - size)
            left_out = {fault.number for fault in smallest.numbered_faults[begin:position]}
            found = attempt(smallest.without_faults | left_out)
            runs += 1
            if _fails_alike(found, first) and len(found.numbered_faults) < len(smallest.numbered_faults):
                smallest = found
            position = min(begin, len(smallest.numbered_faults))
            on_run(smallest)
        if runs >= runs_max or (size == 1 and smallest is before):
            return smallest
        size = max(1, size // 2)


def _fails_alike(found: RunReport, first: RunReport) -> bool:
    wanted = first.violation
    return found.violation is not None and wanted is not None and found.violation.check == wanted.check
