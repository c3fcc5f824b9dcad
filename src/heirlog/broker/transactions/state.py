"""What the coordinator knows of one transactional id, and which state may follow which.

    Empty ---------> Ongoing ---> PrepareCommit ---> CompleteCommit ---> Ongoing, Empty (a new producer)
      ^  \\             |
      |   \\            +--------> PrepareAbort ----> CompleteAbort ----> Ongoing, Empty (a new producer)
      |    \\______________________^      an abort of nothing (transaction.version 2)
      +--- a producer asks for an id and an epoch

A state counts once its record in `__transaction_state` is below the high watermark. Until then the change is *pending*,
and every other change of the id gets CONCURRENT_TRANSACTIONS. With PrepareCommit or PrepareAbort committed the outcome
is decided: no later record changes it, and only then may markers be written to the partitions.

Two traps. An epoch of 32767 is never given to a producer: it is reserved to fence the last one, so a producer id whose
epoch is 32766 is used up, and its successor is decided together with the end of its last transaction. And a producer
whose answer was lost repeats its request with the epoch from before: `last_producer_epoch` and `previous_producer_id`
tell such a repetition from a producer that was replaced.

Source: KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, TypeAlias

from heirlog.broker.groups.offsets import TopicPartition
from heirlog.protocol.errors import ErrorCode

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_START_MS: Final = -1
NO_TIMEOUT_MS: Final = 2**31 - 1
"""The time limit of a transaction that only its producer may end (KIP-939). Apache Kafka stores nothing else of it."""
LAST_PRODUCER_EPOCH: Final = 32766
"""The last epoch that a producer gets; 32767 only fences it."""


class TransactionState(IntEnum):
    """Values as in the records of `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """Kafka's name, as in ListTransactions."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """The outcome is decided, and markers are on their way."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def may_expire(self) -> bool:
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def has_next_epoch(epoch: int) -> bool:
    """Guard 28: a producer id whose epoch is 32766 is replaced; its next epoch could only fence.

    Without it the last producer cannot be fenced, and its transaction never ends.
    """
    return epoch < LAST_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transactional id and its current or last transaction. All times are wall time in ms."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """Partitions without a marker of this transaction, as far as the log says."""
    start_ms: int = NO_START_MS
    """When the first partition was added."""
    last_update_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change of any kind."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id that follows once the transaction is complete, because the epochs of this one are used up."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the last one that a producer asked for."""
    client_version: int = 0
    """transaction.version of the client of the current transaction."""

    @property
    def is_used_up(self) -> bool:
        """Whether the next epoch of this producer id could only fence."""
        return not has_next_epoch(self.producer_epoch)

    @property
    def is_reserved_epoch(self) -> bool:
        """Whether the epoch is the one that no producer gets."""
        return self.producer_epoch > LAST_PRODUCER_EPOCH

    def is_overdue(self, wall_ms: int) -> bool:
        """Whether the coordinator may abort it: it has been open for longer than its producer allowed."""
        return (
            self.state is TransactionState.ONGOING
            and self.start_ms != NO_START_MS
            and self.timeout_ms != NO_TIMEOUT_MS
            and self.start_ms + self.timeout_ms < wall_ms
        )

    def without(self, partitions: Iterable[TopicPartition]) -> Transaction:
        """The transaction once these partitions have their markers."""
        return replace(self, partitions=self.partitions.difference(partitions))


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """Who a producer is from now on. -1, -1 if it stays who it was."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class TransactionChange:
    """Write `after`; once it is committed, answer with `answer`, or with `code` if that is an error."""

    after: Transaction
    answer: ProducerIdAndEpoch = ProducerIdAndEpoch()
    code: ErrorCode = ErrorCode.NONE


Outcome: TypeAlias = TransactionChange | ProducerIdAndEpoch | ErrorCode
"""What a request leads to: a change, an answer without a record, or a refusal."""
