"""`heirlog consume TOPIC...`: print records, from any offset on, to the end or until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from heirlog.cli import complete
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.coordinator_state import explaining
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.group_options import GroupOptions, group_options
from heirlog.cli.group_reader import GroupReader
from heirlog.cli.group_topics import GroupTopics
from heirlog.cli.interrupts import Interrupts
from heirlog.cli.names import named, no_such_partition, some_matching
from heirlog.cli.option_groups import grouped
from heirlog.cli.output import Output
from heirlog.cli.places import partition_count
from heirlog.cli.record_format import Format, as_json, as_shared_json, as_text, as_text_with_key, format_of
from heirlog.cli.record_reader import Reader, topic_ids
from heirlog.cli.share_reader import ShareReader
from heirlog.cli.start_offsets import Start
from heirlog.cli.waiting import Saying, once, say
from heirlog.client.offsets import TopicPartition
from heirlog.protocol.batch import Record

if TYPE_CHECKING:
    from heirlog.blocking import Client

Rounds: TypeAlias = Generator[list[tuple[TopicPartition, list[Record]]]]


NamedTopics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", help="The same in Kafka's words; may be repeated.", autocompletion=complete.topics),
]


class IsolationLevel(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


_ONLY_SHARE_GROUP = (None, None, False, False, IsolationLevel.READ_UNCOMMITTED)
"""The options that a share group decides, not given."""


@grouped
def consume(
    start: Start,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="One topic or several.", autocompletion=complete.topics)
    ] = None,
    topic: NamedTopics = None,
    include: Annotated[
        str | None, typer.Option(help="All topics that this regular expression matches as a whole, instead of TOPIC.")
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this partition. May be repeated.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            "-G",
            help="Read as a member of this group, from its committed offsets on, and commit what was written. With "
            "--until-end, a coordinator that cannot work for 30 s is an error.",
        ),
    ] = None,
    share_group: Annotated[
        str | None,
        typer.Option(
            "--share-group",
            help="Read as a member of this share group, whose members share partitions record by record, and accept "
            "what was written.",
        ),
    ] = None,
    consumer_property: Annotated[
        list[str] | None,
        typer.Option(
            "--consumer-property",
            "-X",
            metavar="NAME=VALUE",
            help="How it is a member of the group, as Kafka's consumers have it: partition.assignment.strategy (range, "
            "roundrobin, sticky, cooperative-sticky; all by default), session.timeout.ms, heartbeat.interval.ms, "
            "max.poll.interval.ms, metadata.max.age.ms, group.instance.id. May be repeated.",
        ),
    ] = None,
    until_end: Annotated[
        bool,
        typer.Option(
            "--until-end",
            "-e",
            help="Stop at the end that each partition has now. Starts at the earliest offset if no start is given.",
        ),
    ] = False,
    max_records: Annotated[
        int | None, typer.Option("--max", "--max-messages", "-c", "-n", min=1, help="Stop after this many records.")
    ] = None,
    isolation_level: Annotated[
        IsolationLevel,
        typer.Option(
            "--isolation-level",
            help="read_committed: without the records of aborted and open transactions; reading waits for open ones.",
        ),
    ] = IsolationLevel.READ_UNCOMMITTED,
    print_key: Annotated[bool, typer.Option("--print-key", help="Print each key and a tab before the value.")] = False,
    record_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="As kcat has it: %s value, %k key, %h headers, %t topic, %p partition, %o offset, %T timestamp in ms, "
            "%S and %K lengths; \\n, \\t, \\xHH. Nothing is added, so '%s' writes raw values.",
        ),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    in_json: Annotated[bool, typer.Option("--json", "-J", help="One JSON object per record.")] = False,
) -> None:
    """Print the records of topics, a line each. The end is Ctrl-C, --until-end or --max."""
    topics = named(topics, topic)
    if bool(topics) == bool(include):
        excess = "; they exclude each other" if topics else ""
        raise UsageError(f"name the topics, or give --include with a regular expression{excess}")
    if sum((in_json, print_key, record_format is not None)) > 1:
        raise UsageError("give at most one of --json, --print-key, --format")
    chosen: Format = as_json if in_json else as_text_with_key if print_key else as_text
    if record_format is not None:
        chosen = format_of(record_format)
    start = start.checked(in_group=group is not None)
    if group is not None and (partition or (start.is_given and not start.from_beginning)):
        raise UsageError(
            "--group goes with --from-beginning only, for partitions without a committed offset: the group decides who "
            "reads which partition; heirlog groups reset-offsets --help says how to begin elsewhere"
        )
    if consumer_property and group is None:
        raise UsageError("--consumer-property is for a member of a group: give --group as well")
    if share_group is not None and (group, partition, until_end, start.is_given, isolation_level) != _ONLY_SHARE_GROUP:
        raise UsageError(
            "--share-group goes with none of --group, --partition, --until-end, --isolation-level, or a start: that is "
            "for the group to decide; heirlog configs alter group sets share.auto.offset.reset"
        )
    options = group_options(consumer_property or ())
    if until_end and not start.is_given:
        start = Start(from_beginning=True)
    isolation = int(isolation_level is IsolationLevel.READ_COMMITTED)
    with connected(bootstrap_server, says_waiting=False) as client, Interrupts() as interrupts:
        output = Output(sys.stdout.fileno(), interrupts)
        if group is not None and not until_end:
            unread = "all records" if start.from_beginning else "new records (--from-beginning: all)"
            _say_on_terminal(f"reading from the committed offsets of group {group}, without one {unread}; Ctrl-C ends")
        if share_group is not None:
            _say_on_terminal(
                f"reading what members of share group {share_group} have not accepted; a new group begins with new "
                f"records (heirlog configs alter group {share_group} share.auto.offset.reset=earliest: with all). "
                "Ctrl-C ends"
            )
        if share_group is not None:
            with interrupts.allowed():
                names = _group_topics(client, topics, include, options, waits=True).names
            shared = ShareReader(client, share_group, names, max_records)
            if in_json:
                chosen = partial(as_shared_json, shared.delivery_count)
            with closing(shared.rounds()) as rounds:
                _write(rounds, chosen, output, shared.wrote)
            return
        if group is not None:
            with interrupts.allowed():
                read = _group_topics(client, topics, include, options, waits=not until_end)
            member = GroupReader(
                client,
                group,
                read,
                options=options,
                from_beginning=start.from_beginning,
                until_end=until_end,
                isolation=isolation,
                left=max_records,
                explain=explaining(bootstrap_server),
            )
            with closing(member.rounds()) as rounds:
                _write(rounds, chosen, output, member.wrote)
            return
        with interrupts.allowed():
            names = topics or some_matching(client.topic_names(), include or "")
            waits = f"waiting for the leaders of {', '.join(names)}: heirlog topics describe --unavailable-partitions"
            with Saying(once(lambda: waits)):
                read_from = list(_partitions(client, names, partition))
                ids = topic_ids(client, read_from)
                begins, ends = start.offsets(client, read_from, isolation)
        if not start.is_given:
            # what is typed first shows nothing on a topic that has records
            _say_on_terminal("waiting for new records; --from-beginning prints those that are there; Ctrl-C ends")
        reader = Reader(client, begins, ids, ends if until_end else None, isolation, max_records)
        _write(reader.rounds(), chosen, output)


def _say_on_terminal(sentence: str) -> None:
    if sys.stderr.isatty():
        say(sentence)


def _group_topics(
    client: Client, names: Sequence[str], include: str | None, options: GroupOptions, *, waits: bool
) -> GroupTopics:
    """waits: topics that do not exist are waited for; else raises CommandError for them. Raises UsageError."""
    topics = GroupTopics(client, names, include, options.metadata_max_age_ms)
    if waits:
        missing = topics.missing_of(topics.names)
        if missing or not topics.names:
            # a wrong name would wait for ever, without a word
            what = f"topic {', '.join(missing)} does not exist" if missing else f"no topic matches {include} as a whole"
            print(f"{what} yet: waiting for it", file=sys.stderr, flush=True)
    elif include is not None:
        some_matching(topics.names, include)
    else:
        for name in names:
            partition_count(client, name)
    return topics


def _partitions(client: Client, topics: Sequence[str], only: Sequence[int] | None) -> Iterator[TopicPartition]:
    """Raises CommandError if there is no such topic or partition."""
    for topic in dict.fromkeys(topics):
        count = partition_count(client, topic)
        for partition in only or ():
            if partition >= count:
                raise CommandError(no_such_partition(topic, count, partition))
        for partition in dict.fromkeys(only) if only else range(count):
            yield topic, partition


def _write(rounds: Rounds, chosen: Format, output: Output, on_written: Callable[[], None] = lambda: None) -> None:
    """on_written: called after each round whose records are written, also if a signal came after the last byte."""
    for found in output.interrupts.allowing(rounds):
        data = b"".join(chosen(topic, partition, record) for (topic, partition), records in found for record in records)
        try:
            output.write(data)
        finally:
            if output.is_written:
                on_written()
