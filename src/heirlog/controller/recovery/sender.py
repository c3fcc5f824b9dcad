"""Requests to brokers: GetReplicaLogInfo, with up to a thousand partitions in each.

    ask --> fresh --send--> in flight --answered, and not wanted again--> done
              ^                |
              |                +--refused, or still wanted--> refused --back-off--> fresh
              +--first thing-- +--REQUEST_LIMIT_REACHED
                               +--no answer--> refused, and no request to the broker until the back-off is over

A broker has several requests in flight; partitions beyond them go into the next request. Ten thousand partitions need
ten requests per broker, and all are sent before the first is answered. So all answers arrive before the first new
leaders send requests of their own, and the partitions that still have no leader do not wait behind those. Before a
request is sent, its listener says which of the answers are still wanted; the others are dropped.

The first retry follows at once. The next ones follow after 50 ms and more, doubled up to 3 s, with 30 % jitter. When a
broker registers, or is fenced or unfenced, its back-off ends: recovery usually waits for exactly that.

This module does not see the controller's state. Endpoints come in and answers and failures go out through calls.

Source: KIP-966, "Broker Request Sender".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from heirlog.controller.recovery.replica_log_info import ReplicaLogInfo
from heirlog.env import Cancel, Env, SendFailure
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse
from heirlog.protocol.types import BrokerId, Endpoint, PartitionKey, Uuid

CHANNEL: Final = "recovery"
PARTITIONS_MAX: Final = 1000
"""Partitions in one request: as many as one answer holds."""
REQUESTS_MAX: Final = 10
"""Unanswered requests per broker. Limits what it reads while it is busy, and what is lost with a connection."""
REQUEST_TIMEOUT_MS: Final = 5000
FIRST_BACKOFF_MS: Final = 50
MAX_BACKOFF_MS: Final = 3000
JITTER: Final = 0.3


class ReplicaLogInfoListener(Protocol):
    """The receiver of the answers."""

    def endpoint_of(self, broker: BrokerId) -> Endpoint | None:
        """The broker's endpoint; None: it cannot be asked now."""

    def wants(self, broker: BrokerId, key: PartitionKey) -> bool:
        """Whether this answer of this broker is still of use."""

    def answered(self, broker: BrokerId, answers: Sequence[tuple[PartitionKey, ReplicaLogInfo]]) -> list[PartitionKey]:
        """Returns those whose answer is of no use. They are asked for again if they are still wanted."""

    def not_answered(self, broker: BrokerId, keys: Sequence[PartitionKey], failure: SendFailure) -> None: ...


@dataclass(slots=True)
class _Queue:
    """The queue of one broker. Its dictionaries are ordered sets."""

    fresh: dict[PartitionKey, None] = field(default_factory=dict)
    refused: dict[PartitionKey, None] = field(default_factory=dict)
    in_flight: dict[PartitionKey, None] = field(default_factory=dict)
    """The partitions of all unanswered requests."""
    requests: int = 0
    """Unanswered requests."""
    rests: bool = False
    failures: int = 0
    """Failures in a row."""
    cancel_retry: Cancel | None = None


