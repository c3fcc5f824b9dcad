"""Share sessions (KIP-932): which partitions a member of a share group fetches from this broker.

    epoch 0     opens a session; an older one of the same member is forgotten. What it had acquired stays locked
    epoch n     must be the one that the session expects, which then grows by one (after 2^31-1 comes 1)
    epoch -1    ends the session after this request

    refused     SHARE_SESSION_NOT_FOUND        ended, evicted or never opened: the client opens one
                INVALID_SHARE_SESSION_EPOCH    a request or its answer was lost
                SHARE_SESSION_LIMIT_REACHED    this broker has `group.share.max.share.sessions` of them
                INVALID_REQUEST                too many partitions, or too many that the member cannot read

A partition that does not exist, or whose topic the member may not read, stays in its session as any other: the client
believes that it is there, and metadata may be on its way. Each request asks for it again, so few of them are taken.

Group and member identify a session. It belongs to the connection that opened it, and ends with that connection; so an
idle client loses its session when the broker closes its connection (`connections.max.idle.ms`). The owner of the cache
learns of each end, because the records that the member holds are then given back, and of the last session of a group.
If a member ends that one itself, its group counts as gone only when the connection closes: the next session continues
with what is known here of each record, as on Apache Kafka, unless something else is stored meanwhile.

The first partition of an answer changes with each request, so that none starves behind a busy one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import PartitionKey

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
PARTITIONS_MAX: Final = 100_000
"""Limit of the partitions of one session."""
UNREADABLE_MAX: Final = 1000
"""Limit of those among them that the member could not read when it named them."""
IDLE_GROUPS_MAX: Final = 10
"""Limit of the groups without a session that are kept for one connection. They count as sessions too, and go first."""


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class ShareSession:
    def __init__(self, key: SessionKey, connection: object) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        """The epoch of the next request."""
        self._partitions: dict[PartitionKey, bool] = {}
        """And whether the member could read it when it named it."""

    def update(
        self,
        named: Iterable[PartitionKey],
        forgotten: Iterable[PartitionKey],
        is_readable: Callable[[PartitionKey], bool] = lambda key: True,
    ) -> None:
        """Raises KafkaError with INVALID_REQUEST for too many partitions; then nothing has changed.

        is_readable: whether a partition exists, of a topic that the member may read.
        """
        readable = {key: is_readable(key) for key in named}
        partitions = self._partitions | readable
        for key in forgotten:
            partitions.pop(key, None)
        if len(partitions) > PARTITIONS_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"a share session has at most {PARTITIONS_MAX} partitions")
        if not all(readable.values()) and sum(not one for one in partitions.values()) > UNREADABLE_MAX:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"a share session has at most {UNREADABLE_MAX} partitions that do not exist or may not be read",
            )
        self._partitions = partitions

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    def partitions(self) -> list[PartitionKey]:
        """In the order in which the next answer reads them."""
        keys = list(self._partitions)
        start = self.epoch % len(keys) if keys else 0
        return keys[start:] + keys[:start]


class ShareSessionCache:
    def __init__(
        self, limit: int, on_ended: Callable[[SessionKey], None], on_group_gone: Callable[[str], None]
    ) -> None:
        """`on_ended`: the session has ended for another reason than a new one of the same member.

        `on_group_gone`: called after it if the group has no other session here.
        """
        self._limit = limit
        self._on_ended = on_ended
        self._on_group_gone = on_group_gone
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_connection: dict[object, dict[SessionKey, None]] = {}
        self._of_group: dict[str, int] = {}
        self._idle_groups: dict[object, OrderedDict[str, None]] = {}
        """By connection: groups whose last session a member has ended."""
        self.evictions = 0
        """Sessions that ended because their connection did."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(session.partition_count for session in self._sessions.values())

    def count_of(self, group_id: str) -> int:
        """Sessions of the group's members."""
        return self._of_group.get(group_id, 0)

    def open(self, key: SessionKey, connection: object) -> ShareSession:
        """A new session. Raises KafkaError with SHARE_SESSION_LIMIT_REACHED."""
        if key not in self._sessions and len(self._sessions) >= self._limit:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED, f"this broker has {self._limit} share sessions already"
            )
        self._remove(key)
        session = ShareSession(key, connection)
        self._sessions[key] = session
        self._of_connection.setdefault(connection, {})[key] = None
        self._of_group[key.group_id] = self._of_group.get(key.group_id, 0) + 1
        self._keep_to_limit()
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request with this epoch; -1 for the last one. Raises KafkaError."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_NOT_FOUND, f"member {key.member_id} has no share session on this broker"
            )
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, f"share session epoch {epoch}, expected {session.epoch}"
            )
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return session

    def has(self, session: ShareSession) -> bool:
        """Whether the session has not ended, and no newer one of the member has replaced it."""
        return self._sessions.get(session.key) is session

    def close(self, key: SessionKey) -> None:
        """The member ends its session."""
        session = self._remove(key)
        if session is None:
            return
        self._on_ended(key)
        if key.group_id not in self._of_group:
            idle = self._idle_groups.setdefault(session.connection, OrderedDict())
            idle[key.group_id] = None
            if len(idle) > IDLE_GROUPS_MAX:
                self._gone_if_idle(idle.popitem(last=False)[0])
            self._keep_to_limit()

    def _keep_to_limit(self) -> None:
        """Sessions and idle groups together are at most as many as sessions may be."""
        while self._idle_groups and len(self._sessions) + sum(map(len, self._idle_groups.values())) > self._limit:
            connection, idle = next(iter(self._idle_groups.items()))
            group_id, _ = idle.popitem(last=False)
            if not idle:
                del self._idle_groups[connection]
            self._gone_if_idle(group_id)

    def connection_closed(self, connection: object) -> None:
        """The sessions of the connection end."""
        keys = list(self._of_connection.get(connection, ()))
        for key in keys:
            self._remove(key)
            self.evictions += 1
            self._on_ended(key)
        idle = self._idle_groups.pop(connection, ())
        for group_id in dict.fromkeys((*(key.group_id for key in keys), *idle)):
            self._gone_if_idle(group_id)

    def _gone_if_idle(self, group_id: str) -> None:
        if group_id not in self._of_group:
            self._on_group_gone(group_id)

    def _remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        of_connection = self._of_connection[session.connection]
        del of_connection[key]
        if not of_connection:
            del self._of_connection[session.connection]
        self._of_group[key.group_id] -= 1
        if not self._of_group[key.group_id]:
            del self._of_group[key.group_id]
        return session
