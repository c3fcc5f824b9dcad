"""`heirlog sim`."""

from __future__ import annotations

import json

from cli.conftest import Heirlog


def test_a_replayed_seed_reports_its_counters_as_json(heirlog: Heirlog) -> None:
    outcome = heirlog("sim", "replay", "7", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["seed"] == 7 and report["passed"]
    assert all(isinstance(count, int) for count in report["counters"].values())


def test_every_guard_is_listed_with_its_rule(heirlog: Heirlog) -> None:
    from heirlog.sim.guards import GUARDS

    rows = json.loads(heirlog("sim", "guards", "--json").out)
    assert {row["number"]: row["rule"] for row in rows} == {number: guard.rule for number, guard in GUARDS.items()}