class RecoverySender:
    def __init__(self, env: Env, listener: ReplicaLogInfoListener) -> None:
        self._env = env
        self._listener = listener
        self._queues: dict[BrokerId, _Queue] = {}
        self._run = 0
        """Number of the current run; answers to an earlier run are dropped."""
        self.requests_sent = 0
        """Requests sent since this process started."""

    def stop(self) -> None:
        """Forget everything; drop answers that arrive later."""
        self._run += 1
        for queue in self._queues.values():
            if queue.cancel_retry is not None:
                queue.cancel_retry()
        self._queues.clear()

    def ask(self, broker: BrokerId, keys: Iterable[PartitionKey]) -> None:
        """Ask the broker about these partitions, except those that are queued or in flight already."""
        queue = self._queues.setdefault(broker, _Queue())
        for key in keys:
            if key not in queue.in_flight and key not in queue.refused:
                queue.fresh[key] = None
        self._send(broker, queue)

    def is_asking(self, broker: BrokerId, key: PartitionKey) -> bool:
        queue = self._queues.get(broker)
        return queue is not None and (key in queue.fresh or key in queue.in_flight or key in queue.refused)

    def broker_changed(self, broker: BrokerId) -> None:
        """End the broker's back-off: it may answer now, or answer differently."""
        queue = self._queues.get(broker)
        if queue is not None:
            queue.failures = 0
            self._retry(broker, queue)

    # -- one broker ---------------------------------------------------------------------------------------------

    def _send(self, broker: BrokerId, queue: _Queue) -> None:
        while queue.fresh and queue.requests < REQUESTS_MAX and not queue.rests:
            endpoint = self._listener.endpoint_of(broker)
            if endpoint is None:
                # only a change of the broker's registration can change that; then its partitions are asked for again
                queue.fresh.clear()
                queue.refused.clear()
                return
            asked = self._next(broker, queue)
            if not asked:
                return
            queue.in_flight |= asked
            queue.requests += 1
            self.requests_sent += 1
            self._env.send(
                endpoint,
                CHANNEL,
                _request(broker, asked),
                partial(self._result, self._run, broker, asked),
                REQUEST_TIMEOUT_MS,
            )

    def _next(self, broker: BrokerId, queue: _Queue) -> dict[PartitionKey, None]:
        """The partitions of the next request."""
        asked: dict[PartitionKey, None] = {}
        looked_at: list[PartitionKey] = []
        for key in queue.fresh:
            if len(asked) == PARTITIONS_MAX:
                break
            looked_at.append(key)
            if self._listener.wants(broker, key):
                asked[key] = None
        for key in looked_at:
            del queue.fresh[key]
        return asked

    def _result(
        self,
        run: int,
        broker: BrokerId,
        asked: dict[PartitionKey, None],
        result: GetReplicaLogInfoResponse | SendFailure,
    ) -> None:
        if run != self._run:
            return
        queue = self._queues[broker]
        queue.requests -= 1
        if isinstance(result, SendFailure):
            self._no_answer(broker, queue, asked, result)
        else:
            self._answers(broker, queue, asked, result)

    def _no_answer(
        self, broker: BrokerId, queue: _Queue, asked: dict[PartitionKey, None], failure: SendFailure
    ) -> None:
        for key in asked:
            del queue.in_flight[key]
        queue.refused |= asked
        queue.rests = True
        self._retry_later(broker, queue)
        self._listener.not_answered(broker, list(asked), failure)

    def _answers(
        self, broker: BrokerId, queue: _Queue, asked: dict[PartitionKey, None], result: GetReplicaLogInfoResponse
    ) -> None:
        run = self._run
        answers, put_off = _read(result, asked, self._env.now_ms())
        # they stay in flight until it is known which of them are asked for again
        of_no_use = self._listener.answered(broker, answers)
        if run != self._run:
            return
        for key in asked:
            del queue.in_flight[key]
        if answers:
            queue.fresh = {**dict.fromkeys(put_off), **queue.fresh}
        # partitions that the answer leaves out, or postpones without answering any, are asked for again after a
        # back-off
        answered = dict(answers)
        unanswered = [key for key in asked if key not in answered and key not in queue.fresh]
        again = [key for key in (*of_no_use, *unanswered) if self._listener.wants(broker, key)]
        queue.refused |= dict.fromkeys(again)
        if again:
            self._retry_later(broker, queue)
        elif not queue.refused:
            queue.failures = 0
        self._send(broker, queue)

    def _retry_later(self, broker: BrokerId, queue: _Queue) -> None:
        if queue.cancel_retry is not None:
            return
        delay_ms = self._backoff_ms(queue.failures)
        queue.failures += 1
        queue.cancel_retry = self._env.call_later(delay_ms, partial(self._retry, broker, queue))

    def _retry(self, broker: BrokerId, queue: _Queue) -> None:
        if queue.cancel_retry is not None:
            queue.cancel_retry()
            queue.cancel_retry = None
        queue.rests = False
        queue.fresh |= queue.refused
        queue.refused = {}
        self._send(broker, queue)

    def _backoff_ms(self, failures: int) -> int:
        if failures == 0:
            return 0
        delay_ms = min(FIRST_BACKOFF_MS << min(failures - 1, 10), MAX_BACKOFF_MS)
        return int(delay_ms * (1 + JITTER * (2 * self._env.random.random() - 1)))


def _request(broker: BrokerId, keys: Iterable[PartitionKey]) -> GetReplicaLogInfoRequest:
    topics: dict[Uuid, list[int]] = {}
    for topic_id, partition in keys:
        topics.setdefault(topic_id, []).append(partition)
    return GetReplicaLogInfoRequest(
        broker_id=broker,
        topic_partitions=[
            GetReplicaLogInfoRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
    )


def _read(
    response: GetReplicaLogInfoResponse, asked: Iterable[PartitionKey], now_ms: int
) -> tuple[list[tuple[PartitionKey, ReplicaLogInfo]], list[PartitionKey]]:
    """The answers to the request, and the partitions that the broker postponed. Anything else is dropped."""
    expected = set(asked)
    answers: list[tuple[PartitionKey, ReplicaLogInfo]] = []
    put_off: list[PartitionKey] = []
    for topic in response.topic_partition_log_info_list:
        topic_id = Uuid(topic.topic_id)
        for info in topic.partition_log_info:
            key = (topic_id, info.partition)
            if key not in expected:
                continue
            expected.discard(key)
            if info.error_code == ErrorCode.REQUEST_LIMIT_REACHED:
                put_off.append(key)
                continue
            answer = ReplicaLogInfo(
                response.broker_epoch,
                info.current_leader_epoch,
                info.last_written_leader_epoch,
                info.log_end_offset,
                at_ms=now_ms,
                error=error_code(info.error_code) if info.error_code else ErrorCode.NONE,
                message=info.error_message or "",
                may_lack_records=info.may_lack_records,
            )
            answers.append((key, answer))
    return answers, put_off
