"""Faults that are left out, and the smallest set with which a seed still fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

import pytest

from heirlog.sim.fault_numbers import FaultNumbers, NumberedFault, as_ranges, of_ranges
from heirlog.sim.history import Finding
from heirlog.sim.run import RunReport, run_seed
from heirlog.sim.shrink import shrunk
from heirlog.sim.world import World


def report(left_out: Set[int], faults: int, violation: Finding | None) -> RunReport:
    happened = [NumberedFault(number, number, "kill") for number in range(faults) if number not in left_out]
    return RunReport(
        seed=1,
        scenario="swarm",
        without_guard=None,
        hash="",
        counters=Counter(),
        acknowledged=0,
        acknowledged_by_leader=0,
        readable=0,
        lost=0,
        lost_reported=0,
        losses=[],
        tolerated=None,
        violation=violation,
        complete=violation is None,
        faults=[],
        numbered_faults=happened,
        last_events=[],
        last_logs=[],
        events=0,
        virtual_ms=0,
        traceback=[],
        without_faults=left_out,
    )


@pytest.mark.parametrize("needed", [{0}, {41}, {3, 17}, {0, 20, 21, 41}, set()])
def test_what_is_not_needed_is_left_out(needed: set[int]) -> None:
    """Without one of the needed faults another check fails, or none."""

    def attempt(left_out: Set[int]) -> RunReport:
        missing = needed & left_out
        check = "T4" if not missing else "liveness"
        return report(left_out, 42, None if missing == needed and needed else Finding(check, "lost"))

    attempts: list[int] = []
    found = shrunk(attempt(frozenset()), attempt, 500, lambda smallest: attempts.append(len(smallest.numbered_faults)))
    assert {fault.number for fault in found.numbered_faults} == needed
    assert attempts == sorted(attempts, reverse=True)


def test_the_number_of_runs_has_a_limit() -> None:
    attempts: list[Set[int]] = []

    def attempt(left_out: Set[int]) -> RunReport:
        attempts.append(left_out)
        return report(left_out, 42, Finding("T4", "lost") if not left_out else None)

    assert len(shrunk(attempt(frozenset()), attempt, 5, lambda _: None).numbered_faults) == 42
    assert len(attempts) == 6


def test_ranges_of_numbers() -> None:
    assert as_ranges({7, 1, 3, 2}) == "1-3,7"
    assert of_ranges("1-3,7") == {1, 2, 3, 7}
    for wrong in ("", "1,", "a", "1-"):
        with pytest.raises(ValueError):
            of_ranges(wrong)


def test_a_fault_that_is_left_out_keeps_its_number_and_a_partition_has_one() -> None:
    numbers = FaultNumbers(World(1), {1})
    happened = [
        numbers.happens("kill", "broker-1"),
        numbers.happens("pause", "broker-2"),
        numbers.happens("block", "broker-1>broker-2"),
        numbers.happens("block", "broker-2>broker-1"),
        numbers.happens("kill", "broker-3"),
    ]
    assert happened == [True, False, True, True, True]
    assert [(fault.number, fault.what) for fault in numbers.happened] == [
        (0, "kill broker-1"),
        (2, "block broker-1>broker-2 broker-2>broker-1"),
        (3, "kill broker-3"),
    ]


def test_a_run_without_a_fault_is_repeatable_and_its_command_says_so() -> None:
    whole = run_seed(1, scenario="last-replica-standing", without_guard=8)
    assert whole.violation is not None and len(whole.numbered_faults) == 3
    cut = [fault.number for fault in whole.numbered_faults if "power-cut" in fault.what]
    without = [run_seed(1, scenario="U1", without_faults=frozenset(cut)) for _ in range(2)]
    assert without[0].hash == without[1].hash != run_seed(1, scenario="U1").hash
    assert without[0].replay_command == f"heirlog sim replay 1 --scenario U1 --without-faults {cut[0]}"


def test_a_swarm_that_fails_without_a_guard_needs_few_of_its_faults() -> None:
    def attempt(left_out: Set[int]) -> RunReport:
        return run_seed(1, without_guard=9, without_faults=left_out)

    first = attempt(frozenset())
    smallest = shrunk(first, attempt, 12, lambda _: None)
    assert first.violation is not None and smallest.violation is not None
    assert smallest.violation.check == first.violation.check == "T11"
    assert len(smallest.numbered_faults) < len(first.numbered_faults)
