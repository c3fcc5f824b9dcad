"""`heirlog groups reset-offsets`: sets the offsets of a group without members, like kafka-consumer-groups.

Shows the plan, does it with --execute. Offsets before a partition's first record are moved to that, shifted ones behind
its end to the end. Kafka's tool moves an offset that is named and lies behind the end too; here it is refused. The
offset of a share group is its start offset, as with kafka-share-groups.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.described_groups import share_group
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.groups import (
    LATEST,
    Group,
    GroupArgument,
    NamedTopics,
    TopicArguments,
    TopicPartition,
    committed_offsets,
    group_and_topics,
)
from heirlog.cli.moments import datetime_ms, duration_ms
from heirlog.cli.names import partitions_named
from heirlog.cli.option_groups import grouped
from heirlog.cli.render import Json, show_rows
from heirlog.cli.share_group_offsets import alter_share_offsets, share_offsets

if TYPE_CHECKING:
    from heirlog.blocking import Client

EARLIEST = -2


@dataclass(frozen=True, slots=True)
class Target:
    """Where the offsets move to; one of the options."""

    to_earliest: Annotated[bool, typer.Option("--to-earliest")] = False
    to_latest: Annotated[bool, typer.Option("--to-latest")] = False
    to_current: Annotated[bool, typer.Option("--to-current")] = False
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0)] = None
    shift_by: Annotated[int | None, typer.Option("--shift-by")] = None
    to_datetime: Annotated[
        str | None, typer.Option("--to-datetime", help="Such as 2026-11-21T12:00:00.000; UTC if it has no time zone.")
    ] = None
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="PnDTnHnMnS", help="How long before now, such as PT1H or P7D."),
    ] = None
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", help="A file of lines TOPIC,PARTITION,OFFSET, as --export prints them."),
    ] = None

    def check(self) -> None:
        """Raises UsageError if not exactly one option is given."""
        flags = (self.to_earliest, self.to_latest, self.to_current)
        values = (self.to_offset, self.shift_by, self.to_datetime, self.by_duration, self.from_file)
        if sum(flags) + sum(value is not None for value in values) != 1:
            raise UsageError(
                "choose a target: one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, "
                "--to-datetime, --by-duration, --from-file"
            )

    def when_ms(self) -> int | None:
        """The time whose offsets are wanted, None if the target is not a time. Raises UsageError."""
        if self.by_duration is not None:
            return int(time.time() * 1000) - duration_ms("--by-duration", self.by_duration)
        return None if self.to_datetime is None else datetime_ms("--to-datetime", self.to_datetime)


@grouped
def reset_offsets(
    *,
    group_argument: GroupArgument = None,
    topic_arguments: TopicArguments = None,
    group: Group = None,
    topic: NamedTopics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All topics for which the group has offsets.")
    ] = False,
    target: Target,
    export: Annotated[bool, typer.Option("--export", help="Print the plan as lines TOPIC,PARTITION,OFFSET.")] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Execute the plan; without it, the plan is only shown.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only (the default).")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Move the committed offsets of a group that has no members."""
    group, topics = group_and_topics(group_argument, group, topic_arguments, topic)
    target.check()
    if execute and dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
    if bool(topics) + all_topics != (target.from_file is None):
        raise UsageError("name the topics after the group, or give --all-topics or --from-file")
    when_ms = target.when_ms()
    given = None if target.from_file is None else _from_file(target.from_file)
    with connected(bootstrap_server) as client:
        shown = share_group(client, group)
        if shown is None:
            _check_inactive(client, group)
            committed = committed_offsets(client, group)
        else:
            _check_no_members(group, len(shown.members), shown.state)
            known = share_offsets(client, group)
            committed = {at: one.start for at, one in known.items() if one.start is not None}
        if given is not None:
            wanted = sorted(given)
        else:
            all_known = committed if shown is None else known
            wanted = sorted(all_known) if all_topics else partitions_named(client, topics)
        earliest = {key: at.offset for key, at in client.list_offsets(dict.fromkeys(wanted, EARLIEST)).items()}
        latest = {key: at.offset for key, at in client.list_offsets(dict.fromkeys(wanted, LATEST)).items()}
        if given is not None:
            moved = given
        elif target.to_earliest:
            moved = earliest
        elif target.to_latest:
            moved = latest
        elif when_ms is not None:
            found = client.list_offsets(dict.fromkeys(wanted, when_ms))
            moved = {key: at.offset if at.offset >= 0 else latest[key] for key, at in found.items()}
        elif target.to_offset is not None:
            moved = dict.fromkeys(wanted, target.to_offset)
        else:
            moved = _shifted(committed, wanted, latest, target.shift_by or 0)
        if given is not None or target.to_offset is not None:
            _check_ends(moved, latest)
        plan = {key: min(max(moved[key], earliest[key]), latest[key]) for key in wanted}
        _say_moved(moved, plan, earliest)
        if execute and plan and shown is not None:
            alter_share_offsets(client, group, plan)
        elif execute and plan:
            _commit(client, group, plan)
    if export:
        for (name, index), offset in sorted(plan.items()):
            print(f"{name},{index},{offset}")
        return
    columns = {"group": "Group", "topic": "Topic", "partition": "Partition", "new_offset": "NewOffset"}
    rows = [{"group": group, "topic": t, "partition": p, "new_offset": o} for (t, p), o in sorted(plan.items())]
    show_rows(columns, rows, as_json)
    if not as_json:
        print("These offsets are committed." if execute else "Nothing was changed; --execute commits these offsets.")


