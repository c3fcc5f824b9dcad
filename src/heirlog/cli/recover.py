"""`heirlog recover plan|run|report|salvage|controller`: what to do when every complete copy is lost.

    plan     what every replica holds, whom the cluster waits for, who would win with each choice, and at what price;
             --watch follows that (`recovery_watch.py`)
    run      the same, and then the choice
    report   what elections have given up, from the internal topic `__heirlog_recoveries`
    salvage  what was given up and is still on a broker's disk (`salvage.py`)
    controller  a lost controller, seeded from the brokers' copies of the metadata (`recover_controller.py`)

All of it but salvage asks the cluster only; docs/guides/recover.md is the page for the one who has to decide.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli import complete, elections, hanging_transactions, kept_ranges, recovery_plan, recovery_watch, salvage
from heirlog.cli import recover_controller as controller
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, REQUEST_TIMEOUT_S, BootstrapServer, connected
from heirlog.cli.doctor import log_directories
from heirlog.cli.elect import show_results
from heirlog.cli.elections import ElectionType, TopicPartition
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, Yes, confirm, show_json, show_rows
from heirlog.cli.sections import Commands
from heirlog.cli.watch import WITHIN_S, Interval, Watch, Watching
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.types import NO_LEADER

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.blocking.hanging_transactions import Hanging
    from heirlog.client.recovery import Choice, Described, RecoveryPartition
    from heirlog.metadata.loss_report import LossReport

app = typer.Typer(help="Show and recover partitions that have lost every complete replica.", no_args_is_help=True)
app.add_typer(salvage.app, name="salvage", cls=Commands)
app.command("controller")(controller.recover_controller)

ANSWER_WAIT_S = 5.0
"""For replicas that are asked only now."""
POLL_S = 0.2
ALL_LED = "every partition has a leader"
NOT_COUNTED = (
    "\nRecordsLost compares the logs as they were when the replicas answered. It does not count what a disk had lost\n"
    "before: then the output of its broker has log-shorter-than-flushed (of flushed records) or log-cut-by-recovery.\n"
    "MayLackRecords names replicas whose machine has stopped, or whose disk was replaced: how many of their newest\n"
    "records are gone is unknown."
)
WAITING_REPORTS = (
    ": every leader was elected cleanly, or the reports cannot be written yet "
    "(heirlog topics describe __heirlog_recoveries)"
)

Topics = Annotated[
    list[str] | None, typer.Argument(metavar="TOPIC", help="Only these topics.", autocompletion=complete.topics)
]
Partitions = Annotated[
    list[int] | None, typer.Option("--partition", min=0, help="Only this partition of the one TOPIC. May be repeated.")
]
Wait = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for the replicas' answers.")]


class StrategyOption(StrEnum):
    BALANCED = "balanced"
    AGGRESSIVE = "aggressive"
    UNCLEAN = "unclean"
    DESIGNATION = "designation"

    @property
    def election_type(self) -> ElectionType:
        return {
            StrategyOption.BALANCED: ElectionType.LONGEST_LOG_BALANCED,
            StrategyOption.AGGRESSIVE: ElectionType.LONGEST_LOG_AGGRESSIVE,
            StrategyOption.UNCLEAN: ElectionType.UNCLEAN,
            StrategyOption.DESIGNATION: ElectionType.DESIGNATION,
        }[self]


# -- plan -------------------------------------------------------------------------------------------------------------


@app.command("plan")
def plan(
    topics: Topics = None,
    partition: Partitions = None,
    wait: Wait = ANSWER_WAIT_S,
    watching: Watching = False,
    interval: Interval = 1.0,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show what can be done about partitions without a leader, and what each choice would cost. Changes nothing."""
    wanted = _wanted(topics, partition)
    with connected(bootstrap_server, timeout_s=WITHIN_S if watching else REQUEST_TIMEOUT_S) as client:
        if watching:
            looks = recovery_watch.Leaderless(client, lambda: _described_once(client, wanted), as_json)
            Watch(recovery_watch.COLUMNS, recovery_watch.KEY, interval, while_empty=ALL_LED).run(looks.rows, as_json)
        found = _described(client, wanted, wait)
    if as_json:
        show_json(
            {
                "manager_enabled": found.manager_enabled,
                "partitions": [
                    recovery_plan.partition_as_json(name, each, found.manager_enabled)
                    for name, each in _leaderless(found)
                ],
            }
        )
        return
    leaderless = list(_leaderless(found))
    recovery_plan.show_all(leaderless, found.manager_enabled)
    if not leaderless:
        print(ALL_LED)


