"""Unclean recovery as scripts: what a seed of U11 shows. That every script passes, `test_run` says."""

from __future__ import annotations

from heirlog.sim.run import run_seed

SHOWS_THE_LOSS = 4
"""A seed of U11 in which the last leader loses its tail."""


def test_by_kafkas_rule_the_last_leader_wins_and_with_the_manager_the_longer_log_does() -> None:
    kafka = run_seed(SHOWS_THE_LOSS, scenario="U11-manager-off")
    ours = run_seed(SHOWS_THE_LOSS, scenario="U11")
    print(kafka, ours, sep="\n")
    assert kafka.lost > 0 and kafka.counters["basis.last-known"] > 0
    assert ours.lost == 0 and ours.counters["basis.recovered"] > 0
    assert kafka.passed and ours.passed
