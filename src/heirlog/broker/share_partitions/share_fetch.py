"""ShareFetch and ShareAcknowledge: members of share groups get records, and say what became of them.

    arrive --acknowledgements stored--> records to acquire, or an error --> acquire, answer
                                  \\--nothing yet--> wait --records arrived or came back--> acquire, answer
                                                      \\---max wait---------------------> answer

The acknowledgements of a ShareFetch are stored first. So what they release may be in the same answer, and the locks of
the answer begin when it can leave.

A waiting fetch holds no records: another member may take them first, and then the wait continues. Records are acquired
only when the answer is made. If the connection closes before, nothing has to be undone.

`min_bytes` counts the bytes of the log behind the first record that may be acquired. Records that came back are enough
at once, whatever their size.

A partition with an error is answered at once; where this broker does not lead it, with its leader.

Source: KIP-932, KIP-1206 (acquire modes), KIP-1222 (renewed locks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, cast

from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.share_coordinator.state import SharePartitionKey
from heirlog.broker.share_partitions.acquisition import Wanted
from heirlog.broker.share_partitions.reads import as_fetched, batches_of, regions_with
from heirlog.broker.share_partitions.share_acknowledge import (
    Results,
    ShareAcknowledgeHandler,
    acknowledgements_of,
    check_readable,
    why,
)
from heirlog.broker.share_partitions.share_partition import (
    SharePartition,
)
from heirlog.broker.share_partitions.share_partition_manager import LoadedSharePartition, SharePartitionManager
from heirlog.broker.share_partitions.share_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    ShareSession,
    ShareSessionCache,
)
from heirlog.client.aborted import AbortedTransactions
from heirlog.context import Context
from heirlog.env import Env
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    ShareFetchRequest,
    ShareFetchResponse,
)
from heirlog.protocol.types import PartitionKey, Uuid
from heirlog.storage.errors import DamagedLog

_RECORD_LIMIT_MODE: Final = 1
_ACQUIRE_MODES: Final = (0, _RECORD_LIMIT_MODE)
_READS_PER_PARTITION: Final = 8
"""Limit of reads for one answer that find only records of aborted transactions."""


class _Connection(Protocol):
    """What is used of the connection that a session belongs to."""

    def when_closed(self, fn: Callable[[], None]) -> None: ...


class _ShareFetch:
    """A request while it is served. A `DelayedOperation`."""

    def __init__(self, handler: ShareFetchHandler, request: ShareFetchRequest, context: Context) -> None:
        self.number = -1
        self._handler = handler
        self.request = request
        self.context = context
        self.group_id = request.group_id or ""
        self.member = request.member_id or ""
        self.deadline_ms = 0
        self.session: ShareSession | None = None
        self.acknowledged: Results = {}
        self.partitions: dict[PartitionKey, _FetchedPartition] = {}
        self.pending: Pending[ShareFetchResponse] = Pending(lambda: handler.manager.waits.remove(self))

    @property
    def keys(self) -> Sequence[SharePartitionKey]:
        return [SharePartitionKey(self.group_id, *key) for key in self.partitions]

    def try_complete(self, key: SharePartitionKey) -> bool:
        if not self._handler.is_enough(self, self.partitions[key.topic_id, key.partition]):
            return False
        self.on_expiration()
        return True

    def on_expiration(self) -> None:
        self.pending.complete(self._handler.acquire_and_answer(self))


def _named(request: ShareFetchRequest) -> list[PartitionKey]:
    return [(Uuid(topic.topic_id), each.partition_index) for topic in request.topics for each in topic.partitions]


def _forgotten(request: ShareFetchRequest) -> list[PartitionKey]:
    return [(Uuid(topic.topic_id), index) for topic in request.forgotten_topics_data for index in topic.partitions]


class _FetchedPartition:
    __slots__ = ("data", "key", "loaded", "partition", "size")

    def __init__(self, key: PartitionKey) -> None:
        self.key = key
        self.partition: Partition | None = None
        self.loaded: LoadedSharePartition | None = None
        self.size = 0
        """Bytes of its records."""
        self.data = ShareFetchResponse.PartitionData(partition_index=key[1], records=b"")

    def fail(self, error: KafkaError) -> None:
        if self.partition is not None:
            self.partition.topic_metrics.share_fetch_failed(error.code)
        self.data.error_code = error.code
        self.data.error_message = error.message
        self.data.records = b""
        self.data.acquired_records = []


class ShareFetchHandler:
    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        manager: SharePartitionManager,
        *,
        sessions: ShareSessionCache,
        acknowledge: ShareAcknowledgeHandler,
        max_bytes: int,
    ) -> None:
        """max_bytes: `fetch.max.bytes`."""
        self._env = env
        self._replicas = replicas
        self.manager = manager
        self._acknowledge = acknowledge
        self._max_bytes = max_bytes
        self._sessions = sessions

    # -- requests ------------------------------------------------------------------------------------------------

    def share_fetch(self, request: ShareFetchRequest, context: Context) -> ShareFetchResponse | Pending[Any]:
        fetch = _ShareFetch(self, request, context)
        named = acknowledgements_of(request.topics)
        given = named if any(named.values()) else {}
        epoch = request.share_session_epoch
        try:
            self._acknowledge.check(request.group_id, request.member_id)
            self._check_fetch(request, given)
            fetch.session = self._session(SessionKey(fetch.group_id, fetch.member), epoch, context)
            if epoch != FINAL_EPOCH:
                is_readable = partial(self._acknowledge.is_readable, context=context)
                fetch.session.update(_named(request), _forgotten(request), is_readable)
        except KafkaError as error:
            return self._refused(request, error)
        fetch.deadline_ms = self._env.now_ms() + max(0, request.max_wait_ms)
        self._acknowledge.acknowledge(
            fetch.session.key, given, request.is_renew_ack, context, partial(self._fetch, fetch)
        )
        if epoch == FINAL_EPOCH:
            self._sessions.close(fetch.session.key)
        return fetch.pending

    def _check_fetch(self, request: ShareFetchRequest, given: Mapping[PartitionKey, object]) -> None:
        if request.share_acquire_mode not in _ACQUIRE_MODES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no acquire mode {request.share_acquire_mode}")
        if request.share_session_epoch == INITIAL_EPOCH and given:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the first request of a share session acknowledges nothing")
        if request.is_renew_ack and any(
            (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
        ):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "a request that renews locks fetches nothing: max wait, min bytes, max bytes and max records are 0",
            )

    def _session(self, key: SessionKey, epoch: int, context: Context) -> ShareSession:
        if epoch != INITIAL_EPOCH:
            return self._sessions.advance(key, epoch)
        session = self._sessions.open(key, context.connection)
        self.manager.session_begins(key.group_id, is_only=self._sessions.count_of(key.group_id) == 1)
        closed = partial(self._sessions.connection_closed, context.connection)
        cast(_Connection, context.connection).when_closed(closed)
        return session

    def _refused(self, request: ShareFetchRequest, error: KafkaError) -> ShareFetchResponse | Pending[Any]:
        response = ShareFetchResponse(error_code=error.code, error_message=error.message)
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED or request.max_wait_ms <= 0:
            return response
        # otherwise the client would try again at once, for ever
        cancel = self._env.call_later(request.max_wait_ms, lambda: pending.complete(response))
        pending: Pending[ShareFetchResponse] = Pending(cancel)
        return pending

    # -- fetch ---------------------------------------------------------------------------------------------------

    def _fetch(self, fetch: _ShareFetch, acknowledged: Results) -> None:
        if fetch.pending.done:
            return
        assert fetch.session is not None
        fetch.acknowledged = acknowledged
        if fetch.request.share_session_epoch == FINAL_EPOCH or fetch.request.is_renew_ack:
            fetch.pending.complete(self._response(fetch))
            return
        for key in fetch.session.partitions():
            fetch.partitions[key] = self._arrive(fetch, key)
        left_ms = fetch.deadline_ms - self._env.now_ms()
        is_over = (
            left_ms <= 0 or self.manager.waits.is_full or any(error is not None for error in acknowledged.values())
        )
        if is_over or any(self.is_enough(fetch, entry) for entry in fetch.partitions.values()):
            fetch.on_expiration()
            return
        self.manager.waits.watch(fetch, left_ms)

    def _arrive(self, fetch: _ShareFetch, key: PartitionKey) -> _FetchedPartition:
        entry = _FetchedPartition(key)
        try:
            entry.partition = self._acknowledge.led(key, fetch.context)
            entry.partition.topic_metrics.share_fetches += 1
            entry.loaded = self.manager.use(SharePartitionKey(fetch.group_id, *key), entry.partition)
        except KafkaError as error:
            entry.fail(error)
        return entry

    def is_enough(self, fetch: _ShareFetch, entry: _FetchedPartition) -> bool:
        """Whether the fetch may be answered now, as far as this partition shows."""
        if not self._is_ready(fetch, entry):
            return entry.data.error_code != ErrorCode.NONE
        least = min(fetch.request.min_bytes, self._most_bytes(fetch))
        if least <= 1:
            return True
        found = 0
        for each in fetch.partitions.values():
            if self._is_ready(fetch, each):
                found += self._readable_bytes(fetch, each, least - found)
            if found >= least or each.data.error_code:
                return True
        return False

    def _most_bytes(self, fetch: _ShareFetch) -> int:
        return min(fetch.request.max_bytes, self._max_bytes)

    def _is_ready(self, fetch: _ShareFetch, entry: _FetchedPartition) -> bool:
        """Whether the member may acquire a record of the partition. Notes an error in the entry."""
        loaded = entry.loaded
        if loaded is None or entry.data.error_code:
            return False
        if loaded.error:
            entry.fail(KafkaError(loaded.error, why(loaded.error)))
            return False
        try:
            # at each look: a permission may be removed while the request waits
            check_readable(loaded.partition.topic, fetch.context)
        except KafkaError as error:
            entry.fail(error)
            return False
        share = loaded.deliverable
        if share is None:
            return False
        share.log_starts_at(loaded.partition.log.log_start_offset)
        offset = share.next_fetch_offset
        return offset < self._end_for(fetch, loaded.partition) and share.may_acquire(offset)

    def _end_for(self, fetch: _ShareFetch, partition: Partition) -> int:
        if self.manager.reads_committed(fetch.group_id):
            return partition.last_stable_offset
        return partition.high_watermark

    def _readable_bytes(self, fetch: _ShareFetch, entry: _FetchedPartition, wanted: int) -> int:
        assert entry.loaded is not None and entry.loaded.share is not None
        share, partition = entry.loaded.share, entry.loaded.partition
        offset = share.next_fetch_offset
        if offset < share.end_offset:
            return wanted
        try:
            return partition.log.read(offset, wanted, self._end_for(fetch, partition), True).size
        except (KafkaError, DamagedLog, OSError):
            # acquiring meets the same error, and answers it
            return wanted

    def acquire_and_answer(self, fetch: _ShareFetch) -> ShareFetchResponse:
        assert fetch.session is not None
        if not self._sessions.has(fetch.session):
            # it ended while the request waited: no session would give back what is acquired now
            return self._response(fetch)
        lock_ms = self.manager.lock_duration_ms(fetch.group_id)
        left_bytes, left_records = self._most_bytes(fetch), fetch.request.max_records
        is_first = True
        for entry in fetch.partitions.values():
            if left_records <= 0 or (left_bytes <= 0 and not is_first):
                break
            for _ in range(_READS_PER_PARTITION):
                if not self._is_ready(fetch, entry) or self._acquire(fetch, entry, left_bytes, left_records, lock_ms):
                    break
            acquired = entry.data.acquired_records
            if acquired:
                is_first = False
                left_records -= sum(each.last_offset - each.first_offset + 1 for each in acquired)
                left_bytes -= entry.size
        return self._response(fetch)

    def _acquire(
        self, fetch: _ShareFetch, entry: _FetchedPartition, max_bytes: int, max_records: int, lock_ms: int
    ) -> bool:
        """Acquire records of a partition that is ready. False if there were none, and there may be more behind."""
        loaded = entry.loaded
        assert loaded is not None and loaded.share is not None
        try:
            return self._acquire_from(loaded.share, fetch, entry, max_bytes, max_records, lock_ms)
        except KafkaError as error:
            entry.fail(error)
        except DamagedLog as error:
            is_given_up = self._replicas.damaged_logs.found(loaded.partition, error)
            code = ErrorCode.KAFKA_STORAGE_ERROR if is_given_up else ErrorCode.CORRUPT_MESSAGE
            entry.fail(KafkaError(code, str(error)))
        except OSError as error:
            self._replicas.storage_failed(loaded.partition, error)
            entry.fail(loaded.partition.not_leader())
        return True

    def _acquire_from(
        self,
        share: SharePartition,
        fetch: _ShareFetch,
        entry: _FetchedPartition,
        max_bytes: int,
        max_records: int,
        lock_ms: int,
    ) -> bool:
        loaded = entry.loaded
        assert loaded is not None
        log, offset = loaded.partition.log, share.next_fetch_offset
        upto = self._end_for(fetch, loaded.partition)
        found = log.read_for_client(offset, max(1, max_bytes), upto, True)
        if not found.size:
            return True
        request = fetch.request
        wanted = Wanted(max_records, request.batch_size, request.share_acquire_mode == _RECORD_LIMIT_MODE)
        batches = list(batches_of(found.regions, share.last_wanted(wanted)))
        aborted = None
        if self.manager.reads_committed(fetch.group_id):
            aborted = AbortedTransactions(
                [(each.producer_id, each.first_offset) for each in log.aborted_in(offset, found, upto)]
            )
        until_ms = self._env.now_ms() + lock_ms
        acquired = share.acquire(fetch.member, offset, as_fetched(batches, aborted), wanted, until_ms)
        if not acquired:
            return False
        self.manager.locked(loaded, until_ms)
        regions = regions_with(batches, acquired)
        entry.data.records = [*regions]
        entry.size = sum(region.size for region in regions)
        entry.data.acquired_records = [
            ShareFetchResponse.AcquiredRecords(
                first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count
            )
            for each in acquired
        ]
        self.manager.acquired_records += sum(each.last - each.first + 1 for each in acquired)
        loaded.partition.topic_metrics.bytes_out += entry.size
        return True

    # -- answers -------------------------------------------------------------------------------------------------

    def _response(self, fetch: _ShareFetch) -> ShareFetchResponse:
        response = ShareFetchResponse(acquisition_lock_timeout_ms=self.manager.lock_duration_ms(fetch.group_id))
        entries = dict(fetch.partitions)
        for key, error in fetch.acknowledged.items():
            entry = entries.setdefault(key, _FetchedPartition(key))
            if error is not None:
                entry.data.acknowledge_error_code = error.code
                entry.data.acknowledge_error_message = error.message
        is_full = fetch.request.share_session_epoch == INITIAL_EPOCH
        topics: dict[Uuid, ShareFetchResponse.ShareFetchableTopicResponse] = {}
        leaders: set[int] = set()
        for key, entry in entries.items():
            data = entry.data
            if not (is_full or data.error_code or data.acquired_records or key in fetch.acknowledged):
                continue
            for code in (data.error_code, data.acknowledge_error_code):
                known = self._acknowledge.leader_of(key, KafkaError(ErrorCode(code), ""))
                if known is not None:
                    leader, epoch = known
                    data.current_leader = ShareFetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                    leaders.add(leader)
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = ShareFetchResponse.ShareFetchableTopicResponse(topic_id=key[0])
            topic.partitions.append(data)
        response.responses = list(topics.values())
        response.node_endpoints = [
            ShareFetchResponse.NodeEndpoint(node_id=node.id, host=endpoint.host, port=endpoint.port, rack=node.rack)
            for node, endpoint in self._replicas.endpoints_of(sorted(leaders), fetch.context.listener)
        ]
        return response
