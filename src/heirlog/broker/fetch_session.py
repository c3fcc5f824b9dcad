"""Fetch sessions (KIP-227): the broker remembers what a client fetches, so that requests and responses hold only
changes.

    full       epoch 0    every partition is named and answered; the response brings a session id, or 0: no room for one
               epoch -1   the same without a session
               a full request that names a session ends that session first
    incremental epoch n   names only what changed in the request (offsets, new partitions, forgotten ones); the response
                          holds only changed partitions: records, another high watermark or log start than was last
                          sent, an error, a divergence. n is 1 for the first and grows by one (after 2^31-1 comes 1)

    refused    FETCH_SESSION_ID_NOT_FOUND      evicted, ended or unknown: the client starts again with a full request
               INVALID_FETCH_SESSION_EPOCH     a request or a response was lost between the two
               FETCH_SESSION_TOPIC_ID_ERROR    the request names topics by id, the session by name, or the other way

A session without partitions ends, and the response says so with session id 0. A newer request of a session ends the
wait of the older one, which is answered with what is available. So a client with a change need not wait for the end of
its own long poll.

*Active* partitions are those that the next response has to look at, in the order in which they became active. A
partition that gave records moves to the end, so that no partition starves behind a busy one. A partition stops being
active once it was looked at and there is nothing more to send. It becomes active again with its next event
(`partition_listeners.py`), or when the client's request changes it. All other partitions cost nothing, however many a
session has. Partitions with an error stay active.

Eviction when all slots are in use follows Kafka's rules. The session that was unused for the longest time is evicted if
that time is more than `min.incremental.fetch.session.eviction.ms` (2 minutes, fixed as in Kafka). Otherwise the
smallest session is evicted that the new one may displace. A follower's session may displace any consumer's. In all
other cases the new session must be larger, and the other one older than 2 minutes. Only larger followers displace
followers.

Trap: a follower is caught up "at the time of its last fetch" also for partitions that are not active. Those share the
session's clock (`followers.FetchClock`) instead of being updated one by one.

Source: KIP-227, KIP-516 (topic ids).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Protocol, TypeAlias

from heirlog.broker.followers import FetchClock
from heirlog.broker.partition import Partition
from heirlog.broker.partition_listeners import PartitionEvent, PartitionListeners
from heirlog.env import Env
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FetchRequest, FetchResponse
from heirlog.protocol.types import BrokerId, PartitionKey

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
LAST_EPOCH = 2**31 - 1
EVICTION_MS = 120_000
"""`min.incremental.fetch.session.eviction.ms`; a constant in Kafka as well."""

NEVER_SENT = -2
NOT_READ = FetchResponse.PartitionData()
"""Placeholder while no records and no error were found: the response is made of the partition's offsets, if it names
the partition. Never changed, never sent.
"""

AskedKey: TypeAlias = tuple[bytes | str, int]
_EvictionKey: TypeAlias = tuple[bool, int, int]


class FetchedPartition:
    """One partition of a request, and what was last read for it."""

    __slots__ = ("asked", "data", "final", "partition", "size", "topic", "topic_id")

    def __init__(self, topic_id: bytes, topic: str, asked: FetchRequest.FetchPartition) -> None:
        self.topic_id = topic_id
        self.topic = topic
        self.asked = asked
        self.partition: Partition | None = None
        self.data = NOT_READ
        self.size = 0
        self.final = False
        """An error or a divergence was found: there is nothing to wait for."""


class CachedPartition(FetchedPartition):
    """A partition of a session, with what was last sent to its client. A `PartitionListener`."""

    __slots__ = ("_sent_high_watermark", "_sent_log_start_offset", "_session", "was_named")

    def __init__(self, session: FetchSession, topic_id: bytes, topic: str, asked: FetchRequest.FetchPartition) -> None:
        super().__init__(topic_id, topic, asked)
        self.was_named = ""
        """The topic's name once it was known here. A session keeps it after the topic is deleted, as on Kafka."""
        self._session = session
        self._sent_high_watermark = NEVER_SENT
        self._sent_log_start_offset = NEVER_SENT

    def serve(self, partition: Partition | None) -> None:
        """Use the partition that this broker has under that name now."""
        if partition is self.partition:
            return
        self.leave()
        self.partition = partition
        if partition is not None:
            self.was_named = partition.topic
            self._session.partition_listeners.listen(partition.key, self)

    def leave(self) -> None:
        """Stop listening."""
        partition = self.partition
        if partition is not None:
            self._session.partition_listeners.forget(partition.key, self)
            self._settle(partition)
            self.partition = None

    def mark(self) -> None:
        session = self._session
        if self not in session.active:
            session.active[self] = None
            if self.partition is not None:
                self._settle(self.partition)

    def _settle(self, partition: Partition) -> None:
        if self._session.from_follower:
            follower = partition.followers.get(self._session.replica_id)
            if follower is not None:
                follower.settle()

    def on_event(self, event: PartitionEvent) -> None:
        session = self._session
        if self not in session.active:
            self.mark()
        waiting = session.waiting
        if waiting is None:
            return
        # records end the wait of a follower, and of a consumer only once they are below the high watermark
        if (
            event is PartitionEvent.LEADERSHIP_CHANGED
            or (event is PartitionEvent.LOG_APPENDED) is session.from_follower
        ):
            waiting.on_event(self)

    def deactivate(self) -> None:
        """The partition was looked at, and there is nothing more to send."""
        session = self._session
        del session.active[self]
        if session.from_follower and self.partition is not None:
            follower = self.partition.followers.get(session.replica_id)
            if follower is not None:
                follower.keeps_up(session.clock)

    def move_to_end(self) -> None:
        """The partition gave records: next time the others are first."""
        active = self._session.active
        del active[self]
        active[self] = None

    def take_changes(self) -> bool:
        """Whether there is a change for the client; it counts as sent from now on."""
        data, partition = self.data, self.partition
        if data is NOT_READ and partition is not None:
            high_watermark, log_start_offset = partition.high_watermark, partition.log.log_start_offset
        else:
            high_watermark, log_start_offset = data.high_watermark, data.log_start_offset
        has_changed = (
            self.size > 0
            or self.final
            or high_watermark != self._sent_high_watermark
            or log_start_offset != self._sent_log_start_offset
        )
        # after an error everything is sent again, even if nothing else has changed
        self._sent_high_watermark = NEVER_SENT if self.final else high_watermark
        self._sent_log_start_offset = log_start_offset
        return has_changed

    def take_back(self) -> None:
        """What counts as sent was not."""
        self._sent_high_watermark = self._sent_log_start_offset = NEVER_SENT
        self.mark()


