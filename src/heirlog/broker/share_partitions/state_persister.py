"""Reads and stores the state of share partitions at their share coordinators (ReadShareGroupState,
WriteShareGroupState), and looks at it without using it (ReadShareGroupStateSummary).

    wanted --> first of its key --> in flight --> answered: `on_done`, the next of the key
                    ^                    |
                    '------ later -------'  the coordinator moved, is loading, or did not answer

The coordinator of a share partition is the leader of the partition of `__share_group_state` that its key hashes to; the
image names it. Requests of one share partition are sent one after the other, also across retries: a late write with an
older start offset would make finished records available again. Writes that wait for the same share partition are
stored as one. What is ready for the same coordinator and group at the same time shares one request.

A request is tried `ATTEMPTS` times, at growing intervals, together about 11 seconds. Then its error is
COORDINATOR_NOT_AVAILABLE. A write that had no answer may be stored all the same; storing it twice is harmless.

Source: KIP-932, "Share-group state persister interface".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from heirlog.broker.internal_topic_shards import partition_for
from heirlog.broker.share_coordinator.batches import StateBatch, combined
from heirlog.broker.share_coordinator.state import NO_EPOCH, SharePartitionKey, StateWrite
from heirlog.env import Env, SendFailure
from heirlog.metadata.image import Image
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from heirlog.protocol.types import NO_LEADER, BrokerId, Endpoint, Uuid

CHANNEL = "share-state"
ATTEMPTS: Final = 10
RETRY_BACKOFF_MS: Final = 100
"""Pause before the second attempt; it doubles with each further one."""
RETRY_BACKOFF_MAX_MS: Final = 2_000

_PASSING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(frozen=True, slots=True)
class StoredState:
    """The answer to a read."""

    state_epoch: int
    start_offset: int
    """-1: the group has not begun to read the partition."""
    batches: Sequence[StateBatch]


class StateEpochs(NamedTuple):
    """Which state is stored, and for which leader."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    """-1: there is no state, or the group has not begun to read the partition."""


@dataclass(slots=True)
class _Read:
    leader_epoch: int
    on_done: list[Callable[[StoredState | ErrorCode], None]]


@dataclass(slots=True)
class _Look:
    on_done: list[Callable[[StateEpochs | ErrorCode], None]]


@dataclass(slots=True)
class _Write:
    write: StateWrite
    on_done: list[Callable[[ErrorCode], None]]

    def may_take(self, other: StateWrite) -> bool:
        mine = self.write
        return (mine.state_epoch, mine.leader_epoch) == (other.state_epoch, other.leader_epoch)

    def take(self, other: StateWrite, on_done: Callable[[ErrorCode], None]) -> None:
        batches = combined(self.write.batches, other.batches, min(self.write.start_offset, other.start_offset))
        self.write = StateWrite(
            other.state_epoch, other.leader_epoch, other.start_offset, other.delivery_complete_count, batches
        )
        self.on_done.append(on_done)


_Job: TypeAlias = "_Read | _Look | _Write"


@dataclass(slots=True)
class _Queue:
    """Of one share partition."""

    jobs: deque[_Job] = field(default_factory=deque)
    attempts: int = 0
    """Of the first job."""


class _Destination(NamedTuple):
    """What one request may carry together."""

    broker: BrokerId
    group_id: str
    kind: type[_Job]


class StatePersister:
    def __init__(
        self, env: Env, image: Callable[[], Image], endpoint_of: Callable[[BrokerId], Endpoint | None], timeout_ms: int
    ) -> None:
        """endpoint_of: of a broker's listener for other brokers."""
        self._env = env
        self._image = image
        self._endpoint_of = endpoint_of
        self._timeout_ms = timeout_ms
        self._queues: dict[SharePartitionKey, _Queue] = {}
        self._ready: dict[_Destination, dict[SharePartitionKey, None]] = {}
        self._in_flight: set[_Destination] = set()
        self._is_drain_due = False

    def read(
        self, key: SharePartitionKey, leader_epoch: int, on_done: Callable[[StoredState | ErrorCode], None]
    ) -> None:
        """`on_done` is called once, never within this call."""
        queue = self._queues.get(key)
        # a group whose sessions come and go would otherwise make a long queue while the coordinator does not answer
        if queue is not None and len(queue.jobs) > 1:
            last = queue.jobs[-1]
            if isinstance(last, _Read) and last.leader_epoch == leader_epoch:
                last.on_done.append(on_done)
                return
        self._add(key, _Read(leader_epoch, [on_done]))

    def look(self, key: SharePartitionKey, on_done: Callable[[StateEpochs | ErrorCode], None]) -> None:
        """Which state is stored; fences no leader. `on_done` is called once, never within this call."""
        queue = self._queues.get(key)
        if queue is not None and len(queue.jobs) > 1:
            last = queue.jobs[-1]
            if isinstance(last, _Look):
                last.on_done.append(on_done)
                return
        self._add(key, _Look([on_done]))

    def write(self, key: SharePartitionKey, write: StateWrite, on_done: Callable[[ErrorCode], None]) -> None:
        """`on_done` is called once, never within this call; NONE: the state is stored."""
        queue = self._queues.get(key)
        # the first job may be in flight
        if queue is not None and len(queue.jobs) > 1:
            last = queue.jobs[-1]
            if isinstance(last, _Write) and last.may_take(write):
                last.take(write, on_done)
                return
        self._add(key, _Write(write, [on_done]))

    def _add(self, key: SharePartitionKey, job: _Job) -> None:
        queue = self._queues.setdefault(key, _Queue())
        queue.jobs.append(job)
        if len(queue.jobs) == 1:
            self._make_ready(key)

    def _make_ready(self, key: SharePartitionKey) -> None:
        """Send the first job of the key, with what else is ready by the end of this turn of the event loop."""
        broker = self._coordinator_of(key)
        if broker is None:
            self._failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        to = _Destination(broker, key.group, type(self._queues[key].jobs[0]))
        self._ready.setdefault(to, {})[key] = None
        if not self._is_drain_due:
            self._is_drain_due = True
            self._env.call_later(0, self._drain)

    def _coordinator_of(self, key: SharePartitionKey) -> BrokerId | None:
        image = self._image()
        topic = image.topic_named(SHARE_STATE_TOPIC)
        if topic is None:
            return None
        index = partition_for(key.text, len(image.partitions[topic.id]))
        state = image.partition(topic.id, index)
        if state is None or state.leader == NO_LEADER or self._endpoint_of(state.leader) is None:
            return None
        return state.leader

    def _drain(self) -> None:
        self._is_drain_due = False
        for to in list(self._ready):
            endpoint = self._endpoint_of(to.broker)
            if to in self._in_flight:
                continue
            keys = list(self._ready.pop(to))
            if endpoint is None:
                for key in keys:
                    self._failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                continue
            self._in_flight.add(to)
            request = self._request(to, keys)

            def answered(result: Any, to: _Destination = to, keys: list[SharePartitionKey] = keys) -> None:
                self._answered(to, keys, result)

            self._env.send(endpoint, CHANNEL, request, answered, self._timeout_ms)

    def _request(self, to: _Destination, keys: Sequence[SharePartitionKey]) -> Any:
        if to.kind is _Write:
            return self._write_request(to, keys)
        return self._read_request(to, keys) if to.kind is _Read else _look_request(to, keys)

    def _read_request(self, to: _Destination, keys: Sequence[SharePartitionKey]) -> ReadShareGroupStateRequest:
        topics: dict[Uuid, ReadShareGroupStateRequest.ReadStateData] = {}
        for key in keys:
            job = self._queues[key].jobs[0]
            assert isinstance(job, _Read)
            topic = topics.setdefault(key.topic_id, ReadShareGroupStateRequest.ReadStateData(topic_id=key.topic_id))
            topic.partitions.append(
                ReadShareGroupStateRequest.PartitionData(partition=key.partition, leader_epoch=job.leader_epoch)
            )
        return ReadShareGroupStateRequest(group_id=to.group_id, topics=list(topics.values()))

    def _write_request(self, to: _Destination, keys: Sequence[SharePartitionKey]) -> WriteShareGroupStateRequest:
        topics: dict[Uuid, WriteShareGroupStateRequest.WriteStateData] = {}
        for key in keys:
            job = self._queues[key].jobs[0]
            assert isinstance(job, _Write)
            write = job.write
            topic = topics.setdefault(key.topic_id, WriteShareGroupStateRequest.WriteStateData(topic_id=key.topic_id))
            topic.partitions.append(
                WriteShareGroupStateRequest.PartitionData(
                    partition=key.partition,
                    state_epoch=write.state_epoch,
                    leader_epoch=write.leader_epoch,
                    start_offset=write.start_offset,
                    delivery_complete_count=write.delivery_complete_count,
                    state_batches=[
                        WriteShareGroupStateRequest.StateBatch(
                            first_offset=batch.first_offset,
                            last_offset=batch.last_offset,
                            delivery_state=batch.delivery_state,
                            delivery_count=batch.delivery_count,
                        )
                        for batch in write.batches
                    ],
                )
            )
        return WriteShareGroupStateRequest(group_id=to.group_id, topics=list(topics.values()))

    def _answered(
        self,
        to: _Destination,
        keys: Sequence[SharePartitionKey],
        result: ReadShareGroupStateResponse
        | ReadShareGroupStateSummaryResponse
        | WriteShareGroupStateResponse
        | SendFailure,
    ) -> None:
        self._in_flight.discard(to)
        if self._ready and not self._is_drain_due:
            self._is_drain_due = True
            self._env.call_later(0, self._drain)
        answers: dict[tuple[bytes, int], Any] = {}
        if not isinstance(result, SendFailure):
            answers = {
                (topic.topic_id, partition.partition): partition
                for topic in result.results
                for partition in topic.partitions
            }
        for key in keys:
            answer = answers.get((key.topic_id, key.partition))
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE if answer is None else error_code(answer.error_code)
            if answer is not None and code is ErrorCode.NONE and to.kind is not _Write:
                self._done(key, _stored(answer) if to.kind is _Read else _epochs(answer))
            elif code in _PASSING:
                self._failed(key, code)
            else:
                self._done(key, code)

    def _failed(self, key: SharePartitionKey, code: ErrorCode) -> None:
        """Try again later, unless it was tried often enough."""
        queue = self._queues[key]
        queue.attempts += 1
        if queue.attempts < ATTEMPTS:
            backoff_ms = min(RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_MS << (queue.attempts - 1))
            self._env.call_later(backoff_ms, lambda: self._make_ready(key))
        else:
            self._done(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _done(self, key: SharePartitionKey, result: StoredState | StateEpochs | ErrorCode) -> None:
        queue = self._queues[key]
        job = queue.jobs.popleft()
        queue.attempts = 0
        if queue.jobs:
            self._make_ready(key)
        else:
            del self._queues[key]
        on_done: Sequence[Callable[[Any], None]] = job.on_done
        for each in on_done:
            each(result)


def _look_request(to: _Destination, keys: Sequence[SharePartitionKey]) -> ReadShareGroupStateSummaryRequest:
    R = ReadShareGroupStateSummaryRequest
    topics: dict[Uuid, ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = {}
    for key in keys:
        topic = topics.setdefault(key.topic_id, R.ReadStateSummaryData(topic_id=key.topic_id))
        topic.partitions.append(R.PartitionData(partition=key.partition, leader_epoch=NO_EPOCH))
    return R(group_id=to.group_id, topics=list(topics.values()))


def _epochs(answer: ReadShareGroupStateSummaryResponse.PartitionResult) -> StateEpochs:
    return StateEpochs(answer.state_epoch, answer.leader_epoch, answer.start_offset)


def _stored(answer: ReadShareGroupStateResponse.PartitionResult) -> StoredState:
    batches = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in answer.state_batches
    ]
    return StoredState(answer.state_epoch, answer.start_offset, batches)
