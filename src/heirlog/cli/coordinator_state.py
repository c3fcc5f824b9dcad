"""Why the coordinator of a group does not answer: it is where the group's partition of `__consumer_offsets` is, and it
writes each change there. A partition without a leader has no coordinator, and one below min ISR takes no write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from heirlog.cli.connect import REACH_TIMEOUT_S, connected
from heirlog.cli.errors import CommandError
from heirlog.cli.partition_filters import Filter, filtered
from heirlog.cli.topics import partition_rows
from heirlog.local.errors import LocalError
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.protocol.errors import KafkaError

if TYPE_CHECKING:
    from heirlog.blocking import Client

Explain: TypeAlias = Callable[[str], str | None]
"""A group's id to a clause, or None where nothing is found."""
LOST_S: Final = 30.0
"""How long a command that ends by itself waits for a coordinator that refuses."""


def explaining(bootstrap_server: str) -> Explain:
    """With a client of its own: the command's own one waits for the coordinator."""
    return partial(_explained, bootstrap_server)


def _explained(bootstrap_server: str, group: str) -> str | None:
    try:
        with connected(bootstrap_server, REACH_TIMEOUT_S) as client:
            return why_unavailable(client, group)
    except (CommandError, LocalError, KafkaError, OSError):
        return None


def why_unavailable(client: Client, group: str) -> str | None:
    """Raises CommandError, KafkaError, OSError."""
    from heirlog.broker.internal_topic_shards import partition_for

    rows = list(partition_rows(client, [OFFSETS_TOPIC], if_exists=True))
    if not rows:
        return f"{OFFSETS_TOPIC} cannot be created: heirlog broker list shows which brokers run"
    row = rows[partition_for(group, len(rows))]
    if not filtered(client, Filter.UNDER_MIN_ISR, [row]):
        return None
    return _sentence(row, set(client.brokers()))


def _sentence(row: dict[str, Any], live: set[int]) -> str:
    what = "has no leader" if row["leader"] is None else "is below min ISR, so nothing can be written"
    missing = ", ".join(str(broker) for broker in sorted(set(row["replicas"]) - live))
    rest = f"start the brokers {missing}" if missing else "its replicas catch up"
    return f"{row['topic']}-{row['partition']}, where its state is, {what}: {rest}"
