"""Fetch: records for consumers up to the high watermark, for follower replicas up to the log's end.

A consumer with isolation level read_committed gets records up to the last stable offset, with the aborted transactions
among them, which it filters out itself. The last stable offset moves only with the high watermark, so both kinds of
consumers wait for the same events.

    arrive --read all partitions--> enough, an error, a divergence, or no time to wait --> answer
       \\--too little--> wait --a partition changed--> read that one --> enough? --> answer
                          \\---max wait-----------------------------------------> answer

"Enough" is `min_bytes` over all partitions. A follower's fetch also reports the follower's offset. The leader processes
it once, on arrival; it may move the high watermark, wake waiting producers and request an ISR expansion.

Traps.
* A fetch that diverges, or is out of range, does not say how far the follower's log agrees with ours. It must not move
  the follower's offset; that could commit records that the follower is about to truncate.
* Records are file regions, and a region is valid only until its segment is truncated. So a waiting request remembers
  only sizes, and reads again when it answers.
* The response is limited to `max_bytes`, in the order in which partitions are read. The first partition with records
  may exceed the limit by one batch; otherwise no client would ever get a large batch. If a request asks for more than
  the response may hold, the starting point rotates, so that no partition starves behind a busy one.

Only the leader serves fetches, with one exception. The debugging consumer (replica id -2) is
kafka-replica-verification, which compares what every replica shows to consumers. A follower serves it up to the high
watermark that it knows.

A request of a fetch session (`fetch_session.py`) reads and answers only the active partitions of the session. While it
waits, the session's partitions notify it of events, and the purgatory only watches its timeout. For a follower, the
partitions that are not active count as fetched too, at the leader's current log end.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, cast

from heirlog.broker.delayed_fetch import READ_COMMITTED, DelayedFetch
from heirlog.broker.fetch_session import (
    NO_SESSION,
    NOT_READ,
    CachedPartition,
    FetchedPartition,
    FetchSessionCache,
)
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.purgatory import Purgatory
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.context import Context
from heirlog.env import Env
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FetchRequest, FetchResponse
from heirlog.protocol.types import PartitionKey
from heirlog.storage.errors import DamagedLog

_TOPIC_ID_VERSION = 13
_CURRENT_LEADER_VERSION = 12
_NODE_ENDPOINTS_VERSION = 16
_ISOLATION_LEVELS = (0, READ_COMMITTED)
_NAMES_THE_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def _each_once(request: FetchRequest) -> list[FetchedPartition]:
    """For a partition that comes twice the last entry counts, as in a session."""
    entries = {
        (topic.topic_id, topic.topic, asked.partition): FetchedPartition(topic.topic_id, topic.topic, asked)
        for topic in request.topics
        for asked in topic.partitions
    }
    return list(entries.values())


def _refused(topic: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"the client may not read topic {topic}")


class FetchHandler:
    def __init__(self, env: Env, replicas: ReplicaManager, max_bytes: int, sessions: FetchSessionCache) -> None:
        """`max_bytes`: `fetch.max.bytes`, the most that one answer to a consumer holds."""
        self._env = env
        self._replicas = replicas
        self._max_bytes = max_bytes
        self._sessions = sessions
        self.follower_waits: Purgatory[PartitionKey] = replicas.delayed.follower_fetch
        self.consumer_waits: Purgatory[PartitionKey] = replicas.delayed.consumer_fetch
        self._rotation = 0

    def fetch(self, request: FetchRequest, context: Context) -> Any:
        """Returns a response, or `Pending` for a long poll."""
        fetch = DelayedFetch(self, request, context, self._max_bytes)
        if request.isolation_level not in _ISOLATION_LEVELS:
            return self._refused_whole(request, context, ErrorCode.INVALID_REQUEST)
        now_ms = self._env.now_ms()
        try:
            fetch.session = self._sessions.open(
                request,
                uses_topic_ids=context.api_version >= _TOPIC_ID_VERSION,
                replica_id=fetch.replica_id,
                replica_epoch=fetch.replica_epoch,
                now_ms=now_ms,
            )
        except KafkaError as error:
            return FetchResponse(error_code=error.code)
        if fetch.session is None:
            fetch.entries = _each_once(request)
        else:
            fetch.entries = list(fetch.session.active)
        self._arrive(fetch)
        self._read_all(fetch)
        follower_moved = self._take_in_follower(fetch, now_ms) if fetch.from_follower else []
        result: Any
        if fetch.is_enough or request.max_wait_ms <= 0:
            result = self._answer(fetch)
        else:
            result = self._wait(fetch)
        delayed = self._replicas.delayed
        if follower_moved:
            delayed.watermarks_may_have_moved(follower_moved)
        if fetch.from_follower:
            delayed.low_watermarks_may_have_moved(entry.partition for entry in fetch.entries)
        return result

    def _refused_whole(self, request: FetchRequest, context: Context, code: ErrorCode) -> FetchResponse:
        """Each partition gets the error as well: the first versions have no other field for it."""
        response = FetchResponse(error_code=code)
        if context.api_version < _TOPIC_ID_VERSION:
            for topic in filter(lambda each: each.partitions, request.topics):
                partitions = [
                    FetchResponse.PartitionData(
                        partition_index=asked.partition, error_code=code, high_watermark=-1, records=b""
                    )
                    for asked in topic.partitions
                ]
                response.responses.append(
                    FetchResponse.FetchableTopicResponse(topic=topic.topic, partitions=partitions)
                )
        return response

    def _arrive(self, fetch: DelayedFetch) -> None:
        """Find each partition, and check that the request may be served."""
        by_id = fetch.context.api_version >= _TOPIC_ID_VERSION
        replicas = self._replicas
        for entry in fetch.entries:
            partitions = replicas.partitions_of(entry.topic_id) if by_id else replicas.partitions_named(entry.topic)
            partition = partitions.get(entry.asked.partition)
            if isinstance(entry, CachedPartition):
                entry.size = 0
                entry.serve(partition)
            else:
                entry.partition = partition
            if partition is None:
                self._fail(fetch, entry, self._no_partition(fetch, entry, by_id))
            else:
                partition.topic_metrics.fetches += 1

    def _no_partition(self, fetch: DelayedFetch, entry: FetchedPartition, by_id: bool) -> KafkaError:
        replicas = self._replicas
        name = replicas.topic_name(entry.topic_id) if by_id else entry.topic
        if isinstance(entry, CachedPartition):
            name = entry.was_named = name or entry.was_named
        if fetch.refuses is not None and name and fetch.refuses(name):
            return _refused(name)
        asked = entry.topic_id if by_id else entry.topic
        return replicas.no_partition(asked, entry.asked.partition, was_named=name or "")

    def _read_all(self, fetch: DelayedFetch) -> None:
        entries = fetch.entries
        left = fetch.limit
        first = True
        # a session has its own order
        start = self._rotation % len(entries) if len(entries) > 1 and fetch.session is None else 0
        for entry in (*entries[start:], *entries[:start]) if start else entries:
            self._read(fetch, entry, left, first)
            if entry.size:
                first = False
                left = max(0, left - entry.size)
        if left == 0 and len(entries) > 1:
            self._rotation += 1

    def read_within_limits(self, fetch: DelayedFetch, entry: FetchedPartition) -> None:
        """Read the records that are available now for one partition of a waiting request."""
        self._read(fetch, entry, fetch.limit, True)

    def has_more(self, fetch: DelayedFetch, entry: FetchedPartition) -> bool:
        """Whether there are records beyond those that the request has already counted."""
        partition = entry.partition
        return (
            partition is not None
            and fetch.is_served_by(partition)
            and self._end_for(fetch, partition) > entry.asked.fetch_offset
            and not self._is_held_back(fetch, partition)
        )

    def _is_held_back(self, fetch: DelayedFetch, partition: Partition) -> bool:
        """Whether a replication throttle keeps the records from a follower."""
        throttle = self._replicas.leader_throttle
        return (
            throttle.is_in_use
            and fetch.from_follower
            and throttle.holds_back(partition, fetch.replica_id, partition.isr.maximal)
        )

    def _read(self, fetch: DelayedFetch, entry: FetchedPartition, left: int, min_one: bool) -> None:
        partition = entry.partition
        if partition is None:
            return
        asked = entry.asked
        fetch.size -= entry.size
        entry.data = NOT_READ
        entry.size = 0
        entry.final = False
        try:
            if fetch.refuses is not None and fetch.refuses(partition.topic):
                raise _refused(partition.topic)
            if partition.role is not ReplicaRole.LEADER and not fetch.is_served_by(partition):
                raise partition.not_leader()
            offset, leader_epoch = asked.fetch_offset, asked.current_leader_epoch
            # in a Fetch every negative number means: no epoch
            if leader_epoch != partition.leader_epoch and leader_epoch >= 0:
                partition.check_leader_epoch(leader_epoch)
            if fetch.from_follower:
                partition.check_follower(fetch.replica_id, fetch.replica_epoch, leader_epoch)
            diverging = None
            if asked.last_fetched_epoch >= 0:
                diverging = partition.diverging_epoch(offset, asked.last_fetched_epoch)
            log = partition.log
            if diverging is not None:
                epoch, end_offset = diverging
                data = entry.data = self._data_of(fetch, partition)
                data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
                data.aborted_transactions = None
                entry.final = fetch.has_final = True
                return
            upto = self._end_for(fetch, partition)
            # before the check of the remaining bytes: a follower's offset counts even if nothing is read for it
            if not log.log_start_offset <= offset <= log.log_end_offset:
                raise partition.out_of_range(offset)
            if offset >= upto or self._is_held_back(fetch, partition):
                return
            max_bytes = min(asked.partition_max_bytes, left)
            if max_bytes <= 0 and not min_one:
                return
            read = log.read if fetch.from_follower else log.read_for_client
            found = read(offset, max_bytes, upto, min_one)
            if found.size:
                data = entry.data = self._data_of(fetch, partition)
                data.records = [*found.regions]
                if fetch.is_read_committed:
                    data.aborted_transactions = [
                        FetchResponse.AbortedTransaction(
                            producer_id=aborted.producer_id, first_offset=aborted.first_offset
                        )
                        for aborted in log.aborted_in(offset, found, upto)
                    ]
                entry.size = found.size
                fetch.size += found.size
        except KafkaError as error:
            self._fail(fetch, entry, error)
        except DamagedLog as error:
            is_given_up = self._replicas.damaged_logs.found(partition, error)
            # clients ask the next leader after the first, and show the second
            code = ErrorCode.KAFKA_STORAGE_ERROR if is_given_up else ErrorCode.CORRUPT_MESSAGE
            self._fail(fetch, entry, KafkaError(code, str(error)))
        except OSError as error:
            self._replicas.storage_failed(partition, error)
            self._fail(fetch, entry, partition.not_leader())

    def _end_for(self, fetch: DelayedFetch, partition: Partition) -> int:
        """The end offset of what this request may read."""
        if fetch.from_follower:
            return partition.log.log_end_offset
        return partition.last_stable_offset if fetch.is_read_committed else partition.high_watermark

    def _data_of(self, fetch: DelayedFetch, partition: Partition) -> FetchResponse.PartitionData:
        """What an answer says of a partition that has no records for it. Most looks at one find nothing to say."""
        return FetchResponse.PartitionData(
            partition_index=partition.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            aborted_transactions=[] if fetch.request.isolation_level == READ_COMMITTED else None,
            records=b"",
        )

    def _fail(self, fetch: DelayedFetch, entry: FetchedPartition, error: KafkaError) -> None:
        entry.data = FetchResponse.PartitionData(
            partition_index=entry.asked.partition,
            error_code=error.code,
            high_watermark=-1,
            # null for a partition of this broker, as on Apache Kafka
            aborted_transactions=[] if entry.partition is None else None,
            records=b"",
        )
        entry.size = 0
        entry.final = fetch.has_final = True
        if entry.partition is not None:
            entry.partition.topic_metrics.fetch_failed(error.code)

    def _take_in_follower(self, fetch: DelayedFetch, now_ms: int) -> list[tuple[Partition, int]]:
        if fetch.session is not None:
            fetch.session.clock.fetched_ms = now_ms
        moved = []
        for entry in fetch.entries:
            partition = entry.partition
            if partition is None or entry.final:
                continue
            if partition.role is not ReplicaRole.LEADER:
                # the disk failed under a later partition of this request, and took this one offline with it
                self._fail(fetch, entry, partition.not_leader())
                continue
            watermark = partition.high_watermark
            proposal = partition.follower_fetched(
                fetch.replica_id, entry.asked.fetch_offset, entry.asked.log_start_offset, fetch.replica_epoch, now_ms
            )
            if proposal is not None:
                self._replicas.propose(proposal)
            if partition.high_watermark != watermark:
                moved.append((partition, watermark))
                if entry.data is not NOT_READ:
                    # this response tells the follower what its own fetch has just committed
                    entry.data.high_watermark = partition.high_watermark
                    entry.data.last_stable_offset = partition.last_stable_offset
        return moved

    def _wait(self, fetch: DelayedFetch) -> Any:
        waits, session = fetch.waits, fetch.session
        if waits.is_full:
            return self._answer(fetch)
        pending: Pending[Any] = Pending(partial(self._abandoned, fetch))
        fetch.pending = pending
        if session is None:
            fetch.index_by_key()
        else:
            session.waiting = fetch
        for entry in fetch.entries:
            entry.data = NOT_READ
        waits.watch(fetch, fetch.request.max_wait_ms)
        return pending

    def _abandoned(self, fetch: DelayedFetch) -> None:
        fetch.waits.remove(fetch)
        if fetch.session is not None:
            fetch.session.waiting = None

    def answer_after_wait(self, fetch: DelayedFetch) -> FetchResponse:
        session = fetch.session
        if session is not None:
            session.waiting = None
            fetch.entries = list(session.active)
        left = fetch.limit
        first = True
        for entry in fetch.entries:
            partition = entry.partition
            if partition is None:
                continue
            if session is not None or entry.final or self._end_for(fetch, partition) > entry.asked.fetch_offset:
                self._read(fetch, entry, left, first)
                if entry.size:
                    first = False
                    left = max(0, left - entry.size)
            else:
                # nothing to read, but the high watermark may have moved
                entry.data = NOT_READ
        return self._answer(fetch)

    def _answer(self, fetch: DelayedFetch) -> FetchResponse:
        session = fetch.session
        if session is None:
            return self._response(fetch, fetch.entries, NO_SESSION)
        entries = cast("list[CachedPartition]", fetch.entries)
        is_full = fetch.is_full
        changed = [entry for entry in entries if entry.take_changes() or is_full]
        # a full request whose session was evicted while it waited has none
        response = self._response(fetch, changed, session.id if session.is_alive or not is_full else NO_SESSION)
        for entry in entries:
            if not self._stays_active(fetch, entry):
                entry.deactivate()
            elif entry.size:
                entry.move_to_end()
            entry.data = NOT_READ
            entry.size = 0
        return response

    def _stays_active(self, fetch: DelayedFetch, entry: FetchedPartition) -> bool:
        """Whether the next response has to look at the partition even if no event happens until then."""
        partition = entry.partition
        if partition is None or entry.final or self._end_for(fetch, partition) > entry.asked.fetch_offset:
            return True
        # any fetch of a follower outside the ISR may let it join
        return fetch.from_follower and fetch.replica_id not in partition.isr.maximal

    def _response(self, fetch: DelayedFetch, entries: Iterable[FetchedPartition], session_id: int) -> FetchResponse:
        version = fetch.context.api_version
        topics: dict[bytes | str, FetchResponse.FetchableTopicResponse] = {}
        leaders: set[int] = set()
        for entry in entries:
            name = entry.topic_id if version >= _TOPIC_ID_VERSION else entry.topic
            topic = topics.get(name)
            if topic is None:
                topic = FetchResponse.FetchableTopicResponse(topic_id=entry.topic_id, topic=entry.topic)
                topics[name] = topic
            if entry.data is NOT_READ and entry.partition is not None:
                entry.data = self._data_of(fetch, entry.partition)
            topic.partitions.append(entry.data)
            if entry.size and entry.partition is not None:
                self._count_bytes(fetch, entry.partition, entry.size)
            if entry.final and version >= _CURRENT_LEADER_VERSION and entry.data.error_code in _NAMES_THE_LEADER:
                state = self._replicas.state_of(entry.topic_id, entry.topic, entry.asked.partition)
                if state is not None:
                    entry.data.current_leader = FetchResponse.LeaderIdAndEpoch(
                        leader_id=state.leader, leader_epoch=state.leader_epoch
                    )
                    leaders.add(state.leader)
        response = FetchResponse(session_id=session_id, responses=list(topics.values()))
        if leaders and version >= _NODE_ENDPOINTS_VERSION:
            response.node_endpoints = [
                FetchResponse.NodeEndpoint(node_id=node.id, host=endpoint.host, port=endpoint.port, rack=node.rack)
                for node, endpoint in self._replicas.endpoints_of(sorted(leaders), fetch.context.listener)
            ]
        return response

    def _count_bytes(self, fetch: DelayedFetch, partition: Partition, size: int) -> None:
        if fetch.from_follower:
            self._replicas.topic_stats.replication_bytes_out += size
            self._replicas.leader_throttle.count(partition, size)
        else:
            partition.topic_metrics.bytes_out += size
