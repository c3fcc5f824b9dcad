"""`heirlog sim`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest
from cli.conftest import Heirlog

from heirlog.sim import guards


def test_a_replayed_seed_reports_its_counters_as_json(heirlog: Heirlog) -> None:
    outcome = heirlog("sim", "replay", "7", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["seed"] == 7 and report["passed"]
    assert all(isinstance(count, int) for count in report["counters"].values())


def test_a_replay_can_be_told_as_a_story(heirlog: Heirlog) -> None:
    text = heirlog("sim", "replay", "1", "--scenario", "U1", "--trace", "--until", "5").out
    assert "***             stop broker-" in text and "leads in place of" in text
    told = json.loads(heirlog("sim", "replay", "7", "--scenario", "U1", "--trace", "--json").out)["trace"]
    assert {"ms", "who", "what"} == set(told[0]) and told[-1]["ms"] > 5_000
    refused = heirlog("sim", "replay", "1", "--until", "5")
    assert refused.code == 2 and "--until needs --trace" in refused.err


def test_a_failing_seed_is_shrunk_to_the_faults_that_it_needs(heirlog: Heirlog) -> None:
    options = ("--scenario", "last-replica-standing", "--without-guard", "8", "--runs", "3")
    text = heirlog("sim", "shrink", "1", *options)
    assert text.code == 0 and text.out.startswith("seed 1 breaks T4 with 3 faults in place of 3: ")
    assert "power-cut broker-" in text.out
    assert "replay: heirlog sim replay 1 --scenario last-replica-standing --without-guard 8" in text.out
    found = json.loads(heirlog("sim", "shrink", "1", *options, "--json").out)
    assert found["check"] == "T4" and found["faults_before"] == 3 and len(found["faults"]) == 3
    passes = heirlog("sim", "shrink", "1", "--scenario", "U1")
    assert passes.code == 1 and "seed 1 of U1 passes: there is nothing to shrink" in passes.err
    wrong = heirlog("sim", "replay", "1", "--without-faults", "x")
    assert wrong.code == 2 and "give numbers and ranges of them" in wrong.err


def test_every_guard_is_listed_with_its_rule(heirlog: Heirlog) -> None:
    rows = json.loads(heirlog("sim", "guards", "--json").out)
    rules = {number: guard.rule for number, guard in guards.GUARDS.items()}
    assert {row["number"]: row["rule"] for row in rows} == rules


def test_many_seeds_are_summed_up(heirlog: Heirlog) -> None:
    outcome = heirlog("sim", "run", "--seeds", "3..5", "--scenario", "U1", "--jobs", "2", "--json")
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    assert summary["seeds"] == 3 and summary["violations"] == []
    assert summary["acknowledged"] > 0 and summary["events"] > 3_000
    assert summary["counters"]["recovery"] == 3
    text = heirlog("sim", "run", "--seeds", "3", "--scenario", "U1").out
    assert text.startswith("1 seeds of U1, 0 failed: ")


def test_the_first_violation_ends_the_run_and_says_how_to_replay_it(heirlog: Heirlog) -> None:
    command = ("sim", "run", "--seeds", "1..9", "--jobs", "1", "--scenario", "last-replica-standing")
    outcome = heirlog(*command, "--without-guard", "8")
    assert outcome.code == 1
    assert "seed 1 (last-replica-standing) FAILED T4" in outcome.out
    assert "heirlog sim replay 1 --scenario last-replica-standing --without-guard 8" in outcome.err
    all_of_them = heirlog(*command, "--without-guard", "8", "--keep-going", "--json")
    summary = json.loads(all_of_them.out)
    assert summary["seeds"] == 9 and len(summary["violations"]) > 1
    assert {"seed": 1, "scenario": "last-replica-standing", "check": "T4"}.items() <= summary["violations"][0].items()


def test_a_swarm_has_the_nodes_that_were_asked_for(heirlog: Heirlog) -> None:
    options = ("--nodes", "5", "--controllers", "3")
    counters = json.loads(heirlog("sim", "run", "--seeds", "2", *options, "--json").out)["counters"]
    assert counters["log.broker-registered"] >= 5 and counters["log.controller-registered"] >= 3
    refused = heirlog("sim", "replay", "2", "--scenario", "U1", *options)
    assert refused.code == 2 and "U1 is a script" in refused.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--seeds", "9..1"), "the first seed is greater than the last one"),
        (("--seeds", "one"), "give the first and the last seed, as in 1..1000, or one seed"),
        (("--seeds", ""), "give the first and the last seed"),
        (("--seeds", "1..2", "--minutes", "1"), "--seeds and --minutes exclude each other"),
        (("--scenario", "U1", "--nodes", "5"), "U1 is a script with brokers and controllers of its own"),
        (("--without-guard", "99"), "there is no guard 99"),
    ],
)
def test_options_that_make_no_sense_are_refused(heirlog: Heirlog, options: tuple[str, ...], sentence: str) -> None:
    outcome = heirlog("sim", "run", *options)
    assert outcome.code == 2 and sentence in outcome.err


def test_minutes_end_the_run(heirlog: Heirlog) -> None:
    summary = json.loads(heirlog("sim", "run", "--minutes", "0.02", "--scenario", "U1", "--json").out)
    assert summary["seeds"] > 0


def test_a_signal_ends_the_run_with_what_it_has_shown_so_far() -> None:
    # a violation is printed at once, and --keep-going continues after it
    options = ["--scenario", "last-replica-standing", "--without-guard", "8", "--keep-going", "--seeds", "1..1000000"]
    command = [sys.executable, "-m", "heirlog", "sim", "run", "--jobs", "1", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and "FAILED T4" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, "a seed has failed, whatever ended the run"
    assert re.search(r"^\d+ seeds of last-replica-standing, [1-9]\d* failed: ", out, re.MULTILINE)
    assert re.search(r"^heirlog: stopped after \d+ of 1000000 seeds$", err, re.MULTILINE), err


def test_a_guard_is_checked_by_a_seed_that_needs_it(heirlog: Heirlog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "GUARDS", {number: guards.GUARDS[number] for number in (8, 17)})
    outcome = heirlog("sim", "guards", "--check", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["guards"]
    assert [(one["id"], one["loss_shown"], one["scenario"], one["check"]) for one in found] == [
        (8, True, "last-replica-standing", "T4"),
        (17, True, "forgotten-vote", "Q1"),
    ]
    assert all(one["seed"] >= 1 for one in found)


def test_a_pass_with_losses_says_which_election_gave_them_up(heirlog: Heirlog) -> None:
    runs = (heirlog("sim", "replay", str(seed), "--scenario", "U11-manager-off") for seed in range(1, 30))
    shown = next(run for run in runs if " 0 of them lost" not in run.out)
    assert shown.code == 0
    verdict, counts, why, *losses = shown.out.splitlines()
    assert verdict.endswith("(U11-manager-off) passed")
    assert "with these settings an election may give records up" in why
    assert sum(int(line.split()[1]) for line in losses) == int(counts.split()[2]) > 0
    assert all("acknowledged records, when broker" in line for line in losses)
