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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from heirlog.blocking.connection import Connection
from heirlog.blocking.fetcher import Fetcher
from heirlog.blocking.patience import Patience
from heirlog.blocking.peers import Peers
from heirlog.blocking.producer import BatchProducer
from heirlog.client import offsets
from heirlog.client.errors import (
    AuthenticationFailed,
    EpochEnd,
    LogTruncated,
    OffsetOutOfRange,
    TopicRecreated,
    Unsupported,
)
from heirlog.client.fetching import Fetched, PartitionFetch
from heirlog.client.offsets import EARLIEST, LATEST, Answers, CommittedOffset, OffsetAt, TopicPartition
from heirlog.client.retriable import FIND_COORDINATOR_AGAIN, LOOK_AGAIN
from heirlog.client.security import PLAINTEXT, Security, SecurityError, security_from_properties
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

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

R = TypeVar("R")

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
MAX_WAIT_MS = 500
FETCH_BYTES = 16 << 20
REQUEST_BYTES = 4 << 20
BUFFER_BYTES = 32 << 20
TRY_SHARE = 1 / 3
"""Of the time of a call, for one answer: a broker that hangs may have been replaced by then."""
SHORTEST_TRY_S = 1.0
TOPIC_MAY_COME = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
UNKNOWN_END = EpochEnd(-1, -1)


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
        self._coordinators: dict[str, Endpoint] = {}

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
        self._peers.look(None, self._timeout_s)
        return sorted(name for name, topic in self._peers.view.topics.items() if internal or not topic.internal)

    def topics(self, names: Iterable[str], *, create: bool = False) -> dict[str, Topic]:
        """Their ids and partitions. Raises KafkaError for a topic that is not there or must not be seen.

        create: where brokers create topics by themselves they do so now; one that is not there is waited for.
        """
        wanted = list(names)
        patience = Patience(self._timeout_s)
        refused = self._peers.look(wanted, self._timeout_s) if wanted else {}
        if not create and any(code in TOPIC_MAY_COME for code in refused.values()):
            # a broker that has not yet read of a new topic answers as if there were none: one more is asked
            refused = self._peers.look_elsewhere(wanted, patience.left_s())
        while refused:
            name, code = min(refused.items())
            failure = KafkaError(code, f"topic {name!r} cannot be used")
            if not create or code not in TOPIC_MAY_COME:
                raise failure
            patience.again(failure)
            with patience.explained():
                refused = self._peers.look_elsewhere(wanted, patience.left_s(), create=True)
        known = self._peers.view.topics
        return {name: Topic(name, known[name].topic_id, sorted(known[name].partitions)) for name in wanted}

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, OffsetAt]:
        """wanted: for each partition a time in ms (the first record not before it), `LATEST` or `EARLIEST`.

        With `READ_COMMITTED` the latest offset is the last stable one: no open transaction lies below it.
        """
        timeout_ms = int(self._timeout_s * 1000)

        def request(some: Mapping[TopicPartition, int]) -> Message:
            return offsets.list_offsets(some, self._peers.view, isolation, timeout_ms)

        return self._of_leaders(wanted, request, offsets.listed_offsets, "its offset cannot be listed")

    def end_offset_for_epoch(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        """For each partition where the newest leader epoch that is not above the wanted one ends in its log.

        (-1, -1) where the leader does not know, and from brokers before Kafka 2.1, which cannot say.
        """

        def request(some: Mapping[TopicPartition, int]) -> Message:
            return offsets.epoch_ends(some, self._peers.view)

        try:
            return self._of_leaders(wanted, request, offsets.found_epoch_ends, "its epochs cannot be read")
        except Unsupported:
            return dict.fromkeys(wanted, UNKNOWN_END)

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
        return self._explained(Fetcher(self._peers, wanted, topic_id, patience_s).parts(), wanted)

    def _explained(self, parts: Iterator[Fetched], wanted: PartitionFetch) -> Iterator[Fetched]:
        """A leader refuses an offset without saying what it has, and also where it has the offset but knows nothing
        of the epoch of the record before it: that is a truncation too."""
        try:
            yield from parts
        except OffsetOutOfRange as error:
            place = (wanted.topic, wanted.partition)
            first = self.list_offsets({place: EARLIEST})[place].offset
            last = self.list_offsets({place: LATEST})[place].offset
            if wanted.last_epoch >= 0 and first <= error.offset <= last:
                raise LogTruncated(*place, error.offset, wanted.last_epoch, UNKNOWN_END) from error
            raise OffsetOutOfRange(*place, error.offset, first, last) from error

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
        return BatchProducer(
            self._peers,
            idempotent=idempotent,
            acks=acks,
            max_in_flight=max_in_flight,
            request_bytes=request_bytes,
            buffer_bytes=buffer_bytes,
            delivery_timeout_s=delivery_timeout_s,
        )

    # offsets of groups

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, without partitions for which it has nothing."""
        request = offsets.committed(group, partitions)
        found: dict[TopicPartition, CommittedOffset] = {}

        def read(response: Any) -> int:
            code, partitions = offsets.found_committed(response)
            found.update({key: offset for key, failed, offset in partitions if not failed and offset.offset >= 0})
            return code or next((failed for _, failed, _ in partitions if failed), 0)

        self._of_coordinator(group, request, offsets.NEWEST_OFFSET_FETCH_BY_NAME, read)
        return found

    def commit(self, group: str, committing: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit without being a member. Raises UNKNOWN_MEMBER_ID while the group has members."""

        def read(response: Any) -> int:
            return next((code for _, code, _ in offsets.commit_codes(response) if code), 0)

        if committing:
            self._of_coordinator(group, offsets.commit(group, committing), offsets.NEWEST_COMMIT_BY_NAME, read)

    # plumbing

    def _of_leaders(
        self,
        wanted: Mapping[TopicPartition, int],
        request: Callable[[Mapping[TopicPartition, int]], Message],
        read: Callable[[Any], Answers[R]],
        refusal: str,
    ) -> dict[TopicPartition, R]:
        """Ask the leader of each partition, all leaders at once, and again those whose answer asks for that."""
        patience = Patience(self._timeout_s)
        results: dict[TopicPartition, R] = {}
        if any(topic not in self._peers.view.topics for topic, _ in wanted):
            raise_final(self._peers.look(sorted({topic for topic, _ in wanted}), patience.left_s()))
        while True:
            left = {key: value for key, value in wanted.items() if key not in results}
            if not left:
                return results
            answers, failure = self._round(left, request, read, patience)
            for key, code, result in answers:
                if not code:
                    results[key] = result
                    continue
                topic, partition = key
                failure = KafkaError(error_code(code), f"{topic}-{partition}: {refusal}")
                if code not in LOOK_AGAIN:
                    raise failure
            if len(results) < len(wanted):
                patience.again(failure or TimeoutError("no leader answered"))
                with patience.explained():
                    raise_final(self._peers.look_elsewhere(sorted({topic for topic, _ in left}), patience.left_s()))

    def _round(
        self,
        wanted: Mapping[TopicPartition, int],
        request: Callable[[Mapping[TopicPartition, int]], Message],
        read: Callable[[Any], Answers[R]],
        patience: Patience,
    ) -> tuple[list[tuple[TopicPartition, int, R]], Exception | None]:
        """What those leaders say that are known and answer, and what happened to one of the others."""
        failure: Exception | None = None
        by_leader: dict[Endpoint, dict[TopicPartition, int]] = {}
        for (topic, partition), value in wanted.items():
            try:
                leader = self._peers.view.leader(topic, partition)
            except KafkaError as error:
                failure = error
                continue
            by_leader.setdefault(leader.endpoint, {})[topic, partition] = value
        asked: list[tuple[Endpoint, Connection]] = []
        answers: list[tuple[TopicPartition, int, R]] = []
        try:
            for endpoint, some in by_leader.items():
                try:
                    asked.append((endpoint, self._peers.borrow(endpoint, self._try_s(patience))))
                    asked[-1][1].submit(request(some), timeout_s=self._try_s(patience))
                except Unsupported:
                    raise
                except OSError as error:
                    failure = error
            for _, connection in asked:
                try:
                    if connection.in_flight:
                        answers.extend(read(connection.take(timeout_s=self._try_s(patience))))
                except OSError as error:
                    failure = error
        finally:
            for endpoint, connection in asked:
                self._peers.give_back(endpoint, connection)
        return answers, failure

    def _try_s(self, patience: Patience) -> float:
        return min(patience.left_s(), max(self._timeout_s * TRY_SHARE, SHORTEST_TRY_S))

    def _of_coordinator(self, group: str, request: Message, newest: int, read: Callable[[Any], int]) -> None:
        """Ask the group's coordinator until `read` finds no code that may pass. Raises KafkaError for others."""
        patience = Patience(self._timeout_s)
        while True:
            failure: Exception
            try:
                endpoint = self._coordinators.get(group) or self._find_coordinator(group, patience)
                code = read(self._peers.ask(endpoint, request, self._try_s(patience), newest))
            except Unsupported:
                raise
            except OSError as error:
                failure = error
            else:
                if not code:
                    return
                failure = KafkaError(error_code(code), f"the offsets of group {group}: {refusal_of_group(code)}")
                if code not in FIND_COORDINATOR_AGAIN:
                    raise failure
            self._coordinators.pop(group, None)
            patience.again(failure)

    def _find_coordinator(self, group: str, patience: Patience) -> Endpoint:
        while True:
            left_s, try_s = patience.left_s(), self._try_s(patience)
            response = self._peers.ask_any(offsets.find_coordinator(group), left_s, try_s)
            code, message, endpoint = offsets.found_coordinator(response)
            if not code:
                self._coordinators[group] = endpoint
                return endpoint
            failure = KafkaError(error_code(code), f"group {group} has no coordinator: {message or ''}")
            if code not in FIND_COORDINATOR_AGAIN:
                raise failure
            patience.again(failure)


def raise_final(refused: Mapping[str, ErrorCode]) -> None:
    """Raise for a topic that no later look will show."""
    for topic, code in sorted(refused.items()):
        if code not in LOOK_AGAIN:
            raise KafkaError(code, f"topic {topic!r} cannot be used")


def refusal_of_group(code: int) -> str:
    if code == ErrorCode.UNKNOWN_MEMBER_ID:
        return "it has members now, and only they commit; use another group or stop them"
    return "were refused"