def _check_ends(moved: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> None:
    """Raises CommandError for a named offset that no record has yet: the group would miss what gets it."""
    for (topic, partition), end in sorted(latest.items()):
        if moved[topic, partition] > end:
            raise CommandError(
                f"{topic}-{partition} ends at offset {end}, so nothing can continue at {moved[topic, partition]}; to "
                "begin with the next record give --to-latest"
            )


def _say_moved(
    moved: Mapping[TopicPartition, int], plan: Mapping[TopicPartition, int], earliest: Mapping[TopicPartition, int]
) -> None:
    """Which offsets are not those that were asked for."""
    for (topic, partition), offset in sorted(plan.items()):
        asked = moved[topic, partition]
        if asked != offset:
            where = "begins" if offset == earliest[topic, partition] else "ends"
            print(f"{topic}-{partition} {where} at offset {offset}: not {asked}", file=sys.stderr)


def _check_inactive(client: Client, group: str) -> None:
    """Raises CommandError while it has members; a group that is not there yet may be given offsets."""
    from heirlog.protocol.messages import DescribeGroupsRequest

    request = DescribeGroupsRequest(groups=[group])
    found = client.send_to_coordinator(group, request, error_code=lambda got: int(got.groups[0].error_code)).groups[0]
    if not found.error_code:
        _check_no_members(group, len(found.members), found.group_state)


def _check_no_members(group: str, count: int, state: str) -> None:
    if count:
        raise CommandError(
            f"group {group} has {count} members ({state}): offsets can only be moved while it has none; "
            "stop its consumers first"
        )


def _shifted(
    committed: Mapping[TopicPartition, int], wanted: list[TopicPartition], latest: Mapping[TopicPartition, int], by: int
) -> dict[TopicPartition, int]:
    """Raises CommandError where there is nothing to count from; --to-current begins at the end there, as in Kafka."""
    missing = [key for key in wanted if key not in committed]
    if missing and by:
        topic, partition = missing[0]
        raise CommandError(f"{topic}-{partition} has no committed offset to shift")
    return {key: committed.get(key, latest[key]) + by for key in wanted}


def _commit(client: Client, group: str, plan: Mapping[TopicPartition, int]) -> None:
    from heirlog.blocking import CommittedOffset

    client.commit(group, {key: CommittedOffset(offset) for key, offset in plan.items()})


def _from_file(file: Path) -> dict[TopicPartition, int]:
    """Raises CommandError."""
    given: dict[TopicPartition, int] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines):
                if row:
                    topic, partition, offset = row[-3:]
                    given[topic, int(partition)] = int(offset)
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{file} is not of lines TOPIC,PARTITION,OFFSET, as --export prints them") from error
    if not given:
        raise CommandError(f"{file} names no partition")
    return given
