"""The groups that a cluster has, for `heirlog groups list`, commands on all groups, and shells that complete a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heirlog.cli.errors import CommandError
from heirlog.cli.next_steps import with_next_step
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client


def listed_groups(client: Client, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows by the groups' names. Each broker knows the groups that it coordinates.

    states, types: only groups in one of these states, and of one of these types. Raises CommandError.
    """
    from heirlog.protocol.messages import ListGroupsRequest

    rows = []
    for broker in sorted(client.brokers()):
        answer = client.send_to_broker(broker, ListGroupsRequest(states_filter=list(states), types_filter=list(types)))
        if answer.error_code:
            failure = error_code(answer.error_code)
            raise CommandError(with_next_step(f"broker {broker} cannot list its groups: {failure.name}", failure))
        rows += [
            {
                "group": group.group_id,
                "type": group.group_type.lower() or "classic",
                "protocol": group.protocol_type,
                "state": group.group_state,
            }
            for group in answer.groups
        ]
    return sorted(rows, key=lambda row: row["group"])
