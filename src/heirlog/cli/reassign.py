"""`heirlog reassign`: move replicas to other brokers, with the options, the JSON and the words of
kafka-reassign-partitions.

    --generate   propose where the partitions of some topics could lie on some brokers
    --execute    begin it; prints what to go back to
    --verify     how far it is; once all is done, throttles are lifted
    --list       what is on its way in the whole cluster
    --cancel     stop it; the replicas are those of before

A throttle is configuration: a rate for each broker that copies, and for each topic which replicas it counts for.
It limits what replicas outside the ISR copy (KIP-73).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.option_groups import grouped
from heirlog.cli.reassignment import (
    Assignment,
    TopicPartition,
    assignment_from,
    assignment_json,
    clear_throttles,
    failures_of,
    reassign_partitions,
    reassignments,
    replicas_now,
    set_throttles,
    topics_from,
)
from heirlog.cli.render import Json, show_json

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.cli.reassignment import Reassignment

ROLLBACK = "Save this to use as the --reassignment-json-file option during rollback"
VERIFY_AT_THE_END = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


@dataclass(frozen=True, slots=True)
class Action:
    """What the command does; one of the options."""

    generate: Annotated[bool, typer.Option("--generate", help="Propose an assignment.")] = False
    execute: Annotated[bool, typer.Option("--execute", help="Start the reassignment in the file.")] = False
    verify: Annotated[
        bool, typer.Option("--verify", help="Show its progress; when it has completed, remove throttles.")
    ] = False
    list_: Annotated[bool, typer.Option("--list", help="List reassignments in progress.")] = False
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the reassignments in the file.")] = False

    def check(self) -> None:
        """Raises UsageError if not exactly one option is given."""
        if self.generate + self.execute + self.verify + self.list_ + self.cancel != 1:
            raise UsageError("choose an action: one of --generate, --execute, --verify, --list, --cancel")


@dataclass(frozen=True, slots=True)
class Proposal:
    """What --generate proposes an assignment for."""

    topics_to_move_json_file: Annotated[
        Path | None,
        typer.Option(help='With --generate: {"topics": [{"topic": "t"}], "version": 1}. Default: all topics.'),
    ] = None
    broker_list: Annotated[
        str | None, typer.Option(metavar="ID,...", help="With --generate: the brokers that get the replicas.")
    ] = None
    disable_rack_aware: Annotated[bool, typer.Option("--disable-rack-aware", help="Ignore racks.")] = False

    def topics_and_brokers(self) -> tuple[list[str] | None, list[int]]:
        """Topics: None for all. Raises UsageError, CommandError."""
        if self.broker_list is None:
            raise UsageError("--generate needs --broker-list, and --topics-to-move-json-file if not all topics move")
        parts = [part.strip() for part in self.broker_list.split(",")]
        if not all(part.isdecimal() for part in parts):
            raise UsageError(f"--broker-list {self.broker_list} is not a list of broker ids")
        if len(set(parts)) < len(parts):
            raise UsageError(f"--broker-list {self.broker_list} names a broker twice")
        file = self.topics_to_move_json_file
        return None if file is None else topics_from(file), [int(part) for part in parts]


@dataclass(frozen=True, slots=True)
class Execution:
    """How --execute starts the reassignment."""

    throttle: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Bytes per second that each broker copies to or from replicas outside the ISR, until --verify.",
        ),
    ] = None
    additional: Annotated[
        bool, typer.Option("--additional", help="Allow this reassignment while others are in progress.")
    ] = False
    disallow_replication_factor_change: Annotated[
        bool, typer.Option("--disallow-replication-factor-change", help="Refuse to change the number of replicas.")
    ] = False


@grouped
def reassign(
    *,
    action: Action,
    proposal: Proposal,
    reassignment_json_file: Annotated[
        Path | None,
        typer.Option(help='{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}], "version": 1}'),
    ] = None,
    execution: Execution,
    preserve_throttles: Annotated[
        bool, typer.Option("--preserve-throttles", help="With --verify and --cancel: leave throttles as they are.")
    ] = False,
    timeout: Annotated[int, typer.Option(min=0, help="Timeout of the request, in milliseconds.")] = 10_000,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Move replicas to other brokers."""
    action.check()
    if action.generate:
        names, brokers = proposal.topics_and_brokers()
        with connected(bootstrap_server) as client:
            _generate(client, names, brokers, not proposal.disable_rack_aware, as_json)
        return
    if action.list_:
        with connected(bootstrap_server) as client:
            _list(client, as_json)
        return
    if reassignment_json_file is None:
        raise UsageError("name the assignment with --reassignment-json-file; --generate proposes one")
    wanted = assignment_from(reassignment_json_file)
    with connected(bootstrap_server) as client:
        if action.execute:
            _execute(client, wanted, execution, timeout)
        elif action.verify:
            _verify(client, wanted, preserve_throttles, as_json)
        else:
            _cancel(client, wanted, preserve_throttles, timeout)


