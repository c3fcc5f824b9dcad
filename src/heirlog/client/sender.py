"""Which batches go to which leader in which request, and what is done about answers that do not come.

    add --> RecordAccumulator --requests--> driver --answered, failed--> RecordAccumulator
              ^
              +-- prepare: a producer id, leaders. A call, for the driver to run before it takes `requests`

A request holds one batch per partition. While one is on its way to a leader, batches for that leader are gathered, so
that requests grow by themselves under load. A request without an answer is given back with `failed`: its batches are
sent again, to the broker that is the leader then. `RecordAccumulator` keeps their order; nothing here does I/O.

A driver repeats: give back what came in, run `prepare`, send `requests`, `expire`. It stops when `accumulator.empty`,
or when `accumulator.failure` is set: that ends everything. With acks=0 it calls `sent` instead of `answered`.

In a transaction (`transactions.py`) the producer id is that of the transaction, and a batch is sent once its partition
takes part.

Source: Kafka's producer (`Sender`, `RecordAccumulator`); KIP-98 (producer ids), KIP-516 (topic ids in Produce 13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from heirlog.client.call import Call, Send
from heirlog.client.cluster import TOPIC_MAY_COME, Cluster
from heirlog.client.errors import Unsupported
from heirlog.client.offsets import TopicPartition
from heirlog.client.record_accumulator import ProducerBatch, ProducerIdAndEpoch, RecordAccumulator
from heirlog.client.retriable import FIND_COORDINATOR_AGAIN, REFRESH_AND_RETRY
from heirlog.client.transactions import ProducerTransactions
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import InitProducerIdRequest, InitProducerIdResponse, ProduceRequest, ProduceResponse
from heirlog.protocol.types import ZERO_UUID, Endpoint

REQUEST_TIMEOUT_S = 30.0
ASK_TIMEOUT_S = 5.0
"""For metadata and producer ids: short, since there are other brokers and the next round asks again."""
RETRY_PAUSE_S = 0.05
REFRESH_PAUSE_S = 0.1
"""Between two requests for metadata."""
NEWEST_BY_NAME = 12
"""The last Produce version that names topics; later ones take ids only."""
WORTH_A_REQUEST_BYTES = 128 << 10
"""So much is sent to a leader that has other requests to answer; what is less is gathered until it has not."""
NO_PRODUCER_ID_YET = FIND_COORDINATOR_AGAIN | REFRESH_AND_RETRY | {ErrorCode.CONCURRENT_TRANSACTIONS}
NO_ACKS = 0
INT32_MAX = 2**31 - 1


@dataclass(slots=True, eq=False)
class Request:
    """A Produce request that is on its way. `send` is what the driver sends."""

    send: Send
    batches: dict[tuple[str, int], ProducerBatch]
    topic_names: dict[bytes, str]
    """By id: what an answer without names means."""


class Delivered(NamedTuple):
    batch: ProducerBatch
    base_offset: int
    """-1 where the broker does not remember it (DUPLICATE_SEQUENCE_NUMBER)."""


class Sender:
    """max_in_flight: requests per broker. request_bytes: the most in a request of several batches.

    request_timeout_s: without an answer for so long, a broker counts as dead. Raises ValueError.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        idempotent: bool,
        acks: int,
        max_in_flight: int,
        request_bytes: int,
        delivery_timeout_s: float,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        retry_pause_s: float = RETRY_PAUSE_S,
        transactions: ProducerTransactions | None = None,
    ) -> None:
        if idempotent and acks != -1:
            raise ValueError(f"acks={acks} with idempotence: a producer id needs acks=-1 (all)")
        self.accumulator = RecordAccumulator(
            idempotent=idempotent, delivery_timeout_s=delivery_timeout_s, transactional=transactions is not None
        )
        self._transactions = transactions
        self.acks = acks
        self._cluster = cluster
        self._max_in_flight = max_in_flight
        self._request_bytes = request_bytes
        self._request_timeout_s = request_timeout_s
        self._retry_pause_s = retry_pause_s
        self._in_flight: dict[Endpoint, int] = {}
        self._producer: ProducerIdAndEpoch | None = None
        self._producer_id_retry_at_s = 0.0
        """Not before this time a producer id is asked for again."""
        self._refresh_at_s = 0.0
        """Not before this time metadata are asked for again."""
        self._metadata_is_stale = False
        self._preparing = False
        self._last_failure: Exception | None = None

    def add(self, topic: str, partition: int, batch: bytearray) -> ProducerBatch:
        """Take over one record batch. Raises InvalidBatch for something else."""
        return self.accumulator.add((topic, partition), batch, self._cluster.clock.now_s())

    def start_over(self) -> None:
        """Forget all batches and requests: what was sent gets no answer any more."""
        self.accumulator.start_over()
        self._in_flight.clear()
        self._last_failure = None

    def expire(self) -> None:
        """Fail if a batch has waited for too long."""
        self.accumulator.expire(self._cluster.clock.now_s(), self._last_failure)

    # what must be known first

    def prepare(self) -> Call[None] | None:
        """A call that finds leaders or gets a producer id, if batches wait for one and no such call is in progress."""
        needed = self._needs_producer_id() or self._topics_to_look_up() or self._partitions_to_add()
        if self._preparing or not needed:
            return None
        return self._prepare()

    def _prepare(self) -> Call[None]:
        self._preparing = True
        try:
            if self._needs_producer_id():
                yield from self._assign_producer_id()
            topics = self._topics_to_look_up()
            if topics:
                yield from self._find_leaders(topics)
            if self._transactions is not None:
                yield from self._transactions.add_partitions(self._partitions_to_add())
        except (Unsupported, KafkaError) as failure:
            self.accumulator.fail(failure)
        finally:
            self._preparing = False

    def _needs_producer_id(self) -> bool:
        return (
            bool(self.accumulator.partitions_without_producer_id()[0])
            and self._cluster.clock.now_s() >= self._producer_id_retry_at_s
        )

    def _assign_producer_id(self) -> Call[None]:
        """Give partitions without a producer id one: the first ones share one, a forgotten one gets another."""
        if self._transactions is not None:
            self._producer = self._transactions.producer
        elif self._producer is None or self.accumulator.partitions_without_producer_id()[1]:
            producer = yield from self._request_producer_id()
            if producer is None:
                self._producer_id_retry_at_s = self._cluster.clock.now_s() + self._retry_pause_s
                return
            self._producer = producer
        for partition in self.accumulator.partitions_without_producer_id()[0]:
            self.accumulator.set_producer_id(partition, self._producer)

    def _request_producer_id(self) -> Call[ProducerIdAndEpoch | None]:
        """None: not now, try again. Raises KafkaError, Unsupported."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)
        try:
            response: InitProducerIdResponse = yield from self._cluster.ask_any(request, ASK_TIMEOUT_S)
        except Unsupported:
            raise
        except OSError as error:
            self._failed(error)
            return None
        code = error_code(response.error_code)
        if code is ErrorCode.NONE:
            return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        failure = KafkaError(
            code, "no producer id was given; without the permission for it, write with idempotent=False"
        )
        if code not in NO_PRODUCER_ID_YET:
            raise failure
        self._failed(failure)
        return None

    def _partitions_to_add(self) -> list[TopicPartition]:
        if self._transactions is None:
            return []
        return self._transactions.without(self.accumulator.waiting_partitions)

    def _topics_to_look_up(self) -> list[str]:
        now_s = self._cluster.clock.now_s()
        if now_s < self._refresh_at_s:
            return []
        known = self._cluster.view.topics
        topics = {batch.partition[0] for batch in self.accumulator.sendable(now_s)}
        return sorted(topics) if self._metadata_is_stale or any(topic not in known for topic in topics) else []

    def _find_leaders(self, topics: list[str]) -> Call[None]:
        self._refresh_at_s = self._cluster.clock.now_s() + REFRESH_PAUSE_S
        try:
            # as Kafka's producers do: a broker with auto.create.topics.enable may create this one
            refused = yield from self._cluster.refresh_metadata_elsewhere(topics, ASK_TIMEOUT_S, create=True)
        except Unsupported:
            raise
        except OSError as error:
            self._failed(error)
            return
        self._metadata_is_stale = False
        for topic, code in sorted(refused.items()):
            failure = KafkaError(code, f"topic {topic} cannot be written")
            if code not in TOPIC_MAY_COME:
                raise failure
            self._failed(failure)

    def _failed(self, error: Exception) -> None:
        self._last_failure = error
        self._metadata_is_stale = True

    # requests

    def requests(self, *, everything: bool) -> list[Request]:
        """What is to be sent now, at most one batch per partition: call it until nothing more comes.

        everything: also small requests to a leader that has others to answer.
        """
        by_leader: dict[Endpoint, list[ProducerBatch]] = {}
        transactions = self._transactions
        for batch in self.accumulator.sendable(self._cluster.clock.now_s()):
            if transactions is not None and not transactions.may_write(batch.partition):
                continue
            try:
                leader = self._cluster.view.leader(*batch.partition)
            except KafkaError as error:
                # what a broker refused says more than that nothing is known
                self._failed(self._last_failure or error)
                continue
            by_leader.setdefault(leader.endpoint, []).append(batch)
        made: list[Request] = []
        for endpoint, batches in by_leader.items():
            while batches and self._may_send(endpoint, batches, everything):
                made.append(self._request(endpoint, self._taken(batches)))
        return made

    def _may_send(self, endpoint: Endpoint, batches: list[ProducerBatch], everything: bool) -> bool:
        in_flight = self._in_flight.get(endpoint, 0)
        if not in_flight:
            return True
        if in_flight >= self._max_in_flight:
            return False
        return everything or sum(batch.size for batch in batches) >= WORTH_A_REQUEST_BYTES

    def _taken(self, batches: list[ProducerBatch]) -> list[ProducerBatch]:
        """Remove from `batches` what fits into one request."""
        size, count = 0, 0
        for batch in batches:
            if count and size + batch.size > self._request_bytes:
                break
            size += batch.size
            count += 1
        taken = batches[:count]
        del batches[:count]
        return taken

    def _request(self, endpoint: Endpoint, batches: list[ProducerBatch]) -> Request:
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        topic_names: dict[bytes, str] = {}
        newest = None if self._transactions is None else self._transactions.newest_produce
        for batch in batches:
            name, partition = batch.partition
            topic_id = self._cluster.view.topics[name].topic_id
            if topic_id is None:
                newest = NEWEST_BY_NAME if newest is None else newest
            else:
                topic_names[topic_id] = name
            self.accumulator.sending(batch)
            data = topics.setdefault(name, ProduceRequest.TopicProduceData(name=name, topic_id=topic_id or ZERO_UUID))
            data.partition_data.append(ProduceRequest.PartitionProduceData(index=partition, records=batch.data))
        message = ProduceRequest(
            acks=self.acks, timeout_ms=int(self._request_timeout_s * 1000), topic_data=list(topics.values())
        )
        if self._transactions is not None:
            message.transactional_id = self._transactions.transactional_id
            self._transactions.writing()
        self._in_flight[endpoint] = self._in_flight.get(endpoint, 0) + 1
        send = Send(endpoint, message, self._request_timeout_s, newest)
        return Request(send, {batch.partition: batch for batch in batches}, topic_names)

    # answers

    def answered(self, request: Request, response: ProduceResponse) -> list[Delivered]:
        """What it acknowledges. The rest is sent again, or ends everything."""
        self._in_flight[request.send.to] -= 1
        retry_at_s = self._cluster.clock.now_s() + self._retry_pause_s
        waiting = dict(request.batches)
        delivered: list[Delivered] = []
        for topic in response.responses:
            name = topic.name or request.topic_names.get(topic.topic_id, "")
            for partition in topic.partition_responses:
                batch = waiting.pop((name, partition.index), None)
                if batch is None:
                    continue
                if partition.error_code:
                    named = error_code(partition.error_code)
                    self._failed(KafkaError(named, f"{name}-{partition.index} was not written"))
                if self.accumulator.answered(batch, partition.error_code, partition.error_message, retry_at_s):
                    delivered.append(Delivered(batch, partition.base_offset if not partition.error_code else -1))
        for batch in waiting.values():
            self.accumulator.unanswered(batch, retry_at_s)
        return delivered

    def sent(self, request: Request) -> None:
        """With acks=0: it was sent, and has no answer."""
        self._in_flight[request.send.to] -= 1
        for batch in request.batches.values():
            self.accumulator.answered(batch, ErrorCode.NONE, None, 0)

    def failed(self, request: Request, error: OSError) -> None:
        """No answer will come, or it could not be sent. Its batches may be in the log or not."""
        self._in_flight[request.send.to] -= 1
        if isinstance(error, Unsupported):
            self.accumulator.fail(error)
            return
        self._failed(error)
        retry_at_s = self._cluster.clock.now_s() + self._retry_pause_s
        for batch in request.batches.values():
            self.accumulator.unanswered(batch, retry_at_s)