def _wanted(topics: list[str] | None, partitions: list[int] | None) -> dict[str, Sequence[int] | None] | None:
    if partitions and len(topics or ()) != 1:
        raise UsageError("--partition goes with one TOPIC")
    return dict.fromkeys(topics, partitions) if topics else None


def _described(client: Client, wanted: Mapping[str, Sequence[int] | None] | None, wait_s: float) -> Described:
    """The description once all replicas that can answer have answered, or the wait timed out. Raises CommandError."""
    deadline = time.monotonic() + wait_s
    while True:
        found = _described_once(client, wanted)
        pending = any(
            replica.is_registered and not replica.is_fenced and replica.serves_recovery and not replica.is_valid
            for _, partition in _leaderless(found)
            for replica in partition.replicas
        )
        if not pending or time.monotonic() >= deadline:
            return found
        time.sleep(POLL_S)


def _described_once(client: Client, wanted: Mapping[str, Sequence[int] | None] | None) -> Described:
    """With the answers that the controller has; it asks the replicas whose answers are old. Raises CommandError."""
    found = elections.recovery_of(client, wanted, ask_replicas=True)
    for topic in found.topics:
        if topic.error_code:
            code = error_code(topic.error_code)
            raise CommandError(with_next_step(f"topic {topic.name} cannot be described: {code.name}", code))
        for each in topic.partitions:
            if each.error_code:
                code = error_code(each.error_code)
                name = f"{topic.name}-{each.partition_index}"
                raise CommandError(with_next_step(f"partition {name} cannot be described: {code.name}", code))
    return found


def _leaderless(found: Described) -> Iterator[tuple[str, RecoveryPartition]]:
    for topic in found.topics:
        for partition in topic.partitions:
            if partition.leader_id == NO_LEADER:
                yield topic.name or "", partition


# -- run --------------------------------------------------------------------------------------------------------------


@app.command("run")
def run(
    topics: Topics = None,
    partition: Partitions = None,
    strategy: Annotated[
        StrategyOption,
        typer.Option(case_sensitive=False, help="designation needs --leader; see docs/guides/recover.md."),
    ] = StrategyOption.BALANCED,
    leader: Annotated[
        int | None, typer.Option(min=0, help="For a designation: the broker that becomes leader.")
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Balanced: do not wait for replicas that are outside the quorum.")
    ] = False,
    yes: Yes = False,
    wait: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How long to wait for elections that cannot finish at once."),
    ] = 60.0,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Elect leaders for partitions without one, after showing what that costs and asking."""
    if (strategy is StrategyOption.DESIGNATION) != (leader is not None):
        raise UsageError("--strategy designation and --leader go together")
    wanted = _wanted(topics, partition)
    with connected(bootstrap_server) as client:
        found = _described(client, wanted, ANSWER_WAIT_S)
        chosen = [(name, each, _choice(found, each, strategy, leader)) for name, each in _leaderless(found)]
        if not chosen:
            if as_json:
                show_json([])
            else:
                print(ALL_LED)
            return
        if not yes:
            _ask(chosen)
        places: list[TopicPartition] = [(name, each.partition_index) for name, each, _ in chosen]
        results = elections.run(
            client,
            strategy.election_type,
            places,
            desired=None if leader is None else dict.fromkeys(places, leader),
            skip_wait=now,
            wait_s=wait,
        )
    show_results(elections.rows_of(results), as_json)


def _choice(
    found: Described, partition: RecoveryPartition, strategy: StrategyOption, leader: int | None
) -> Choice | None:
    """None: this one cannot be chosen; the cluster says why."""
    from heirlog.client.recovery import choices

    for choice in choices(partition, found.manager_enabled):
        if choice.name == strategy and leader in (None, choice.leader):
            return choice
    return None


def _ask(chosen: Sequence[tuple[str, RecoveryPartition, Choice | None]]) -> None:
    """Raises typer.Abort if the answer is no, UsageError without a terminal to ask on."""
    rows = [
        {
            "topic": name,
            "partition": each.partition_index,
            **(
                {"leader": None, "loss": "-", "note": "this choice is not possible"}
                if choice is None
                else {key: value for key, value in recovery_plan.choice_row(choice).items() if key != "choice"}
            ),
        }
        for name, each, choice in chosen
    ]
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "leader": "Leader",
        "loss": "RecordsLost",
        "note": "Note",
    }
    show_rows(columns, rows, as_json=False)
    confirm("Elect these leaders?")


# -- report -----------------------------------------------------------------------------------------------------------


@app.command("report")
def report(
    topics: Topics = None,
    partition: Partitions = None,
    kept_in: Annotated[
        list[Path] | None,
        typer.Option(
            "--kept-in",
            metavar="DIR",
            help="A broker's log directory, or a folder that contains some: also show what salvage can get back from "
            "there. May be repeated.",
        ),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show which offsets elections gave up, which replicas held them, and on what basis the leader was chosen.

    Partitions of a topic with the same values share a row; --json has one entry for each partition. Transactions that
    hang in these partitions now are listed too.
    """
    from heirlog.blocking.loss_reports import read_reports

    wanted = _wanted(topics, partition)
    for directory in kept_in or ():
        # before the cluster is asked: a folder that is not there is a mistake in the command line
        log_directories(directory)
    with connected(bootstrap_server) as client:
        found = [
            each
            for each in read_reports(client)
            if wanted is None or (each.topic in wanted and each.partition in (wanted[each.topic] or [each.partition]))
        ]
        if not found and wanted:
            client.topics(wanted)  # a name that no topic has is an error, as for `plan`
        hanging = _hanging_in(client, found)
        if not found and wanted is not None:
            # a report outlives its topic; without one, the name may be misspelt
            client.topics(wanted)
    kept = None if kept_in is None else kept_ranges.by_report(found, kept_in)
    if as_json:
        show_json([_report_as_json(each, hanging, kept) for each in found])
        return
    if not found:
        print("no report of " + ("any election" if wanted is None else "these partitions") + WAITING_REPORTS)
        return
    columns = {
        "time": "Time",
        "topic": "Topic",
        "partition": "Partition",
        "leader_epoch": "LeaderEpoch",
        "leader": "Leader",
        "basis": "Basis",
        "leader_end_offset": "LeaderEnd",
        "loss": "RecordsLost",
        "held_by": "HeldBy",
        "silent": "NotAnswered",
        "may_lack_records": "MayLackRecords",
    }
    show_rows(columns, report_rows(found), as_json=False)
    print(NOT_COUNTED)
    if hanging is None:
        print("whether transactions hang in these partitions cannot be said now: not every coordinator answers")
    for each in hanging or ():
        print(f"\n{hanging_transactions.sentence(each)}")
    if kept is not None:
        for sentence in kept_ranges.sentences(found, kept):
            print(sentence)
        print("\n`heirlog recover salvage list DIR` also shows files that belong to no report,")
        print("and `heirlog recover salvage produce FILE` appends the records of a file again")


