"""A sweep of the simulator on a standalone Spark cluster: a master and two workers, one of which has no heirlog.

Without the archive of `heirlog pipeline package` the sweep fails and says what is missing. With it, the driver is
killed after its first file; the next one continues, and in the end each run is there once, as a run in this process is.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path

import jars
import pyarrow.parquet
import spark_cluster

from heirlog.sim.durability.cell import cell_of
from heirlog.sim.durability.measure import measure
from heirlog.spark import java

GRID = ("--strategy", "elr-off,balanced", "--min-isr", "1,2", "--mtbf", "5")
CELLS = 4
SEEDS = 8
LIMIT_S = 900


def check() -> str:
    jars.need("java", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    java.provide()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as place:
        folder = Path(place)
        with spark_cluster.two_workers(folder) as address:
            return _sweeps(folder, address)


def _sweeps(folder: Path, address: str) -> str:
    out = folder / "sweep"
    seeds = ("--seeds", str(SEEDS))
    arguments = spark_cluster.command("sim", "sweep", "--out", str(out), *GRID, *seeds, "--json", master=address)
    variables = spark_cluster.variables(folder)
    # a task that failed could try again on the other worker
    once = [*arguments, "--conf", "spark.task.maxFailures=1"]
    refused = subprocess.run(once, env=variables, capture_output=True, text=True, timeout=LIMIT_S)
    assert refused.returncode == 1 and "a worker's Python has no heirlog" in refused.stderr, refused.stderr[-2000:]
    arguments += ["--conf", f"spark.submit.pyFiles={spark_cluster.archive_in(folder)}"]
    done = _killed_after_its_first_file(arguments, variables, out / "runs")
    rest = subprocess.run(arguments, env=variables, capture_output=True, text=True, timeout=LIMIT_S)
    assert rest.returncode == 0, rest.stderr[-4000:]
    report = json.loads(rest.stdout)
    rows = pyarrow.parquet.read_table(out / "runs").to_pylist()
    runs = {(row["scenario"], row["seed"]) for row in rows}
    assert len(rows) == len(runs) == CELLS * SEEDS == report["runs"], f"{len(rows)} rows, {len(runs)} runs, {report}"
    assert report["new"] == len(rows) - done, f"{report['new']} new runs, {done} were there"
    assert not [row for row in rows if row["check"]], [row["sentence"] for row in rows if row["check"]]
    last = rows[-1]
    assert measure(cell_of(last["scenario"]), last["seed"]).hash == last["hash"], "a worker ran something else"
    lost = sum(row["lost"] > 0 for row in rows)
    return f"{len(rows)} runs on two workers, {done} of them before the driver was killed; {lost} lost records"


def _killed_after_its_first_file(arguments: list[str], variables: dict[str, str], runs: Path) -> int:
    """How many runs it has left."""
    with subprocess.Popen(arguments, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as sweep:
        deadline = time.monotonic() + LIMIT_S
        while not (runs / "000001.parquet").exists():
            assert sweep.poll() is None and time.monotonic() < deadline, sweep.communicate()[0][-2000:]
            time.sleep(0.1)
        sweep.kill()
    done = pyarrow.parquet.read_table(runs).num_rows
    assert 0 < done < CELLS * SEEDS, f"{done} runs: the sweep was not killed half-way"
    return done
