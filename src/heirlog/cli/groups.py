"""`heirlog groups list|describe|delete|reset-offsets`: consumer groups, in the words of kafka-consumer-groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import ErrorCode, error_code

if TYPE_CHECKING:
    from heirlog.blocking.cluster import BlockingClient
    from heirlog.blocking.data import DataClient

app = typer.Typer(help="Show consumer groups, delete them, and move their offsets.", no_args_is_help=True)

NAMED_OFFSET_FETCH = 9
"""The last version whose answer names topics instead of giving their ids."""
LATEST, EARLIEST = -1, -2
DEAD = "Dead"

TopicPartition = tuple[str, int]
Group = Annotated[str, typer.Option("--group", help="The group's id.")]
Groups = Annotated[list[str] | None, typer.Option("--group", help="A group's id; may be repeated.")]


@app.command("list")
def list_groups(
    state: Annotated[str | None, typer.Option(help="Only groups in these states, separated by commas.")] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List the groups of all coordinators."""
    with connected(bootstrap_server) as client:
        rows = _listed(client, [part.strip() for part in (state or "").split(",") if part.strip()])
    show_rows({"group": "Group", "protocol": "Protocol", "state": "State"}, rows, as_json)


def _listed(client: BlockingClient, states: list[str]) -> list[dict[str, Any]]:
    """Each broker knows the groups that it coordinates. Raises CommandError."""
    from heirlog.protocol.messages.list_groups import ListGroupsRequest

    rows = []
    for broker in sorted(client.brokers()):
        answer = client.send_to_broker(broker, ListGroupsRequest(states_filter=states))
        if answer.error_code:
            raise CommandError(f"broker {broker} cannot list its groups: {error_code(answer.error_code).name}")
        rows += [
            {"group": group.group_id, "protocol": group.protocol_type, "state": group.group_state}
            for group in answer.groups
        ]
    return sorted(rows, key=lambda row: row["group"])