class WaitingFetch(Protocol):
    """The one request of a session that waits."""

    def on_event(self, entry: CachedPartition) -> None: ...

    def end(self) -> None:
        """Answer now, with what is available."""


class FetchSession:
    __slots__ = (
        "active",
        "clock",
        "created_ms",
        "entries",
        "epoch",
        "eviction_key",
        "from_follower",
        "id",
        "is_alive",
        "is_old",
        "isolation_level",
        "last_used_ms",
        "partition_listeners",
        "replica_epoch",
        "replica_id",
        "uses_topic_ids",
        "waiting",
    )

    def __init__(
        self,
        session_id: int,
        partition_listeners: PartitionListeners[PartitionKey],
        *,
        uses_topic_ids: bool,
        replica_id: BrokerId,
        replica_epoch: int,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.partition_listeners = partition_listeners
        self.uses_topic_ids = uses_topic_ids
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.from_follower = replica_id >= 0
        """Kafka's "privileged"."""
        self.epoch = 1
        """Epoch of the next request."""
        self.entries: dict[AskedKey, CachedPartition] = {}
        self.active: dict[CachedPartition, None] = {}
        self.waiting: WaitingFetch | None = None
        self.clock = FetchClock()
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.eviction_key: _EvictionKey = (self.from_follower, -1, session_id)
        self.is_old = False
        """Older than 2 minutes when it was last used."""
        self.is_alive = True
        self.isolation_level = 0

    def update(self, request: FetchRequest) -> None:
        """Apply what the request adds, changes and forgets, in this order (as on Kafka: forgetting wins)."""
        if request.isolation_level != self.isolation_level:
            # there may be records between the last stable offset and the high watermark
            self.isolation_level = request.isolation_level
            self.mark_all()
        for topic in request.topics:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for asked in topic.partitions:
                entry = self.entries.get((name, asked.partition))
                if entry is None:
                    entry = CachedPartition(self, topic.topic_id, topic.topic, asked)
                    self.entries[(name, asked.partition)] = entry
                else:
                    entry.asked = asked
                entry.mark()
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                entry = self.entries.pop((name, index), None)
                if entry is not None:
                    entry.leave()
                    self.active.pop(entry, None)

    def fetched_by(self, replica_id: BrokerId, replica_epoch: int) -> None:
        """Forget what was known about a follower if another incarnation of it fetches now."""
        if replica_id != self.replica_id or replica_epoch != self.replica_epoch:
            self.mark_all()
            self.replica_id, self.replica_epoch = replica_id, replica_epoch

    def mark_all(self) -> None:
        for entry in self.entries.values():
            entry.mark()

    def end(self) -> None:
        """The session left the cache: forget everything."""
        self.is_alive = False
        if self.waiting is not None:
            self.waiting.end()
        for entry in self.entries.values():
            entry.leave()


class FetchSessionCache:
    def __init__(self, env: Env, slots: int, partition_listeners: PartitionListeners[PartitionKey]) -> None:
        """`slots`: `max.incremental.fetch.session.cache.slots`."""
        self._env = env
        self._slots = slots
        self._partition_listeners = partition_listeners
        self._by_id: dict[int, FetchSession] = {}
        """Sessions by id, the one that was unused for the longest time first."""
        self._for_followers: list[_EvictionKey] = []
        """Sessions that a follower's session may displace, sorted; below, those that a consumer's may."""
        self._for_all: list[_EvictionKey] = []
        self.evictions = 0
        """Sessions evicted since the start."""

    @property
    def partition_count(self) -> int:
        return sum(len(session.entries) for session in self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def open(
        self, request: FetchRequest, *, uses_topic_ids: bool, replica_id: BrokerId, replica_epoch: int, now_ms: int
    ) -> FetchSession | None:
        """The session that the request continues or starts; None without one. Raises KafkaError if it is refused."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            named = self._by_id.get(request.session_id)
            if named is not None:
                self._remove(named)
            if request.session_epoch == FINAL_EPOCH:
                return None
            size = len({(t.topic_id, t.topic, p.partition) for t in request.topics for p in t.partitions})
            if not self._has_room_for(replica_id >= 0, size, now_ms):
                return None
            session = FetchSession(
                self._new_id(),
                self._partition_listeners,
                uses_topic_ids=uses_topic_ids,
                replica_id=replica_id,
                replica_epoch=replica_epoch,
                now_ms=now_ms,
            )
            session.update(request)
        else:
            session = self._continued(request, uses_topic_ids)
            if session.waiting is not None:
                session.waiting.end()
            session.fetched_by(replica_id, replica_epoch)
            session.update(request)
            if not session.entries:
                self._remove(session)
                return None
            session.epoch = 1 if session.epoch == LAST_EPOCH else session.epoch + 1
        self._touch(session, now_ms)
        return session

    def _continued(self, request: FetchRequest, uses_topic_ids: bool) -> FetchSession:
        session = self._by_id.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session.id} is at epoch {session.epoch}, the request at {request.session_epoch}",
            )
        if session.uses_topic_ids is not uses_topic_ids:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session.id} was created by a request that names topics in another way (names or ids)",
            )
        return session

    def not_sent(self, response: FetchResponse, is_full: bool) -> None:
        """The client gets an answer without partitions in place of this one, because it is above its quota.

        is_full: of a full request, which then has no session.
        """
        session = self._by_id.get(response.session_id)
        if session is None:
            return
        if is_full:
            self._remove(session)
            return
        for topic in response.responses:
            name = topic.topic_id if session.uses_topic_ids else topic.topic
            for partition in topic.partitions:
                entry = session.entries.get((name, partition.partition_index))
                if entry is not None:
                    entry.take_back()

    def brokers_changed(self, brokers: set[BrokerId] | None) -> None:
        """Registrations changed (None: any of them): check again whether their fetches count (KIP-903)."""
        for session in self._by_id.values():
            if session.from_follower and (brokers is None or session.replica_id in brokers):
                session.mark_all()

    def _new_id(self) -> int:
        while True:
            session_id = self._env.random.randrange(1, 2**31)
            if session_id not in self._by_id:
                return session_id

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        self._by_id.pop(session.id, None)
        self._by_id[session.id] = session
        session.last_used_ms = now_ms
        is_old = now_ms - session.created_ms > EVICTION_MS
        size = len(session.entries)
        if size == session.eviction_key[1] and is_old is session.is_old:
            return
        key = (session.from_follower, size, session.id)
        self._forget_eviction_key(session)
        session.eviction_key, session.is_old = key, is_old
        if is_old:
            insort(self._for_all, key)
        if is_old or not session.from_follower:
            insort(self._for_followers, key)

    def _forget_eviction_key(self, session: FetchSession) -> None:
        for keys in (self._for_all, self._for_followers):
            at = bisect_left(keys, session.eviction_key)
            if at < len(keys) and keys[at] == session.eviction_key:
                del keys[at]

    def _has_room_for(self, from_follower: bool, size: int, now_ms: int) -> bool:
        if len(self._by_id) < self._slots:
            return True
        longest_unused = next(iter(self._by_id.values()), None)
        if longest_unused is None:
            return False
        if now_ms - longest_unused.last_used_ms > EVICTION_MS:
            self._remove(longest_unused)
            self.evictions += 1
            return True
        evictable = self._for_followers if from_follower else self._for_all
        if not evictable or (from_follower, size, 0) < evictable[0]:
            return False
        self._remove(self._by_id[evictable[0][2]])
        self.evictions += 1
        return True

    def _remove(self, session: FetchSession) -> None:
        del self._by_id[session.id]
        self._forget_eviction_key(session)
        session.end()
