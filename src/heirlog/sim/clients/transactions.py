"""Transactions of one transactional id, request by request, as an application with a client library would make them.

    initialize --> add partitions --> produce, commit offsets --> end (commit or abort) --> the next transaction
                        |  a retriable error: again, for a part of the transaction's time limit
                        |  another error: MustAbort   -- EndTxn(abort), and a new epoch
                        +- the id has another producer: Restart -- begin as a new process would

Nothing is retried by anybody else, so each request that may be repeated is repeated here: with the same sequence
numbers, to the leader or the coordinator of the moment. What was asked and answered is recorded in
`heirlog.sim.history.TransactionAttempt`. A producer does not go on before all its records are acknowledged.

A client that knows transaction.version 2 (KIP-890) uses it if the cluster has that level when its producer begins: then
Produce and TxnOffsetCommit add partitions themselves, and EndTxn gives the producer its next epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from heirlog.client import coordinators
from heirlog.client.call import Call, Pause, Send
from heirlog.client.offsets import TopicPartition
from heirlog.client.retriable import FIND_COORDINATOR_AGAIN, REFRESH_AND_RETRY
from heirlog.metadata.state import TRANSACTION_VERSION
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION
from heirlog.protocol.types import CoordinatorType
from heirlog.sim.clients.client import CALL_TIMEOUT_S, REQUEST_TIMEOUT_S, RETRY_MS, Client
from heirlog.sim.clients.late_repeats import LateRepeats
from heirlog.sim.clients.producer import ACKS_ALL
from heirlog.sim.history import History, InitializedProducer, TransactionAttempt
from heirlog.sim.transaction_rules import Answer


class Versions(NamedTuple):
    """The newest ones that a client uses."""

    init: int
    produce: int
    end: int
    commit_offsets: int


NEWEST = {0: Versions(4, 11, 4, 4), EPOCH_PER_TRANSACTION: Versions(5, 12, 5, 5)}
"""Per transaction.version."""
TWO_PHASE_IN_INIT = 6
"""The version of InitProducerId that has two-phase commit."""
KEYS, COLD_EVERY = 7, 9
"""For topics that are compacted: keys that are written again and again, and every so often one that is written once."""
NEWEST_OF_CLIENTS = 3
"""Of AddPartitionsToTxn."""
_SUCCESS = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_RETRIED_PRODUCE = REFRESH_AND_RETRY | {ErrorCode.CONCURRENT_TRANSACTIONS}
_REPLACED = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
)


class MustAbort(Exception):
    """The transaction cannot be committed any more; its producer can continue after an abort."""


class Restart(Exception):
    """The producer cannot continue: another one may have its id."""


@dataclass(frozen=True, slots=True)
class TransactionalId:
    """knows: the highest transaction.version of the client."""

    name: str
    timeout_ms: int
    knows: int = 0
    sleeps: float = 0.05
    """Chance of a pause inside a transaction, at each of its steps."""
    repeats: float = 0.0
    """Chance that a request of transaction.version 2 that was answered is sent once more, later (X18). Earlier versions
    promise nothing of that: an epoch has many transactions there.
    """
    is_two_phase: bool = False
    """Its transactions have no time limit (KIP-939), although it names one."""


class TransactionRequests:
    """The requests of one producer. `values`: numbers that no other producer of the run uses."""

    def __init__(
        self,
        client: Client,
        history: History,
        who: TransactionalId,
        values: count[int],
        unrecorded: Collection[str] = (),
    ) -> None:
        """unrecorded: topics that are deleted and recreated. Requests name topics, so a record may be in either."""
        self._client = client
        self._unrecorded = unrecorded
        self._history = history
        self.who = who
        self._values = values
        self._speaks = 0
        """transaction.version of the current producer."""
        self.producer_id = self.producer_epoch = -1
        self._initialized = -1
        self._late_repeats = LateRepeats(client, history, who.repeats)
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        """Partitions that take part in the transaction, as far as this producer knows."""

    # the producer

    def initialize(self, *, continues: bool = False) -> Call[None]:
        """continues: as the producer that it is already (KIP-360). Raises Restart, KafkaError, OSError."""
        if self.who.knows == EPOCH_PER_TRANSACTION:
            self._speaks = yield from self._level()
        sent = self._history.tick()
        request = InitProducerIdRequest(
            transactional_id=self.who.name,
            transaction_timeout_ms=self.who.timeout_ms,
            producer_id=self.producer_id if continues else -1,
            producer_epoch=self.producer_epoch if continues else -1,
            enable2_pc=self.who.is_two_phase,
        )
        newest = TWO_PHASE_IN_INIT if self.who.is_two_phase else NEWEST[self._speaks].init
        response = yield from self._ask(request, newest)
        if response.error_code:
            raise Restart(f"InitProducerId got {response.error_code}")
        self._history.transaction_counts[f"version-{self._speaks}"] += 1
        self._become(response.producer_id, response.producer_epoch, sent)

    def _level(self) -> Call[int]:
        """What the cluster's level allows. It may change at any time; a producer looks when it begins."""
        # a request without a name of the software is refused, and would look as if the cluster had no features
        request = ApiVersionsRequest(client_software_name="simulated", client_software_version="1")
        response = yield from self._client.cluster.ask_any(request, CALL_TIMEOUT_S, REQUEST_TIMEOUT_S)
        if response.error_code:
            raise Restart(f"ApiVersions got {response.error_code}")
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        return EPOCH_PER_TRANSACTION if levels.get(TRANSACTION_VERSION, 0) >= EPOCH_PER_TRANSACTION else 0

    def _become(self, producer_id: int, epoch: int, sent: int) -> None:
        history = self._history
        self.producer_id, self.producer_epoch = producer_id, epoch
        self._initialized = history.tick()
        history.initialized.append(
            InitializedProducer(self.who.name, self._client.name, producer_id, epoch, sent, self._initialized)
        )
        self._sequences.clear()
        self._added.clear()

    # a transaction

    def begin(self) -> TransactionAttempt:
        history = self._history
        attempt = TransactionAttempt(
            self.who.name,
            self._client.name,
            self.producer_id,
            self.producer_epoch,
            history.now_ms(),
            self._initialized,
        )
        history.transactions.append(attempt)
        self._added.clear()
        return attempt

    def add(self, partitions: Sequence[TopicPartition]) -> Call[None]:
        """Tell the coordinator; a client of transaction.version 2 leaves this to the leaders."""
        if self._speaks == EPOCH_PER_TRANSACTION:
            self._added.update(partitions)
            return
        nested = AddPartitionsToTxnRequest
        request = nested(
            v3_and_below_transactional_id=self.who.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[
                nested.AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions
            ],
        )
        self._added.update(partitions)
        response = yield from self._ask(request, NEWEST_OF_CLIENTS, _first_code_of_partitions)
        self._raise(_first_code_of_partitions(response))

    def write(
        self, attempt: TransactionAttempt, partition: TopicPartition, inputs: Sequence[tuple[int, int] | None]
    ) -> Call[None]:
        """One batch with a new value for each input; returns once it is acknowledged."""
        values = [next(self._values) for _ in inputs]
        name, sent = self._client.partition_name(*partition), self._history.tick()
        recorded = partition[0] not in self._unrecorded
        if recorded:
            attempt.values.update(dict.fromkeys(values, name))
        attempt.inputs.update({value: one for value, one in zip(values, inputs, strict=True) if one is not None})
        self._history.sent += len(values)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(values)
        now_ms = self._client.env.wall_ms()
        batch = encode_batch(
            [(_key(value), b"%d" % value, (), now_ms) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        base_offset, sent_ms = yield from self._append(partition, batch)
        if not recorded:
            return
        attempt.acknowledged.update(dict.fromkeys(values, sent))
        if base_offset < 0:
            self._history.acknowledge_somewhere(name, values, sent_ms)
        else:
            self._history.acknowledge(name, base_offset, values, sent_ms)

    def _append(self, partition: TopicPartition, batch: bytearray) -> Call[tuple[int, int]]:
        """The base offset, -1 where the leader does not remember it, and when the batch was sent last."""
        topic, index = partition
        cluster = self._client.cluster
        data = ProduceRequest.PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            transactional_id=self.who.name,
            acks=ACKS_ALL,
            timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        deadline_s = cluster.clock.now_s() + self._client.env.random.uniform(0.2, 1.0) * self.who.timeout_ms / 1000
        while cluster.clock.now_s() < deadline_s:
            try:
                leader = cluster.view.leader(topic, index)
                sent_ms = self._history.now_ms()
                response = yield Send(leader.endpoint, request, REQUEST_TIMEOUT_S, NEWEST[self._speaks].produce)
            except (OSError, KafkaError):
                pass
            else:
                answer = response.responses[0].partition_responses[0]
                if answer.error_code in _SUCCESS:
                    first = Answer(answer.error_code, (answer.base_offset,))
                    if topic not in self._unrecorded:
                        # a topic that was made again would accept it
                        self._repeat_maybe("Produce", first, lambda: self._produce_again(partition, request))
                    return answer.base_offset, sent_ms
                if answer.error_code not in _RETRIED_PRODUCE:
                    self._raise(answer.error_code)
            yield Pause(RETRY_MS / 1000)
            try:
                yield from cluster.refresh_metadata_elsewhere([topic], REQUEST_TIMEOUT_S)
            except (OSError, KafkaError):
                pass
        raise MustAbort("a batch was not acknowledged in time")

    def add_offsets(self, group: str) -> Call[None]:
        if self._speaks == EPOCH_PER_TRANSACTION:
            return
        request = AddOffsetsToTxnRequest(
            transactional_id=self.who.name,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )
        self._added.add(("", -1))
        response = yield from self._ask(request)
        self._raise(response.error_code)

    def commit_offsets(
        self, group: str, generation: int, member_id: str, topic: str, offsets: Mapping[int, int]
    ) -> Call[None]:
        """As a member of this generation."""
        nested = TxnOffsetCommitRequest
        request = nested(
            transactional_id=self.who.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            generation_id=generation,
            member_id=member_id,
            topics=[
                nested.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        nested.TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata=""
                        )
                        for index, offset in offsets.items()
                    ],
                )
            ],
        )
        self._added.add(("", -1))
        response = yield from self._ask_group(group, request, self._speaks)
        self._raise(_first_code_of_offsets(response))
        self._repeat_maybe("TxnOffsetCommit", Answer(0), lambda: self._commit_offsets_again(group, request))

    def end(self, attempt: TransactionAttempt, *, commit: bool) -> Call[None]:
        """Commit or abort. A transaction without any partition needs no request (KAFKA-18401). Raises Restart if the
        outcome is not known."""
        if not self._added:
            return
        history, sent = self._history, self._history.tick()
        if commit:
            attempt.commit_sent = sent
        request = EndTxnRequest(
            transactional_id=self.who.name,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=commit,
        )
        response = yield from self._ask(request, NEWEST[self._speaks].end)
        if response.error_code:
            raise Restart(f"EndTxn got {response.error_code}")
        first = Answer(0, (response.producer_id, response.producer_epoch))
        self._repeat_maybe("EndTxn", first, lambda: self._end_again(request))
        attempt.committed, attempt.ended_ms = commit, history.now_ms()
        if self._speaks == EPOCH_PER_TRANSACTION:
            self._become(response.producer_id, response.producer_epoch, sent)

    def abort_and_continue(self, attempt: TransactionAttempt) -> Call[None]:
        """After MustAbort: it is not known which batches arrived, so the next transaction needs another epoch."""
        yield from self.end(attempt, commit=False)
        if self._speaks != EPOCH_PER_TRANSACTION:
            yield from self.initialize(continues=True)

    # the same bytes once more

    def _repeat_maybe(self, what: str, first: Answer, again: Callable[[], Call[Answer]]) -> None:
        if self._speaks == EPOCH_PER_TRANSACTION and first.code == ErrorCode.NONE:
            self._late_repeats.maybe(what, first, again)

    def _produce_again(self, partition: TopicPartition, request: ProduceRequest) -> Call[Answer]:
        endpoint = self._client.cluster.view.leader(*partition).endpoint
        response = yield Send(endpoint, request, REQUEST_TIMEOUT_S, NEWEST[EPOCH_PER_TRANSACTION].produce)
        answer = response.responses[0].partition_responses[0]
        return Answer(answer.error_code, (answer.base_offset,))

    def _commit_offsets_again(self, group: str, request: TxnOffsetCommitRequest) -> Call[Answer]:
        response = yield from self._ask_group(group, request, EPOCH_PER_TRANSACTION)
        return Answer(_first_code_of_offsets(response))

    def _end_again(self, request: EndTxnRequest) -> Call[Answer]:
        response = yield from self._ask(request, NEWEST[EPOCH_PER_TRANSACTION].end)
        return Answer(response.error_code, (response.producer_id, response.producer_epoch))

    # asking

    def _ask_group(self, group: str, request: TxnOffsetCommitRequest, speaks: int) -> Call[Any]:
        """What the coordinator of the group answers."""
        return (
            yield from coordinators.ask_coordinator(
                self._client.cluster,
                group,
                request,
                CALL_TIMEOUT_S,
                code_of=_first_code_of_offsets,
                newest=NEWEST[speaks].commit_offsets,
                attempt_s=REQUEST_TIMEOUT_S,
            )
        )

    def _ask(
        self,
        message: Message,
        newest: int | None = None,
        code_of: Callable[[Any], int] = lambda response: int(response.error_code),
    ) -> Call[Any]:
        """What the coordinator of the id answers; a retriable error after the timeout."""
        return (
            yield from coordinators.ask_coordinator(
                self._client.cluster,
                self.who.name,
                message,
                CALL_TIMEOUT_S,
                code_of=code_of,
                newest=newest,
                attempt_s=REQUEST_TIMEOUT_S,
                key_type=CoordinatorType.TRANSACTION,
            )
        )

    @staticmethod
    def _raise(code: int) -> None:
        if code == ErrorCode.NONE:
            return
        if code in _REPLACED and code != ErrorCode.INVALID_TXN_STATE:
            raise Restart(f"got {code}")
        raise MustAbort(f"got {code}")


def _key(value: int) -> bytes:
    return b"%d" % (value if value % COLD_EVERY == 0 else value % KEYS)


def _first_code_of_partitions(response: Any) -> int:
    """The most telling one: OPERATION_NOT_ATTEMPTED only says that another one has an error."""
    codes = [
        result.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]
    return _worst(codes)


def _first_code_of_offsets(response: Any) -> int:
    return _worst([partition.error_code for topic in response.topics for partition in topic.partitions])


def _worst(codes: Sequence[int]) -> int:
    failed = [code for code in codes if code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)]
    fatal = [code for code in failed if code not in FIND_COORDINATOR_AGAIN]
    return next(iter(fatal or failed), 0)
