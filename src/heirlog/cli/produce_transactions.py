"""`heirlog produce --transactional-id`: lines become the records of transactions.

A transaction is committed when it has its number of records, and at the end of the input. Bad input, an error or a
signal aborts the open one; what was committed before stays, and the command says how much that is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from heirlog.cli.interrupts import Interrupts
from heirlog.cli.line_records import LineRecord
from heirlog.cli.places import Places
from heirlog.cli.render import show_json
from heirlog.cli.waiting import SAID_AFTER_S, Saying, Unanswered, once
from heirlog.protocol.batch import encode_batch

if TYPE_CHECKING:
    from heirlog.blocking import Client


class TransactionalWriter:
    """size: records of a transaction; None: one transaction for everything. count: committed records."""

    def __init__(
        self,
        client: Client,
        interrupts: Interrupts,
        places: Places,
        transactional_id: str,
        size: int | None,
        compression: int,
    ) -> None:
        """Fences an earlier producer of this id. Raises KafkaError, OSError."""
        self._interrupts = interrupts
        self._places = places
        self._transactional_id = transactional_id
        self._size = size
        self._compression = compression
        self._producer = client.transactional_producer(transactional_id)
        self._waits_for = ""
        self.unanswered = Unanswered(lambda: self._waits_for, SAID_AFTER_S)
        waits = (
            f"{transactional_id} has no producer id yet: waiting for its coordinator, which leads a partition of "
            "__transaction_state, or for the end of its last transaction: heirlog transactions describe "
            f"{transactional_id}"
        )
        with Saying(once(lambda: waits), SAID_AFTER_S):
            self._producer.initialize()
        self._open = 0
        """Records of the open transaction."""
        self.count = 0
        self.transactions = 0

    def append(self, lines: Sequence[LineRecord]) -> None:
        """Raises KafkaError, OSError."""
        rest = lines
        while rest:
            room = len(rest) if self._size is None else self._size - self._open
            self._write(rest[:room])
            rest = rest[room:]
            if self._open == self._size:
                self._commit()

    def finish(self) -> None:
        """Commit what is open. Raises KafkaError, OSError."""
        if self._open:
            self._commit()

    def close(self) -> None:
        """Abort what is open."""
        self._producer.close()

    def report(self, read: int, as_json: bool) -> None:
        """read: lines or files of the input."""
        in_doubt = self._open if self._producer.is_in_doubt else 0
        if as_json:
            show_json(
                {
                    "topic": self._places.topic,
                    "transactional_id": self._transactional_id,
                    "transactions": self.transactions,
                    "records": self.count,
                    "not_committed": read - self.count,
                    "may_be_committed": in_doubt,
                }
            )
            return
        plural = "s" if self.count != 1 else ""
        in_transactions = f"{self.transactions} transaction{'s' if self.transactions != 1 else ''}"
        sentence = f"{self._places.topic}: {self.count} record{plural} committed in {in_transactions}"
        if read > self.count:
            sentence += f", {read - self.count} not committed"
        if in_doubt:
            sentence += f" (the commit of {in_doubt} of them had no answer: they may be committed)"
        print(sentence, file=sys.stderr)

    def _write(self, lines: Sequence[LineRecord]) -> None:
        if not self._open:
            self._producer.begin()
        self._open += len(lines)
        self._waits_for = f"records of {self._places.topic} are not stored yet: waiting for their leaders"
        for partition, records in self._places.batches(lines).items():
            batch = bytearray(encode_batch(records, compression=self._compression))
            with self._interrupts.allowed(), self.unanswered:
                self._producer.send(self._places.topic, partition, batch)

    def _commit(self) -> None:
        try:
            with self._interrupts.allowed():
                with self.unanswered:
                    self._producer.flush()
                self._waits_for = f"{self._transactional_id} has not committed yet: waiting for its coordinator"
                with self.unanswered:
                    self._producer.commit()
        finally:
            # also where a signal came right behind the answer
            if self._producer.is_idle:
                self.count += self._open
                self.transactions += 1
                self._open = 0
