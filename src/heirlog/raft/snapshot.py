"""Snapshots: the committed state at one offset, as records, so that the log before it may be deleted (KIP-630).

    <20-digit end offset>-<10-digit epoch>.checkpoint

The end offset is exclusive: the snapshot holds the effect of every record below it; the epoch is that of the record
just below it. Inside, offsets start at 0:

    control batch {SnapshotHeader, KRaftVersion, KRaftVoters}   data batches   control batch {SnapshotFooter}

The voters are in every snapshot from kraft.version 1 on, because the log batch that named them may be deleted. The
footer marks a complete snapshot; a file without it, or with a batch whose CRC is wrong, is not loaded.

    NAME.part while written or downloaded -> flush -> rename -> sync the directory: only then it counts
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from heirlog.env import File, Files
from heirlog.protocol.batch import (
    HEADER_SIZE,
    InvalidBatch,
    crc_matches,
    decode_records,
    encode_batch,
    read_header,
    walk,
)
from heirlog.protocol.metadata_record import decode_record
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord
from heirlog.raft import control
from heirlog.raft.control import Voter, decode_controls, encode_controls
from heirlog.raft.values import encode_value
from heirlog.storage.atomic import read_file

PART = ".part"
RECORDS_PER_BATCH = 1_000
BYTES_PER_BATCH = 1 << 20
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


BOOTSTRAP = SnapshotId(0, 0)
"""What `storage format` writes: the first voters, and no metadata."""


class InvalidSnapshot(ValueError):
    """The file is incomplete or damaged."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: SnapshotId
    last_contained_log_timestamp_ms: int
    voters: tuple[Voter, ...]
    """Empty at kraft.version 0, and in `bootstrap.checkpoint`, which is not a snapshot of a log."""
    data: bytes
    """The whole file, checked."""

    def records(self) -> Iterator[Message]:
        """Decodes one record at a time: a snapshot may be large."""
        for position, header in walk(self.data):
            if not header.is_control:
                for record in decode_records(self.data, position):
                    assert record.value is not None, "a checked snapshot has values"
                    yield decode_record(record.value)


def parse_name(name: str) -> SnapshotId | None:
    match = _NAME.fullmatch(name)
    return SnapshotId(int(match[1]), int(match[2])) if match else None


def list_snapshots(files: Files, directory: str) -> list[SnapshotId]:
    """Oldest first."""
    found = (parse_name(name) for name in files.list(directory))
    return sorted(snapshot_id for snapshot_id in found if snapshot_id is not None)


def encode(
    records: Iterable[Message], epoch: int, last_contained_log_timestamp_ms: int, voters: Iterable[Voter]
) -> Iterator[bytearray]:
    """The file, batch by batch. Without voters the first batch has only the header, as in `bootstrap.checkpoint`.

    So it has at kraft.version 0, at which voters are not part of the log.
    """
    wall_ms = last_contained_log_timestamp_ms
    head: list[Message] = [control.snapshot_header(wall_ms)]
    known = tuple(voters)
    if control.kraft_version_of(known):
        head += [control.kraft_version(), control.voters_record(known)]
    yield encode_controls(head, 0, epoch, wall_ms)
    offset = len(head)
    for values in _chunks(records):
        yield encode_batch([(None, value, (), wall_ms) for value in values], offset, epoch)
        offset += len(values)
    yield encode_controls([SnapshotFooterRecord()], offset, epoch, wall_ms)


def _chunks(records: Iterable[Message]) -> Iterator[list[bytes]]:
    values: list[bytes] = []
    size = 0
    for record in records:
        value = encode_value(record)
        if values and (len(values) >= RECORDS_PER_BATCH or size + len(value) > BYTES_PER_BATCH):
            yield values
            values, size = [], 0
        values.append(value)
        size += len(value)
    if values:
        yield values


def check(snapshot_id: SnapshotId, data: bytes) -> Snapshot:
    """Raises InvalidSnapshot unless every batch is complete, and a header and a footer enclose them."""
    timestamp_ms: int | None = None
    voters: tuple[Voter, ...] = ()
    complete = False
    expected = 0
    try:
        for position, header in walk(data):
            if complete:
                raise InvalidSnapshot("bytes after the footer")
            if header.base_offset != expected:
                raise InvalidSnapshot(f"the batch at byte {position} leaves a gap")
            expected = header.next_offset
            if not crc_matches(data, position, header):
                raise InvalidSnapshot(f"the batch at byte {position} has a wrong CRC")
            if not header.is_control:
                continue
            for record in decode_controls(data, position):
                if isinstance(record, SnapshotHeaderRecord):
                    timestamp_ms = record.last_contained_log_timestamp
                elif isinstance(record, VotersRecord):
                    voters = control.read_voters(record)
                elif isinstance(record, SnapshotFooterRecord):
                    complete = True
    except InvalidSnapshot:
        raise
    except (InvalidBatch, ValueError) as error:
        raise InvalidSnapshot(str(error)) from error
    if timestamp_ms is None or not complete:
        raise InvalidSnapshot("no footer" if timestamp_ms is not None else "no header")
    return Snapshot(snapshot_id, timestamp_ms, voters, data)


def read_last_contained_ms(file: File) -> int:
    """The timestamp in the header of a snapshot. Raises OSError, InvalidSnapshot; reads the first batch only."""
    try:
        size = read_header(file.pread(HEADER_SIZE, 0)).size
        first = next(decode_controls(file.pread(size, 0), 0), None)
    except (InvalidBatch, ValueError) as error:
        raise InvalidSnapshot(str(error)) from error
    if not isinstance(first, SnapshotHeaderRecord):
        raise InvalidSnapshot("no header")
    return first.last_contained_log_timestamp


def load(files: Files, directory: str, snapshot_id: SnapshotId) -> Snapshot:
    """Raises InvalidSnapshot."""
    data = read_file(files, f"{directory}/{snapshot_id.file_name}")
    if data is None:
        raise InvalidSnapshot("the file is gone")
    return check(snapshot_id, data)
