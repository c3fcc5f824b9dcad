"""Drives the `ProducerTransactions` of a producer with sockets: begin, write, send offsets, and the outcome.

    with client.transactional_producer("orders-copy") as producer:
        with producer.transaction():
            producer.send("t", 0, encode_batch([(None, b"value", (), 0)]))
            producer.send_offsets("group", {("s", 0): CommittedOffset(5)})

What each error leaves possible is in `client/transactions.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from heirlog.blocking.connections import Connections
from heirlog.blocking.producer import BatchProducer
from heirlog.client.errors import TransactionAbortable
from heirlog.client.offsets import CommittedOffset, TopicPartition
from heirlog.client.sender import Sender
from heirlog.client.transactions import (
    NO_MEMBER,
    CommittingMember,
    OpenTransaction,
    ProducerTransactions,
    TransactionStage,
)
from heirlog.protocol.errors import KafkaError


class TransactionalBatchProducer(BatchProducer):
    """A producer of whole record batches in transactions; `Client.transactional_producer` creates it.

    A `with` block initialises it, and aborts a transaction that is still open at its end.

    Calls raise TransactionAbortable (`abort`, then the transaction may be repeated), ProducerFenced (`initialize`
    again, which fences the other producer), other KafkaErrors (create another producer), ValueError for a call that the
    state does not allow, and OSError without an answer.
    """

    def __init__(
        self, connections: Connections, sender: Sender, buffer_bytes: int, transactions: ProducerTransactions
    ) -> None:
        super().__init__(connections, sender, buffer_bytes)
        self._transactions = transactions

    def __enter__(self) -> Self:
        if self._transactions.state is TransactionStage.UNINITIALIZED:
            self.initialize()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Abort an open transaction, and return the connections to the client.

        A transaction of another process (`opened`) is left to it.
        """
        try:
            if not self._transactions.is_shared:
                self._abort_if_possible()
        finally:
            self._release_connections()

    # transactions

    @property
    def opened(self) -> OpenTransaction:
        """The open transaction, for other processes to write in it. Raises ValueError if there is none."""
        return self._transactions.opened

    @property
    def is_idle(self) -> bool:
        """It is initialised, and no transaction is open: after `commit`, that it was committed."""
        return self._transactions.state is TransactionStage.READY

    @property
    def is_in_doubt(self) -> bool:
        """The last commit may have been carried out or not: its answer was lost."""
        return self._transactions.is_in_doubt

    def initialize(self) -> None:
        """Fence earlier producers of this transactional id, and abort what they left open. Possible in any state."""
        self._forget_batches()
        self._connections.run(self._transactions.initialize())

    def begin(self) -> None:
        """Begin a transaction."""
        self._transactions.begin()

    def send(self, topic: str, partition: int, batch: bytearray) -> None:
        """Queue one record batch of the open transaction. Raises the first failure of any batch; InvalidBatch."""
        self._transactions.expect_open()
        super().send(topic, partition, batch)

    def send_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset], member: CommittingMember = NO_MEMBER
    ) -> None:
        """Commit a group's offsets together with the transaction. member: the consumer that read up to them."""
        self._connections.run(self._transactions.send_offsets(group, offsets, member))

    def commit(self) -> None:
        """Wait until all batches are acknowledged, and commit. After an OSError `commit` may be called again."""
        if self._transactions.state is not TransactionStage.COMMITTING:
            self._transactions.expect_open()
            self.flush()
        self._end(commit=True)

    def abort(self) -> None:
        """Drop what was not sent, and abort. Consumers of committed records see nothing of the transaction."""
        self._forget_batches()
        self._end(commit=False)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction around a `with` block: committed at its normal end, aborted where it raises.

        Raises TransactionAbortable only once it is aborted, so that the next transaction may begin. If the abort fails,
        its failure is raised: `initialize` again.
        """
        self.begin()
        try:
            yield self
            self.commit()
        except TransactionAbortable:
            self.abort()
            raise
        except BaseException:
            self._abort_if_possible()
            raise

    # plumbing

    def _end(self, *, commit: bool) -> None:
        if self._connections.run(self._transactions.end(commit=commit)):
            self._forget_batches()

    def _abort_if_possible(self) -> None:
        """The failure before says more than one of the abort; the coordinator aborts in the end."""
        if self._transactions.state in (TransactionStage.OPEN, TransactionStage.ABORTABLE):
            try:
                self.abort()
            except (KafkaError, OSError):
                return

    def _forget_batches(self) -> None:
        self._release_connections()
        self._sender.start_over()
        self._closed = False

    def _meaning(self, failure: Exception) -> Exception:
        return self._transactions.produce_failed(failure)
