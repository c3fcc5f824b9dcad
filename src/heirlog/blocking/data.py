"""The data of a cluster for programs without an event loop: what there is, where it stands, reading and writing it.

    with DataClient("localhost:9092") as client:
        ends = client.list_offsets({("t", 0): LATEST})
        for part in client.fetch("t", 0, 0, ends["t", 0].offset):
            ...
        with client.producer() as producer:
            producer.send("t", 0, encode_batch([(None, b"value", (), 0)]))

It speaks to heirlog and to Apache Kafka from 1.0 on, each in the newest versions that both sides know. Every call is
tried again while that may help (another leader, a broker that is gone), up to its timeout; then it raises the last
failure. Errors: `KafkaError` with the broker's code, among them those of `heirlog.client.errors`; `OSError`, of which
`TimeoutError` and `ConnectionError` are kinds, where nobody answered.

A client belongs to one thread and one process. Several fetches and producers of it may be used in turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from heirlog.blocking.fetcher import Fetcher
from heirlog.blocking.peers import Peers
from heirlog.blocking.producer import BatchProducer
from heirlog.client import coordinators, leaders
from heirlog.client.errors import (
    AuthenticationFailed,
    EpochEnd,
    LogTruncated,
    OffsetOutOfRange,
    TopicRecreated,
    Unsupported,
)
from heirlog.client.fetching import Fetched, PartitionFetch
from heirlog.client.offsets import EARLIEST, LATEST, CommittedOffset, OffsetAt, TopicPartition
from heirlog.client.reader import Reader
from heirlog.client.security import PLAINTEXT, Security, SecurityError, security_from_properties
from heirlog.client.sender import Sender

__all__ = [
    "EARLIEST",
    "LATEST",
    "PLAINTEXT",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "AuthenticationFailed",
    "BatchProducer",
    "CommittedOffset",
    "DataClient",
    "EpochEnd",
    "Fetched",
    "LogTruncated",
    "OffsetAt",
    "OffsetOutOfRange",
    "Security",
    "SecurityError",
    "Topic",
    "TopicPartition",
    "TopicRecreated",
    "Unsupported",
    "security_from_properties",
]

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
MAX_WAIT_MS = 500
FETCH_BYTES = 16 << 20
REQUEST_BYTES = 4 << 20
BUFFER_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: bytes | None
    """None from brokers without topic ids (before Kafka 2.8)."""
    partitions: list[int]


class DataClient:
    """bootstrap: "host:port,host:port" or a sequence of them. timeout_s: of each call, with all its tries.

    Raises ValueError, SecurityError; connects at the first call.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        security: Security = PLAINTEXT,
        client_id: str = "heirlog",
        timeout_s: float = 30.0,
    ) -> None:
        self._peers = Peers(bootstrap, security=security, client_id=client_id)
        self._timeout_s = timeout_s
        self._cluster = self._peers.cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._peers.close()

    # what there is

    def topic_names(self, *, internal: bool = False) -> list[str]:
        """Every topic that this client may see, sorted. internal: also __consumer_offsets and its like."""
        self._peers.run(self._cluster.look(None, self._timeout_s))
        return sorted(name for name, topic in self._cluster.view.topics.items() if internal or not topic.internal)

    def topics(self, names: Iterable[str], *, create: bool = False) -> dict[str, Topic]:
        """Their ids and partitions. Raises KafkaError for a topic that is not there or must not be seen.

        create: where brokers create topics by themselves they do so now; one that is not there is waited for.
        """
        wanted = list(names)
        self._peers.run(self._cluster.find_topics(wanted, self._timeout_s, create=create))
        known = self._cluster.view.topics
        return {name: Topic(name, known[name].topic_id, sorted(known[name].partitions)) for name in wanted}

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, OffsetAt]:
        """wanted: for each partition a time in ms (the first record not before it), `LATEST` or `EARLIEST`.

        With `READ_COMMITTED` the latest offset is the last stable one: no open transaction lies below it.
        """
        return self._peers.run(leaders.list_offsets(self._cluster, wanted, self._timeout_s, isolation=isolation))

    def end_offset_for_epoch(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        """For each partition where the newest leader epoch that is not above the wanted one ends in its log.

        (-1, -1) where the leader does not know, and from brokers before Kafka 2.1, which cannot say.
        """
        return self._peers.run(leaders.epoch_ends(self._cluster, wanted, self._timeout_s))

    # reading and writing

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
        """The record batches that hold the offsets from `start` up to and without `stop`, in order.

        A part's memory is overwritten when the next part is asked for. last_epoch: leader epoch of the record before
        `start` (-1: unknown), with which the leader notices a truncation. topic_id: of the topic that is meant.
        stall_timeout_s: raise TimeoutError after so long without progress (default: the client's timeout).

        Raises OffsetOutOfRange, LogTruncated, TopicRecreated; CORRUPT_MESSAGE for a batch whose CRC does not match.
        """
        patience_s = self._timeout_s if stall_timeout_s is None else stall_timeout_s
        wanted = PartitionFetch(
            topic,
            partition,
            start,
            stop,
            isolation=isolation,
            max_bytes=max_bytes,
            max_wait_ms=min(MAX_WAIT_MS, max(int(patience_s * 500), 1)),
            last_epoch=last_epoch,
            check_crcs=check_crcs,
        )
        return Fetcher(self._peers, Reader(self._cluster, wanted, topic_id, patience_s)).parts()

    def producer(
        self,
        *,
        idempotent: bool = True,
        acks: int = -1,
        max_in_flight: int = 5,
        request_bytes: int = REQUEST_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        delivery_timeout_s: float = 120.0,
    ) -> BatchProducer:
        """acks: -1 all in-sync replicas, 1 the leader, 0 none. See `BatchProducer` for the rest."""
        sender = Sender(
            self._cluster,
            idempotent=idempotent,
            acks=acks,
            max_in_flight=max_in_flight,
            request_bytes=request_bytes,
            delivery_timeout_s=delivery_timeout_s,
        )
        return BatchProducer(self._peers, sender, buffer_bytes)

    # offsets of groups

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, without partitions for which it has nothing."""
        return self._peers.run(coordinators.committed(self._cluster, group, partitions, self._timeout_s))

    def commit(self, group: str, committing: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit without being a member. Raises UNKNOWN_MEMBER_ID while the group has members."""
        self._peers.run(coordinators.commit(self._cluster, group, committing, self._timeout_s))
