"""`heirlog groups list|describe|delete|delete-offsets`: groups, in the words of kafka-consumer-groups.

Share groups are shown and changed by the same commands; their offsets are those of `share_group_offsets.py`.

Resetting offsets is `reset_offsets.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli import complete
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.described_groups import SHARE, ShownGroup, as_texts, described_group, share_group
from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.cli.listed_groups import listed_groups
from heirlog.cli.names import chosen_parts, given_once, matching, partitions_named
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, NamesOnly, show_json, show_names, show_rows
from heirlog.cli.share_group_offsets import delete_share_offsets, share_offsets
from heirlog.client.offsets import find_coordinator
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.types import CoordinatorType

if TYPE_CHECKING:
    from heirlog.blocking import Client

app = typer.Typer(help="Show consumer and share groups, delete them, and move their offsets.", no_args_is_help=True)

NAMED_OFFSET_FETCH = 9
"""The last version whose answer names topics instead of giving their ids."""
LATEST = -1
TYPES = ("classic", "consumer", "share")
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Unknown",
)
"""Of all types of groups, as in Kafka's GroupState."""
_DELETED = {ErrorCode.NONE.name: "deleted"}

TopicPartition = tuple[str, int]
GroupArgument = Annotated[
    str | None,
    typer.Argument(metavar="GROUP", help="The group's id.", show_default=False, autocompletion=complete.groups),
]
Group = Annotated[
    str | None, typer.Option("--group", help="The same in Kafka's words.", autocompletion=complete.groups)
]
GroupArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="The groups' ids.", show_default=False, autocompletion=complete.groups),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", help="The same in Kafka's words; may be repeated.", autocompletion=complete.groups),
]
Include = Annotated[
    str | None, typer.Option(metavar="REGEX", help="All groups that this regular expression matches as a whole.")
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="All groups.")]
NamedTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", help="TOPIC or TOPIC:0,1,2; may be repeated.", metavar="TOPIC", autocompletion=complete.topics
    ),
]


TopicArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC[:0,1]", help="The same as --topic.", show_default=False, autocompletion=complete.topics
    ),
]


def group_and_topics(
    argument: str | None, option: str | None, topic_arguments: list[str] | None, topics: list[str] | None
) -> tuple[str, list[str]]:
    """With --group all arguments are topics. Raises UsageError."""
    named = [*(topic_arguments or ()), *(topics or ())]
    if argument is not None and option is not None:
        return option, [argument, *named]
    return one_group(argument, option), named


def one_group(argument: str | None, option: str | None) -> str:
    """Raises UsageError unless exactly one names the group."""
    return given_once("group", "GROUP", argument, "--group", option)


