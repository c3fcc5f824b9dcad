"""What the controllers committed, recorded by the simulator.

After each event of a controller the newly committed batches are read from its metadata log, and applied to an image of
our own. This image never loses what was committed: when a controller comes back, its log is compared with the batches
that were seen before (R1).

Each record is handed to the checker with the state before it, so that a rule can be judged at exactly the record that
touches a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from heirlog.controller.seeding import image_of
from heirlog.metadata.apply import apply
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.metadata_record import decode_record
from heirlog.raft.metadata_log import MetadataLog
from heirlog.sim.invariants import r1_committed_metadata_stays

READ_BYTES = 1 << 20


class QuorumView(Protocol):
    """What is read of `heirlog.raft.quorum.Quorum`."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def log(self) -> MetadataLog | None: ...


class CommittedMetadata:
    """Fills `image`. on_record(record, offset, journal): after each committed record was applied to it."""

    def __init__(
        self,
        image: Image,
        on_record: Callable[[Any, int, ImageJournal], None],
        on_batch_end: Callable[[], None],
        broken: Callable[[str, str], None],
    ) -> None:
        self.image = image
        self.end = 0
        """Everything below this offset was committed once."""
        self._on_record = on_record
        self._on_batch_end = on_batch_end
        self._broken = broken
        self._batches: list[tuple[int, int]] = []
        self._known_log: MetadataLog | None = None

    def observe(self, quorum: QuorumView) -> None:
        """After an event of the controller that leads (or did) this quorum."""
        log = quorum.log
        if log is None:
            return
        if log is not self._known_log:
            self._known_log = log
            self._compare(log)
        if quorum.high_watermark > self.end:
            self._follow(log, quorum.high_watermark)

    def adopt(self, log: MetadataLog) -> None:
        """An operator has seeded a lost controller with this log. Records that no copy held count as never committed.
        The records that the seeding appended count as committed, and are not checked.
        """
        self.image = image_of(log)
        self._batches = list(_batches_of(log))
        self.end = log.end_offset

    def _compare(self, log: MetadataLog) -> None:
        """A controller has opened its log: check that it has everything that was committed."""
        now = dict(_batches_of(log))
        sentence = r1_committed_metadata_stays(self._batches, now, log.start_offset, log.end_offset)
        if sentence is not None:
            self._broken("R1", sentence)

    def _follow(self, log: MetadataLog, high_watermark: int) -> None:
        while self.end < high_watermark:
            content = log.read_bytes(self.end, READ_BYTES, high_watermark)
            for position, header in walk(content):
                if header.base_offset < self.end:
                    continue
                self._batches.append((header.base_offset, header.crc))
                if not header.is_control:
                    for record in decode_records(content, position):
                        assert record.value is not None
                        self._apply(decode_record(record.value), record.offset, header.leader_epoch)
                self.image.offset, self.image.epoch = header.last_offset, header.leader_epoch
                self.end = header.next_offset
                # one by one: the next batch may change values that are used to check this one, such as min ISR
                self._on_batch_end()

    def _apply(self, record: Any, offset: int, epoch: int) -> None:
        journal = self.image.journal()
        apply(self.image, record, offset, epoch, journal)
        self._on_record(record, offset, journal)


def _batches_of(log: MetadataLog) -> Iterator[tuple[int, int]]:
    """Base offset and CRC of each."""
    offset = log.start_offset
    while offset < log.end_offset:
        for _, header in walk(log.read_bytes(offset, READ_BYTES, log.end_offset)):
            yield header.base_offset, header.crc
            offset = header.next_offset
