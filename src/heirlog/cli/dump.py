"""`heirlog dump FILE...`: shows the content of files in a log directory. Only reads them, even while a node runs.

Exit code 1 if a file could not be read to its end; what is there up to that point is printed.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from heirlog.protocol.types import METADATA_TOPIC

if TYPE_CHECKING:
    from heirlog.cli.offline.decode import Decoder


def dump(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    deep: Annotated[bool, typer.Option("--deep", help="Also the records of each batch, with their contents.")] = False,
    offset: Annotated[int, typer.Option(min=0, help="Skip records below this offset.")] = 0,
    max_rows: Annotated[
        int | None, typer.Option("--max", min=1, help="Print at most this many rows of each file.")
    ] = None,
    metadata: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Decode the records as metadata, in any folder.")
    ] = False,
    groups: Annotated[
        bool,
        typer.Option("--offsets-decoder", help="Decode the records as those of __consumer_offsets, in any folder."),
    ] = False,
    transactions: Annotated[
        bool,
        typer.Option(
            "--transaction-log-decoder", help="Decode the records as those of __transaction_state, in any folder."
        ),
    ] = False,
    share_states: Annotated[
        bool,
        typer.Option(
            "--share-group-state-decoder", help="Decode the records as those of __share_group_state, in any folder."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per batch, record or entry.")] = False,
) -> None:
    """Print segments, indexes, snapshots, checkpoints and metadata records; a torn file up to the damage."""
    from heirlog.cli.offline.decode import GROUP_TOPIC, READABLE, Decoder, UnknownFile

    wanted = {
        METADATA_TOPIC: metadata,
        GROUP_TOPIC: groups,
        TRANSACTIONS_TOPIC: transactions,
        SHARE_STATE_TOPIC: share_states,
    }
    topics = [topic for topic, is_wanted in wanted.items() if is_wanted]
    if len(topics) > 1:
        raise UsageError("the options that end with -decoder exclude each other")
    topic = topics[0] if topics else None
    whole = True
    for path in files:
        if path.is_dir():
            raise UsageError(
                f"{path} is a folder: name files in it, such as {path}/*.log (heirlog doctor DIR takes folders)"
            )
        if not path.is_file():
            raise CommandError(f"there is no file {path}")
        try:
            decoder = Decoder(str(path), deep=deep, records_of=topic, from_offset=offset)
        except UnknownFile:
            raise UsageError(f"{path} is not a file that this command can read; it reads {READABLE}") from None
        if len(files) > 1 and not as_json:
            print(f"{path}:")
        whole = _print(decoder, max_rows, as_json) and whole
    if not whole:
        raise typer.Exit(EXIT_FAILED)


def _print(decoder: Decoder, max_rows: int | None, as_json: bool) -> bool:
    """Was the file, or as much of it as was asked for, readable?"""
    from heirlog.cli.offline.decode import Stopped, as_line

    is_right = True
    try:
        for row in islice(decoder.rows(), max_rows):
            is_right = is_right and row.get("crc_is_right", True)
            print(json.dumps({"file": decoder.path, **row}) if as_json else as_line(row))
    except Stopped as stopped:
        if as_json:
            row = {"type": "stopped", "position": stopped.position, "reason": str(stopped)}
            print(json.dumps({"file": decoder.path, **row}))
        else:
            print(f"stopped at byte {stopped.position}: {stopped}")
        return False
    if not is_right:
        print(f"{decoder.path}: crc_is_right is false for a batch: it is damaged", file=sys.stderr)
    return is_right
