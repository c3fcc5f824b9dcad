"""A consumer: reads every partition of its topics from the start, and requests their latest offsets.

The product decides where a request is sent and what an answer means (`partition_reader` and `leaders` of
`heirlog.client`). What to do after a truncation is the decision of a program. This consumer goes back to the offset at
which the leader's log diverges from what it has read, reads again from there, and records this (`History.seeks`). So it
skips no records that an election gave up.

A reader of committed records (`reads_committed`) gets what is below the last stable offset, and leaves out the aborted
transactions that the answer names, as Kafka's consumer does: from their first offset to their producer's abort marker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heirlog.client import leaders
from heirlog.client.call import Send
from heirlog.client.errors import LogTruncated, OffsetOutOfRange
from heirlog.client.fetching import Fetched, PartitionFetch
from heirlog.client.offsets import LATEST, OffsetAt, TopicPartition
from heirlog.client.partition_reader import PartitionReader
from heirlog.env import Buffer
from heirlog.protocol.batch import BatchHeader, Record, decode_records, walk
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ListOffsetsRequest
from heirlog.protocol.primitives import Message
from heirlog.protocol.transaction_marker import read_marker
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import REQUEST_TIMEOUT_S, Client
from heirlog.sim.compaction_checker import number_in
from heirlog.sim.env import SimEnv
from heirlog.sim.history import History, Latest, Observed, Seek

NO_EPOCH = -1
NEVER = 2**63 - 1
"""The offset at which this reader stops."""
MAX_WAIT_MS = 500
MAX_BYTES = 1 << 20
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


@dataclass(slots=True)
class _Read:
    """One partition of one topic id: a topic that was recreated is another one."""

    name: str
    """As histories name it."""
    fetch: PartitionFetch
    reader: PartitionReader | None = None
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """(leader epoch, first offset) of what was read below the position."""


class Consumer(Client):
    """Reads every partition from the start, and requests the latest offset now and then.

    recreated: topics that are deleted and recreated. Their latest offsets are not requested: ListOffsets knows names
    only, so an answer may be about the other topic.
    """

    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topics: Sequence[str],
        history: History,
        *,
        interval_ms: int = 100,
        latest_interval_ms: int = 700,
        recreated: Collection[str] = (),
        reads_committed: bool = False,
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
        self.history = history
        self.isolation = READ_COMMITTED if reads_committed else READ_UNCOMMITTED
        if reads_committed:
            history.read_committed.add(name)
        self.interval_ms = interval_ms
        self.latest_interval_ms = latest_interval_ms
        self.recreated = recreated
        self._reads: dict[str, _Read] = {}
        """By name."""
        self._polls = 0
        """Answers so far."""
        self.last_of_key: dict[str, dict[int, int]] = {}
        """Per partition and key, the number of the last record that was read there."""

    @property
    def positions(self) -> Mapping[str, int]:
        """Per partition as histories name it: the next offset to read."""
        return {name: read.fetch.position for name, read in self._reads.items()}

    def start(self) -> None:
        self.find_topics(self._begin)

    def _begin(self) -> None:
        for topic, known in sorted(self.cluster.view.topics.items()):
            for index in sorted(known.partitions):
                self._fetch((topic, index))
                if topic not in self.recreated:
                    self._ask_latest((topic, index))

    def _fetch(self, partition: TopicPartition) -> None:
        if self.stopped:
            return
        if partition[0] not in self.cluster.view.topics:  # a broker that is behind answered last
            self.refresh_then(lambda: self._fetch(partition))
            return
        read = self._read_of(partition)
        reader = read.reader
        if reader is None:
            topic_id = self.cluster.view.topics[partition[0]].topic_id
            reader = read.reader = PartitionReader(self.cluster, read.fetch, topic_id, REQUEST_TIMEOUT_S)
        self.driver.run(
            reader.next_send(),
            lambda send: self._send(partition, read, reader, send),
            lambda _: self._gave_up(partition, read),
        )

    def _gave_up(self, partition: TopicPartition, read: _Read) -> None:
        """The reader had no leader for too long, or found another topic of this name."""
        read.reader = None
        self._later(lambda: self._fetch(partition))

    def _read_of(self, partition: TopicPartition) -> _Read:
        name = self.partition_name(*partition)
        found = self._reads.get(name)
        if found is None:
            found = self._reads[name] = _Read(name, self._fetch_from(partition, 0, NO_EPOCH))
        return found

    def _send(self, partition: TopicPartition, read: _Read, reader: PartitionReader, send: Send) -> None:
        channel = f"fetch-{partition[0]}-{partition[1]}"
        self.driver.send(send, channel, lambda got: self._fetched(partition, read, reader, got))

    def _fetched(self, partition: TopicPartition, read: _Read, reader: PartitionReader, response: Any) -> None:
        if isinstance(response, OSError):
            reader.failed(response)
            self._fetch(partition)
            return
        # this reader has no end to reach, so an answer without records is progress, too
        reader.reset_stall_timer()
        self._polls += 1
        position = read.fetch.position
        try:
            part = reader.answered(response)
        except LogTruncated as error:
            self._rewind(partition, read, error)
        except OffsetOutOfRange:
            # the leader cannot tell where its log diverges from what was read: read everything again
            read.epochs.clear()
            self._go_to(partition, read, 0)
        except KafkaError as error:
            if error.code is not ErrorCode.CORRUPT_MESSAGE:
                raise
            # the leader's only copy is damaged: another one may join the ISR, and lead
        else:
            if part is not None:
                self._take(read, position, part)
        self.env.call_later(self.interval_ms, lambda: self._fetch(partition))

    def _take(self, read: _Read, position: int, part: Fetched) -> None:
        aborted = _Aborted(part.aborted)
        for start, header in walk(part.records):
            if not read.epochs or read.epochs[-1][0] != header.leader_epoch:
                read.epochs.append((header.leader_epoch, position))
            if not aborted.leaves_out(part.records, start, header):
                for record in decode_records(part.records, start, header=header):
                    if record.offset >= position:
                        self._observe(read.name, record, header.leader_epoch)
            position = header.next_offset

    def _observe(self, partition: str, record: Record, leader_epoch: int) -> None:
        number = number_in(record)
        if number is None:
            return
        self.history.observed.append(Observed(partition, record.offset, number, leader_epoch, self.name, self._polls))
        if record.key is not None:
            self.last_of_key.setdefault(partition, {})[int(record.key)] = number

    def _rewind(self, partition: TopicPartition, read: _Read, error: LogTruncated) -> None:
        """The leader's log diverges from ours at the end of its records of that epoch, or of the next lower one."""
        epochs, end = read.epochs, error.offset
        while epochs and (epochs[-1][0] > error.end.leader_epoch or epochs[-1][1] >= error.end.end_offset):
            end = epochs.pop()[1]
        self._go_to(partition, read, min(end, error.end.end_offset))

    def _go_to(self, partition: TopicPartition, read: _Read, position: int) -> None:
        before = read.fetch.position
        last_epoch = read.epochs[-1][0] if read.epochs else NO_EPOCH
        read.fetch = self._fetch_from(partition, min(position, before), last_epoch)
        read.reader = None
        if position < before:
            self.history.seeks.append(Seek(read.name, self.name, self._polls + 1, position))

    def _fetch_from(self, partition: TopicPartition, position: int, last_epoch: int) -> PartitionFetch:
        return PartitionFetch(
            *partition,
            position,
            NEVER,
            isolation=self.isolation,
            max_bytes=MAX_BYTES,
            max_wait_ms=MAX_WAIT_MS,
            last_epoch=last_epoch,
        )

    def _ask_latest(self, partition: TopicPartition) -> None:
        if self.stopped:
            return
        if partition[0] not in self.cluster.view.topics:  # a broker that is behind answered last
            self.refresh_then(lambda: self._ask_latest(partition))
            return
        name, asked_epoch = self.partition_name(*partition), NO_EPOCH

        def sending(message: Message) -> None:
            nonlocal asked_epoch
            if isinstance(message, ListOffsetsRequest):
                # the leader answers because it is the current one in this epoch
                asked_epoch = message.topics[0].partitions[0].current_leader_epoch

        def answered(found: Mapping[TopicPartition, OffsetAt]) -> None:
            latest = self.history.latest if self.isolation == READ_UNCOMMITTED else self.history.latest_stable
            latest.append(Latest(name, found[partition].offset, asked_epoch, self.name))
            again()

        def again() -> None:
            self.env.call_later(self.latest_interval_ms, lambda: self._ask_latest(partition))

        call = leaders.list_offsets(self.cluster, {partition: LATEST}, REQUEST_TIMEOUT_S, isolation=self.isolation)
        self.driver.run(call, answered, lambda _: again(), sending)


class _Aborted:
    """Which batches of one answer a reader leaves out. aborted: producer id and first offset, by offset; of a reader of
    uncommitted records there are none, and only the control batches are left out.
    """

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._coming = list(reversed(aborted))
        self._producers: set[int] = set()

    def leaves_out(self, records: Buffer, start: int, header: BatchHeader) -> bool:
        """To be called for each batch, in order."""
        while self._coming and self._coming[-1][1] <= header.base_offset:
            self._producers.add(self._coming.pop()[0])
        if header.is_control:
            marker = read_marker(bytes(memoryview(records)[start : start + header.size]), header)
            if marker is not None and not marker.commit:
                self._producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._producers
