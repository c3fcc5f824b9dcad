"""The warning before a change that clears eligible leader replicas.

Nothing is refused: Kafka allows these changes, and scripts make them. But a list that is cleared is knowledge that is
gone, and for a partition without a leader it may have been the only clean way back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import typer

from heirlog.protocol.types import NO_LEADER

if TYPE_CHECKING:
    from heirlog.blocking import Client

NAMED_AT_MOST = 5


def warn_of_cleared_elr(
    client: Client, change: str, topics: Sequence[str] | None = None, only: Collection[int] | None = None
) -> None:
    """Tell on stderr which ELRs `change` clears. topics: None for all; only: just what these brokers lose."""
    from heirlog.client.admin import describe_topic_partitions

    cleared, leaderless, heirs = [], [], set()
    for topic in client.run(describe_topic_partitions(topics)):
        for partition in topic.partitions:
            listed = {*(partition.eligible_leader_replicas or ()), *(partition.last_known_elr or ())}
            listed &= listed if only is None else set(only)
            if not listed:
                continue
            cleared.append(f"{topic.name}-{partition.partition_index}")
            if partition.leader_id == NO_LEADER:
                leaderless.append(cleared[-1])
                heirs |= listed
    if cleared:
        warn(f"{change} clears the ELR of {counted(cleared)}")
    if leaderless:
        names = ", ".join(str(broker) for broker in sorted(heirs))
        warn(
            f"{counted(leaderless)} without a leader may then need an unclean election, which loses records. First "
            f"start broker {names} and wait until each has a leader (heirlog topics describe "
            f"--unavailable-partitions)"
        )


def counted(partitions: Sequence[str]) -> str:
    named = ", ".join(partitions[:NAMED_AT_MOST])
    more = f" and {len(partitions) - NAMED_AT_MOST} more" if len(partitions) > NAMED_AT_MOST else ""
    return f"{len(partitions)} partition{'' if len(partitions) == 1 else 's'} ({named}{more})"


def warn(sentence: str) -> None:
    typer.echo(f"heirlog: warning: {sentence}", err=True)
