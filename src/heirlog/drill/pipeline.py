"""The real input through a whole pipeline: files, topic, stream, SQL, Parquet, while the job is killed.

    lines of the standard library as Parquet files
      --(pipeline "stdlib-in": SQL to JSON)-->  topic of three replicas
      --(pipeline "stdlib-out": JSON, counts per module and batch)-->  Parquet table

Both are `heirlog pipeline run` in processes of their own. The first one is not killed: writing to a topic is at least
once, and duplicates could not be distinguished from data. The second one is killed three times. Its driver is killed
twice, when a given number of batches is visible, and is started again with the same command. A Python worker is killed
once during a task, and Spark runs the task again. In the end PyArrow reads the table's directory, and the sums per
module must equal those that plain Python finds in the files.

This starts four JVMs. The quick form starts two: both pipelines first run in one process, by the Python function behind
the command, and two of the three kills hit a worker.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.drill.observe import DrillFailure
from heirlog.drill.progress import ClientProgress
from heirlog.drill.runner import below, cpu_seconds, end_below, parents
from heirlog.drill.servers import Servers
from heirlog.drill.stdlib import stdlib_modules
from heirlog.local.cluster import Cluster
from heirlog.local.secure import CLIENT_FILE

TOPIC = "stdlib-lines"
PARTITIONS = 4
INPUT_FILES = 8
BATCHES = 6
"""About how many micro-batches the second pipeline takes, so that there is something to kill between them."""
KILLS = ("driver", "worker", "driver")
QUICK_KILLS = ("worker", "driver", "worker")
STUCK_S = 300.0
"""Without progress, and with less than `WORK_S` of CPU: a job on a machine with other work is slow, and not stuck."""
WORK_S = 15.0
"""What idle JVMs use in that time is a third of this."""
STUCK_MAX_S = 4 * STUCK_S
_POLL_S = 0.05
# four attempts for a task: Spark's local mode would give up at the first lost worker
_MASTER = "local[2,4]"
_BOTH = """\
import sys
from heirlog.spark import session
from heirlog.spark.pipeline.run import run
spark = session.start(sys.argv[1])
for name in ("in", "out"):
    run(f"{name}.toml", spark)
"""
_IN = """\
name = "stdlib-in"
checkpoint = "in.checkpoint"

[source]
files = "lines"
format = "parquet"

[query]
sql = "SELECT module AS key, to_json(struct(module, number, base64(line) AS line)) AS value FROM input"

[sink]
topic = "{topic}"
bootstrap_servers = "{bootstrap}"
options = {{ {writes} }}
"""
_OUT = """\
name = "stdlib-out"
checkpoint = "out.checkpoint"

[source]
topics = ["{topic}"]
bootstrap_servers = "{bootstrap}"
options = {{ {reads} }}

[value]
format = "json"
schema = "module STRING, number BIGINT, line STRING"

[query]
sql = '''
SELECT value.module AS module,
       count(*) AS lines,
       sum(octet_length(unbase64(value.line))) AS bytes,
       sum(value.number) AS numbers
FROM input GROUP BY value.module
'''