@app.command("list")
def list_groups(
    include: Include = None,
    state: Annotated[str | None, typer.Option(help="Only groups in these states, separated by commas.")] = None,
    kind: Annotated[
        str | None,
        typer.Option("--type", help="Only groups of these types, separated by commas: classic, consumer, share."),
    ] = None,
    names_only: NamesOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List the groups of all coordinators."""
    states = chosen_parts("--state", state, STATES)
    types = chosen_parts("--type", kind, TYPES)
    with connected(bootstrap_server) as client:
        rows = listed_groups(client, states, types)
    shown = matching((row["group"] for row in rows), include)
    rows = [row for row in rows if row["group"] in shown]
    if names_only:
        show_names((row["group"] for row in rows), as_json)
        return
    show_rows({"group": "Group", "type": "Type", "protocol": "Protocol", "state": "State"}, rows, as_json)


@app.command("describe")
def describe(
    groups: GroupArguments = None,
    group: Groups = None,
    all_groups: AllGroups = False,
    offsets: Annotated[bool, typer.Option("--offsets", help="Show offsets and lag. This is the default.")] = False,
    members: Annotated[bool, typer.Option("--members", help="Show members instead of offsets.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Show the groups' states instead of offsets.")] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="With --members: show the epoch and the partitions of each member. With --state: show epochs.",
        ),
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show committed offsets and lag (of all groups, if none is named), members or states."""
    if offsets + members + state > 1:
        raise UsageError("--offsets, --members and --state exclude each other")
    named = [*(groups or ()), *(group or ())]
    if named and all_groups:
        raise UsageError("--all-groups goes without the names of groups")
    with connected(bootstrap_server) as client:
        wanted = named or [row["group"] for row in listed_groups(client)]
        found = [described_group(client, name) for name in wanted]
        if members:
            columns = {"group": "Group", "member": "Member", "instance": "Instance", "host": "Host", "client": "Client"}
            columns |= {"partitions": "Partitions"}
            columns |= {"type": "Type", "epoch": "Epoch", "assignment": "Assignment"} if verbose else {}
            columns |= {"target": "Target"} if verbose else {}
            rows = [row for one in found for row in _members(one)]
            # a program counts the assignment
            shown = rows if as_json else [row | {"partitions": len(row["assignment"])} for row in rows]
            show_rows(columns, shown, as_json)
        elif state:
            columns = {"group": "Group", "coordinator": "Coordinator", "state": "State", "protocol": "Assignor"}
            columns |= {"members": "Members"}
            if verbose:
                columns |= {"type": "Type", "group_epoch": "GroupEpoch", "assignment_epoch": "AssignmentEpoch"}
            show_rows(columns, [_state(client, one) for one in found], as_json)
        else:
            lags = {one.group_id: list(_lags(client, one)) for one in found}
            if as_json:
                show_json([row for of_group in lags.values() for row in of_group])
            else:
                _show_lags(found, lags)


def _show_lags(groups: Sequence[ShownGroup], rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Share groups in a table of their own, with the columns of kafka-share-groups: behind the start offset some
    records may be finished and others not, so its distance from the end is not the lag."""
    shared = [one.group_id for one in groups if one.kind == SHARE]
    others = [one.group_id for one in groups if one.kind != SHARE]
    if others or not shared:
        shown = [row for group in others for row in rows[group]]
        columns = {"group": "Group", "topic": "Topic", "partition": "Partition"}
        columns |= {"offset": "CurrentOffset", "end_offset": "LogEndOffset", "lag": "Lag"}
        # as in Kafka's table, whose members are "-" in a group without any
        columns |= {"member": "Member", "host": "Host", "client": "Client"} if _has_members(shown) else {}
        show_rows(columns, shown, as_json=False)
        _show_totals(others, shown)
    if shared:
        shown = [row for group in shared for row in rows[group]]
        starts = {"group": "Group", "topic": "Topic", "partition": "Partition", "offset": "StartOffset", "lag": "Lag"}
        show_rows(starts, shown, as_json=False)
        _show_totals(shared, shown)


def _has_members(rows: list[dict[str, Any]]) -> bool:
    return any(row["member"] is not None for row in rows)


def _show_totals(groups: list[str], rows: list[dict[str, Any]]) -> None:
    for group in groups:
        own = [row for row in rows if row["group"] == group]
        if not own:
            print(f"{group}: no committed offsets")
            continue
        uncommitted = sum(row["offset"] is None for row in own)
        without = f"; {uncommitted} assigned without a committed offset" if uncommitted else ""
        print(f"{group}: total lag {sum(row['lag'] or 0 for row in own)}{without}")


def _members(group: ShownGroup) -> Iterator[dict[str, Any]]:
    for member in group.members:
        yield {
            "group": group.group_id,
            "member": member.member_id,
            "instance": member.instance_id,
            "client": member.client_id,
            "host": member.client_host,
            "type": member.kind,
            "assignment": as_texts(member.assigned),
            "epoch": member.epoch,
            "target": None if member.target is None else as_texts(member.target),
        }


def _state(client: Client, group: ShownGroup) -> dict[str, Any]:
    answer = client.send_to_any(find_coordinator(group.group_id, CoordinatorType.GROUP))
    coordinator = answer.coordinators[0] if answer.coordinators else answer
    return {
        "group": group.group_id,
        "coordinator": None if coordinator.error_code else coordinator.node_id,
        "type": group.kind,
        "state": group.state,
        "protocol": group.assignor,
        "members": len(group.members),
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def _lags(client: Client, group: ShownGroup) -> Iterator[dict[str, Any]]:
    """Of each partition that has a committed offset or is assigned to a member; without a commit there is no lag.

    The offset of a share group is its start offset, and brokers know its lag. Its partitions have no single member.
    """
    lags: dict[TopicPartition, int | None] = {}
    if group.kind == SHARE:
        shared = share_offsets(client, group.group_id)
        lags = {at: one.lag for at, one in shared.items()}
        committed = {at: one.start for at, one in shared.items() if one.start is not None}
    else:
        committed = committed_offsets(client, group.group_id)
    assigned = {
        (topic, number): member
        for member in group.members
        for topic, numbers in member.assigned.items()
        for number in numbers
    }
    wanted = sorted(committed.keys() | lags.keys() | assigned.keys())
    ends = client.list_offsets(dict.fromkeys(wanted, LATEST)) if wanted else {}
    for at in wanted:
        offset, end = committed.get(at), ends[at].offset
        member = assigned.get(at) if group.kind != SHARE else None
        yield {
            "group": group.group_id,
            "topic": at[0],
            "partition": at[1],
            "offset": offset,
            "end_offset": end,
            "lag": lags[at] if at in lags else None if offset is None else max(end - offset, 0),
            "member": member and member.member_id,
            "host": member and member.client_host,
            "client": member and member.client_id,
        }


def committed_offsets(client: Client, group: str) -> dict[TopicPartition, int]:
    """Raises CommandError."""
    from heirlog.protocol.messages import OffsetFetchRequest

    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
    # the first two are for brokers that know one group per request only
    request = OffsetFetchRequest(group_id=group, topics=None, groups=[asked])

    def code(response: Any) -> int:
        return int(response.groups[0].error_code if response.groups else response.error_code)

    answer = client.send_to_coordinator(group, request, error_code=code, newest=NAMED_OFFSET_FETCH)
    if code(answer):
        failure = error_code(code(answer))
        raise CommandError(with_next_step(f"cannot read the offsets of group {group}: {failure.name}", failure))
    topics = answer.groups[0].topics if answer.groups else answer.topics
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


@app.command("delete")
def delete(
    groups: GroupArguments = None,
    group: Groups = None,
    all_groups: AllGroups = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete groups without members, and their offsets."""
    from heirlog.protocol.messages import DeleteGroupsRequest

    named = [*(groups or ()), *(group or ())]
    if bool(named) == all_groups:
        raise UsageError("name the groups, or use --all-groups")
    failed = 0
    with connected(bootstrap_server) as client:
        for name in named or [row["group"] for row in listed_groups(client)]:
            request = DeleteGroupsRequest(groups_names=[name])
            answer = client.send_to_coordinator(name, request, error_code=lambda got: int(got.results[0].error_code))
            code = error_code(answer.results[0].error_code)
            failed += bool(code)
            print(with_next_step(f"{name}: not deleted, {code.name}", code) if code else f"{name}: deleted")
    if failed:
        raise typer.Exit(EXIT_FAILED)


@app.command("delete-offsets")
def delete_offsets(
    group_argument: GroupArgument = None,
    topic_arguments: TopicArguments = None,
    group: Group = None,
    topic: NamedTopics = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Delete a group's committed offsets of topics that none of its members reads; of a share group, whole topics."""
    from heirlog.protocol.messages import OffsetDeleteRequest

    group, topics_named = group_and_topics(group_argument, group, topic_arguments, topic)
    if not topics_named:
        raise UsageError("name the topics after the group, or with --topic: TOPIC or TOPIC:0,1,2")
    with connected(bootstrap_server) as client:
        if share_group(client, group) is not None:
            if any(":" in name for name in topics_named):
                raise UsageError("a share group forgets whole topics: --topic TOPIC")
            _show_deleted(delete_share_offsets(client, group, topics_named), as_json)
            return
        topics: dict[str, OffsetDeleteRequest.OffsetDeleteRequestTopic] = {}
        for name, partition in partitions_named(client, topics_named):
            one = topics.setdefault(name, OffsetDeleteRequest.OffsetDeleteRequestTopic(name=name))
            one.partitions.append(OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=partition))
        request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))
        answer = client.send_to_coordinator(group, request, error_code=lambda got: int(got.error_code))
    if answer.error_code:
        failure = error_code(answer.error_code)
        raise CommandError(with_next_step(f"cannot delete offsets of group {group}: {failure.name}", failure))
    rows = [
        {"topic": found.name, "partition": partition.partition_index, "result": error_code(partition.error_code).name}
        for found in answer.topics
        for partition in found.partitions
    ]
    _show_deleted(rows, as_json)


def _show_deleted(rows: list[dict[str, Any]], as_json: bool) -> None:
    # NONE of a program's answer reads as if nothing were done
    shown = rows if as_json else [row | {"result": _DELETED.get(row["result"], row["result"])} for row in rows]
    show_rows({"topic": "Topic", "partition": "Partition", "result": "Result"}, shown, as_json)
    if any(row["result"] != ErrorCode.NONE.name for row in rows):
        raise typer.Exit(EXIT_FAILED)