def _report_as_json(
    report: LossReport, hanging: list[Hanging] | None, kept: Mapping[kept_ranges.Key, list[dict[str, Any]]] | None
) -> dict[str, Any]:
    shown = {**report.as_json(), "hanging_transactions": _hanging_rows(hanging, report)}
    return shown if kept is None else {**shown, "kept": kept_ranges.kept_of(kept, report)}


def _hanging_in(client: Client, reports: Sequence[LossReport]) -> list[Hanging] | None:
    """The transactions that hang now in partitions of these reports; None: the coordinators cannot be asked now."""
    from heirlog.blocking.hanging_transactions import find_hanging

    ids = {topic.topic_id for topic in client.metadata(sorted({each.topic for each in reports}) or []).topics}
    places = sorted({(each.topic, each.partition) for each in reports if each.topic_id in ids})
    try:
        return find_hanging(client, places, idle_ms=0, wait_s=0)[0]
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            return None
        raise


def _hanging_rows(hanging: list[Hanging] | None, report: LossReport) -> list[dict[str, Any]] | None:
    if hanging is None:
        return None
    return [
        hanging_transactions.hanging_row(each)
        for each in hanging
        if (each.topic, each.partition) == (report.topic, report.partition)
    ]


def report_rows(found: Sequence[LossReport]) -> list[dict[str, Any]]:
    """Partitions of a topic that share every other column share a row: after an outage that is all of
    `__consumer_offsets`."""
    rows = [_report_row(each) for each in found]
    partitions: dict[str, list[int]] = {}
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        others = repr({**row, "partition": None})
        first.setdefault(others, row)
        partitions.setdefault(others, []).append(row["partition"])
    return [{**row, "partition": _ranges(partitions[others])} for others, row in first.items()]


def _ranges(numbers: Sequence[int]) -> str:
    """`0-3, 7`"""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join("-".join(map(str, ends)) for ends in ranges)


def _report_row(report: LossReport) -> dict[str, Any]:
    election, loss = report.election, report.loss
    return {
        "time": _time(election.timestamp_ms),
        "topic": report.topic,
        "partition": report.partition,
        "leader_epoch": election.leader_epoch,
        "leader": election.leader,
        "basis": election.basis.value,
        "leader_end_offset": election.end_offset if election.end_offset >= 0 else None,
        "loss": recovery_plan.loss_text(loss),
        "held_by": [answer.broker for answer in loss.held_by],
        "silent": list(loss.silent),
        "may_lack_records": list(report.may_lack_records),
    }


def _time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "unknown"
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