[sink]
table = "counts"
"""


@dataclass(slots=True)
class Verdict:
    """The table compared with the files. `numbers` sums line numbers, so that an exchanged line is noticed."""

    lines: int
    modules: int
    batches: int = 0
    kills: list[str] = field(default_factory=list)
    rows_in: int = 0
    wrong_modules: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    write_s: float = 0.0
    read_s: float = 0.0
    """With `quick` this includes the writing."""

    @property
    def passed(self) -> bool:
        return self.rows_in == self.lines and not (self.wrong_modules or self.failures) and len(self.kills) == 3

    def as_json(self) -> dict[str, Any]:
        return {"drill": "pipeline", **asdict(self), "passed": self.passed}


def run(
    cluster: Cluster,
    folder: Path,
    *,
    records: int | None = None,
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
    progress: ClientProgress | None = None,
) -> Verdict:
    """Play the drill in `folder` on a started cluster of at least three brokers. Raises DrillFailure if it gets stuck.

    records: how many lines; None for every one. quick: two JVMs instead of four. progress: gets a curve of the batches
    that are visible in the table.
    """
    progress = progress or ClientProgress()
    truth, lines = _write_input(folder / "lines", records)
    verdict = Verdict(lines, len(truth))
    say(f"{lines} lines of {len(truth)} modules")
    servers = Servers.of(cluster)
    admin = AdminClient(servers.librdkafka())
    for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values():
        created.result(30)
    logs_in = [f'commandConfig = "{cluster.data / CLIENT_FILE}"'] if servers.is_closed else []
    reads = ", ".join([f"maxOffsetsPerTrigger = {max(1, lines // BATCHES)}", *logs_in])
    places = {"topic": TOPIC, "bootstrap": servers.bootstrap, "reads": reads, "writes": ", ".join(logs_in)}
    (folder / "in.toml").write_text(_IN.format(**places))
    (folder / "out.toml").write_text(_OUT.format(**places))
    started = time.monotonic()
    if quick:
        job = _Job(folder, "in and out", "-c", _BOTH, _MASTER)
    else:
        job = _Job.of(folder, "in")
        try:
            _finish(job, verdict)
        finally:
            if job.process.poll() is None:
                job.end()
        verdict.write_s = round(time.monotonic() - started, 1)
        say(f"written to the topic in {verdict.write_s} s")
        started = time.monotonic()
        job = _Job.of(folder, "out")
    _killed_three_times(job, QUICK_KILLS if quick else KILLS, verdict, say, progress)
    verdict.read_s = round(time.monotonic() - started, 1)
    _judge(folder, truth, verdict)
    return verdict


def _write_input(folder: Path, records: int | None) -> tuple[dict[str, tuple[int, int, int]], int]:
    """Parquet files of (module, number, line); the truth per module: lines, bytes, sum of the line numbers."""
    rows = [(module, number, line) for module, text in stdlib_modules() for number, line in enumerate(text, 1)][
        :records
    ]
    folder.mkdir(parents=True)
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for module, number, line in rows:
        count[module] += 1
        size[module] += len(line)
        numbers[module] += number
    share = -(-len(rows) // INPUT_FILES)
    for index in range(INPUT_FILES):
        modules, positions, texts = zip(*rows[index * share : (index + 1) * share], strict=True)
        table = pa.table({"module": modules, "number": positions, "line": pa.array(texts, pa.binary())})
        pa.parquet.write_table(table, folder / f"lines-{index}.parquet")
    return {module: (count[module], size[module], numbers[module]) for module in count}, len(rows)


class _Job:
    """A Python process that runs pipelines, with its output kept for the case that it fails."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self._output = open(folder / f"{name}.output", "ab")  # noqa: SIM115  # closed when the job has ended
        command = [sys.executable, *arguments]
        self.process = subprocess.Popen(command, cwd=folder, stdout=self._output, stderr=self._output)
        self.name = name
        self.folder = folder

    @classmethod
    def of(cls, folder: Path, name: str) -> _Job:
        """`heirlog pipeline run` of one of the two files."""
        return cls(folder, name, "-m", "heirlog", "pipeline", "run", f"{name}.toml", "--master", _MASTER)

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, None where it still runs."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._output.close()
        return code

    def cpu_s(self) -> dict[int, float]:
        """CPU seconds of each of its processes."""
        known = parents()
        return cpu_seconds({self.process.pid, *below(self.process.pid, known)})

    def said(self) -> str:
        text = (self.folder / f"{self.name}.output").read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "nothing"

    def kill(self) -> None:
        """Kill the driver only: its JVM and the workers notice it."""
        self.process.kill()
        self.wait(STUCK_S)

    def end(self) -> None:
        """With everything below it."""
        end_below(self.process.pid)
        self.kill()


