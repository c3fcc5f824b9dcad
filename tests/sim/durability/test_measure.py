"""A row of a sweep, and the command in it that repeats the run."""

from __future__ import annotations

import json
import shlex

import pytest

from heirlog.cli.app import run
from heirlog.sim.durability.cell import Cell, Policy
from heirlog.sim.durability.measure import measure

LOSES = 12


def test_the_replay_command_of_a_row_repeats_that_run(capsys: pytest.CaptureFixture[str]) -> None:
    row = measure(Cell(3, 2, Policy.ELR_OFF, 5), LOSES)
    assert (row.seed, row.complete, row.check, row.tolerated) == (LOSES, True, "", "T4")
    assert 0 < row.lost <= row.acknowledged and row.lost_reported == 0
    assert 0 < row.unavailable_max_ms <= row.unavailable_ms < row.partition_ms
    assert row.failures > 0 and row.elections > 0 and row.cpu_s > 0
    command = shlex.split(row.replay)
    assert command[:2] == ["heirlog", "sim"]
    assert run([*command[1:], "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert (replayed["hash"], replayed["lost"], replayed["events"]) == (row.hash, row.lost, row.events)


def test_a_run_that_breaks_a_rule_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(cell: Cell, simulation: object) -> None:
        raise ZeroDivisionError("made to fail")

    monkeypatch.setattr("heirlog.sim.scenarios.durability", broken)
    row = measure(Cell(3, 2, Policy.BALANCED, 5), 1)
    assert (row.complete, row.check) == (False, "crash")
    assert row.sentence.startswith("ZeroDivisionError: made to fail")
