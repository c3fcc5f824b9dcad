"""Drives an `Outbox`: several Produce requests on their way to each leader, answers taken while the caller goes on.

    send --> outbox --(leader free, or enough for a large request)--> Produce --> answer --> outbox
                                                                        |
                      no answer: the connection is closed, its batches go again to whoever leads then

A request holds one batch per partition. While one is on its way to a leader, what comes for it is gathered, so requests
grow by themselves under load. Nothing runs in the background: the work is done in `send` and `flush`.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from heirlog.blocking.connection import Connection, readable_of
from heirlog.blocking.peers import Peers
from heirlog.client.errors import Unsupported
from heirlog.client.producing import Batch, Outbox, ProducerIdentity
from heirlog.client.retriable import FIND_COORDINATOR_AGAIN, LOOK_AGAIN
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import InitProducerIdRequest, InitProducerIdResponse, ProduceRequest, ProduceResponse
from heirlog.protocol.types import ZERO_UUID, Endpoint

REQUEST_TIMEOUT_S = 30.0
"""Without an answer for so long, a broker is taken for dead."""
CONNECT_TIMEOUT_S = 10.0
ASK_TIMEOUT_S = 5.0
"""For metadata and producer ids: short, since there are other brokers and the next round asks again."""
RETRY_PAUSE_S = 0.05
LOOK_PAUSE_S = 0.1
"""Between two looks at metadata."""
NEWEST_BY_NAME = 12
"""The last Produce version that names topics; later ones take ids only."""
POLL_S = 0.05
WORTH_A_REQUEST_BYTES = 128 << 10
"""So much is sent to a leader that has other requests to answer; what is less is gathered until it has not."""
NO_ID_YET = FIND_COORDINATOR_AGAIN | LOOK_AGAIN | {ErrorCode.CONCURRENT_TRANSACTIONS}
NO_TOPIC_YET = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
NO_ACKS = 0
INT32_MAX = 2**31 - 1


@dataclass(slots=True)
class Request:
    """A Produce request that is on its way."""

    batches: dict[tuple[str | bytes, int], Batch]
    """By topic, as its version names it, and partition."""
    sent_at_s: float


@dataclass(slots=True)
class Line:
    """The connection to one leader."""

    connection: Connection
    requests: deque[Request] = field(default_factory=deque)


class BatchProducer:
    """Made by `DataClient.producer`. A context manager: what was sent is flushed on a normal exit.

    max_in_flight: requests per broker. buffer_bytes: `send` waits while more is unacknowledged.
    """

    def __init__(
        self,
        peers: Peers,
        *,
        idempotent: bool,
        acks: int,
        max_in_flight: int,
        request_bytes: int,
        buffer_bytes: int,
        delivery_timeout_s: float,
    ) -> None:
        if idempotent and acks != -1:
            raise ValueError(f"acks={acks} with idempotence: a producer id needs acks=-1 (all)")
        self._peers = peers
        self._acks = acks
        self._max_in_flight = max_in_flight
        self._request_bytes = request_bytes
        self._buffer_bytes = buffer_bytes
        self._outbox = Outbox(idempotent=idempotent, delivery_timeout_s=delivery_timeout_s)
        self._lines: dict[Endpoint, Line] = {}
        self._identity: ProducerIdentity | None = None
        self._look_at_s = 0.0
        """Not before this time metadata are looked up again."""
        self._view_is_old = False
        self._last_failure: Exception | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.flush()
        finally:
            self._leave()

    def send(self, topic: str, partition: int, batch: bytearray) -> None:
        """Take over one record batch. Raises the first failure of any batch; InvalidBatch for something else."""
        self._raise_failure()
        if self._closed:
            raise ValueError("the producer is closed")
        self._outbox.add((topic, partition), batch, time.monotonic())
        self._step(0)
        while self._outbox.bytes > self._buffer_bytes:
            self._step(POLL_S)

    def flush(self) -> None:
        """Returns when everything is acknowledged; raises the first failure."""
        self._raise_failure()
        while not self._outbox.empty:
            self._step(POLL_S)

    def close(self) -> None:
        """`flush`, and give the connections back."""
        try:
            self.flush()
        finally:
            self._leave()

    # one round of work

    def _step(self, wait_s: float) -> None:
        """Send what can be sent, take the answers that are there; wait for one up to `wait_s` if there is none."""
        try:
            self._take_answers(0)
            self._identify()
            self._find_leaders()
            sent = False
            while self._send_what_waits(everything=wait_s > 0):
                sent = True
            if wait_s and not sent:
                self._take_answers(wait_s)
        except (Unsupported, KafkaError) as failure:
            self._outbox.fail(failure)
        self._outbox.expire(time.monotonic(), self._last_failure)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._outbox.failure is not None:
            self._leave()
            raise self._outbox.failure

    def _leave(self) -> None:
        self._closed = True
        for endpoint, line in self._lines.items():
            self._peers.give_back(endpoint, line.connection)
        self._lines.clear()

    def _identify(self) -> None:
        """Give partitions without a producer id one: the first ones share one, who was forgotten gets another."""
        strangers, must_be_new = self._outbox.strangers()
        if not strangers:
            return
        if self._identity is None or must_be_new:
            identity = self._new_identity()
            if identity is None:
                return
            self._identity = identity
        for partition in strangers:
            self._outbox.identify(partition, self._identity)

    def _new_identity(self) -> ProducerIdentity | None:
        """None: not now, try again. Raises KafkaError."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)
        try:
            response: InitProducerIdResponse = self._peers.run(self._peers.cluster.ask_any(request, ASK_TIMEOUT_S))
        except Unsupported:
            raise
        except OSError as error:
            self._failed(error)
            return None
        code = error_code(response.error_code)
        if code is ErrorCode.NONE:
            return ProducerIdentity(response.producer_id, response.producer_epoch)
        failure = KafkaError(
            code, "no producer id was given; without the permission for it, write with idempotent=False"
        )
        if code not in NO_ID_YET:
            raise failure
        self._failed(failure)
        time.sleep(RETRY_PAUSE_S)
        return None

    def _find_leaders(self) -> None:
        now_s = time.monotonic()
        topics = sorted({batch.partition[0] for batch in self._outbox.sendable(now_s)})
        unknown = [topic for topic in topics if topic not in self._peers.cluster.view.topics]
        if not topics or not (unknown or self._view_is_old) or now_s < self._look_at_s:
            return
        self._look_at_s = now_s + LOOK_PAUSE_S
        try:
            # as Kafka's producers do: a broker that creates topics by itself may create this one
            refused = self._peers.run(self._peers.cluster.look_elsewhere(topics, ASK_TIMEOUT_S, create=True))
        except OSError as error:
            self._failed(error)
            return
        self._view_is_old = False
        for topic, code in sorted(refused.items()):
            failure = KafkaError(code, f"topic {topic} cannot be written")
            if code not in NO_TOPIC_YET:
                raise failure
            self._failed(failure)

    def _failed(self, error: Exception) -> None:
        self._last_failure = error
        self._view_is_old = True

    # requests

    def _send_what_waits(self, everything: bool) -> bool:
        """Whether anything was sent. everything: also small requests to a leader that has others to answer."""
        now_s = time.monotonic()
        by_leader: dict[Endpoint, list[Batch]] = {}
        for batch in self._outbox.sendable(now_s):
            try:
                leader = self._peers.cluster.view.leader(*batch.partition)
            except KafkaError as error:
                self._failed(error)
                continue
            by_leader.setdefault(leader.endpoint, []).append(batch)
        sent = False
        for endpoint, batches in by_leader.items():
            while batches and self._may_send(endpoint, batches, everything):
                size = 0
                taken: list[Batch] = []
                while batches and (not taken or size + batches[0].size <= self._request_bytes):
                    batch = batches.pop(0)
                    taken.append(batch)
                    size += batch.size
                if not self._send(endpoint, taken):
                    break
                sent = True
        return sent

    def _may_send(self, endpoint: Endpoint, batches: list[Batch], everything: bool) -> bool:
        line = self._lines.get(endpoint)
        if line is None or not line.requests:
            return True
        if len(line.requests) >= self._max_in_flight:
            return False
        return everything or sum(batch.size for batch in batches) >= WORTH_A_REQUEST_BYTES

    def _send(self, endpoint: Endpoint, batches: list[Batch]) -> bool:
        try:
            line = self._line(endpoint)
            version = line.connection.version_of(ProduceRequest)
            if any(self._topic_id(batch) is None for batch in batches):
                version = min(version, NEWEST_BY_NAME)
        except Unsupported:
            raise
        except OSError as error:
            self._failed(error)
            for batch in batches:
                self._outbox.put_off(batch, time.monotonic() + RETRY_PAUSE_S)
            return False
        for batch in batches:
            self._outbox.sending(batch)
        by_name = version <= NEWEST_BY_NAME
        request = Request(
            {(b.partition[0] if by_name else self._topic_id(b) or b"", b.partition[1]): b for b in batches},
            time.monotonic(),
        )
        line.requests.append(request)
        try:
            message = self._produce(batches)
            if self._acks == NO_ACKS:
                line.connection.send(message, version=version, timeout_s=REQUEST_TIMEOUT_S)
                line.requests.pop()
                for batch in batches:
                    self._outbox.answered(batch, ErrorCode.NONE, None, 0)
            else:
                line.connection.submit(message, version=version, timeout_s=REQUEST_TIMEOUT_S)
        except OSError as error:
            self._hang_up(endpoint, error)
            return False
        return True

    def _topic_id(self, batch: Batch) -> bytes | None:
        known = self._peers.cluster.view.topics.get(batch.partition[0])
        return None if known is None else known.topic_id

    def _line(self, endpoint: Endpoint) -> Line:
        line = self._lines.get(endpoint)
        if line is not None and not line.requests and line.connection.stale():
            line.connection.close()
            line = None
        if line is None:
            line = self._lines[endpoint] = Line(self._peers.borrow(endpoint, CONNECT_TIMEOUT_S))
        return line

    def _produce(self, batches: list[Batch]) -> ProduceRequest:
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        for batch in batches:
            name, partition = batch.partition
            data = topics.setdefault(
                name, ProduceRequest.TopicProduceData(name=name, topic_id=self._topic_id(batch) or ZERO_UUID)
            )
            data.partition_data.append(ProduceRequest.PartitionProduceData(index=partition, records=batch.data))
        return ProduceRequest(
            acks=self._acks, timeout_ms=int(REQUEST_TIMEOUT_S * 1000), topic_data=list(topics.values())
        )

    # answers

    def _take_answers(self, wait_s: float) -> None:
        """Every answer that is there; waits up to `wait_s` for the first one."""
        waiting = {line.connection: endpoint for endpoint, line in self._lines.items() if line.requests}
        ready = [connection for connection in waiting if connection.readable()]
        if not ready and wait_s:
            ready = self._wait(list(waiting), wait_s)
        for connection in ready:
            endpoint = waiting[connection]
            line = self._lines[endpoint]
            while line.requests and connection.readable():
                try:
                    response: ProduceResponse = connection.take(timeout_s=REQUEST_TIMEOUT_S)
                except OSError as error:
                    self._hang_up(endpoint, error)
                    break
                self._answered(line.requests.popleft(), response)
        now_s = time.monotonic()
        for endpoint, line in list(self._lines.items()):
            if line.requests and now_s - line.requests[0].sent_at_s > REQUEST_TIMEOUT_S:
                self._hang_up(endpoint, TimeoutError(f"{endpoint} did not answer within {REQUEST_TIMEOUT_S:g} s"))

    def _wait(self, connections: list[Connection], wait_s: float) -> list[Connection]:
        if not connections:
            time.sleep(min(wait_s, RETRY_PAUSE_S))  # for a retry's time to come
            return []
        return readable_of(connections, wait_s)

    def _answered(self, request: Request, response: ProduceResponse) -> None:
        retry_at_s = time.monotonic() + RETRY_PAUSE_S
        for topic in response.responses:
            for partition in topic.partition_responses:
                key = topic.name or topic.topic_id
                batch = request.batches.pop((key, partition.index), None)
                if batch is None:
                    continue
                if partition.error_code:
                    named = error_code(partition.error_code)
                    self._failed(KafkaError(named, f"{batch.partition[0]}-{batch.partition[1]} was not written"))
                self._outbox.answered(batch, partition.error_code, partition.error_message, retry_at_s)
        for batch in request.batches.values():
            self._outbox.unanswered(batch, retry_at_s)

    def _hang_up(self, endpoint: Endpoint, error: OSError) -> None:
        """No answer will come to what was sent to this broker."""
        self._failed(error)
        line = self._lines.pop(endpoint)
        line.connection.close()
        retry_at_s = time.monotonic() + RETRY_PAUSE_S
        for request in line.requests:
            for batch in request.batches.values():
                self._outbox.unanswered(batch, retry_at_s)
