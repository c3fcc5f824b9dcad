"""Which requests a listener serves, in which versions, and by which handler.

One table, read by the dispatch and by ApiVersions: what is not in it is not advertised and not answered. A handler's
module is imported at the first request for it, so that a node starts without loading what it may never need.

Ranges are the stable ones of Apache Kafka 4.2 where heirlog serves the API at all. One row advertises more than it
serves: Produce is shown from version 0, because librdkafka (2.5 among others) sends gzip, snappy and lz4 uncompressed
to a broker whose range does not begin there; a request below version 3 closes the connection, as on Apache Kafka. And
what is ours (keys from 10000 on, ElectLeaders 3) is shown to nobody: who shows the feature heirlog.recovery.version
speaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any

from heirlog.node.read_your_writes import CHANGES
from heirlog.protocol.api import (
    API_VERSIONS,
    DESCRIBE_RECOVERY,
    ELECT_LEADERS,
    ELECT_LEADERS_OURS,
    GET_REPLICA_LOG_INFO,
    OURS_FROM_KEY,
    PRODUCE,
)
from heirlog.protocol.types import Endpoint


class Role(Enum):
    BROKER = "broker"
    CONTROLLER = "controller"


@dataclass(slots=True)
class Route:
    """One API on one kind of listener."""

    key: int
    module: str
    min_version: int
    max_version: int
    advertised_min: int
    advertised_max: int
    """-1: not advertised at all."""
    is_change: bool = False
    """Its answer waits until every broker knows what it has changed."""
    _handle: Callable[[Any, Any, Any], Any] | None = None

    @property
    def handle(self) -> Callable[[Any, Any, Any], Any]:
        """`handle(node, request, context)` of the module, imported now if it was not yet."""
        if self._handle is None:
            self._handle = import_module(f"heirlog.node.handlers.{self.module}").handle
        return self._handle


def _routes(*rows: tuple[int, str, int, int], changes: frozenset[int] = frozenset()) -> Mapping[int, Route]:
    return {
        key: Route(key, module, low, high, 0 if key == PRODUCE else low, _advertised_max(key, high), key in changes)
        for key, module, low, high in rows
    }


def _advertised_max(key: int, served_max: int) -> int:
    if key >= OURS_FROM_KEY:
        return -1
    return served_max - 1 if key == ELECT_LEADERS and served_max >= ELECT_LEADERS_OURS else served_max


ROUTES: Mapping[Role, Mapping[int, Route]] = {
    Role.BROKER: _routes(
        (PRODUCE, "produce", 3, 13),
        (1, "fetch", 4, 18),
        (2, "list_offsets", 1, 11),
        (3, "metadata", 0, 13),
        (8, "offset_commit", 2, 10),
        (9, "offset_fetch", 1, 10),
        (10, "find_coordinator", 0, 6),
        (11, "join_group", 0, 9),
        (12, "heartbeat", 0, 4),
        (13, "leave_group", 0, 5),
        (14, "sync_group", 0, 5),
        (15, "describe_groups", 0, 6),
        (16, "list_groups", 0, 5),
        (API_VERSIONS, "api_versions", 0, 4),
        (19, "create_topics", 2, 7),
        (20, "delete_topics", 1, 6),
        (21, "delete_records", 0, 2),
        (22, "init_producer_id", 0, 5),
        (23, "offset_for_leader_epoch", 2, 4),
        (29, "describe_acls", 1, 3),
        (30, "create_acls", 1, 3),
        (31, "delete_acls", 1, 3),
        (32, "describe_configs", 1, 4),
        (33, "alter_configs", 0, 2),
        (35, "describe_log_dirs", 1, 4),
        (37, "create_partitions", 0, 3),
        (42, "delete_groups", 0, 2),
        (ELECT_LEADERS, "elect_leaders", 0, ELECT_LEADERS_OURS),
        (44, "incremental_alter_configs", 0, 1),
        (45, "alter_partition_reassignments", 0, 1),
        (46, "list_partition_reassignments", 0, 0),
        (47, "offset_delete", 0, 0),
        (55, "describe_quorum", 0, 2),
        (57, "update_features", 0, 2),
        (60, "describe_cluster", 0, 2),
        (61, "describe_producers", 0, 0),
        (64, "unregister_broker", 0, 0),
        (66, "list_transactions", 0, 2),
        (74, "list_config_resources", 0, 1),
        (75, "describe_topic_partitions", 0, 0),
        (GET_REPLICA_LOG_INFO, "get_replica_log_info", 0, 0),
        (DESCRIBE_RECOVERY, "describe_recovery", 0, 0),
    ),
    Role.CONTROLLER: _routes(
        (1, "fetch_metadata", 4, 18),
        (API_VERSIONS, "api_versions", 0, 4),
        (19, "create_topics", 2, 7),
        (20, "delete_topics", 1, 6),
        (29, "describe_acls", 1, 3),
        (30, "create_acls", 1, 3),
        (31, "delete_acls", 1, 3),
        (32, "describe_configs", 1, 4),
        (33, "alter_configs", 0, 2),
        (37, "create_partitions", 0, 3),
        (ELECT_LEADERS, "elect_leaders", 0, ELECT_LEADERS_OURS),
        (44, "incremental_alter_configs", 0, 1),
        (45, "alter_partition_reassignments", 0, 1),
        (46, "list_partition_reassignments", 0, 0),
        (55, "describe_quorum", 0, 2),
        (56, "alter_partition", 2, 3),
        (57, "update_features", 0, 2),
        (58, "envelope", 0, 0),
        (59, "fetch_snapshot", 0, 1),
        (60, "describe_cluster", 0, 2),
        (62, "broker_registration", 0, 4),
        (63, "broker_heartbeat", 0, 1),
        (64, "unregister_broker", 0, 0),
        (67, "allocate_producer_ids", 0, 0),
        (73, "assign_replicas_to_dirs", 0, 0),
        (DESCRIBE_RECOVERY, "describe_recovery", 0, 0),
        changes=CHANGES,
    ),
}


@dataclass(frozen=True, slots=True)
class Listener:
    """A named listener of this node: where it listens, what it tells others, and what it serves."""

    name: str
    bind: Endpoint
    advertised: Endpoint
    role: Role
    routes: Mapping[int, Route] = field(init=False, repr=False, compare=False)
    """Looked up twice per request: found once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "routes", ROUTES[self.role])
