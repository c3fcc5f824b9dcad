"""Which partitions `topics describe` shows with a filter; the names are those of kafka-topics.

    under-replicated    fewer in sync than replicas; those that a reassignment adds do not count yet
    unavailable         no leader, or a leader that is not a live broker
    under-min-isr       fewer in sync than the effective min ISR; always without a leader
    at-min-isr          exactly as many in sync as the effective min ISR

The effective min ISR is at most the number of replicas, as for the brokers that accept acks=all or refuse it
(`metadata/min_isr.py`). kafka-topics compares with min.insync.replicas as it is configured, so it also shows partitions
that have fewer replicas than that, although they accept acks=all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from heirlog.cli.errors import CommandError, UsageError
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

MIN_ISR = "min.insync.replicas"
TOPIC = 2

Row: TypeAlias = dict[str, Any]
"""A row of `topics.partition_rows`."""


class Filter(StrEnum):
    UNDER_REPLICATED = "under-replicated-partitions"
    UNAVAILABLE = "unavailable-partitions"
    UNDER_MIN_ISR = "under-min-isr-partitions"
    AT_MIN_ISR = "at-min-isr-partitions"


@dataclass(frozen=True, slots=True)
class Filters:
    """Which partitions to show: all, or those that one of the options chooses."""

    under_replicated: Annotated[
        bool,
        typer.Option("--under-replicated-partitions", help="Only partitions whose ISR is smaller than their replicas."),
    ] = False
    unavailable: Annotated[
        bool, typer.Option("--unavailable-partitions", help="Only partitions without a live leader.")
    ] = False
    under_min_isr: Annotated[
        bool, typer.Option("--under-min-isr-partitions", help="Only partitions below min ISR, which refuse acks=all.")
    ] = False
    at_min_isr: Annotated[
        bool,
        typer.Option(
            "--at-min-isr-partitions", help="Only partitions at min ISR: one more failure, and they refuse acks=all."
        ),
    ] = False

    @property
    def chosen(self) -> Filter | None:
        """Raises UsageError for more than one."""
        chosen = [
            each
            for each, is_wanted in (
                (Filter.UNDER_REPLICATED, self.under_replicated),
                (Filter.UNAVAILABLE, self.unavailable),
                (Filter.UNDER_MIN_ISR, self.under_min_isr),
                (Filter.AT_MIN_ISR, self.at_min_isr),
            )
            if is_wanted
        ]
        if len(chosen) > 1:
            raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
        return chosen[0] if chosen else None


def filtered(client: Client, chosen: Filter, rows: Sequence[Row]) -> list[Row]:
    """The rows that the filter shows. Raises CommandError, KafkaError, OSError."""
    shows = _test(client, chosen, rows)
    return [row for row in rows if shows(row)]


def _test(client: Client, chosen: Filter, rows: Sequence[Row]) -> Callable[[Row], bool]:
    if chosen is Filter.UNAVAILABLE:
        live = set(client.brokers())
        return lambda row: row["leader"] not in live
    if chosen is Filter.UNDER_REPLICATED:
        from heirlog.cli.reassignment import reassignments

        moving = reassignments(client)

        def is_under_replicated(row: Row) -> bool:
            found = moving.get((row["topic"], row["partition"]))
            coming = found.adding if found is not None else []
            return len(row["isr"]) < len(row["replicas"]) - len(coming)

        return is_under_replicated
    configured = _configured_min_isr(client, dict.fromkeys(row["topic"] for row in rows))

    def min_isr(row: Row) -> int:
        return min(configured[row["topic"]], len(row["replicas"]))

    if chosen is Filter.UNDER_MIN_ISR:
        return lambda row: row["leader"] is None or len(row["isr"]) < min_isr(row)
    return lambda row: len(row["isr"]) == min_isr(row)


def _configured_min_isr(client: Client, topics: Iterable[str]) -> dict[str, int]:
    """By topic. Raises CommandError."""
    from heirlog.protocol.messages import DescribeConfigsRequest

    resources = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC, resource_name=topic, configuration_keys=[MIN_ISR]
        )
        for topic in topics
    ]
    found: dict[str, int] = {}
    for result in client.send_to_any(DescribeConfigsRequest(resources=resources)).results if resources else ():
        values = [entry.value for entry in result.configs if entry.name == MIN_ISR]
        if result.error_code or not values:
            raise CommandError(
                f"{MIN_ISR} of {result.resource_name} cannot be read: {error_code(result.error_code).name}; the other "
                "filters do not need it"
            )
        found[result.resource_name] = int(values[0])
    return found
