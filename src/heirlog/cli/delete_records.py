"""`heirlog delete-records`: records below an offset are no longer readable, as kafka-delete-records asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli import complete
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.cli.names import given_once, one_partition
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import ErrorCode, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

TIMEOUT_MS = 30_000
FORM = '{"partitions": [{"topic": "t", "partition": 0, "offset": 10}]}'


def delete_records(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC[:PARTITION]",
            help="With --offset, and --partition if it is not named here.",
            show_default=False,
            autocompletion=complete.topics,
        ),
    ] = None,
    offset_json_file: Annotated[Path | None, typer.Option(help=FORM)] = None,
    topic: Annotated[str | None, typer.Option(help="The same as TOPIC.")] = None,
    partition: Annotated[int | None, typer.Option(min=0)] = None,
    offset: Annotated[
        int | None, typer.Option(min=-1, help="Offset of the first record to keep; -1: the high watermark.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Delete all records of partitions below an offset."""
    if name is not None:
        topic = given_once("topic", "TOPIC", name, "--topic", topic)
        if partition is None and ":" in topic:
            topic, partition = one_partition(topic, None, None)
    wanted = _wanted(offset_json_file, topic, partition, offset)
    with connected(bootstrap_server) as client:
        rows = [_delete(client, *one) for one in wanted]
    columns = {"topic": "Topic", "partition": "Partition", "low_watermark": "LowWatermark", "error": "Error"}
    show_rows(columns, rows, as_json)
    failed = [row for row in rows if row["error"] != ErrorCode.NONE.name]
    if failed:
        code = ErrorCode[failed[0]["error"]]
        sentence = f"{failed[0]['topic']}-{failed[0]['partition']}: {code.name}"
        if code is ErrorCode.POLICY_VIOLATION:
            # the answer has no field for a message
            sentence += "; the topic's cleanup.policy forbids it (heirlog configs describe topic TOPIC)"
        typer.echo(f"heirlog: {with_next_step(sentence, code)}", err=True)
        raise typer.Exit(EXIT_FAILED)


def _wanted(
    file: Path | None, topic: str | None, partition: int | None, offset: int | None
) -> list[tuple[str, int, int]]:
    """Raises UsageError, CommandError."""
    one = (topic, partition, offset)
    if (file is None) == all(part is None for part in one):
        raise UsageError("name partitions by --offset-json-file, or one by TOPIC, --partition and --offset")
    if file is not None:
        try:
            content: Any = json.loads(file.read_text(encoding="utf-8"))
            return [(str(e["topic"]), int(e["partition"]), int(e["offset"])) for e in content["partitions"]]
        except OSError as error:
            raise CommandError(f"cannot read {file}: {error.strerror}") from error
        except (ValueError, TypeError, KeyError) as error:
            raise CommandError(f"{file} is not of the form {FORM}") from error
    if topic is None or partition is None or offset is None:
        raise UsageError("name the partition and the first offset to keep: TOPIC:PARTITION --offset OFFSET")
    return [(topic, partition, offset)]


def _delete(client: Client, topic: str, partition: int, offset: int) -> dict[str, Any]:
    from heirlog.protocol.messages import DeleteRecordsRequest

    one = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[one])], timeout_ms=TIMEOUT_MS
    )
    answer = client.send_to_leader(
        topic, partition, request, error_code=lambda got: int(got.topics[0].partitions[0].error_code)
    )
    result = answer.topics[0].partitions[0]
    return {
        "topic": topic,
        "partition": partition,
        "low_watermark": result.low_watermark,
        "error": error_code(result.error_code).name,
    }
