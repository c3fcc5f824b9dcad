"""The client for programs without an event loop: it carries out the calls of `heirlog.client` with blocking sockets.

    with Client("localhost:9092") as client:
        ends = client.list_offsets({("t", 0): LATEST})
        for part in client.fetch("t", 0, 0, ends["t", 0].offset):
            ...
        with client.producer() as producer:
            producer.send("t", 0, encode_batch([(None, b"value", (), 0)]))

It speaks to heirlog and to Apache Kafka from 1.0 on, each in the newest versions that both sides know. Every call is
tried again while that may help (another leader, a broker that is gone), up to its timeout; then it raises the last
failure: `KafkaError` with the broker's code, among them those of `heirlog.client.errors`; `OSError`, of which
`TimeoutError` and `ConnectionError` are kinds, without an answer. What was sent may have been executed although the
answer was lost: `produce` without idempotence may append twice, as with any client.

A client belongs to one thread and one process. Several fetches and producers of it may be used in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from heirlog.blocking.connections import Connections
from heirlog.client.call import Call, Conversation
from heirlog.client.errors import EpochEnd, TopicRecreated
from heirlog.client.offsets import CommittedOffset, OffsetAt, TopicPartition
from heirlog.client.security import PLAINTEXT, Security
from heirlog.env import Buffer
from heirlog.protocol.errors import KafkaError, error_code
from heirlog.protocol.messages import (
    FetchRequest,
    FetchResponse,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import ZERO_UUID, CoordinatorType, Endpoint

if TYPE_CHECKING:
    from heirlog.blocking.producer import BatchProducer
    from heirlog.blocking.share_consumer import ShareConsumer
    from heirlog.blocking.transactions import TransactionalBatchProducer
    from heirlog.client.fetching import Fetched
    from heirlog.client.sender import Delivered
    from heirlog.client.transactions import OpenTransaction

R = TypeVar("R")

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
MAX_WAIT_MS = 500
FETCH_BYTES = 16 << 20
REQUEST_BYTES = 4 << 20
BUFFER_BYTES = 32 << 20
TRANSACTION_TIMEOUT_MS = 60_000
"""Kafka's default of the producer property transaction.timeout.ms."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's name, id and partitions."""

    name: str
    topic_id: bytes | None
    """None from brokers without topic ids (before Kafka 2.8)."""
    partitions: list[int]


class Client:
    """A connection to a cluster, for one thread. It connects at the first call.

    bootstrap: "host:port,host:port" or a sequence of them. timeout_s: limit of each call, including its retries.

    Raises ValueError, SecurityError.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        security: Security = PLAINTEXT,
        client_id: str = "heirlog",
        timeout_s: float = 30.0,
    ) -> None:
        self._connections = Connections(bootstrap, security=security, client_id=client_id)
        self._cluster = self._connections.cluster
        self._timeout_s = timeout_s
        self.waiting_since_s: float | None = None
        """On the monotonic clock, while a call waits for its answer: for another thread that says so."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    # requests of any API

    def send_to_any(self, message: Message, *, timeout_s: float | None = None) -> Any:
        """The response of the first broker that answers. Raises OSError if none answers in time."""
        return self._run(self._cluster.ask_any(message, self._time(timeout_s)))

    def send_to_broker(self, broker_id: int, message: Message, *, timeout_s: float | None = None) -> Any:
        """The response of this broker. Raises KafkaError if no such broker runs now, OSError."""
        return self._run(self._cluster.ask_broker(broker_id, message, self._time(timeout_s)))

    def send_to_leader(
        self,
        topic: str,
        partition: int,
        message: Message | Callable[[bytes], Message],
        *,
        error_code: Callable[[Any], int] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """The leader's response. Without an answer the request is retried, at the new leader if there is one.

        message: a message, or a function that makes it from the topic's id. error_code: returns the error code of a
        response; while it is in `REFRESH_AND_RETRY` the request is retried. The last response is returned in the end.
        """
        from heirlog.client.leaders import ask_leader

        def made(topic_id: bytes) -> Message:
            return message if isinstance(message, Message) else message(topic_id)

        time_s = self._time(timeout_s)
        return self._run(ask_leader(self._cluster, topic, partition, made, time_s, code_of=error_code))

    def send_to_coordinator(
        self,
        key: str,
        message: Message,
        *,
        error_code: Callable[[Any], int],
        newest: int | None = None,
        timeout_s: float | None = None,
        held_s: float = 0.0,
        key_type: int = int(CoordinatorType.GROUP),
    ) -> Any:
        """The response of a coordinator. The request is retried while its error code is a temporary one.

        key: a group or a transactional id, as key_type says. newest: the newest version to use. held_s: how much
        longer than timeout_s an answer may take that the coordinator holds back, as that to a JoinGroup. Raises
        KafkaError without a coordinator, OSError.
        """
        from heirlog.client.coordinators import ask_coordinator

        time_s = self._time(timeout_s)
        call = ask_coordinator(
            self._cluster,
            key,
            message,
            time_s,
            code_of=error_code,
            newest=newest,
            held_s=held_s,
            key_type=key_type,
        )
        return self._run(call)

    def run(self, conversation: Conversation[R], *, timeout_s: float | None = None) -> R:
        """The result of a conversation: a function such as those of `heirlog.client.admin`, which may send several
        requests. timeout_s: limit of the time without progress.

        Raises KafkaError if the conversation does or if no time is left to retry, OSError without an answer.
        """
        return self._run(self._cluster.converse(conversation, self._time(timeout_s)))

    # brokers and topics

    def brokers(self) -> dict[int, Endpoint]:
        """The address at which each live broker listens for clients. Raises OSError."""
        self.metadata([])
        return dict(self._cluster.view.brokers)

    def metadata(self, topics: Sequence[str] | None = None, *, timeout_s: float | None = None) -> MetadataResponse:
        """The brokers, and these topics (None: all topics). Creates no topic."""
        return self._run(self._cluster.metadata(topics, self._time(timeout_s)))

    def topic_names(self, *, internal: bool = False) -> list[str]:
        """The names of all topics that this client may describe, sorted. internal: also internal topics."""
        self._run(self._cluster.refresh_metadata(None, self._timeout_s))
        return sorted(name for name, topic in self._cluster.view.topics.items() if internal or not topic.internal)

    def topics(self, names: Iterable[str], *, create: bool = False) -> dict[str, Topic]:
        """The ids and partitions of these topics. Raises KafkaError for a topic that does not exist or that this
        client may not describe.

        create: if the brokers create topics automatically, missing ones are created now; wait until they exist.
        """
        wanted = list(names)
        self._run(self._cluster.find_topics(wanted, self._timeout_s, create=create))
        known = self._cluster.view.topics
        return {name: Topic(name, known[name].topic_id, sorted(known[name].partitions)) for name in wanted}

    # offsets

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, OffsetAt]:
        """The offset of each partition for a time.

        wanted: for each partition a time in ms, which gives the first record not before it, or `LATEST` or `EARLIEST`.

        With `READ_COMMITTED` the latest offset is the last stable offset: no open transaction is below it.
        """
        from heirlog.client.leaders import list_offsets

        return self._run(list_offsets(self._cluster, wanted, self._timeout_s, isolation=isolation))

    def end_offset_for_epoch(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        """For each partition: the newest leader epoch that is not above the wanted one, and its end offset.

        (-1, -1) if the leader does not know them, and from brokers before Kafka 2.1.
        """
        from heirlog.client.leaders import epoch_ends

        return self._run(epoch_ends(self._cluster, wanted, self._timeout_s))

    def committed(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """The group's committed offsets of these partitions (None: of all). Partitions without one are left out."""
        from heirlog.client.coordinators import committed

        return self._run(committed(self._cluster, group, partitions, self._timeout_s))

    def commit(
        self, group: str, committing: Mapping[TopicPartition, CommittedOffset], *, retention_ms: int | None = None
    ) -> None:
        """Commit offsets without being a member. Raises UNKNOWN_MEMBER_ID while the group has members.

        retention_ms: how long the brokers keep them; None: as they are configured (offsets.retention.minutes).
        """
        from heirlog.client.coordinators import commit

        self._run(commit(self._cluster, group, committing, self._timeout_s, retention_ms))

    # reading

    def fetch(
        self,
        topic: str,
        partition: int,
        start: int,
        stop: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        max_bytes: int = FETCH_BYTES,
        last_epoch: int = -1,
        topic_id: bytes | None = None,
        check_crcs: bool = True,
        stall_timeout_s: float | None = None,
    ) -> Iterator[Fetched]:
        """The record batches with the offsets from `start` up to, not including, `stop`, in order.

        The memory of a part is overwritten by the next part.

        last_epoch: leader epoch of the record before `start` (-1: unknown); with it the leader detects a truncation.
        topic_id: id of the expected topic.
        stall_timeout_s: raise TimeoutError after this time without progress (default: the client's timeout).

        Raises OffsetOutOfRange, LogTruncated, TopicRecreated; CORRUPT_MESSAGE for a batch whose CRC does not match.
        """
        from heirlog.blocking.fetcher import Fetcher
        from heirlog.client.fetching import PartitionFetch
        from heirlog.client.partition_reader import PartitionReader

        stall_s = self._time(stall_timeout_s)
        wanted = PartitionFetch(
            topic,
            partition,
            start,
            stop,
            isolation=isolation,
            max_bytes=max_bytes,
            max_wait_ms=min(MAX_WAIT_MS, max(int(stall_s * 500), 1)),
            last_epoch=last_epoch,
            check_crcs=check_crcs,
        )
        reader = PartitionReader(self._cluster, wanted, topic_id, stall_s)
        return Fetcher(self._connections, reader, self._timeout_s).parts()

    def fetch_at(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        max_bytes: int = 1 << 20,
        max_wait_ms: int = 500,
        topic_id: bytes | None = None,
        timeout_s: float | None = None,
    ) -> FetchResponse.PartitionData:
        """One response: whole batches from `offset` on (the first may start before it). Empty at the high watermark.

        With `READ_COMMITTED` it ends at the last stable offset, and names the aborted transactions.

        topic_id: id of the expected topic. Raises TopicRecreated if another one has had the name until the time was up:
        a broker may be behind.
        """

        def request(found_id: bytes) -> FetchRequest:
            if topic_id is not None and found_id not in (topic_id, ZERO_UUID):
                raise TopicRecreated(topic, topic_id, found_id)
            wanted = FetchRequest.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
            )
            topics = [FetchRequest.FetchTopic(topic_id=found_id, topic=topic, partitions=[wanted])]
            return FetchRequest(
                max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, isolation_level=isolation, topics=topics
            )

        def answer(response: FetchResponse) -> FetchResponse.PartitionData | None:
            return response.responses[0].partitions[0] if response.responses else None

        def code(response: FetchResponse) -> int:
            data = answer(response)
            return response.error_code or (data.error_code if data is not None else 0)

        response: FetchResponse = self.send_to_leader(topic, partition, request, error_code=code, timeout_s=timeout_s)
        data = answer(response)
        if data is None:
            raise KafkaError(error_code(response.error_code), f"{topic}-{partition} at {offset} could not be fetched")
        return data

    def share_consumer(self, group: str, topics: Sequence[str]) -> ShareConsumer:
        """A member of a share group (KIP-932): its members share the partitions of these topics, record by record."""
        from heirlog.blocking.share_consumer import ShareConsumer

        return ShareConsumer(self._connections, group, topics, self._timeout_s)

    # writing

    def producer(
        self,
        *,
        idempotent: bool = True,
        acks: int = -1,
        max_in_flight: int = 5,
        request_bytes: int = REQUEST_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        delivery_timeout_s: float = 120.0,
        on_delivered: Callable[[Delivered], None] = lambda delivered: None,
    ) -> BatchProducer:
        """A producer of whole record batches.

        acks: -1 all in-sync replicas, 1 the leader, 0 none. max_in_flight: requests per broker.

        buffer_bytes: `send` of the producer waits while more bytes than this are unacknowledged.

        on_delivered: called with each batch that is acknowledged, inside `send`, `poll` and `flush`. Those of a
        partition come in order if the producer is idempotent.
        """
        from heirlog.blocking.producer import BatchProducer
        from heirlog.client.sender import Sender

        sender = Sender(
            self._cluster,
            idempotent=idempotent,
            acks=acks,
            max_in_flight=max_in_flight,
            request_bytes=request_bytes,
            delivery_timeout_s=delivery_timeout_s,
        )
        return BatchProducer(self._connections, sender, buffer_bytes, on_delivered)

    def transactional_producer(
        self,
        transactional_id: str,
        *,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        opened: OpenTransaction | None = None,
        max_in_flight: int = 5,
        request_bytes: int = REQUEST_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        delivery_timeout_s: float = 120.0,
    ) -> TransactionalBatchProducer:
        """A producer of whole record batches in transactions.

        transaction_timeout_ms: the coordinator aborts a transaction that is open for longer; at most
        transaction.max.timeout.ms of the brokers. opened: write in this transaction, which another process began.
        """
        from heirlog.blocking.transactions import TransactionalBatchProducer
        from heirlog.client.sender import Sender
        from heirlog.client.transactions import ProducerTransactions

        transactions = ProducerTransactions(
            self._cluster,
            transactional_id,
            timeout_ms=transaction_timeout_ms,
            call_timeout_s=self._timeout_s,
            opened=opened,
        )
        sender = Sender(
            self._cluster,
            idempotent=True,
            acks=-1,
            max_in_flight=max_in_flight,
            request_bytes=request_bytes,
            delivery_timeout_s=delivery_timeout_s,
            transactions=transactions,
        )
        return TransactionalBatchProducer(self._connections, sender, buffer_bytes, transactions)

    def produce(
        self,
        topic: str,
        partition: int,
        records: Buffer,
        *,
        acks: int = -1,
        timeout_s: float | None = None,
        tries: list[int | None] | None = None,
    ) -> ProduceResponse.PartitionProduceResponse:
        """Append encoded batches. Returns the partition's response, which includes its error code.

        tries: gets one entry for each request that is sent: the error code of its response, None until it arrives.
        """
        codes = [] if tries is None else tries
        wait_ms = int(self._time(timeout_s) * 1000)

        def request(topic_id: bytes) -> ProduceRequest:
            data = ProduceRequest.PartitionProduceData(index=partition, records=records)
            topic_data = ProduceRequest.TopicProduceData(topic_id=topic_id, name=topic, partition_data=[data])
            codes.append(None)
            return ProduceRequest(acks=acks, timeout_ms=wait_ms, topic_data=[topic_data])

        def answer(response: ProduceResponse) -> ProduceResponse.PartitionProduceResponse:
            return response.responses[0].partition_responses[0]

        def code(response: ProduceResponse) -> int:
            codes[-1] = error = answer(response).error_code
            return error

        assert acks, "acks=0 has no answer to wait for"
        response = self.send_to_leader(topic, partition, request, error_code=code, timeout_s=timeout_s)
        return answer(response)

    # plumbing

    def _run(self, call: Call[R]) -> R:
        self.waiting_since_s = time.monotonic()
        try:
            return self._connections.run(call)
        finally:
            self.waiting_since_s = None

    def _time(self, timeout_s: float | None) -> float:
        return self._timeout_s if timeout_s is None else timeout_s
