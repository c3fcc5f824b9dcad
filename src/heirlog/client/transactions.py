"""The transactions of one producer: its id and epoch, what takes part, the outcome, and what an error leaves possible.

    UNINITIALIZED --initialize--> READY --begin--> OPEN --end--> READY
                                                   OPEN --failed--> ABORTABLE --abort--> READY
        any --fenced--> FENCED --initialize--> READY          any --an error without a way on--> FAILED

Two protocols. With transaction.version 2 finalised (KIP-890) a Produce or TxnOffsetCommit adds its partition itself,
and EndTxn returns the epoch of the next transaction. Below that, partitions and groups are added first, and an abort is
followed by a new epoch, so that no late batch of the aborted transaction gets into the next one. `initialize` decides
by what the brokers have finalised; coordinators serve both protocols at both levels.

A commit without an answer may have been carried out, so `end(commit=True)` may be repeated, and nothing else is
possible then. A commit that is refused as fenced after such a failure leaves the outcome unknown (`is_in_doubt`).

A task of a larger job may write in a transaction that another process began: it gets an `OpenTransaction`.

Source: KIP-98, KIP-360, KIP-447 (send_offsets), KIP-890, KIP-1050 (classes of errors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from heirlog.client.call import Call
from heirlog.client.cluster import Cluster
from heirlog.client.coordinators import ask_coordinator
from heirlog.client.errors import ProducerFenced, TransactionAbortable, Unsupported
from heirlog.client.offsets import SIMPLE_CONSUMER, CommittedOffset, TopicPartition, by_topic
from heirlog.client.record_accumulator import ProducerIdAndEpoch
from heirlog.client.retriable import FIND_COORDINATOR_AGAIN
from heirlog.metadata.state import TRANSACTION_VERSION
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.software import SOFTWARE_NAME, SOFTWARE_VERSION
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION
from heirlog.protocol.types import CoordinatorType

NEWEST_ADDED_FIRST = {"produce": 11, "add": 3, "offsets": 4, "end": 4}
"""The newest versions in which partitions are added before; later ones mean the other protocol, or are for brokers."""
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.PRODUCER_FENCED})
ABORTABLE = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
)
"""Errors of a coordinator after which the transaction can still be aborted."""
FATAL_IN_PRODUCE = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
FENCED_IN_PRODUCE = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
"""INVALID_PRODUCER_EPOCH may be the coordinator's own abort, which the client's abort makes certain."""


class TransactionStage(Enum):
    UNINITIALIZED = "is not initialised"
    READY = "has no open transaction"
    OPEN = "has an open transaction"
    COMMITTING = "has a commit without an answer: commit again, or initialise"
    ABORTABLE = "has a failed transaction: abort it"
    FENCED = "is fenced: initialise it again"
    FAILED = "has failed for good"


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that several processes write to. Each partition has only one writer among them: the writers number
    the records of a partition independently."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    adds_by_writing: bool
    """Partitions are added by Produce (transaction.version 2)."""


@dataclass(frozen=True, slots=True)
class CommittingMember:
    """A member of a consumer group, for the group to fence members that it has replaced (KIP-447)."""

    member_id: str = ""
    generation: int = SIMPLE_CONSUMER
    group_instance_id: str | None = None


NO_MEMBER = CommittingMember()


class ProducerTransactions:
    """timeout_ms: the coordinator aborts a transaction that is open for longer. call_timeout_s: limit of each call,
    with its retries. opened: take part in this transaction instead of beginning one.
    """

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str,
        *,
        timeout_ms: int,
        call_timeout_s: float,
        opened: OpenTransaction | None = None,
    ) -> None:
        if not transactional_id:
            raise ValueError("a transactional id must not be empty")
        self.transactional_id = transactional_id
        self.state = TransactionStage.UNINITIALIZED
        self.producer = ProducerIdAndEpoch(-1, -1)
        self.is_in_doubt = False
        """The last commit may have been carried out or not."""
        self.is_shared = opened is not None
        """The transaction is another process's to end."""
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._call_timeout_s = call_timeout_s
        self._adds_by_writing = False
        self._added: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._is_begun = False
        """The coordinator may know of the transaction."""
        if opened is not None:
            self.state = TransactionStage.OPEN
            self.producer = opened.producer
            self._adds_by_writing = opened.adds_by_writing
            self._is_begun = True

    @property
    def opened(self) -> OpenTransaction:
        """The transaction, for other writers. Raises ValueError if none is open."""
        self._expect(TransactionStage.OPEN)
        return OpenTransaction(self.transactional_id, self.producer, self._adds_by_writing)

    # the producer's epoch

    def initialize(self) -> Call[None]:
        """Get an id and an epoch. Fences earlier producers of this transactional id, aborts what they left open, and
        waits for what they had decided. Raises KafkaError, OSError.
        """
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        response: ApiVersionsResponse = yield from self._cluster.ask_any(request, self._call_timeout_s)
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        self._adds_by_writing = levels.get(TRANSACTION_VERSION, 0) >= EPOCH_PER_TRANSACTION
        yield from self._request_epoch(ProducerIdAndEpoch(-1, -1))
        self._rest()

    def _request_epoch(self, current: ProducerIdAndEpoch) -> Call[None]:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
        )
        response: InitProducerIdResponse = yield from self._ask(request, lambda got: int(got.error_code))
        if response.error_code:
            code = error_code(response.error_code)
            raise self._refused(code, "no producer epoch was given" + _ADVICE.get(code, ""), aborting=True)
        self.producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    # one transaction

    def begin(self) -> None:
        """Raises ValueError unless the producer is initialised and has no open transaction."""
        self._expect(TransactionStage.READY)
        self.state = TransactionStage.OPEN

    def without(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of them that have to be added first."""
        return [] if self._adds_by_writing else [found for found in partitions if found not in self._added]

    def may_write(self, partition: TopicPartition) -> bool:
        return self._adds_by_writing or partition in self._added

    def writing(self) -> None:
        """A batch is sent: from now on the coordinator may know of the transaction."""
        self._is_begun = True

    @property
    def newest_produce(self) -> int | None:
        """The newest Produce version to use."""
        return None if self._adds_by_writing else NEWEST_ADDED_FIRST["produce"]

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> Call[None]:
        """Let the coordinator know that they take part. Raises KafkaError."""
        wanted = sorted(partitions)
        if not wanted:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(wanted).items()
            ],
        )

        def code_of(response: Any) -> int:
            codes = [
                found.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for found in topic.results_by_partition
            ]
            # the others are only not attempted because of this one
            wrong = [code for code in codes if code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)]
            return next(iter(wrong), max(codes, default=0))

        self._is_begun = True
        names = ", ".join(f"{topic}-{index}" for topic, index in wanted)
        yield from self._checked(request, code_of, f"{names} cannot take part", newest=NEWEST_ADDED_FIRST["add"])
        self._added.update(wanted)

    def send_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset], member: CommittingMember = NO_MEMBER
    ) -> Call[None]:
        """Commit a group's offsets with the transaction. Raises KafkaError, ValueError without an open transaction."""
        self._expect(TransactionStage.OPEN)
        if not offsets:
            return
        newest = None if self._adds_by_writing else NEWEST_ADDED_FIRST["offsets"]
        self._is_begun = True
        if not self._adds_by_writing and group not in self._groups:
            adding = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer.producer_id,
                producer_epoch=self.producer.epoch,
                group_id=group,
            )
            yield from self._checked(adding, lambda got: int(got.error_code), f"group {group} cannot take part")
            self._groups.add(group)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[topic, index].offset,
                            committed_leader_epoch=offsets[topic, index].leader_epoch,
                            committed_metadata=offsets[topic, index].metadata,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )

        def code_of(response: Any) -> int:
            return next(
                (found.error_code for topic in response.topics for found in topic.partitions if found.error_code), 0
            )

        what = f"the offsets of group {group} were refused"
        yield from self._checked(request, code_of, what, newest=newest, key=group, key_type=CoordinatorType.GROUP)

    # its outcome

    def end(self, *, commit: bool) -> Call[bool]:
        """Commit or abort. Returns whether the producer has a new epoch, with which sequences start at 0.

        Commit only when everything that was written is acknowledged. Raises TransactionAbortable (nothing was
        committed), ProducerFenced, other KafkaErrors (no way on), OSError (a commit may be repeated), ValueError where
        the state does not allow it.
        """
        if commit:
            self._expect(TransactionStage.OPEN, TransactionStage.COMMITTING)
        else:
            self._expect(TransactionStage.OPEN, TransactionStage.ABORTABLE)
        before = self.producer
        if self._is_begun:
            yield from self._end(commit)
        if not commit and not self._adds_by_writing:
            # a batch of this transaction that is still on its way must not get into the next one
            yield from self._request_epoch(self.producer)
        self._rest()
        return self.producer != before

    def _end(self, commit: bool) -> Call[None]:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            committed=commit,
        )
        if commit:
            self.state, self.is_in_doubt = TransactionStage.COMMITTING, True
        newest = None if self._adds_by_writing else NEWEST_ADDED_FIRST["end"]
        try:
            response: EndTxnResponse = yield from self._ask(request, lambda got: int(got.error_code), newest=newest)
            code = error_code(response.error_code)
        except KafkaError as error:
            code = error.code
        if code is ErrorCode.INVALID_TXN_STATE and not commit and not self._added and not self._groups:
            code = ErrorCode.NONE  # nothing was added: the coordinator knows of no transaction
        if code is ErrorCode.INVALID_TXN_STATE and commit:
            raise self._fenced(code, "the coordinator has aborted the transaction: it was open for too long, or fenced")
        if code in FIND_COORDINATOR_AGAIN:
            raise TimeoutError(f"transactional id {self.transactional_id}: no outcome in time ({code.name})")
        if code is ErrorCode.TRANSACTION_ABORTABLE:
            self.is_in_doubt = False
        if code:
            outcome = "commit" if commit else "abort"
            raise self._refused(code, f"the {outcome} was refused", aborting=not commit)
        if self._adds_by_writing and response.producer_id >= 0:
            self.producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    def _rest(self) -> None:
        self.state = TransactionStage.READY
        self._added.clear()
        self._groups.clear()
        self._is_begun = False
        self.is_in_doubt = False

    # errors

    def produce_failed(self, failure: Exception) -> Exception:
        """What a failure of a batch means for the transaction: the exception to raise."""
        if isinstance(failure, TransactionAbortable | ProducerFenced | Unsupported):
            return failure
        if not isinstance(failure, KafkaError):
            return self._abortable(ErrorCode.TRANSACTION_ABORTABLE, str(failure))
        if failure.code in FENCED_IN_PRODUCE:
            return self._fenced(failure.code, failure.message)
        if failure.code in FATAL_IN_PRODUCE or self.state is TransactionStage.FAILED:
            self.state = TransactionStage.FAILED
            return failure
        return self._abortable(failure.code, failure.message)

    def _checked(
        self,
        request: Message,
        code_of: Any,
        what: str,
        *,
        newest: int | None = None,
        key: str | None = None,
        key_type: int = CoordinatorType.TRANSACTION,
    ) -> Call[None]:
        """Ask about the open transaction; what fails here leaves the abort. Raises KafkaError."""
        try:
            response = yield from self._ask(request, code_of, newest=newest, key=key, key_type=key_type)
        except Unsupported:
            raise
        except OSError as error:
            raise self._abortable(ErrorCode.TRANSACTION_ABORTABLE, f"{what}: {error}") from error
        except KafkaError as error:
            raise self._refused(error.code, f"{what}: {error.message}") from error
        code = error_code(code_of(response))
        if code:
            raise self._refused(code, what)

    def _ask(
        self,
        request: Message,
        code_of: Any,
        *,
        newest: int | None = None,
        key: str | None = None,
        key_type: int = CoordinatorType.TRANSACTION,
    ) -> Call[Any]:
        return (
            yield from ask_coordinator(
                self._cluster,
                self.transactional_id if key is None else key,
                request,
                self._call_timeout_s,
                code_of=code_of,
                newest=newest,
                attempt_s=self._cluster.retry_timer(self._call_timeout_s).attempt_s(),
                key_type=key_type,
            )
        )

    def _refused(self, code: ErrorCode, what: str, *, aborting: bool = False) -> KafkaError:
        """aborting: the request was the way out itself, so that none is left."""
        if code in FENCED:
            return self._fenced(code, what)
        if not aborting and (code in ABORTABLE or code in FIND_COORDINATOR_AGAIN):
            return self._abortable(code, what)
        if self.state is not TransactionStage.UNINITIALIZED:
            self.state = TransactionStage.FAILED
        return KafkaError(code, f"transactional id {self.transactional_id}: {what}")

    def _abortable(self, code: ErrorCode, what: str) -> TransactionAbortable:
        self.state = TransactionStage.ABORTABLE
        return TransactionAbortable(code, f"transactional id {self.transactional_id}: {what}; abort the transaction")

    def _fenced(self, code: ErrorCode, what: str) -> ProducerFenced:
        self.state = TransactionStage.FENCED
        return ProducerFenced(code, f"transactional id {self.transactional_id}: {what}; {_FENCED_ADVICE}")

    def expect_open(self) -> None:
        """Raises ValueError without an open transaction."""
        self._expect(TransactionStage.OPEN)

    def _expect(self, *stages: TransactionStage) -> None:
        if self.state not in stages:
            raise ValueError(f"transactional id {self.transactional_id}: the producer {self.state.value}")


_FENCED_ADVICE = "another producer uses this id, or the coordinator aborted the transaction; initialise again"
_ADVICE = {
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: ": the timeout is above the brokers' transaction.max.timeout.ms",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ": the principal needs WRITE on the transactional id",
}
