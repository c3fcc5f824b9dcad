"""`heirlog consume TOPIC`: print records, from now on or from the beginning."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError
from heirlog.cli.places import partition_count
from heirlog.cli.render import text_or_base64
from heirlog.client.aborted import AbortedTransactions
from heirlog.protocol.batch import Record, decode_records, walk
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client


IDLE_WAIT_MS = 500
"""How long a round over all partitions may wait for records when the round before brought none."""


class IsolationLevel(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


def consume(
    topic: Annotated[str, typer.Argument()],
    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="Start at the earliest offset. Without it, only new records are read."),
    ] = False,
    max_records: Annotated[int | None, typer.Option("--max", min=1, help="Stop after this many records.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition.")] = None,
    isolation_level: Annotated[
        IsolationLevel,
        typer.Option(
            "--isolation-level",
            help="read_committed: without the records of aborted and open transactions; reading waits for open ones.",
        ),
    ] = IsolationLevel.READ_UNCOMMITTED,
    print_key: Annotated[bool, typer.Option("--print-key", help="Print each key and a tab before the value.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per record.")] = False,
) -> None:
    """Print each record's value as a line, until Ctrl-C or --max."""
    out = sys.stdout.buffer
    left = max_records
    isolation = int(isolation_level is IsolationLevel.READ_COMMITTED)
    with connected(bootstrap_server) as client:
        for number, records in Reader(client, topic, partition, from_beginning, isolation).batches():
            wanted = records if left is None else records[:left]
            for record in wanted:
                out.write(_as_json(topic, number, record) if as_json else _as_text(record, print_key))
            out.flush()
            if left is not None:
                left -= len(wanted)
                if not left:
                    return


class Reader:
    def __init__(
        self, client: Client, topic: str, partition: int | None, from_beginning: bool, isolation: int = 0
    ) -> None:
        """isolation: as the Fetch API numbers it.

        Raises CommandError if there is no such topic or partition, KafkaError, OSError."""
        from heirlog.blocking import EARLIEST, LATEST

        self._client = client
        self._topic = topic
        self._isolation = isolation
        count = partition_count(client, topic)
        if partition is not None and partition >= count:
            raise CommandError(f"{topic} has partitions 0 to {count - 1}, not {partition}")
        start = EARLIEST if from_beginning else LATEST
        numbers = range(count) if partition is None else [partition]
        found = client.list_offsets({(topic, number): start for number in numbers}, isolation)
        self._next = {number: found[topic, number].offset for number in numbers}

    def batches(self) -> Iterator[tuple[int, list[Record]]]:
        """(partition, records) without end. Raises CommandError, KafkaError, OSError."""
        wait_ms = 0
        while True:
            found = False
            for partition in self._next:
                records = self._fetch(partition, wait_ms)
                if records:
                    found = True
                    yield partition, records
            wait_ms = 0 if found else max(1, IDLE_WAIT_MS // len(self._next))

    def _fetch(self, partition: int, wait_ms: int) -> list[Record]:
        wanted = self._next[partition]
        data = self._client.fetch_at(self._topic, partition, wanted, isolation=self._isolation, max_wait_ms=wait_ms)
        if data.error_code:
            raise CommandError(
                f"{self._topic}-{partition} cannot be read at offset {wanted}: {error_code(data.error_code).name}"
            )
        records: list[Record] = []
        fetched = data.records or b""
        assert not isinstance(fetched, list), "a decoded answer has its records in one piece"
        aborted = AbortedTransactions([(one.producer_id, one.first_offset) for one in data.aborted_transactions or []])
        for position, header in walk(fetched, partial_tail=True):
            if not aborted.skips(fetched, position, header):
                # the first batch may begin before the offset that was asked for
                records += [record for record in decode_records(fetched, position) if record.offset >= wanted]
            self._next[partition] = header.next_offset
        return records


def _as_text(record: Record, print_key: bool) -> bytes:
    value = record.value if record.value is not None else b""
    return b"%s\t%s\n" % (record.key or b"", value) if print_key else value + b"\n"


def _as_json(topic: str, partition: int, record: Record) -> bytes:
    shown = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": text_or_base64(record.key),
        "value": text_or_base64(record.value),
        "headers": [[name, text_or_base64(value)] for name, value in record.headers],
    }
    return json.dumps(shown).encode() + b"\n"