@app.command("describe")
def describe(
    group: Groups = None,
    members: Annotated[bool, typer.Option("--members", help="Show members instead of offsets.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Show the groups' states instead of offsets.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show committed offsets and lag (of all groups, if none is named), members or states."""
    if members and state:
        raise UsageError("--members and --state exclude each other")
    with connected(bootstrap_server) as client:
        wanted = group or [row["group"] for row in _listed(client, [])]
        found = [_described(client, name) for name in wanted]
        if members:
            columns = {"group": "Group", "member": "Member", "instance": "Instance", "client": "Client", "host": "Host"}
            show_rows(columns, [row for one in found for row in _members(one)], as_json)
        elif state:
            columns = {"group": "Group", "state": "State", "protocol": "Assignor", "members": "Members"}
            show_rows(columns, [_state(one) for one in found], as_json)
        else:
            columns = {
                "group": "Group",
                "topic": "Topic",
                "partition": "Partition",
                "offset": "CurrentOffset",
                "end_offset": "LogEndOffset",
                "lag": "Lag",
            }
            with _data(bootstrap_server) as data:
                show_rows(columns, [row for name in wanted for row in _lags(client, data, name)], as_json)


def _described(client: BlockingClient, group: str) -> Any:
    """Raises CommandError for a group that is not there."""
    from heirlog.protocol.messages.describe_groups import DescribeGroupsRequest

    request = DescribeGroupsRequest(groups=[group])
    answer = client.send_to_coordinator(group, request, error_code=lambda got: int(got.groups[0].error_code)).groups[0]
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not answer.error_code and answer.group_state == DEAD):
        raise CommandError(f"there is no group {group}")
    if answer.error_code:
        raise CommandError(f"cannot describe group {group}: {error_code(answer.error_code).name}")
    return answer


def _members(group: Any) -> Iterator[dict[str, Any]]:
    for member in group.members:
        yield {
            "group": group.group_id,
            "member": member.member_id,
            "instance": member.group_instance_id,
            "client": member.client_id,
            "host": member.client_host,
        }


def _state(group: Any) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "state": group.group_state,
        "protocol": group.protocol_data,
        "members": len(group.members),
    }


def _lags(client: BlockingClient, data: DataClient, group: str) -> Iterator[dict[str, Any]]:
    committed = _committed(client, group)
    ends = data.list_offsets(dict.fromkeys(committed, LATEST)) if committed else {}
    for (topic, partition), offset in sorted(committed.items()):
        end = ends[topic, partition].offset
        yield {
            "group": group,
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "end_offset": end,
            "lag": max(end - offset, 0),
        }


def _committed(client: BlockingClient, group: str) -> dict[TopicPartition, int]:
    """Raises CommandError."""
    from heirlog.protocol.messages.offset_fetch import OffsetFetchRequest

    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
    # the first two are for brokers that know one group per request only
    request = OffsetFetchRequest(group_id=group, topics=None, groups=[asked])

    def code(response: Any) -> int:
        return int(response.groups[0].error_code if response.groups else response.error_code)

    answer = client.send_to_coordinator(group, request, error_code=code, newest=NAMED_OFFSET_FETCH)
    if code(answer):
        raise CommandError(f"cannot read the offsets of group {group}: {error_code(code(answer)).name}")
    topics = answer.groups[0].topics if answer.groups else answer.topics
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


@app.command("delete")
def delete(group: Groups = None, bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP) -> None:
    """Delete groups without members, and their offsets."""
    from heirlog.protocol.messages.delete_groups import DeleteGroupsRequest

    if not group:
        raise UsageError("name at least one group with --group")
    failed = 0
    with connected(bootstrap_server) as client:
        for name in group:
            request = DeleteGroupsRequest(groups_names=[name])
            answer = client.send_to_coordinator(name, request, error_code=lambda got: int(got.results[0].error_code))
            code = answer.results[0].error_code
            failed += bool(code)
            print(f"{name}: {f'not deleted, {error_code(code).name}' if code else 'deleted'}")
    if failed:
        raise typer.Exit(EXIT_FAILED)


@app.command("reset-offsets")
def reset_offsets(
    group: Group,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="TOPIC or TOPIC:0,1,2; may be repeated.", metavar="TOPIC")
    ] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="All that the group has offsets of.")] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest")] = False,
    to_current: Annotated[bool, typer.Option("--to-current")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0)] = None,
    shift_by: Annotated[int | None, typer.Option("--shift-by")] = None,
    to_datetime: Annotated[
        str | None, typer.Option("--to-datetime", help="2026-11-21T12:00:00.000, UTC unless it says otherwise.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; otherwise the plan is shown.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only (the default).")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Move the committed offsets of a group that has no members."""
    ways = to_earliest + to_latest + to_current + sum(w is not None for w in (to_offset, shift_by, to_datetime))
    if ways != 1:
        raise UsageError(
            "say where to: one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime"
        )
    if execute and dry_run:
        raise UsageError("--execute and --dry-run exclude each other")
    if bool(topic) == all_topics:
        raise UsageError("say of what: --topic, or --all-topics")
    when_ms = None if to_datetime is None else _timestamp_ms(to_datetime)
    with connected(bootstrap_server) as client, _data(bootstrap_server) as data:
        _check_inactive(client, group)
        committed = _committed(client, group)
        wanted = sorted(committed) if all_topics else _partitions(data, topic or [])
        earliest = {key: at.offset for key, at in data.list_offsets(dict.fromkeys(wanted, EARLIEST)).items()}
        latest = {key: at.offset for key, at in data.list_offsets(dict.fromkeys(wanted, LATEST)).items()}
        if to_earliest:
            target = earliest
        elif to_latest:
            target = latest
        elif when_ms is not None:
            found = data.list_offsets(dict.fromkeys(wanted, when_ms))
            target = {key: at.offset if at.offset >= 0 else latest[key] for key, at in found.items()}
        elif to_offset is not None:
            target = dict.fromkeys(wanted, to_offset)
        else:
            target = _shifted(committed, wanted, latest, shift_by or 0)
        plan = {key: min(max(target[key], earliest[key]), latest[key]) for key in wanted}
        if execute and plan:
            _commit(data, group, plan)
    columns = {"group": "Group", "topic": "Topic", "partition": "Partition", "new_offset": "NewOffset"}
    rows = [{"group": group, "topic": t, "partition": p, "new_offset": o} for (t, p), o in sorted(plan.items())]
    show_rows(columns, rows, as_json)


def _check_inactive(client: BlockingClient, group: str) -> None:
    """Raises CommandError while it has members; a group that is not there yet may be given offsets."""
    from heirlog.protocol.messages.describe_groups import DescribeGroupsRequest

    request = DescribeGroupsRequest(groups=[group])
    found = client.send_to_coordinator(group, request, error_code=lambda got: int(got.groups[0].error_code)).groups[0]
    if not found.error_code and found.members:
        raise CommandError(
            f"group {group} has {len(found.members)} members ({found.group_state}): offsets can only be moved "
            f"while it has none; stop its consumers first"
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


def _commit(data: DataClient, group: str, plan: Mapping[TopicPartition, int]) -> None:
    from heirlog.blocking.data import CommittedOffset

    data.commit(group, {key: CommittedOffset(offset) for key, offset in plan.items()})


def _data(bootstrap_server: str) -> DataClient:
    from heirlog.blocking.data import DataClient

    return DataClient(bootstrap_server)


def _partitions(data: DataClient, wanted: list[str]) -> list[TopicPartition]:
    """`orders`, `orders:0,2`. Raises UsageError, KafkaError."""
    named = {}
    for text in wanted:
        name, _, numbers = text.partition(":")
        if numbers and not all(part.isdecimal() for part in numbers.split(",")):
            raise UsageError(f"--topic {text} is not of the form TOPIC or TOPIC:0,1,2")
        named[name] = [int(part) for part in numbers.split(",")] if numbers else None
    found = data.topics(named)
    for name, chosen in named.items():
        strange = sorted(set(chosen or ()) - set(found[name].partitions))
        if strange:
            raise CommandError(f"{name} has no partition {strange[0]}")
    return [(name, number) for name, chosen in named.items() for number in chosen or found[name].partitions]


def _timestamp_ms(text: str) -> int:
    """Raises UsageError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--to-datetime {text} is not of the form 2026-11-21T12:00:00.000") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
