"""Where `heirlog consume` begins in each partition: an offset, a time, or so many records before the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.moments import moment_ms, warn_of_seconds
from heirlog.client.offsets import TopicPartition

if TYPE_CHECKING:
    from heirlog.blocking import Client

NAMES = {
    "earliest": "earliest",
    "beginning": "earliest",
    "start": "earliest",
    "latest": "latest",
    "end": "latest",
}
"""What `--offset` may name: Kafka's words, kcat's and rpk's."""
STORED = "stored"
"""kcat's word for the committed offsets of a group."""
TIME = "s@"
"""kcat's way to begin at a time."""


@dataclass(frozen=True, slots=True)
class Start:
    """At most one is given; none means the end, so that only new records are read."""

    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="Start at the earliest offset. Without it, only new records are read."),
    ] = False
    offset: Annotated[
        str | None,
        typer.Option(
            "--offset",
            "-o",
            help="Start here: a number, earliest, latest; -N as --last N; s@MS as --timestamp MS. With --group also "
            "stored: its committed offsets, as without the option.",
        ),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option(
            help="Start at the first record that is not older: 2026-11-21T12:00:00 (UTC), a time in ms, or PT1H for an "
            "hour ago."
        ),
    ] = None
    last: Annotated[
        int | None, typer.Option(min=0, help="Start this many offsets before the end of each partition.")
    ] = None

    @property
    def is_given(self) -> bool:
        return self.from_beginning or any(one is not None for one in (self.offset, self.timestamp, self.last))

    def checked(self, in_group: bool = False) -> Start:
        """With `offset` as a plain number only. Raises UsageError."""
        given = [self.from_beginning, self.offset is not None, self.timestamp is not None, self.last is not None]
        if sum(given) > 1:
            raise UsageError("give at most one of --from-beginning, --offset, --timestamp, --last")
        if self.offset is not None and self.offset.startswith(TIME):
            return Start(timestamp=self.offset.removeprefix(TIME)).checked()
        if self.timestamp is not None:
            moment_ms("--timestamp", self.timestamp)
            warn_of_seconds("--timestamp", self.timestamp)
        if self.offset is None:
            return self
        if self.offset == STORED:
            if not in_group:
                raise UsageError(f"--offset {STORED} is for the committed offsets of a group: give --group as well")
            return Start()
        if self.offset in NAMES:
            return Start(from_beginning=True) if NAMES[self.offset] == "earliest" else Start(last=0)
        try:
            number = int(self.offset)
        except ValueError as error:
            raise UsageError(
                f"--offset {self.offset} is no offset: give a number, earliest, latest, -N for the last N, or "
                f"{TIME}MS for the time in ms"
            ) from error
        return Start(last=-number) if number < 0 else self

    def offsets(
        self, client: Client, partitions: Iterable[TopicPartition], isolation: int = 0
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Of each partition the offset to begin at, and its end now.

        Raises CommandError for an offset that a partition does not have, KafkaError, OSError.
        """
        from heirlog.blocking import EARLIEST, LATEST

        wanted = list(partitions)
        ends = {at: found.offset for at, found in client.list_offsets(dict.fromkeys(wanted, LATEST), isolation).items()}
        if self.timestamp is not None:
            moment = moment_ms("--timestamp", self.timestamp)
            found = client.list_offsets(dict.fromkeys(wanted, moment), isolation)
            # -1: no record is that young
            return {at: one.offset if one.offset >= 0 else ends[at] for at, one in found.items()}, ends
        if not self.is_given:
            return dict(ends), ends
        begins = {at: one.offset for at, one in client.list_offsets(dict.fromkeys(wanted, EARLIEST)).items()}
        if self.last is not None:
            return {at: max(begins[at], ends[at] - self.last) for at in wanted}, ends
        if self.offset is None:
            return begins, ends
        offset = int(self.offset)
        for topic, partition in wanted:
            first, end = begins[topic, partition], ends[topic, partition]
            if not first <= offset <= end:
                raise CommandError(
                    f"{topic}-{partition} has no offset {offset}: it begins at {first}, and its next record gets "
                    f"{end}; use one between these, --from-beginning or --last N, or choose others with --partition"
                )
        return dict.fromkeys(wanted, offset), ends
