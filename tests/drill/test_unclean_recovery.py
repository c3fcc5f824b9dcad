"""Unclean recovery on real processes: one drill in `make test`, each of them and Kafka's rule in `.ci/run`."""

from __future__ import annotations

import json
import os

import pytest
from cli.json_shapes import mistakes_of

from heirlog.drill.unclean_recovery import EARLY, LAST, OTHER, SCENARIOS, Verdict, config, run
from heirlog.testing.cluster import Cluster

EVERY = "HEIRLOG_ALL_KILLS" in os.environ
PLAYED = sorted(SCENARIOS) if EVERY else ["U3"]


def play(scenario: str, *, manager: bool = True) -> Verdict:
    with Cluster(nodes=3, config=config(manager=manager)) as cluster:
        verdict, records = run(cluster, scenario, manager=manager)
    assert verdict.acknowledged == len(records) > 2_000
    assert verdict.readable == verdict.acknowledged - verdict.lost
    wrong = mistakes_of(
        "drill unclean-recovery", json.loads(json.dumps({**verdict.as_json(), "picture": "timeline.svg"}))
    )
    assert not wrong, wrong
    return verdict


@pytest.mark.parametrize("scenario", PLAYED)
def test_recovery_keeps_what_a_reachable_replica_has(scenario: str) -> None:
    verdict = play(scenario)
    assert verdict.passed, verdict.as_json()
    assert verdict.basis == ("designated" if scenario == "U16" else "recovered")
    epochs = [moment.view.leader_epoch for moment in verdict.timeline]
    assert epochs == sorted(epochs)
    if scenario == "U16":
        assert verdict.leader == EARLY and verdict.reported_lost == verdict.lost > 0
    else:
        assert verdict.lost == 0
    if scenario in ("U3", "U11"):
        assert verdict.leader == OTHER


@pytest.mark.skipif(not EVERY, reason="20 s of processes: runs in .ci/run")
def test_by_kafkas_rule_the_last_leader_wins_without_its_tail() -> None:
    verdict = play("U11", manager=False)
    assert not verdict.passed and verdict.lost > 0
    assert (verdict.leader, verdict.basis) == (LAST, "last-known")
    assert verdict.reported_lost is None and not verdict.reported_exactly, "nobody had been asked"
