"""`heirlog recover salvage list|write|produce`: what elections gave up and brokers have kept (`storage/discarded.py`).

Reads the folders of one broker, running or not; each replica kept its own share, and two of them may hold the same
records. Producing appends: the records get new offsets, behind what has been written since, and appending them twice
stores them twice.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.doctor import log_directories
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.names import no_such_partition
from heirlog.cli.places import partition_count
from heirlog.cli.render import Json, Yes, confirm, show_json, show_rows, text_or_base64
from heirlog.protocol.batch import (
    HEADER_SIZE,
    BatchHeader,
    InvalidBatch,
    Record,
    crc_matches,
    decode_records,
    read_header,
)
from heirlog.protocol.transaction_marker import marker_of
from heirlog.storage.directory_names import parse_directory_name
from heirlog.storage.discarded import DIRECTORY, parse_file_name

app = typer.Typer(help="List and use records that an election gave up and a broker has kept.", no_args_is_help=True)

STANDARD_OUTPUT = "-"

Directories = Annotated[
    list[Path],
    typer.Argument(
        help="Log directories, or folders that contain some, such as the data folder of a local cluster.",
        metavar="DIR...",
    ),
]
Files = Annotated[list[Path], typer.Argument(help="Files that `salvage list` names.", metavar="FILE...")]


class KeptFile(NamedTuple):
    path: Path
    topic: str
    partition: int
    leader_epoch: int
    """In which it was removed: that of the election that gave it up, or a later one, if the broker was away."""


class Batch(NamedTuple):
    header: BatchHeader
    records: list[Record]


@app.command("list")
def list_kept(directories: Directories, as_json: Json = False) -> None:
    """List the ranges that a broker has kept, and the producers whose transactions have records or a marker there.

    Producers are shown as id/epoch; those with :commit or :abort lost the marker of a transaction.
    """
    rows = list(kept_rows(directories))
    if not rows and not as_json:
        print("no kept records found")
        return
    if not as_json:
        for row in rows:
            row["transactions"] = [_transaction_text(each) for each in row["transactions"]]
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "leader_epoch": "LeaderEpoch",
        "first_offset": "FirstOffset",
        "end_offset": "EndOffset",
        "records": "Records",
        "transactions": "Producers",
        "bytes": "Bytes",
        "kept_at": "KeptAt",
        "file": "File",
    }
    show_rows(columns, rows, as_json)


def kept_rows(directories: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Each kept file below these folders. Raises UsageError for a folder that is not there, CommandError for a damaged
    file."""
    for directory in directories:
        for path in log_directories(directory):
            yield from map(_row, _kept_in(path))


def _kept_in(log_directory: Path) -> Iterator[KeptFile]:
    for path in sorted(log_directory.glob(f"*/{DIRECTORY}/*")):
        kept = _understood(path)
        if kept is not None:
            yield kept


def _understood(path: Path) -> KeptFile | None:
    """None: not a file of ours, by its name and place."""
    partition = parse_directory_name(path.absolute().parent.parent.name)
    name = parse_file_name(path.name)
    if partition is None or name is None or path.absolute().parent.name != DIRECTORY:
        return None
    return KeptFile(path, *partition, name[1])


def _row(kept: KeptFile) -> dict[str, Any]:
    first: int | None = None
    end = records = 0
    written_epoch = -1
    transactions: dict[tuple[int, int], dict[str, Any]] = {}
    for header, control in _batches(kept.path, decode=False):
        if header.is_transactional:
            _note(transactions, header, control)
        first = header.base_offset if first is None else first
        end = header.next_offset
        written_epoch = header.leader_epoch
        records += 0 if header.is_control else header.record_count
    stat = kept.path.stat()
    return {
        "topic": kept.topic,
        "partition": kept.partition,
        "leader_epoch": kept.leader_epoch,
        "written_epoch": written_epoch,
        "first_offset": first,
        "end_offset": end,
        "records": records,
        "transactions": list(transactions.values()),
        "bytes": stat.st_size,
        "kept_at": datetime.fromtimestamp(stat.st_mtime, UTC).isoformat(timespec="seconds"),
        "file": str(kept.path),
    }


def _note(transactions: dict[tuple[int, int], dict[str, Any]], header: BatchHeader, control: list[Record]) -> None:
    producer = header.producer_id, header.producer_epoch
    found = transactions.setdefault(
        producer, {"producer_id": producer[0], "producer_epoch": producer[1], "records": 0, "markers": []}
    )
    if not header.is_control:
        found["records"] += header.record_count
    for marker in filter(None, map(marker_of, control)):
        found["markers"].append("commit" if marker.commit else "abort")


def _transaction_text(transaction: dict[str, Any]) -> str:
    name = f"{transaction['producer_id']}/{transaction['producer_epoch']}"
    return ":".join([name, *dict.fromkeys(transaction["markers"])])


