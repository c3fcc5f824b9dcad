"""Who a replica of the metadata log is: its node and its disk (KIP-853)."""

from __future__ import annotations

from typing import NamedTuple

from heirlog.protocol.types import ZERO_UUID, Uuid


class ReplicaKey(NamedTuple):
    id: int
    directory_id: Uuid
    """Zero if the replica did not name it, or if the voters are those of the configuration (kraft.version 0)."""

    def covers(self, replica: ReplicaKey) -> bool:
        """Whether this key names that replica. A key without a directory id names every disk of its node."""
        return self.id == replica.id and self.directory_id in (ZERO_UUID, replica.directory_id)
