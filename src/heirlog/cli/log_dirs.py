"""`heirlog log-dirs`: the content of brokers' log directories, as in kafka-log-dirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli import complete
from heirlog.cli.broker import ACTIVE, registered
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.blocking.client import Topic


def log_dirs(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", help="Only these topics.", show_default=False, autocompletion=complete.topics),
    ] = None,
    broker_list: Annotated[str | None, typer.Option(metavar="ID,...", help="Only these brokers.")] = None,
    topic_list: Annotated[str | None, typer.Option(metavar="TOPIC,...", help="The same in Kafka's words.")] = None,
    describe: Annotated[
        bool, typer.Option("--describe", hidden=True, help="Accepted as in Kafka's tool; has no effect.")
    ] = True,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show every replica's size and lag, and which directories are offline."""
    listed = [name.strip() for name in (topic_list or "").split(",") if name.strip()]
    topics = None if topic_list is None and not names else [*(names or ()), *listed]
    with connected(bootstrap_server) as client:
        brokers = {row["broker"]: row["state"] for row in registered(client)} if broker_list is None else {}
        asked = [broker for broker, state in brokers.items() if state == ACTIVE]
        if broker_list is not None:
            asked = _numbers(broker_list)
        wanted = None if topics is None else client.topics(topics)
        rows: list[dict[str, Any]] = []
        silent = [f"broker {broker} is {state}" for broker, state in brokers.items() if state != ACTIVE]
        for broker in asked:
            try:
                rows += _replicas(client, broker, wanted)
            except (OSError, KafkaError) as error:
                if isinstance(error, KafkaError) and error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
                    raise
                silent.append(f"broker {broker} did not answer ({error})")
    columns = {
        "broker": "Broker",
        "topic": "Topic",
        "partition": "Partition",
        "size_bytes": "Size",
        "offset_lag": "OffsetLag",
        "error": "Error",
        "log_dir": "LogDir",
    }
    show_rows(columns, rows, as_json)
    if silent:
        raise CommandError(f"{', '.join(silent)}: its replicas are missing here; heirlog broker list shows who runs")


def _numbers(text: str) -> list[int]:
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise UsageError(f"--broker-list {text} is not a list of broker ids")
    return [int(part) for part in text.split(",")]


def _replicas(client: Client, broker: int, topics: Mapping[str, Topic] | None) -> Iterator[dict[str, Any]]:
    """topics: only these. Raises CommandError; a directory that is offline is a row of its own."""
    from heirlog.protocol.messages import DescribeLogDirsRequest

    wanted = None
    if topics is not None:
        wanted = [
            DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=list(topic.partitions))
            for name, topic in topics.items()
        ]
    answer = client.send_to_broker(broker, DescribeLogDirsRequest(topics=wanted))
    if answer.error_code:
        code = error_code(answer.error_code)
        raise CommandError(with_next_step(f"broker {broker} refused the request: {code.name}", code))
    for directory in answer.results:
        row = {"broker": broker, "log_dir": directory.log_dir, "topic": None, "partition": None}
        row |= {"size_bytes": None, "offset_lag": None, "error": error_code(directory.error_code).name}
        if directory.error_code:
            yield row
        for topic in directory.topics:
            for partition in topic.partitions:
                yield {
                    **row,
                    "topic": topic.name,
                    "partition": partition.partition_index,
                    "size_bytes": partition.partition_size,
                    "offset_lag": partition.offset_lag,
                }
