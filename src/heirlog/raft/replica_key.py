"""Who a replica of the metadata log is: its node and its disk (KIP-853)."""

from __future__ import annotations

from typing import NamedTuple

from heirlog.protocol.types import Uuid


class ReplicaKey(NamedTuple):
    id: int
    directory_id: Uuid
    """Zero if the replica did not name it."""
