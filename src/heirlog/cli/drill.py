"""`heirlog drill`: failures rehearsed on a cluster of its own, with a client that we did not write.

The drills write and read with librdkafka, so they need confluent-kafka; the locked environment has it.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.drill_run import conclude, hold_cluster, protocol, run_drill, said, timeline
from heirlog.cli.drill_verdict import Result
from heirlog.cli.errors import UsageError
from heirlog.cli.render import Json

if TYPE_CHECKING:
    from heirlog.drill.runner import DrillRunner

app = typer.Typer(
    help="Rehearse failures, and check that every acknowledged record can still be read.", no_args_is_help=True
)

BROKERS_MIN = 3
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
        from heirlog.drill.picture import recorded

        on = elr is Switch.ON
        name, security = "last-replica-standing", protocol(secure)
        with recorded(name, folder, security, elr=on, config=QUICK_STOPS) as (cluster, recording):
            progress = recording.progress
            verdict, records = run(cluster, elr=on, seed=seed, say=timeline(as_json, progress), progress=progress)
            if acknowledged is not None:
                write_acknowledged(acknowledged, records)
            result = recording.finish(cluster, verdict.as_json())
            if hold:
                hold_cluster(runner, result, cluster, as_json)
        return result

    conclude(run_drill("drill-last-replica-standing", out, drill), as_json)


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
        from heirlog.drill.picture import recorded
        from heirlog.drill.unclean_recovery import SEED, config, run

        on = manager is Switch.ON
        tail = SEED if seed is None else seed
        with recorded("unclean-recovery", folder, protocol(secure), config=config(manager=on)) as (cluster, recording):
            progress = recording.progress
            say = timeline(as_json, progress)
            verdict, records = run(cluster, scenario.value, manager=on, seed=tail, say=say, progress=progress)
            if acknowledged is not None:
                write_acknowledged(acknowledged, records)
            result = recording.finish(cluster, verdict.as_json())
            if hold:
                hold_cluster(runner, result, cluster, as_json)
        return result

    conclude(run_drill("drill-unclean-recovery", out, drill), as_json)


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
        from heirlog.drill.picture import recorded
        from heirlog.drill.rack import RACKS, run

        with recorded("rack", folder, protocol(secure), racks=RACKS) as (cluster, recording):
            progress = recording.progress
            verdict = run(cluster, seed=seed, say=said(as_json, progress), progress=progress)
            return recording.finish(cluster, verdict.as_json())

    conclude(run_drill("drill-rack", out, drill), as_json)


@app.command("stdlib")
def stdlib(
    records: Annotated[int | None, typer.Option(min=1, help="How many records; default 800,000.")] = None,
    secure: Secure = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Write every line of Python's standard library, kill a broker meanwhile, and compare what is read byte by byte."""

    def drill(_: DrillRunner[Result], folder: Path) -> Result:
        from heirlog.drill.picture import recorded
        from heirlog.drill.stdlib import run

        with recorded("stdlib", folder, protocol(secure)) as (cluster, recording):
            progress = recording.progress
            verdict = run(cluster, records=records, say=said(as_json, progress), progress=progress)
            return recording.finish(cluster, verdict.as_json())

    conclude(run_drill("drill-stdlib", out, drill), as_json)


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
        from heirlog.drill.picture import recorded
        from heirlog.drill.soak import CONFIG, run

        with recorded("soak", folder, protocol(secure), config=CONFIG, ledger=False) as (cluster, recording):
            say = said(as_json, recording.progress)
            found = run(cluster, minutes=minutes, seed=seed, kill_every_s=kill_every_s, say=say)
            return recording.finish(cluster, found.as_json())

    conclude(run_drill("drill-soak", out, drill), as_json)


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
        from heirlog.drill.picture import recorded

        with recorded("controllers", folder, protocol(secure), controllers=3, config=CONFIG) as (cluster, recording):
            verdict = run(cluster, minutes=minutes, seed=seed, say=said(as_json, recording.progress))
            return recording.finish(cluster, verdict.as_json())

    conclude(run_drill("drill-controllers", out, drill), as_json)


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

        with ChaosCluster(nodes, controllers, CONFIG, elr=elr is Switch.ON, security=protocol(secure)) as cluster:
            verdict = Verdict(minutes, seed, nodes, controllers, elr is Switch.ON)
            return run(cluster, verdict, folder, said(as_json)).as_json()

    conclude(run_drill(f"chaos-{seed}", out, drill), as_json)


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
        from heirlog.drill.picture import recorded
        from heirlog.drill.pipeline import run

        with recorded("pipeline", folder, protocol(secure), ledger=False) as (cluster, recording):
            progress = recording.progress
            say = said(as_json, progress)
            verdict = run(cluster, runner.folder, records=records, quick=quick, say=say, progress=progress)
            return recording.finish(cluster, verdict.as_json())

    conclude(run_drill("drill-pipeline", out, drill), as_json)
