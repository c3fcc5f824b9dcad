"""A fetch from its arrival to its answer.

    without a session    the purgatory notifies it of what happens to each of its partitions (`try_complete`)
    in a session         the session does (`on_event`), and the purgatory only watches its timeout

It waits until enough can be read (`is_enough`), until its maximum wait is over, or until a newer request of its session
arrives. The handler then reads the records again for the answer (`fetch.py`).
"""

from __future__ import annotations

from typing import Any, Protocol

from heirlog.broker.fetch_session import CachedPartition, FetchedPartition, FetchSession
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.purgatory import Purgatory
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.messages import FetchRequest, FetchResponse
from heirlog.protocol.types import BrokerId, PartitionKey

DEBUGGING_CONSUMER = -2
READ_COMMITTED = 1
REPLICA_STATE_VERSION = 15


class FetchOperations(Protocol):
    """What a fetch needs of the handler that serves it."""

    follower_waits: Purgatory[PartitionKey]
    consumer_waits: Purgatory[PartitionKey]

    def has_more(self, fetch: DelayedFetch, entry: FetchedPartition) -> bool: ...

    def read_within_limits(self, fetch: DelayedFetch, entry: FetchedPartition) -> None: ...

    def answer_after_wait(self, fetch: DelayedFetch) -> FetchResponse: ...


class DelayedFetch:
    __slots__ = (
        "_by_key",
        "_handler",
        "context",
        "entries",
        "from_follower",
        "has_final",
        "is_read_committed",
        "limit",
        "number",
        "pending",
        "refuses",
        "replica_epoch",
        "replica_id",
        "request",
        "session",
        "size",
        "waits",
    )

    def __init__(self, handler: FetchOperations, request: FetchRequest, context: Context, max_bytes: int) -> None:
        """max_bytes: the most that an answer to a consumer holds."""
        self._handler = handler
        self.request = request
        self.context = context
        self.number = -1
        self.pending: Pending[Any] | None = None
        self._by_key: dict[PartitionKey, list[FetchedPartition]] = {}
        if context.api_version >= REPLICA_STATE_VERSION:
            self.replica_id = BrokerId(request.replica_state.replica_id)
            self.replica_epoch = request.replica_state.replica_epoch
        else:
            self.replica_id = BrokerId(request.replica_id)
            self.replica_epoch = -1
        self.from_follower = self.replica_id >= 0
        self.waits = handler.follower_waits if self.from_follower else handler.consumer_waits
        self.is_read_committed = request.isolation_level == READ_COMMITTED and not self.from_follower
        self.refuses = context.refuses
        """Called at each look: a permission may be removed during a session or a wait."""
        self.limit = request.max_bytes if self.from_follower else min(request.max_bytes, max_bytes)
        """The most bytes that the answer holds."""
        self.session: FetchSession | None = None
        self.entries: list[FetchedPartition] | list[CachedPartition] = []
        """The partitions to look at; of a session, the active ones."""
        self.size = 0
        self.has_final = False

    @property
    def is_full(self) -> bool:
        """Whether the request names every partition and its response answers every partition."""
        return self.request.session_epoch <= 0

    @property
    def is_enough(self) -> bool:
        if self.has_final or self.size >= self.request.min_bytes:
            return True
        return not (self.entries if self.session is None else self.session.entries)

    def is_served_by(self, partition: Partition) -> bool:
        role = partition.role
        return role is ReplicaRole.LEADER or (role is ReplicaRole.FOLLOWER and self.replica_id == DEBUGGING_CONSUMER)

    def index_by_key(self) -> None:
        for entry in self.entries:
            assert entry.partition is not None
            self._by_key.setdefault((entry.partition.topic_id, entry.partition.index), []).append(entry)

    # without a session: the purgatory watches the partitions

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        return tuple(self._by_key)

    def try_complete(self, key: PartitionKey) -> bool:
        for entry in self._by_key[key]:
            self._handler.read_within_limits(self, entry)
        if not self.is_enough:
            return False
        self.on_expiration()
        return True

    def on_expiration(self) -> None:
        assert self.pending is not None
        self.pending.complete(self._handler.answer_after_wait(self))

    # with a session: the session notifies

    def on_event(self, entry: CachedPartition) -> None:
        # the response reads everything again; this look is only needed if one byte is not enough
        if self.request.min_bytes <= 1 and self._handler.has_more(self, entry):
            self.end()
            return
        self._handler.read_within_limits(self, entry)
        if self.is_enough:
            self.end()

    def end(self) -> None:
        self.waits.remove(self)
        self.on_expiration()
