"""Every guard is needed: a seed that passes loses something when the guard is taken away."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from sim.test_run import SUITE

from heirlog.broker import high_watermark
from heirlog.sim.guards import GUARDS, UnknownGuard, without
from heirlog.sim.run import run_seed

NEEDED = {
    1: (3, {"T5"}),
    3: (1, {"T4"}),
    4: (7, {"T4", "T12"}),
    5: (1, {"T6"}),
    6: (9, {"T2", "T4", "T11"}),
    7: (1, {"T4"}),
    8: (1, {"T4", "T5"}),
    9: (1, {"T4", "T5", "T11"}),
    10: (10, {"recovery-answers", "recovery-choice"}),
    11: (1, {"recovery-answers", "loss-report"}),
    12: (1, {"recovery-choice"}),
    13: (1, {"recovery-quorum"}),
    14: (1, {"R1"}),
    15: (1, {"T15", "recovery-waiting"}),
    16: (1, {"T17"}),
    17: (1, {"Q1"}),
    18: (1, {"Q5"}),
    19: (1, {"Q1"}),
    20: (1, {"Q5"}),
    21: (1, {"Q5"}),
    22: (2, {"X19", "X1", "zombie"}),
    23: (1, {"X1", "X11", "unseen"}),
    24: (1, {"X2", "X19"}),
    25: (7, {"aborted-read", "liveness"}),
    26: (6, {"copied-once"}),
    27: (3, {"copied-once"}),
    28: (1, {"X11"}),
    29: (3, {"X2"}),
    30: (2, {"X2", "aborted-read", "lost-transaction"}),
    31: (3, {"X7"}),
    32: (2, {"lost-commit", "X15"}),
    33: (7, {"X17"}),
    34: (27, {"X20"}),
    35: (1, {"late-owner"}),
    36: (1, {"group-owners", "late-owner"}),
    37: (4, {"zombie", "inconsistent-offsets", "unseen"}),
    38: (3, {"share-final"}),
}
"""Guard: the seed of its scenario to try first (one that showed it once), rules."""
SEEDS = 30
ROOT = Path(__file__).resolve().parents[2]


def test_every_guard_has_a_seed_that_needs_it() -> None:
    needed = [number for number, guard in GUARDS.items() if not guard.not_needed]
    assert sorted(NEEDED) == sorted(needed), "add the guard to NEEDED: a seed that fails without it, and the checks"


@pytest.mark.parametrize("number", [number for number, guard in GUARDS.items() if guard.restated_by])
def test_the_invariant_that_restates_a_guard_finds_that_it_is_missing(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = GUARDS[number]
    monkeypatch.setitem(GUARDS, number, replace(guard, restated_by=""))  # type: ignore[arg-type]
    violation = run_seed(NEEDED[number][0], scenario=guard.scenario, without_guard=number).violation
    assert violation is not None and violation.check == guard.restated_by


@pytest.mark.parametrize("number", [number for number, guard in GUARDS.items() if guard.not_needed])
def test_a_guard_that_is_not_needed_can_be_taken_away(number: int) -> None:
    for scenario, seed in ((GUARDS[number].scenario, 1), ("last-replica-standing", 7), ("swarm", 7)):
        report = run_seed(seed, scenario=scenario, without_guard=number)
        assert report.passed, str(report)


@pytest.mark.parametrize("number", sorted(NEEDED))
def test_without_the_guard_a_seed_fails_that_passes_with_it(number: int) -> None:
    scenario = GUARDS[number].scenario
    first, rules = NEEDED[number]
    for seed in (first, *range(1, SEEDS + 1)):
        report = run_seed(seed, scenario=scenario, without_guard=number)
        if report.violation is not None:
            assert report.violation.check in rules, str(report)
            assert f"--without-guard {number}" in report.replay_command
            # those of the suite pass there
            assert seed in SUITE.get(scenario, ()) or run_seed(seed, scenario=scenario).passed
            return
    pytest.fail(f"no seed up to {SEEDS} needs guard {number}")


def test_a_guard_is_back_after_the_run() -> None:
    before = high_watermark.committed_isr_is_large_enough
    with without(8):
        assert high_watermark.committed_isr_is_large_enough(0, 5)
    assert high_watermark.committed_isr_is_large_enough is before
    assert not before(0, 5)


def test_the_page_of_the_simulation_has_every_guard_in_the_same_words() -> None:
    page = (ROOT / "docs" / "internals" / "simulation.md").read_text("utf-8")
    assert [guard.rule for guard in GUARDS.values() if f"\n{guard.number}. {guard.rule}\n" not in page] == []


def test_no_module_imports_the_predicate_of_a_guard() -> None:
    """An imported name would stay in force where the guard is taken away."""
    predicates = {(guard.module, guard.predicate) for guard in GUARDS.values()}
    sources = {path: path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")}
    imported = [
        f"{path.relative_to(ROOT)} imports {alias.name}"
        for path, source in sources.items()
        if any(name in source for _, name in predicates)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (node.module, alias.name) in predicates
    ]
    assert imported == []


def test_every_guard_names_a_predicate_that_exists() -> None:
    for number in GUARDS:
        with without(number):
            pass
    with pytest.raises(UnknownGuard, match="there is no guard 99"), without(99):
        pass
