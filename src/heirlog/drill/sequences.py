"""What was written and read in a long drill, in memory that does not grow with the number of records.

Every record carries its producer, its partition and a sequence number of its own there: 0, 1, 2, ... without a gap. So
both sides need one number per producer and partition:

    acknowledged   the next sequence to be acknowledged; anything else was acknowledged out of order
    read           the next sequence to be read. A greater one is a gap. A smaller one has one of these causes:

        an offset that was read before        read again: only a consumer group may do that
        a new offset, inside a former gap     out of order
        a new offset, never missed            doubled

A compacted topic loses older values by design, so gaps are expected there; `LastValues` checks that the last value of
each key survives. A topic with retention may begin at any sequence, and has no gap after it.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from struct import Struct
from typing import NamedTuple

_HEAD = Struct(">HHQ")
_CRC = Struct(">I")
_FILLER = Random(1).randbytes(1 << 16)
"""Values are slices of it: they differ, and can hardly be compressed."""
GAPS_KEPT = 1_000
"""Per producer and partition. A reader with more gaps than this has failed, and must not fill the memory."""

Partition = tuple[str, int]


class Id(NamedTuple):
    """Where a record belongs: the `sequence`-th that `producer` wrote to `partition`."""

    producer: int
    partition: int
    sequence: int


def encode(record: Id, size: int) -> bytes:
    """A value of at least `size` bytes (64 KiB at most) in which every change is detected: id, filler, checksum."""
    filler_bytes = max(0, size - _HEAD.size - _CRC.size)
    start = record.sequence * 4_099 % (len(_FILLER) - filler_bytes)
    body = _HEAD.pack(*record) + _FILLER[start : start + filler_bytes]
    return body + _CRC.pack(zlib.crc32(body))


def decode(value: bytes | None) -> Id | None:
    """None if this is not what a producer wrote."""
    if value is None or len(value) < _HEAD.size + _CRC.size:
        return None
    body, checksum = value[: -_CRC.size], value[-_CRC.size :]
    if _CRC.pack(zlib.crc32(body)) != checksum:
        return None
    return Id(*_HEAD.unpack_from(body))


@dataclass(slots=True)
class Acknowledgements:
    """The acknowledged records."""

    count: int = 0
    out_of_order: int = 0
    doubled: int = 0
    """Two records acknowledged at one offset, or at decreasing offsets."""
    ends: dict[tuple[str, Id], int] = field(default_factory=dict)
    """Per topic, producer and partition (an Id of sequence 0): the next sequence."""
    _offsets: dict[tuple[str, Id], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, topic: str, record: Id, offset: int | None) -> None:
        key = (topic, record._replace(sequence=0))
        with self._lock:
            self.count += 1
            if record.sequence != self.ends.get(key, 0):
                self.out_of_order += 1
            self.ends[key] = record.sequence + 1
            # a repeat whose offset the broker does not know any more: librdkafka reports -1, its Python client None
            if offset is not None and offset >= 0:
                if offset <= self._offsets.get(key, -1):
                    self.doubled += 1
                self._offsets[key] = offset

    def of(self, topic: str) -> dict[Id, int]:
        """The next sequence per producer and partition of one topic."""
        with self._lock:
            return {one: end for (name, one), end in self.ends.items() if name == topic}


@dataclass(slots=True)
class Reading:
    """What one reader, or one consumer group as a whole, has read of one topic.

    repeats: offsets may come again (a group after a rebalance). gaps: sequences may be missing (compaction). mid: the
    first sequence that is read may be any (retention).
    """

    topic: str
    repeats: bool = False
    gaps: bool = False
    mid: bool = False
    read: int = 0
    read_again: int = 0
    missing: int = 0
    doubled: int = 0
    out_of_order: int = 0
    wrong_bytes: int = 0
    positions: dict[int, int] = field(default_factory=dict)
    """Per partition, one past the highest offset that was read."""
    _next: dict[Id, int] = field(default_factory=dict)
    _missed: dict[Id, list[range]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, partition: int, offset: int, record: Id | None) -> None:
        """record: None for bytes that no producer wrote."""
        with self._lock:
            self._add(partition, offset, record)

    def _add(self, partition: int, offset: int, record: Id | None) -> None:
        self.read += 1
        before = self.positions.get(partition, 0)
        self.positions[partition] = max(before, offset + 1)
        if record is None or record.partition != partition:
            self.wrong_bytes += 1
        elif offset < before:
            self.read_again += 1
            if not self.repeats:
                self.out_of_order += 1
        else:
            self._in_order(record)

    def _in_order(self, record: Id) -> None:
        key = record._replace(sequence=0)
        expected = self._next.get(key, record.sequence if self.mid else 0)
        if record.sequence < expected:
            self._late(key, record.sequence)
            return
        if record.sequence > expected and not self.gaps:
            self.missing += record.sequence - expected
            missed = self._missed.setdefault(key, [])
            if len(missed) < GAPS_KEPT:
                missed.append(range(expected, record.sequence))
        self._next[key] = record.sequence + 1

    def _late(self, key: Id, sequence: int) -> None:
        for index, gap in enumerate(self._missed.get(key, ())):
            if sequence in gap:
                self.out_of_order += 1
                self.missing -= 1
                self._missed[key][index : index + 1] = [range(gap.start, sequence), range(sequence + 1, gap.stop)]
                return
        self.doubled += 1

    def unread(self, acknowledged: Mapping[Id, int]) -> int:
        """Acknowledged records beyond the last one that was read, of producers and partitions."""
        with self._lock:
            return sum(max(0, end - self._next.get(key, 0)) for key, end in acknowledged.items())


@dataclass(slots=True)
class LastValues:
    """Per key, the last record that was acknowledged, and what a reader of the whole compacted topic found last."""

    acknowledged: dict[bytes, int | None] = field(default_factory=dict)
    """None: a tombstone."""
    found: dict[bytes, int | None] = field(default_factory=dict)

    def lost(self) -> int:
        """Keys for which the last value that a reader found is not the last acknowledged one."""
        return sum(self.found.get(key) != sequence for key, sequence in self.acknowledged.items())
