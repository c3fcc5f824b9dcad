"""Reading partitions in turn, from given offsets, without end or up to given ones.

A partition that cannot be read now, such as one without a leader, does not keep the others from being read: it is
skipped, and asked again in the next round. If that lasts, it is an error. A sentence on stderr says what is waited for.

Offsets of a topic mean nothing in another topic that has its name. So the ids of the topics are looked up once, before
the offsets to begin at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING

from heirlog.cli.errors import CommandError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.waiting import say
from heirlog.client.aborted import AbortedTransactions
from heirlog.client.errors import TopicRecreated
from heirlog.client.offsets import TopicPartition
from heirlog.client.retriable import REFRESH_AND_RETRY
from heirlog.protocol.batch import Record, decode_records, walk
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

IDLE_WAIT_MS = 500
"""How long a round over all partitions may wait for records when the round before brought none."""
ANSWER_S = 5.0
"""How long a round waits for the leader of one partition, with retries."""
UNREADABLE_MAX_S = 30.0
"""So long a partition is skipped before that is an error."""


class Recreated(CommandError):
    """Another topic has the name of the one that was read."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"topic {topic} was deleted and created again meanwhile: start again to read the new one, for example with "
            "--from-beginning"
        )
        self.topic = topic


def topic_ids(client: Client, partitions: Iterable[TopicPartition]) -> dict[str, bytes | None]:
    """By name. Raises KafkaError for a topic that does not exist."""
    names = {topic for topic, _ in partitions}
    return {name: topic.topic_id for name, topic in client.topics(names).items()} if names else {}


class Reader:
    """positions: for each partition the offset after the last record that `rounds` has brought.

    left: how many more records are wanted; None: all.
    """

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, bytes | None],
        stops: Mapping[TopicPartition, int] | None = None,
        isolation: int = 0,
        left: int | None = None,
        beginning: Callable[[TopicPartition], str] = lambda _: "start again, for example with --from-beginning",
    ) -> None:
        """topic_ids: of the topics that the positions are of. stops: offsets not to read any more; None: there is no
        end. isolation: as the Fetch API numbers it.

        beginning: how to read a partition from its beginning, for a sentence.
        """
        self.positions = dict(positions)
        self.left = left
        self._client = client
        self._stops = stops
        self._isolation = isolation
        self._beginning = beginning
        self._unreadable_since_s: dict[TopicPartition, float] = {}
        self._topic_ids = topic_ids

    def rounds(self) -> Generator[list[tuple[TopicPartition, list[Record]]]]:
        """What each round over the partitions brings, at most one answer of each; an empty list where nothing is new.

        Ends once every partition has reached its stop, or nothing is left. Raises CommandError, KafkaError, OSError.
        """
        wait_ms = 0
        while reading := [partition for partition in self.positions if not self._is_done(partition)]:
            found = [(partition, records) for partition in reading if (records := self._next(partition, wait_ms))]
            wait_ms = 0 if found else max(1, IDLE_WAIT_MS // len(reading))
            yield found
            if self.left == 0:
                return

    def _next(self, partition: TopicPartition, wait_ms: int) -> list[Record]:
        if self.left is None:
            return self._fetch(partition, wait_ms)
        if not self.left:
            return []
        records = self._fetch(partition, wait_ms)
        if len(records) > self.left:
            records = records[: self.left]
            self.positions[partition] = records[-1].offset + 1
        self.left -= len(records)
        return records

    def _is_done(self, partition: TopicPartition) -> bool:
        return self._stops is not None and self.positions[partition] >= self._stops[partition]

    def _fetch(self, partition: TopicPartition, wait_ms: int) -> list[Record]:
        wanted = self.positions[partition]
        try:
            data = self._client.fetch_at(
                *partition,
                wanted,
                isolation=self._isolation,
                max_wait_ms=wait_ms,
                topic_id=self._topic_ids[partition[0]],
                timeout_s=ANSWER_S,
            )
        except TopicRecreated as error:
            raise Recreated(error.topic) from error
        except (KafkaError, OSError) as error:
            if self._is_unreadable_for_long(partition, str(error)):
                raise
            return []
        if data.error_code:
            code = error_code(data.error_code)
            if code in REFRESH_AND_RETRY and not self._is_unreadable_for_long(partition, code.name):
                return []
            refused = f"{partition[0]}-{partition[1]} cannot be read at offset {wanted}: {code.name}"
            if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                raise CommandError(
                    f"{refused}; its records were deleted meanwhile, an election gave them up, or the offset is one of "
                    f"an earlier topic with this name: {self._beginning(partition)}"
                )
            raise CommandError(with_next_step(refused, code))
        self._unreadable_since_s.pop(partition, None)
        records: list[Record] = []
        fetched = data.records or b""
        assert not isinstance(fetched, list), "a decoded answer has its records in one piece"
        aborted = AbortedTransactions([(one.producer_id, one.first_offset) for one in data.aborted_transactions or []])
        stop = None if self._stops is None else self._stops[partition]
        for position, header in walk(fetched, partial_tail=True):
            if not aborted.skips(fetched, position, header):
                # the first batch may begin before the offset that was asked for, the last one may end behind the stop
                records += [
                    record
                    for record in decode_records(fetched, position)
                    if record.offset >= wanted and (stop is None or record.offset < stop)
                ]
            self.positions[partition] = header.next_offset
        return records

    def _is_unreadable_for_long(self, partition: TopicPartition, why: str) -> bool:
        now_s = time.monotonic()
        if not self._unreadable_since_s:
            # of several, one is enough to know
            say(f"{partition[0]}-{partition[1]} cannot be read now: {why}; trying for {UNREADABLE_MAX_S:.0f} s")
        return now_s - self._unreadable_since_s.setdefault(partition, now_s) >= UNREADABLE_MAX_S