def _batches(path: Path, *, decode: bool = True) -> Iterator[Batch]:
    """Batches with their records; without `decode`, with the records of control batches only.

    Raises CommandError where the file cannot be read on.
    """
    position = 0
    try:
        with path.open("rb") as file:
            while start := file.read(HEADER_SIZE):
                header = read_header(start)
                data = start + file.read(header.size - HEADER_SIZE)
                if len(data) < header.size or not crc_matches(data, 0, header):
                    raise InvalidBatch("the batch is cut off or damaged")
                yield Batch(header, decode_records(data) if decode != header.is_control else [])
                position += header.size
    except InvalidBatch as error:
        raise CommandError(f"{path} cannot be read from byte {position} on: {error.message}") from error


@app.command("write")
def write(
    files: Files,
    to: Annotated[str, typer.Option(help="The file to write, - for standard output; it must not exist.")],
) -> None:
    """Write kept records to a file, one JSON object per line, as `heirlog consume --json` prints them."""
    kept = [_named(path) for path in files]
    if to == STANDARD_OUTPUT:
        count = sum(_write(each, sys.stdout.fileno()) for each in kept)
    else:
        try:
            descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            raise CommandError(f"{to} exists already; name another file") from None
        except OSError as error:
            raise CommandError(f"cannot write {to}: {error.strerror}; name another file") from None
        try:
            count = sum(_write(each, descriptor) for each in kept)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    print(f"{count} records written", file=sys.stderr)


def _write(kept: KeptFile, descriptor: int) -> int:
    count = 0
    with open(descriptor, "w", encoding="utf-8", closefd=False) as out:
        for _, records in _batches(kept.path):
            for record in records:
                out.write(json.dumps(_as_json(kept, record)) + "\n")
                count += 1
    return count


def _as_json(kept: KeptFile, record: Record) -> dict[str, Any]:
    return {
        "topic": kept.topic,
        "partition": kept.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": text_or_base64(record.key),
        "value": text_or_base64(record.value),
        "headers": [[name, text_or_base64(value)] for name, value in record.headers],
    }


def _named(path: Path) -> KeptFile:
    if not path.is_file():
        raise CommandError(f"there is no file {path}")
    kept = _understood(path)
    if kept is None:
        raise UsageError(f"{path} is not a file of kept records: `heirlog recover salvage list DIR` lists those")
    return kept


@app.command("produce")
def produce(
    files: Files,
    topic: Annotated[str | None, typer.Option(help="Append to this topic instead of the original one.")] = None,
    yes: Yes = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Append kept records to the partition that they came from, with their keys, headers and timestamps."""
    kept = [_named(path) for path in files]
    with connected(bootstrap_server) as client:
        for each in kept:
            count = partition_count(client, topic or each.topic)
            if each.partition >= count:
                raise CommandError(no_such_partition(topic or each.topic, count, each.partition))
    if not yes:
        _ask(kept, topic)
    rows = _produce(bootstrap_server, kept, topic)
    if as_json:
        show_json(rows)
    else:
        show_rows(
            {"file": "File", "topic": "Topic", "partition": "Partition", "records": "Appended"}, rows, as_json=False
        )
    transactional = sum(row["transactional"] for row in rows)
    if transactional:
        print(
            f"{transactional} of them were written in transactions; whether those were committed is not known here",
            file=sys.stderr,
        )


def _ask(kept: Sequence[KeptFile], topic: str | None) -> None:
    """Raises typer.Abort if the answer is no, UsageError without a terminal to ask on."""
    rows = [{**_row(each), "to": topic or each.topic} for each in kept]
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "first_offset": "FirstOffset",
        "end_offset": "EndOffset",
        "records": "Records",
        "to": "AppendTo",
    }
    show_rows(columns, rows, as_json=False)
    confirm("Append these records (once more, if that was done before)?")


def _produce(bootstrap_servers: str, kept: Sequence[KeptFile], topic: str | None) -> list[dict[str, Any]]:
    from heirlog.protocol.batch import encode_batch

    rows = []
    with connected(bootstrap_servers) as client, client.producer() as producer:
        for each in kept:
            count = transactional = 0
            for header, records in _batches(each.path):
                if not records:
                    continue
                batch = encode_batch(
                    [(record.key, record.value, record.headers, record.timestamp_ms) for record in records],
                    compression=header.compression,
                )
                producer.send(topic or each.topic, each.partition, batch)
                count += len(records)
                transactional += len(records) if header.is_transactional else 0
            producer.flush()
            rows.append(
                {
                    "file": str(each.path),
                    "topic": topic or each.topic,
                    "partition": each.partition,
                    "records": count,
                    "transactional": transactional,
                }
            )
    return rows
