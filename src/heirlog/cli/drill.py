"""`heirlog drill`: failures rehearsed on a cluster of its own, with a client that we did not write.

The drills write and read with librdkafka, so they need confluent-kafka; the locked environment has it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.drill_verdict import Result, failure_sentence, verdict_lines
from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.cli.render import Json, show_json

if TYPE_CHECKING:
    from heirlog.drill.observe import TimelineEntry
    from heirlog.drill.progress import ClientProgress
    from heirlog.drill.runner import DrillRunner
    from heirlog.local.cluster import Cluster

app = typer.Typer(
    help="Rehearse failures, and check that every acknowledged record can still be read.", no_args_is_help=True
)

BROKERS_MIN = 3
CLIENT_FILE = "client.properties"
Secure = Annotated[
    bool, typer.Option("--secure", help="Listeners with TLS and passwords, as those of heirlog up --secure.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for timeline.svg and verdict.json. Default: drill- and the drill's name, here; a number is "
        "added if that exists."
    ),
]


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


class RecoveryScenario(StrEnum):
    """Of `heirlog.drill.unclean_recovery`; named here because commands start without librdkafka."""

    U1 = "U1"
    U2 = "U2"
    U3 = "U3"
    U11 = "U11"
    U16 = "U16"


@contextmanager
def _needs() -> Iterator[None]:
    """What stops a drill, as one sentence: librdkafka is missing, or the cluster did not do what the script needs."""
    from heirlog.local.cluster import ClusterError

    try:
        from heirlog.drill.observe import DrillFailure

        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("pyarrow", "pyspark"):
            raise CommandError(
                f"this drill needs {error.name}: pip install '.[spark]' in a clone of heirlog"
            ) from error
        if (error.name or "").split(".")[0] == "aiokafka":
            raise CommandError(
                "this drill also writes with aiokafka: pip install aiokafka (make setup does it)"
            ) from error
        if error.name != "confluent_kafka":
            raise
        raise CommandError(
            "the drills write with librdkafka: pip install confluent-kafka (make setup does it)"
        ) from error
    except (ClusterError, DrillFailure) as error:
        raise CommandError(str(error)) from error


@app.command("last-replica-standing")
def last_replica_standing(
    elr: Annotated[
        Switch, typer.Option(help="off: run without eligible leader replicas, and see the loss.")
    ] = Switch.ON,
    hold: Annotated[
        bool, typer.Option("--hold", help="Keep the cluster running after the result, until Ctrl-C.")
    ] = False,
    acknowledged: Annotated[
        Path | None, typer.Option(help="File for the records acknowledged at acks=all, as JSON lines.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of how many unflushed bytes survive. Default: none survive.")
    ] = None,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Play KIP-966's "last replica standing": two replicas stop, then the last leader loses its unflushed records."""

    def drill(runner: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.last_replica_standing import run, write_acknowledged
        from heirlog.drill.partition_drill import QUICK_STOPS
        from heirlog.drill.picture import RecordedCluster, Recording

        recording = Recording("last-replica-standing", folder)
        with (
            RecordedCluster(nodes=3, elr=elr is Switch.ON, config=QUICK_STOPS, security=_protocol(secure)) as cluster,
            recording.of_failures(cluster),
        ):
            progress, on = recording.progress, elr is Switch.ON
            verdict, records = run(cluster, elr=on, seed=seed, say=_timeline(as_json, progress), progress=progress)
            if acknowledged is not None:
                write_acknowledged(acknowledged, records)
            result = recording.finish(cluster, verdict.as_json())
            if hold:
                _hold(runner, result, cluster, as_json)
        return result

    _conclude(_run("drill-last-replica-standing", out, drill), as_json)


@app.command("unclean-recovery")
def unclean_recovery(
    scenario: Annotated[
        RecoveryScenario,
        typer.Option(
            case_sensitive=False,
            help="What goes wrong. U1: an old leader epoch has the longest log. U2: a replica does not return. U3: a "
            "replica loses records after it has answered. U11: the last leader lost its unflushed records. U16: an "
            "operator "
            "chooses a leader that has fewer records.",
        ),
    ] = RecoveryScenario.U11,
    manager: Annotated[
        Switch, typer.Option(help="off: elect without the recovery manager, as Apache Kafka does.")
    ] = Switch.ON,
    hold: Annotated[
        bool, typer.Option("--hold", help="Keep the cluster running after the result, until Ctrl-C.")
    ] = False,
    acknowledged: Annotated[
        Path | None, typer.Option(help="File for the records acknowledged at acks=all, as JSON lines.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of how many unflushed bytes survive a power cut.")] = None,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Play KIP-966's unclean recovery: the last replicas stop uncleanly, and the one with the most records must
    lead."""

    def drill(runner: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.partition_drill import write_acknowledged
        from heirlog.drill.picture import RecordedCluster, Recording
        from heirlog.drill.unclean_recovery import SEED, config, run

        recording = Recording("unclean-recovery", folder)
        progress = recording.progress
        on = manager is Switch.ON
        tail = SEED if seed is None else seed
        with (
            RecordedCluster(nodes=3, config=config(manager=on), security=_protocol(secure)) as cluster,
            recording.of_failures(cluster),
        ):
            say = _timeline(as_json, progress)
            verdict, records = run(cluster, scenario.value, manager=on, seed=tail, say=say, progress=progress)
            if acknowledged is not None:
                write_acknowledged(acknowledged, records)
            result = recording.finish(cluster, verdict.as_json())
            if hold:
                _hold(runner, result, cluster, as_json)
        return result

    _conclude(_run("drill-unclean-recovery", out, drill), as_json)


@app.command("rack")
def rack(
    seed: Annotated[
        int | None, typer.Option(help="Seed of how many unflushed bytes survive. Default: none survive.")
    ] = None,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Six brokers in three racks: each rack in turn loses power while a client writes to every partition."""

    def drill(_: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.picture import RecordedCluster, Recording
        from heirlog.drill.rack import RACKS, run

        recording = Recording("rack", folder)
        progress = recording.progress
        with RecordedCluster(racks=RACKS, security=_protocol(secure)) as cluster, recording.of_failures(cluster):
            verdict = run(cluster, seed=seed, say=_said(as_json, progress), progress=progress)
            return recording.finish(cluster, verdict.as_json())

    _conclude(_run("drill-rack", out, drill), as_json)


@app.command("stdlib")
def stdlib(
    records: Annotated[int | None, typer.Option(min=1, help="How many records; default 800,000.")] = None,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Write every line of Python's standard library, kill a broker meanwhile, and compare what is read byte by byte."""

    def drill(_: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.picture import RecordedCluster, Recording
        from heirlog.drill.stdlib import run

        recording = Recording("stdlib", folder)
        progress = recording.progress
        with RecordedCluster(nodes=3, security=_protocol(secure)) as cluster, recording.of_failures(cluster):
            verdict = run(cluster, records=records, say=_said(as_json, progress), progress=progress)
            return recording.finish(cluster, verdict.as_json())

    _conclude(_run("drill-stdlib", out, drill), as_json)


@app.command("soak")
def soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long clients run while brokers are killed.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the kills: which node, when, and for how long.")] = 1,
    kill_every_s: Annotated[float, typer.Option(min=5, help="Seconds from one killed broker to the next.")] = 30,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Run eight producers and eight consumers, and kill a broker every 30 s. Nothing may be lost, doubled or reordered.

    The memory and the open files of every node are checked too.
    """

    def drill(_: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.picture import RecordedCluster, Recording
        from heirlog.drill.soak import CONFIG, run

        recording = Recording("soak", folder)
        say = _said(as_json, recording.progress)
        with (
            RecordedCluster(nodes=3, config=CONFIG, ledger=False, security=_protocol(secure)) as cluster,
            recording.of_failures(cluster),
        ):
            found = run(cluster, minutes=minutes, seed=seed, kill_every_s=kill_every_s, say=say)
            return recording.finish(cluster, found.as_json())

    _conclude(_run("drill-soak", out, drill), as_json)


@app.command("controllers")
def controllers(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long controllers are lost in turn.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the faults: when, and what survives a power cut.")] = 1,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Lose the active of three controllers again and again: killed, paused, stopped, cut off from power.

    Clients write, read, commit, and create, change, move and delete topics meanwhile. Nothing acknowledged may be lost
    and nothing half made; each gap without an acknowledged change is printed.
    """

    def drill(_: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.controllers import CONFIG, run
        from heirlog.drill.picture import RecordedCluster, Recording

        recording = Recording("controllers", folder)
        with (
            RecordedCluster(nodes=3, controllers=3, config=CONFIG, security=_protocol(secure)) as cluster,
            recording.of_failures(cluster),
        ):
            verdict = run(cluster, minutes=minutes, seed=seed, say=_said(as_json, recording.progress))
            return recording.finish(cluster, verdict.as_json())

    _conclude(_run("drill-controllers", out, drill), as_json)


@app.command("chaos")
def chaos(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long faults are played.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the faults and of the operator's changes.")] = 1,
    nodes: Annotated[int, typer.Option(help="How many brokers, at least 3.")] = 3,
    controllers: Annotated[int, typer.Option(min=1, max=5, help="How many controllers: 1, 3 or 5.")] = 3,
    elr: Annotated[
        Switch, typer.Option(help="off: run without eligible leader replicas; the drill must fail then.")
    ] = Switch.ON,
    secure: Secure = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for timeline.svg and verdict.json. Default: chaos-SEED, here; a number is added if that "
            "exists."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play random faults of processes, disks and links while clients write and read, and judge what they saw.

    An operator moves, alters, deletes and re-creates topics meanwhile. The checks are those of the simulator. A picture
    of faults, leaders, ISR and ELR is written next to the verdict.
    """
    if nodes < BROKERS_MIN:
        raise UsageError(
            f"--nodes {nodes}: the drill's topics have {BROKERS_MIN} replicas, so it needs as many brokers"
        )

    def drill(_: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.chaos import CONFIG, Verdict, run
        from heirlog.drill.chaos_cluster import ChaosCluster

        with ChaosCluster(nodes, controllers, CONFIG, elr=elr is Switch.ON, security=_protocol(secure)) as cluster:
            verdict = Verdict(minutes, seed, nodes, controllers, elr is Switch.ON)
            return run(cluster, verdict, folder, _said(as_json)).as_json()

    _conclude(_run(f"chaos-{seed}", out, drill), as_json)


@app.command("pipeline")
def pipeline(
    records: Annotated[int | None, typer.Option(min=1000, help="How many lines; default: every one.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Kill the driver once and workers twice; starts two JVMs.")
    ] = False,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Move Python's standard library from files through a topic and SQL into Parquet, and kill the job three times."""

    def drill(runner: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.picture import RecordedCluster, Recording
        from heirlog.drill.pipeline import run

        recording = Recording("pipeline", folder)
        progress = recording.progress
        with (
            RecordedCluster(nodes=3, ledger=False, security=_protocol(secure)) as cluster,
            recording.of_failures(cluster),
        ):
            say = _said(as_json, progress)
            verdict = run(cluster, runner.folder, records=records, quick=quick, say=say, progress=progress)
            return recording.finish(cluster, verdict.as_json())

    _conclude(_run("drill-pipeline", out, drill), as_json)


def _run(default: str, out: Path | None, drill: Callable[[DrillRunner[Result], Path], Result]) -> Result:
    """The drill's verdict; a signal ends the drill, its cluster and this process.

    default: name of the folder for its picture where no `out` is given.
    """
    from heirlog.drill.runner import DrillRunner

    began_s = time.monotonic()
    with _needs():
        from heirlog.drill.out_folder import created, has_verdict, remove, remove_if_empty

        folder, had_verdict = created(default, out), False

        def signalled() -> None:
            nonlocal had_verdict
            had_verdict = has_verdict(folder)
            if not had_verdict:
                remove(folder)

        def stopped() -> None:
            if had_verdict:
                return
            remove(folder)  # of what was just being written
            print(
                f"heirlog: the drill was stopped after {time.monotonic() - began_s:.0f} s, before its verdict: what "
                "clients have seen until then was not checked",
                file=sys.stderr,
                flush=True,
            )

        runner: DrillRunner[Result] = DrillRunner(signalled, stopped)
        try:
            return runner.run(lambda: drill(runner, folder))
        finally:
            remove_if_empty(folder)


def _conclude(result: Result, as_json: bool) -> None:
    _print_verdict(result, as_json)
    if not result["passed"]:
        raise CommandError(failure_sentence(result))


def _protocol(secure: bool) -> str:
    return "SASL_SSL" if secure else "PLAINTEXT"


def _hold(runner: DrillRunner[Result], result: Result, cluster: Cluster, as_json: bool) -> None:
    """The verdict, while the cluster is still up."""
    result["bootstrap_servers"] = cluster.bootstrap_servers
    client_file = cluster.data / CLIENT_FILE
    if client_file.exists():
        result["command_config"] = str(client_file)
    _print_verdict(result, as_json)
    if not result["passed"]:
        print(f"heirlog: {failure_sentence(result)}", file=sys.stderr)
    runner.hold(0 if result["passed"] else EXIT_FAILED)


def _said(as_json: bool, progress: ClientProgress | None = None) -> Callable[[str], None]:
    """JSON output is one object and nothing else."""

    def say(sentence: str) -> None:
        if progress is not None:
            progress.step(sentence)
        if not as_json:
            print(sentence, flush=True)

    return say


def _timeline(as_json: bool, progress: ClientProgress) -> Callable[[TimelineEntry], None]:
    if not as_json:
        _print_heading()

    def say(moment: TimelineEntry) -> None:
        progress.step(moment.event)
        if not as_json:
            _print_moment(moment)

    return say


COLUMNS = "{:>8}  {:>6}  {:<7}  {:<5}  {:<9}  {:>7}  {}"


def _print_heading() -> None:
    print(COLUMNS.format("ms", "leader", "isr", "elr", "last-known", "hw", "event"), flush=True)


def _print_moment(moment: TimelineEntry) -> None:
    view = moment.view
    print(
        COLUMNS.format(
            moment.at_ms,
            view.leader if view.leader >= 0 else "none",
            _ids(view.isr),
            _ids(view.elr),
            _ids(view.last_known_elr),
            moment.high_watermark if moment.high_watermark >= 0 else "?",
            moment.event,
        ),
        flush=True,
    )


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids)) or "-"


def _print_verdict(result: Result, as_json: bool) -> None:
    if as_json:
        show_json(result)
    else:
        print("", *verdict_lines(result), sep="\n")
    # a program that waits for the verdict may read through a pipe while the cluster is held
    sys.stdout.flush()