class _Deadline:
    """How long a job may take until the next thing that is waited for."""

    def __init__(self, job: _Job) -> None:
        self._job = job
        self._began = self._looked = time.monotonic()
        self._cpu_s = job.cpu_s()

    def check(self) -> None:
        """Raises DrillFailure where the job is stuck."""
        now = time.monotonic()
        if now - self._looked < STUCK_S:
            return
        before, self._cpu_s = self._cpu_s, self._job.cpu_s()
        worked_s = sum(max(0.0, used_s - before.get(pid, 0.0)) for pid, used_s in self._cpu_s.items())
        if worked_s < WORK_S or now - self._began > STUCK_MAX_S:
            raise DrillFailure(
                f"the pipeline {self._job.name} is stuck: nothing came of it in {now - self._began:.0f} s, in the last "
                f"{now - self._looked:.0f} s its processes used {worked_s:.0f} s of CPU; it said: {self._job.said()}"
            )
        self._looked = now


def _finish(job: _Job, verdict: Verdict) -> None:
    """Raises DrillFailure."""
    deadline = _Deadline(job)
    while (code := job.wait(1.0)) is None:
        deadline.check()
    if code != 0:
        verdict.failures.append(f"the pipeline {job.name} ended with {code}: {job.said()}")


def _killed_three_times(
    job: _Job,
    victims: tuple[str, str, str],
    verdict: Verdict,
    say: Callable[[str], None],
    progress: ClientProgress,
) -> None:
    folder = job.folder
    try:
        for batches, victim in enumerate(victims, 1):
            _until(partial(_at_least, folder, batches, progress), job)
            what = f"{victim} after {_visible(folder)} batches"
            if victim == "driver":
                job.kill()
                job = _Job.of(folder, "out")
            else:
                os.kill(_until(partial(_a_worker_of, job.process.pid), job), signal.SIGKILL)
            verdict.kills.append(what)
            say(f"killed: {what}")
        _finish(job, verdict)
        progress.reach("batches in the table", _visible(folder))
    finally:
        if job.process.poll() is None:
            job.end()


def _at_least(folder: Path, batches: int, progress: ClientProgress) -> bool:
    visible = _visible(folder)
    progress.reach("batches in the table", visible)
    return visible >= batches


def _visible(folder: Path) -> int:
    table = folder / "counts"
    return sum(1 for entry in table.iterdir() if entry.name.startswith("batch_id=")) if table.is_dir() else 0


def _until(condition: Callable[[], int], job: _Job) -> int:
    """Wait until the condition returns a value, and return it. Raises DrillFailure if the job ends or hangs first."""
    deadline = _Deadline(job)
    while not (found := condition()):
        if job.wait(_POLL_S) is not None:
            raise DrillFailure(f"the pipeline {job.name} ended before it could be killed; it said: {job.said()}")
        deadline.check()
    return found


def _a_worker_of(driver: int) -> int:
    """A Python process that works for the driver's JVM and is not the daemon that forks them; 0 for none now."""
    known = parents()
    leaves = [pid for pid in below(driver, known) if pid not in known.values() and _is_worker(pid)]
    return max(leaves, default=0)


def _is_worker(pid: int) -> bool:
    listed = subprocess.run(["ps", "-p", str(pid), "-o", "args="], capture_output=True, text=True)
    # other daemons plan
    return "pyspark.daemon pyspark.worker" in listed.stdout


def _judge(folder: Path, truth: dict[str, tuple[int, int, int]], verdict: Verdict) -> None:
    table = pa.dataset.dataset(folder / "counts", format="parquet", partitioning="hive").to_table()
    found: dict[str, tuple[int, int, int]] = {}
    for row in table.to_pylist():
        lines, size, numbers = found.get(row["module"], (0, 0, 0))
        found[row["module"]] = (lines + row["lines"], size + row["bytes"], numbers + row["numbers"])
    verdict.batches = len(set(table.column("batch_id").to_pylist()))
    verdict.wrong_modules = {
        module: {"found": found.get(module), "truth": truth.get(module)}
        for module in sorted({*truth, *found})
        if found.get(module) != truth.get(module)
    }
    journal = json.loads((folder / "out.checkpoint" / "heirlog-journal.json").read_text())
    verdict.rows_in = journal["sums"]["rows_in"]
