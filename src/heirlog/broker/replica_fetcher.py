"""A replica fetcher: how a follower copies the logs of one leader.

There is one fetcher per leader broker and channel (`replica_fetcher_manager.py`). It keeps a fetch session with the
leader (`fetch_session_handler.py`), so that requests and answers contain only changes. One request is in flight, and a
second one if there is something new to ask for. The second one ends the long poll of the first; otherwise a new topic's
first acks=all would wait for `replica.fetch.wait.max.ms`. Per partition:

    fetching --records--> append, fetch the next      --DivergingEpoch--> truncate (records that a lossy election gave
       |  ^                                               up are copied first), fetch from the new end
       |  ^  --OFFSET_OUT_OF_RANGE--> locating: where does the leader's log start and end? (`log_range.py`)
       |  +------after the back-off-------- backing off <--transient errors
       +--FENCED_LEADER_EPOCH--> stale: our metadata is behind the leader's; wait for newer

Rules.
* A fetcher (re)starts a partition only for a newer leader epoch; older answers are dropped
  (`partition_fetch_state.py`).
* A partition that is not to be fetched (locating, backing off, stale) leaves the session: the leader would answer its
  error again at once.
* The first request of a session does not wait at the leader: until its answer comes, no partition can be added.
* Batches of an epoch newer than that of the request are not appended (KAFKA-18723).
* A fetch carries this broker's registration epoch, so that a leader never uses the offset of a former incarnation for
  this one (KIP-903).
* Transient errors are usually short (a new leader gets the metadata a moment after us), so the first back-off is short.
  It doubles up to replica.fetch.backoff.ms. Success, a new leader epoch and a new leader reset it, because acks=all
  waits for us.

Source: KIP-101, KIP-595 (divergence in Fetch), KIP-903; kafka-behaviour 4.3, 4.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from heirlog.broker.broker_topic_metrics import BrokerTopicStats
from heirlog.broker.discarded_records import DiscardedRecordsManager
from heirlog.broker.fetch_session_handler import FetchRequestData, FetchSessionHandler
from heirlog.broker.followers import RegisteredBrokers
from heirlog.broker.log_range import LogRange
from heirlog.broker.lost_transactions import Remembered, lost_parts, remembered
from heirlog.broker.partition import Partition
from heirlog.broker.partition_fetch_state import BackOff, PartitionFetchState
from heirlog.broker.replication_throttle import ReplicationThrottle
from heirlog.broker.truncation import cut_for
from heirlog.env import Env, SendFailure
from heirlog.metadata.config_def import StaticConfig
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import BrokerId, Endpoint, PartitionKey, Uuid

MAX_IN_FLIGHT = 2
LOST_TRANSACTIONS_LOGGED = 100
"""Transactions named by one truncation; the event has their total too."""

_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class ReplicaFetcherSettings:
    """The `replica.*` configurations, in ms and bytes."""

    channels: int
    wait_max_ms: int
    min_bytes: int
    max_bytes: int
    """Limit per partition: `replica.fetch.max.bytes`."""
    response_max_bytes: int
    backoff_ms: int
    """The longest back-off: `replica.fetch.backoff.ms`."""
    timeout_ms: int

    @classmethod
    def of(cls, static: StaticConfig) -> ReplicaFetcherSettings:
        return cls(
            channels=static.int("num.replica.fetchers"),
            wait_max_ms=static.int("replica.fetch.wait.max.ms"),
            min_bytes=static.int("replica.fetch.min.bytes"),
            max_bytes=static.int("replica.fetch.max.bytes"),
            response_max_bytes=static.int("replica.fetch.response.max.bytes"),
            backoff_ms=static.int("replica.fetch.backoff.ms"),
            timeout_ms=static.int("replica.socket.timeout.ms"),
        )


@dataclass(frozen=True, slots=True)
class ReplicaFetcherPorts:
    """The interfaces that every fetcher of a broker uses."""

    env: Env
    settings: ReplicaFetcherSettings
    registered_brokers: RegisteredBrokers
    endpoint_of: Callable[[BrokerId], Endpoint | None]
    discarded_records: DiscardedRecordsManager
    topic_stats: BrokerTopicStats
    flush_if_due: Callable[[Partition, int], None]
    """Called after an append, with the wall time in ms. Raises OSError."""
    storage_failed: Callable[[Partition, OSError], None]
    throttle: ReplicationThrottle
    connection_closed: Callable[[BrokerId], None]
    """Called with the leader at the first request that fails so after one that was answered."""


class ReplicaFetcher:
    """Copies partitions from one leader over one channel."""

    def __init__(self, ports: ReplicaFetcherPorts, leader: BrokerId, channel: str) -> None:
        self._ports = ports
        self._env = ports.env
        self._settings = ports.settings
        self.leader = leader
        self._channel = channel
        self.followed: dict[PartitionKey, PartitionFetchState] = {}
        self._session: FetchSessionHandler[PartitionKey] = FetchSessionHandler()
        self._delayed: dict[PartitionKey, PartitionFetchState] = {}
        self._last_number = 0
        self._in_flight = 0
        self._cancel_timer: Callable[[], None] | None = None
        self._failing = BackOff()
        self._all_idle_until_ms = 0

    @property
    def is_unused(self) -> bool:
        return not self.followed and not self._in_flight

    def follow(self, partition: Partition) -> None:
        """Copy the partition. The metadata has just named this leader, so it is likely to answer now."""
        self._failing.reset()
        self._all_idle_until_ms = 0
        followed = self.followed[partition.key] = PartitionFetchState(partition)
        cut_at = partition.watermark_to_cut_to
        if cut_at is None:
            self._session.add(followed.key)
        else:
            self._keep_and_cut(followed, cut_at, lambda: self._begin_at(followed, cut_at))

    def _begin_at(self, followed: PartitionFetchState, offset: int) -> None:
        followed.partition.truncate_to(offset)
        self._moved(followed)
        followed.initial_offset = followed.start.fetch_offset

    def unfollow(self, key: PartitionKey) -> None:
        del self.followed[key]
        self._delayed.pop(key, None)
        self._session.forget(key)

    def wake_up(self) -> None:
        """Send the next request if there is something to fetch; if one is in flight, only if there is something new."""
        now_ms = self._env.now_ms()
        if now_ms < self._all_idle_until_ms:
            self._wake_up_at(self._all_idle_until_ms)
            return
        if self._delayed:
            self._end_delays(now_ms)
        session = self._session
        if session.is_empty or (self._in_flight and not self._may_interrupt):
            return
        endpoint = self._ports.endpoint_of(self.leader)
        if endpoint is None:
            self._delay()
            return
        self._last_number = number = self._last_number + 1
        self._in_flight += 1
        self._env.send(
            endpoint,
            self._channel,
            self._request(session.next_request(number), number),
            partial(self._answered, number),
            self._settings.timeout_ms + self._settings.wait_max_ms,
        )
        if self._may_interrupt:
            # the next request names the partitions that this one forgets: it must not wait for a long poll
            self.wake_up()

    @property
    def _may_interrupt(self) -> bool:
        return self._session.has_unsent and self._in_flight < MAX_IN_FLIGHT and self._session.is_established

    def _end_delays(self, now_ms: int) -> None:
        for key, followed in list(self._delayed.items()):
            if followed.idle_until_ms <= now_ms and not self._is_held_back(followed, now_ms):
                del self._delayed[key]
                self._session.add(key)
        if self._delayed:
            self._wake_up_at(min(followed.idle_until_ms for followed in self._delayed.values()))

    def _is_held_back(self, followed: PartitionFetchState, now_ms: int) -> bool:
        """Whether the partition must wait for the replication throttle, and then how long."""
        throttle, partition = self._ports.throttle, followed.partition
        if not throttle.holds_back(partition, self._ports.registered_brokers.broker_id, partition.image_isr):
            return False
        followed.idle_until_ms = now_ms + throttle.pause_ms
        return True

    def _delay(self) -> None:
        """Back off: the leader cannot be reached."""
        self._all_idle_until_ms = self._env.now_ms() + self._failing.next_ms(self._settings.backoff_ms)
        self._wake_up_at(self._all_idle_until_ms)

    def _wake_up_at(self, at_ms: int) -> None:
        if self._cancel_timer is not None:
            self._cancel_timer()
        self._cancel_timer = self._env.call_later(max(0, at_ms - self._env.now_ms()), self._on_timer)

    def _on_timer(self) -> None:
        self._cancel_timer = None
        self.wake_up()

    def _request(self, said: FetchRequestData[PartitionKey], number: int) -> FetchRequest:
        registered_brokers, settings = self._ports.registered_brokers, self._settings
        topics: dict[Uuid, FetchRequest.FetchTopic] = {}
        for topic_id, index in said.named:
            followed = self.followed[(topic_id, index)]
            followed.named_in(number)
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchRequest.FetchTopic(topic_id=topic_id)
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=index,
                    current_leader_epoch=followed.leader_epoch,
                    fetch_offset=followed.start.fetch_offset,
                    last_fetched_epoch=followed.start.last_fetched_epoch,
                    log_start_offset=followed.sent_log_start_offset,
                    partition_max_bytes=settings.max_bytes,
                )
            )
        forgotten: dict[Uuid, FetchRequest.ForgottenTopic] = {}
        for topic_id, index in said.forgotten:
            if topic_id not in forgotten:
                forgotten[topic_id] = FetchRequest.ForgottenTopic(topic_id=topic_id)
            forgotten[topic_id].partitions.append(index)
        return FetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=registered_brokers.broker_id, replica_epoch=registered_brokers.broker_epoch
            ),
            max_wait_ms=0 if said.is_full and self._session.is_kept else settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            session_id=said.session_id,
            session_epoch=said.session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def _answered(self, number: int, result: FetchResponse | SendFailure) -> None:
        self._in_flight -= 1
        if isinstance(result, SendFailure):
            if result.kind == "disconnected" and self._failing.is_reset:
                self._ports.connection_closed(self.leader)
            self._failed(result.kind)
            return
        if result.error_code != ErrorCode.NONE:
            self._refused(number, error_code(result.error_code))
            return
        self._failing.reset()
        for topic in result.responses:
            for data in topic.partitions:
                followed = self.followed.get((Uuid(topic.topic_id), data.partition_index))
                if followed is None:
                    continue
                if followed.is_answered_by(number):
                    self._take_in(followed, data)
                else:
                    self._session.fetch_again(followed.key)
        self._session.answered(number, result.session_id)
        self.wake_up()

    def _failed(self, error: str) -> None:
        """A request failed. The leader may have processed it, and may still have the session."""
        self._session.lost(is_over=False)
        self._env.log("info", "replica-fetch-failed", leader=self.leader, error=error)
        if not self._in_flight:
            self._delay()

    def _refused(self, number: int, error: ErrorCode) -> None:
        if error not in _SESSION_ERRORS:
            self._failed(error.name)
            return
        if self._session.is_current(number):
            self._env.log("info", "fetch-session-lost", leader=self.leader, error=error.name)
            self._session.lost(is_over=error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self.wake_up()

    def _moved(self, followed: PartitionFetchState) -> None:
        """The log has another end now: the next request has to say where."""
        followed.move()
        self._session.add(followed.key)

    def _suspend(self, followed: PartitionFetchState) -> None:
        """Do not fetch the partition until an event resumes it."""
        followed.forget_requests()
        self._session.forget(followed.key)

    def _take_in(self, followed: PartitionFetchState, data: FetchResponse.PartitionData) -> None:
        partition = followed.partition
        try:
            if data.error_code != ErrorCode.NONE:
                self._take_in_error(followed, data.error_code)
            elif data.diverging_epoch.epoch >= 0 or data.diverging_epoch.end_offset >= 0:
                self._truncate(followed, data.diverging_epoch, data.log_start_offset)
            else:
                records = records_view(data.records)
                if len(records):
                    partition.append_from_leader(records, followed.leader_epoch)
                    self._ports.topic_stats.replication_bytes_in += len(records)
                    self._moved(followed)
                    if self._ports.throttle.is_in_use:
                        self._throttle(followed, len(records))
                    self._ports.flush_if_due(partition, self._env.wall_ms())
                partition.follow(data.high_watermark, data.log_start_offset)
                followed.lag = data.high_watermark - partition.log.log_end_offset
                if (
                    partition.log.log_start_offset != followed.sent_log_start_offset
                    and followed.key not in self._delayed
                ):
                    self._session.add(followed.key)
                followed.back_off.reset()
        except KafkaError as error:
            self._back_off(followed, str(error))
        except OSError as error:
            self._ports.storage_failed(partition, error)

    def _take_in_error(self, followed: PartitionFetchState, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._locate(followed)
        elif code == ErrorCode.FENCED_LEADER_EPOCH:
            self._suspend(followed)
        else:
            self._back_off(followed, error_code(code).name)

    def _throttle(self, followed: PartitionFetchState, size: int) -> None:
        """Records of this size have come: leave the partition out for a while if that is too fast."""
        self._ports.throttle.count(followed.partition, size)
        if self._is_held_back(followed, self._env.now_ms()):
            self._suspend(followed)
            self._delayed[followed.key] = followed

    def _truncate(
        self, followed: PartitionFetchState, leader: FetchResponse.EpochEndOffset, leader_log_start_offset: int
    ) -> None:
        partition = followed.partition

        def cut() -> None:
            before, watermark = partition.log.log_end_offset, partition.high_watermark
            start = partition.log.log_start_offset
            partition.truncate_for(leader.epoch, leader.end_offset, followed.initial_offset)
            if partition.log.log_end_offset < start and leader_log_start_offset >= 0:
                # our log is empty now, and it never had the records that the leader has below this offset
                partition.start_over_at(leader_log_start_offset)
            self._moved(followed)
            self._env.log(
                "info",
                "log-truncated",
                topic=partition.topic,
                partition=partition.index,
                leader_epoch=followed.leader_epoch,
                end_offset_before=before,
                end_offset=partition.log.log_end_offset,
                high_watermark_before=watermark,
            )

        cut_at = cut_for(partition.log, leader.epoch, leader.end_offset, followed.initial_offset).offset
        self._keep_and_cut(followed, cut_at, cut)

    def _keep_and_cut(self, followed: PartitionFetchState, offset: int, cut: Callable[[], None]) -> None:
        """Call `cut`, which truncates to `offset`, once the records that must be kept are copied.

        Raises OSError if `cut` runs at once and fails.
        """
        partition, discarded_records = followed.partition, self._ports.discarded_records
        discarded_records.count(partition, offset)
        is_lossy = partition.precedes_lossy_election

        def cut_and_log() -> None:
            before = remembered(partition.log.producers) if is_lossy else {}
            cut()
            if before:
                self._log_lost_transactions(partition, before)

        if not discarded_records.must_keep(partition, offset):
            cut_and_log()
            return

        def kept() -> None:
            try:
                cut_and_log()
            except OSError as error:
                self._ports.storage_failed(partition, error)
            self.wake_up()

        self._suspend(followed)
        discarded_records.keep(partition, offset, kept)

    def _log_lost_transactions(self, partition: Partition, before: Remembered) -> None:
        lost = lost_parts(before, remembered(partition.log.producers))
        for each in lost[:LOST_TRANSACTIONS_LOGGED]:
            self._env.log(
                "warning",
                "transaction-lost-a-part",
                topic=partition.topic,
                partition=partition.index,
                leader_epoch=partition.doubts.lossy_epoch,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                lost=each.part,
                start_offset=each.start_offset,
                producers=len(lost),
            )

    def _back_off(self, followed: PartitionFetchState, error: str) -> None:
        self._suspend(followed)
        self._delayed[followed.key] = followed
        followed.idle_until_ms = self._env.now_ms() + followed.back_off.next_ms(self._settings.backoff_ms)
        self._env.log(
            "debug",
            "replica-fetch-refused",
            topic=followed.partition.topic,
            partition=followed.partition.index,
            leader=self.leader,
            error=error,
        )

    def _locate(self, followed: PartitionFetchState) -> None:
        self._suspend(followed)
        search = LogRange(
            followed.partition,
            followed.leader_epoch,
            self._ports.registered_brokers.broker_id,
            ask=lambda request: self._ask(followed, search, request),
            cut=lambda offset, cut: self._keep_and_cut(followed, offset, cut),
            on_found=lambda: self._located(followed),
        )
        search.start()

    def _ask(self, followed: PartitionFetchState, search: LogRange, request: ListOffsetsRequest) -> None:
        endpoint = self._ports.endpoint_of(self.leader)
        if endpoint is None:
            self._back_off(followed, "the leader is not registered")
            return

        def answered(result: ListOffsetsResponse | SendFailure) -> None:
            if self.followed.get(followed.key) is not followed:
                return
            try:
                error = search.answered(result)
            except OSError as failure:
                self._ports.storage_failed(followed.partition, failure)
            else:
                if error is not None:
                    self._back_off(followed, error)
            self.wake_up()

        self._env.send(endpoint, self._channel, request, answered, self._settings.timeout_ms)

    def _located(self, followed: PartitionFetchState) -> None:
        self._moved(followed)
        self._env.log(
            "info",
            "log-range-found",
            topic=followed.partition.topic,
            partition=followed.partition.index,
            fetch_offset=followed.start.fetch_offset,
        )
