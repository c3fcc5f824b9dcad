"""`heirlog sim sweep` without Spark: what it refuses, and a sweep that is complete."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli.conftest import Heirlog
from spark.sweep.rows import row

from heirlog.sim.code_version import code_version
from heirlog.sim.durability.cell import Policy
from heirlog.spark.sweep.folder import opened
from heirlog.spark.sweep.grid import Grid

# Spark would not start with this master
SWEEP = ("sim", "sweep", "--min-isr", "2", "--mtbf", "10", "--strategy", "elr-off,balanced", "--master", "nonsense")
GRID = Grid((3,), (2,), (Policy.ELR_OFF, Policy.BALANCED), (10,))


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    with opened(tmp_path / "out", GRID, code_version()) as folder:
        folder.add([row(cell, seed, lost=5 * (seed == 2)) for cell, seed in GRID.runs(3)])
    return tmp_path / "out"


def test_a_complete_sweep_is_shown_without_spark(heirlog: Heirlog, complete: Path) -> None:
    shown = heirlog(*SWEEP, "--seeds", "3", "--out", str(complete))
    assert shown.code == 0, shown.err
    assert "6 runs, 0 of them new" in shown.out
    assert "durability:rf=3,min-isr=2,strategy=balanced,mtbf=10" in shown.out
    assert "33.3 % (6.1-79.2)" in shown.out
    assert "heirlog sim replay 2 --scenario" in (complete / "index.html").read_text("utf-8")
    told = json.loads(heirlog(*SWEEP, "--seeds", "1..3", "--out", str(complete), "--json").out)
    assert (told["runs"], told["new"], told["page"]) == (6, 0, str(complete / "index.html"))
    assert [cell["strategy"] for cell in told["cells"]] == ["elr-off", "balanced"]
    assert told["cells"][0]["losses"] == [f"heirlog sim replay 2 --scenario {told['cells'][0]['scenario']}"]


def test_what_is_there_is_shown_even_if_spark_does_not_start(heirlog: Heirlog, complete: Path) -> None:
    refused = heirlog(*SWEEP, "--seeds", "4", "--out", str(complete))
    assert refused.code == 1
    assert "Spark's master is local[*], local[N]" in refused.err and "Traceback" not in refused.err
    assert "6 simulated runs" in (complete / "index.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--min-isr", "1,x"), 2, "--min-isr 1,x: give numbers with commas between them"),
        (("--strategy", "elr"), 2, "there is no 'elr'; there are elr-off, last-known-leader, balanced"),
        (("--mtbf", ""), 2, "--mtbf : give numbers"),
        (("--seeds", "2..5"), 2, "--seeds 2..5: give the number of seeds, the first of which is 1"),
        (("--seeds", "0"), 2, "--seeds 0: give the number of seeds"),
        (("--conf", "memory"), 2, "--conf takes NAME=VALUE"),
        (("--min-isr", "4"), 1, "every min ISR exceeds every replication factor"),
        (("--mtbf", "0"), 1, "the mean time between failures is between 1 and 3600 seconds"),
        (("--mtbf", "5"), 1, "has a sweep with other parameters (mtbf_s was [10], now [5])"),
        (("--out", "/dev/null"), 1, "/dev/null is a file: give a folder"),
        (("--out", "/proc/sweep"), 1, "--out /proc/sweep cannot be used"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(
    heirlog: Heirlog, complete: Path, options: tuple[str, ...], code: int, sentence: str
) -> None:
    refused = heirlog(*SWEEP, "--out", str(complete), *options)
    assert (refused.code, refused.out) == (code, "")
    assert sentence in refused.err and "Traceback" not in refused.err


def test_without_the_extra_the_command_says_what_to_install(
    heirlog: Heirlog, complete: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("heirlog.spark.sweep")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = heirlog(*SWEEP, "--out", str(complete))
    assert refused.code == 1
    assert "sweeps need pyarrow: pip install '.[spark]'" in refused.err
