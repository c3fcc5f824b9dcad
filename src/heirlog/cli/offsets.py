"""`heirlog offsets`: where partitions begin and end, or which offset a time has, as kafka-get-offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import UsageError
from heirlog.cli.moments import moment_ms
from heirlog.cli.names import Include, PlaceNames, partitions_named, some_matching
from heirlog.cli.render import Json, show_rows

if TYPE_CHECKING:
    from heirlog.blocking import Client

NAMED_TIMES = {"latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5}
"""As ListOffsets numbers them (KIP-734, KIP-405, KIP-1005); kafka-get-offsets takes the names and the numbers."""


def offsets(
    places: PlaceNames = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", help="The same as TOPIC.")] = None,
    include: Include = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            "--timestamp",
            help="The first record that is not older: 2026-11-21T12:00:00 (UTC), a time in ms, PT1H for an hour ago; "
            f"or {', '.join(NAMED_TIMES)}.",
        ),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show the earliest and the latest offset of partitions, or the offset of a time."""
    named = [*(places or ()), *(topic or ())]
    if named and include is not None:
        raise UsageError("--include goes without the names of topics")
    when = None if time is None else _time(time)
    with connected(bootstrap_server) as client:
        if not named:
            topics = client.topic_names()
            named = topics if include is None else some_matching(topics, include)
        wanted = partitions_named(client, named) if named else []
        if when is None:
            _show_ends(client, wanted, as_json)
        else:
            _show_time(client, wanted, when, as_json)


def _time(text: str) -> int:
    """Raises UsageError."""
    if text in NAMED_TIMES:
        return NAMED_TIMES[text]
    if text in map(str, NAMED_TIMES.values()):
        return int(text)
    return moment_ms("--time", text)


def _show_ends(client: Client, wanted: list[tuple[str, int]], as_json: bool) -> None:
    from heirlog.blocking import EARLIEST, LATEST

    begins = client.list_offsets(dict.fromkeys(wanted, EARLIEST)) if wanted else {}
    ends = client.list_offsets(dict.fromkeys(wanted, LATEST)) if wanted else {}
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "earliest": begins[topic, partition].offset,
            "latest": ends[topic, partition].offset,
            "offsets": ends[topic, partition].offset - begins[topic, partition].offset,
        }
        for topic, partition in wanted
    ]
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "earliest": "Earliest",
        "latest": "Latest",
        "offsets": "Offsets",
    }
    show_rows(columns, rows, as_json)


def _show_time(client: Client, wanted: list[tuple[str, int]], when: int, as_json: bool) -> None:
    found = client.list_offsets(dict.fromkeys(wanted, when)) if wanted else {}
    rows = [
        {
            "topic": at[0],
            "partition": at[1],
            # none: no record is that young
            "offset": found[at].offset if found[at].offset >= 0 else None,
            "timestamp": found[at].timestamp_ms if found[at].timestamp_ms >= 0 else None,
        }
        for at in wanted
    ]
    show_rows({"topic": "Topic", "partition": "Partition", "offset": "Offset", "timestamp": "Timestamp"}, rows, as_json)
