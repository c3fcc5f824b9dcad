"""`heirlog elect`: choose leaders on purpose (KIP-460)."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

TIMEOUT_MS = 30_000


class ElectionType(StrEnum):
    PREFERRED = "preferred"
    UNCLEAN = "unclean"

    @property
    def code(self) -> int:
        return 0 if self is ElectionType.PREFERRED else 1


def elect(
    election_type: Annotated[
        ElectionType,
        typer.Option(case_sensitive=False, help="unclean may lose acknowledged records."),
    ],
    topic: Annotated[str | None, typer.Option(help="Topic; with --partition.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Partition; with --topic.")] = None,
    all_topic_partitions: Annotated[bool, typer.Option("--all-topic-partitions")] = False,
    path_to_json_file: Annotated[
        Path | None, typer.Option(help='{"partitions": [{"topic": "t", "partition": 0}]}')
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Elect the preferred leader of partitions, or any live replica of leaderless ones."""
    from heirlog.client.admin import elect_leaders

    wanted = _partitions(topic, partition, all_topic_partitions, path_to_json_file)
    chosen = None if wanted is None else [(name, number) for name, numbers in wanted.items() for number in numbers]
    with connected(bootstrap_server) as client:
        try:
            results = client.run(elect_leaders(election_type.code, chosen, TIMEOUT_MS))
        except KafkaError as error:
            raise CommandError(f"the election was refused: {error.code.name}") from error
    rows = [
        {
            "topic": name,
            "partition": number,
            "result": error_code(result.code).name if result.code else "ELECTED",
            "message": result.message,
        }
        for (name, number), result in results.items()
    ]
    if rows or as_json:
        columns = {"topic": "Topic", "partition": "Partition", "result": "Result", "message": "Message"}
        show_rows(columns, rows, as_json)
    else:
        # asked for all partitions, the controller names only those with something to elect
        print("no partition needs this election")
    # a leader that is the wanted one already is no failure, as in Kafka's tool
    fine = ("ELECTED", ErrorCode.ELECTION_NOT_NEEDED.name)
    failed = [row for row in rows if row["result"] not in fine]
    if failed:
        first = failed[0]
        typer.echo(
            f"heirlog: {len(failed)} of {len(rows)} elections failed, first {first['topic']}-{first['partition']}: "
            f"{first['result']} {first['message']}".rstrip(),
            err=True,
        )
        raise typer.Exit(EXIT_FAILED)


def _partitions(
    topic: str | None, partition: int | None, everything: bool, file: Path | None
) -> dict[str, list[int]] | None:
    """Topic → partitions; None: all. Raises CommandError unless exactly one way of naming them is used."""
    ways = (topic is not None or partition is not None) + everything + (file is not None)
    if ways != 1:
        raise UsageError("name partitions by --topic and --partition, --all-topic-partitions or --path-to-json-file")
    if everything:
        return None
    if file is not None:
        return _from_file(file)
    if topic is None or partition is None:
        raise UsageError("--topic and --partition go together")
    return {topic: [partition]}


def _from_file(file: Path) -> dict[str, list[int]]:
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
        pairs = [(str(entry["topic"]), int(entry["partition"])) for entry in content["partitions"]]
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(f'{file} is not of the form {{"partitions": [{{"topic": "t", "partition": 0}}]}}') from error
    wanted: dict[str, list[int]] = {}
    for name, number in pairs:
        wanted.setdefault(name, []).append(number)
    return wanted
