"""Reading as a member of a share group (KIP-932), in one thread.

A record is accepted only after it was written to the output: each record is written at least once. What was not written
is given back at the end, also after Ctrl-C, and delivered again; with `kill -9` once its lock ends.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from heirlog.cli.waiting import Saying, Unanswered
from heirlog.client.offsets import TopicPartition
from heirlog.client.share_groups import Acknowledge, DeliveredRecords
from heirlog.protocol.batch import Record
from heirlog.protocol.errors import KafkaError

if TYPE_CHECKING:
    from heirlog.blocking import Client

RECORDS_PER_ROUND: Final = 500


class ShareReader:
    """left: stop after so many records; None: never."""

    def __init__(self, client: Client, group: str, topics: Sequence[str], left: int | None) -> None:
        self._consumer = client.share_consumer(group, topics)
        self._left = left
        self._handed_out: list[DeliveredRecords] = []
        self._counts: dict[tuple[str, int, int], int] = {}
        self._polling = Unanswered(
            f"waiting for the coordinator of share group {group}, or for a leader of its partitions"
        )
        """A leader without records answers within half a second."""

    def delivery_count(self, topic: str, partition: int, offset: int) -> int:
        """How often a record of the last round was delivered, this time included."""
        return self._counts[topic, partition, offset]

    def rounds(self) -> Generator[list[tuple[TopicPartition, list[Record]]]]:
        """As `Reader.rounds`. Close it: then the member leaves. Raises KafkaError, OSError."""
        try:
            with Saying(self._polling.said):
                yield from self._rounds()
        except BaseException:
            # the failure is what counts, and what was not acknowledged is delivered again
            with suppress(KafkaError, OSError):
                self._consumer.close()
            raise
        self._consumer.close()

    def wrote(self) -> None:
        """The records of the last round are written to the output."""
        for delivered in self._handed_out:
            self._consumer.acknowledge(delivered, Acknowledge.ACCEPT)
        self._handed_out = []

    def _rounds(self) -> Iterator[list[tuple[TopicPartition, list[Record]]]]:
        while self._left is None or self._left > 0:
            wanted = RECORDS_PER_ROUND if self._left is None else min(self._left, RECORDS_PER_ROUND)
            with self._polling:
                self._handed_out = self._consumer.poll(wanted, is_exact=self._left is not None)
            found: list[tuple[TopicPartition, list[Record]]] = []
            self._counts = {}
            for delivered in self._handed_out:
                at = self._consumer.topic_name(delivered.key), delivered.key[1]
                found.append((at, list(delivered.records)))
                self._counts.update({(*at, record.offset): delivered.delivery_count for record in delivered.records})
            if self._left is not None:
                self._left -= sum(len(records) for _, records in found)
            yield found
