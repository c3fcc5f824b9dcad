"""What `topics describe` says of a topic as a whole, as kafka-topics does in a line above the partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from heirlog.cli.render import show_rows
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

TOPIC: Final = 2
OF_THE_TOPIC: Final = 1
"""The source of a value that was set for the topic itself."""
TOPICS_PER_REQUEST: Final = 500
"""An answer has about 2 KB for each."""


def summaries(client: Client, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By topic. rows: of `topics.partition_rows`, all partitions of each topic. Raises KafkaError, OSError.

    `configs` is the name of the error if the user may not see them.
    """
    counts = Counter[str]()
    factors: dict[str, int] = {}
    for row in rows:
        counts[row["topic"]] += 1
        factors.setdefault(row["topic"], len(row["replicas"]))
    configs = dict(_configs(client, list(counts)))
    return {
        name: {"partition_count": count, "replication_factor": factors[name], "configs": configs[name]}
        for name, count in counts.items()
    }


def show(found: Mapping[str, Mapping[str, Any]]) -> None:
    columns = {
        "topic": "Topic",
        "partition_count": "PartitionCount",
        "replication_factor": "ReplicationFactor",
        "shown": "Configs",
    }
    rows = [{"topic": name, **summary, "shown": _shown(summary["configs"])} for name, summary in found.items()]
    show_rows(columns, rows, as_json=False)


def with_summaries(
    rows: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """For a program: each partition has what is said of its topic."""
    for row in rows:
        summary = found[row["topic"]]
        configs = summary["configs"]
        yield {**row, **summary, "configs": None if isinstance(configs, str) else configs}


def _shown(configs: Mapping[str, str | None] | str) -> str:
    if isinstance(configs, str):
        return f"not known ({configs})"
    # [a,b] is how the commands take a value with commas
    pairs = (f"{name}=[{value}]" if "," in (value or "") else f"{name}={value}" for name, value in configs.items())
    return ", ".join(pairs) or "-"


def _configs(client: Client, names: Sequence[str]) -> Iterator[tuple[str, dict[str, str | None] | str]]:
    """What is set for each topic, or the name of an error."""
    from heirlog.protocol.messages import DescribeConfigsRequest

    for at in range(0, len(names), TOPICS_PER_REQUEST):
        asked = [
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=TOPIC, resource_name=name, configuration_keys=None
            )
            for name in names[at : at + TOPICS_PER_REQUEST]
        ]
        for result in client.send_to_any(DescribeConfigsRequest(resources=asked)).results:
            own = {entry.name: entry.value for entry in result.configs if entry.config_source == OF_THE_TOPIC}
            yield result.resource_name, error_code(result.error_code).name if result.error_code else own
