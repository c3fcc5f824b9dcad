"""How each drill is run: what stops it, what it prints meanwhile, and its verdict."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from heirlog.cli.drill_verdict import Result, failure_sentence, verdict_lines
from heirlog.cli.errors import EXIT_FAILED, CommandError
from heirlog.cli.render import show_json

if TYPE_CHECKING:
    from heirlog.drill.observe import TimelineEntry
    from heirlog.drill.progress import ClientProgress
    from heirlog.drill.runner import DrillRunner
    from heirlog.local.cluster import Cluster

CLIENT_FILE = "client.properties"


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


def run_drill(default: str, out: Path | None, drill: Callable[[DrillRunner[Result], Path], Result]) -> Result:
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


def conclude(result: Result, as_json: bool) -> None:
    _print_verdict(result, as_json)
    if not result["passed"]:
        raise CommandError(failure_sentence(result))


def protocol(secure: bool) -> str:
    return "SASL_SSL" if secure else "PLAINTEXT"


def hold_cluster(runner: DrillRunner[Result], result: Result, cluster: Cluster, as_json: bool) -> None:
    """The verdict, while the cluster is still up."""
    result["bootstrap_servers"] = cluster.bootstrap_servers
    client_file = cluster.data / CLIENT_FILE
    if client_file.exists():
        result["command_config"] = str(client_file)
    _print_verdict(result, as_json)
    if not result["passed"]:
        print(f"heirlog: {failure_sentence(result)}", file=sys.stderr)
    runner.hold(0 if result["passed"] else EXIT_FAILED)


def said(as_json: bool, progress: ClientProgress | None = None) -> Callable[[str], None]:
    """JSON output is one object and nothing else."""

    def say(sentence: str) -> None:
        if progress is not None:
            progress.step(sentence)
        if not as_json:
            print(sentence, flush=True)

    return say


def timeline(as_json: bool, progress: ClientProgress) -> Callable[[TimelineEntry], None]:
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