def _generate(client: Client, topics: Sequence[str] | None, brokers: Sequence[int], racks: bool, as_json: bool) -> None:
    from heirlog.cli.reassignment import proposed

    current = replicas_now(client, client.topic_names(internal=True) if topics is None else topics)
    future = proposed(client, current, brokers, racks)
    if as_json:
        show_json({"current": json.loads(assignment_json(current)), "proposed": json.loads(assignment_json(future))})
        return
    print(f"Current partition replica assignment\n{assignment_json(current)}\n")
    print(f"Proposed partition reassignment configuration\n{assignment_json(future)}")


def _list(client: Client, as_json: bool) -> None:
    moving = reassignments(client)
    if as_json:
        show_json(
            [
                {
                    "topic": topic,
                    "partition": partition,
                    "replicas": found.replicas,
                    "adding": found.adding,
                    "removing": found.removing,
                }
                for (topic, partition), found in sorted(moving.items())
            ]
        )
        return
    if not moving:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for (topic, partition), found in sorted(moving.items()):
        adding = f" adding: {_ids(found.adding)}." if found.adding else ""
        removing = f" removing: {_ids(found.removing)}." if found.removing else ""
        print(f"{topic}-{partition}: replicas: {_ids(found.replicas)}.{adding}{removing}")


def _execute(client: Client, wanted: Assignment, execution: Execution, timeout_ms: int) -> None:
    current = replicas_now(client, sorted({topic for topic, _ in wanted}))
    missing = sorted(set(wanted) - set(current))
    if missing:
        raise CommandError(f"there is no partition {_name(missing[0])}; heirlog topics describe shows what there is")
    moving = reassignments(client)
    if moving and not execution.additional:
        raise CommandError(
            "another reassignment is in progress: show it with --list, wait or stop it with --cancel, or add this one "
            "with --additional"
        )
    print(f"Current partition replica assignment\n\n{assignment_json({key: current[key] for key in sorted(wanted)})}\n")
    print(ROLLBACK)
    if execution.throttle is not None:
        set_throttles(client, wanted, current, moving, execution.throttle)
        print(f"The inter-broker throttle limit was set to {execution.throttle} B/s")
        print(VERIFY_AT_THE_END)
    same_factor = execution.disallow_replication_factor_change
    failed = failures_of(reassign_partitions(client, wanted, timeout_ms, same_factor))
    begun = sorted(set(wanted) - set(failed))
    if begun:
        print(f"Successfully started partition reassignment{_s(begun)} for {','.join(map(_name, begun))}")
    _raise_failed("start", failed, len(wanted))


def _verify(client: Client, wanted: Assignment, preserve_throttles: bool, as_json: bool) -> None:
    current = replicas_now(client, sorted({topic for topic, _ in wanted}), missing_is_fine=True)
    moving = reassignments(client)
    states = {key: _state(key, replicas, current, moving) for key, replicas in sorted(wanted.items())}
    if as_json:
        rows = [
            {"topic": topic, "partition": partition, "state": state}
            for (topic, partition), (state, _) in states.items()
        ]
        show_json(rows)
    else:
        print("Status of partition reassignment:")
        for _, sentence in states.values():
            print(sentence)
    absent = sorted(set(wanted) - set(current))
    if not moving and not preserve_throttles:
        cleared = clear_throttles(client, sorted({topic for topic, _ in wanted}))
        if cleared and not as_json:
            print(f"\nThe throttles of {', '.join(cleared)} are lifted.")
    if absent:
        raise CommandError(f"{', '.join(map(_name, absent))} does not exist; heirlog topics list shows all topics")


def _state(
    key: TopicPartition, wanted: Sequence[int], current: Assignment, moving: Mapping[TopicPartition, Reassignment]
) -> tuple[str, str]:
    """A result code, and Kafka's message."""
    if key in moving:
        return "in-progress", f"Reassignment of partition {_name(key)} is still in progress."
    if key not in current:
        return "wrong", f"There is no partition {_name(key)}."
    if list(current[key]) == list(wanted):
        return "completed", f"Reassignment of partition {_name(key)} is completed."
    return "wrong", (
        f"There is no active reassignment of partition {_name(key)}, but replica set is "
        f"{_ids(current[key])} rather than {_ids(wanted)}."
    )


def _cancel(client: Client, wanted: Assignment, preserve_throttles: bool, timeout_ms: int) -> None:
    active = sorted(set(wanted) & set(reassignments(client)))
    failed = failures_of(reassign_partitions(client, dict.fromkeys(active), timeout_ms)) if active else {}
    stopped = [key for key in active if key not in failed]
    if stopped:
        print(f"Successfully cancelled partition reassignment{_s(stopped)} for: {','.join(map(_name, stopped))}")
    elif not active:
        print("None of the specified partition reassignments are active.")
    if not failed and not preserve_throttles:
        clear_throttles(client, sorted({topic for topic, _ in wanted}))
    _raise_failed("cancel", failed, len(active))


def _raise_failed(verb: str, failed: Mapping[TopicPartition, str], asked: int) -> None:
    if failed:
        key, reason = min(failed.items())
        raise CommandError(
            f"could not {verb} {len(failed)} of {asked} reassignments, first {_name(key)}: {reason} "
            "(heirlog topics describe shows replicas and ISR, heirlog broker list the brokers)"
        )


def _name(key: TopicPartition) -> str:
    return f"{key[0]}-{key[1]}"


def _s(several: Sequence[TopicPartition]) -> str:
    return "" if len(several) == 1 else "s"


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
