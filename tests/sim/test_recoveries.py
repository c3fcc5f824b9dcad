"""Unclean recovery as scripts: what a seed of U11 shows. That every script passes, `test_run` says."""

from __future__ import annotations

from heirlog.sim.run import run_seed

SEEDS = range(1, 21)
"""In some of them the last leader of U11 loses its tail; which ones depends on every message that is sent."""


def test_by_kafkas_rule_the_last_leader_wins_and_with_the_manager_the_longer_log_does() -> None:
    runs = (run_seed(seed, scenario="U11-manager-off") for seed in SEEDS)
    kafka = next(run for run in runs if run.lost > 0)
    ours = run_seed(kafka.seed, scenario="U11")
    print(kafka, ours, sep="\n")
    assert kafka.counters["basis.last-known"] > 0
    assert ours.lost == 0 and ours.counters["basis.recovered"] > 0
    assert kafka.passed and ours.passed
