"""A copy of the metadata log, read batch by batch as it is on disk.

    the oldest snapshot that the log continues  ->  its records, as the state at its end
    the log from there on                       ->  each batch with its records

Nothing is repaired or opened as a node would: Apache Kafka's log and heirlog's are read alike. Reading ends at the
first batch that is damaged or does not follow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from heirlog.protocol.batch import BatchHeader, decode_records
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.metadata_record import decode_record
from heirlog.raft.snapshot import InvalidSnapshot, Snapshot, SnapshotId, check, parse_name
from heirlog.spark.audit.log_reader import LogReader, segment_names


@dataclass(frozen=True, slots=True)
class BatchOfMetadata:
    """One data batch: what becomes visible together, except in a metadata transaction."""

    base_offset: int
    epoch: int
    timestamp_ms: int
    records: list[tuple[int, Any]]
    """(offset, record); a record that this version cannot decode is left out."""


class MetadataLogFiles:
    """A `__cluster_metadata-0` directory."""

    def __init__(self, path: str) -> None:
        self.path = path
        names = os.listdir(path)
        self._segments = segment_names(self.path)
        self.snapshots = sorted(found for found in map(parse_name, names) if found is not None)
        self.damaged_snapshots: dict[str, str] = {}
        """File name → why it cannot be read, as far as they were tried."""

    def check_snapshots(self) -> None:
        """Fill `damaged_snapshots`. Raises OSError."""
        for snapshot_id in self.snapshots:
            self._load(snapshot_id)

    def base(self) -> Snapshot | None:
        """The oldest snapshot that the log continues; None if the log begins at 0. Raises OSError."""
        start = int(self._segments[0][:20]) if self._segments else 0
        if start == 0 and self._segments and os.path.getsize(f"{self.path}/{self._segments[0]}"):
            return None
        for snapshot_id in self.snapshots:
            if snapshot_id.end_offset >= max(start, 1):
                found = self._load(snapshot_id)
                if found is not None:
                    return found
        return None

    def _load(self, snapshot_id: SnapshotId) -> Snapshot | None:
        with open(f"{self.path}/{snapshot_id.file_name}", "rb") as file:
            try:
                return check(snapshot_id, file.read())
            except (InvalidSnapshot, KafkaError) as error:
                self.damaged_snapshots[snapshot_id.file_name] = str(error)
                return None

    def batches(self, from_offset: int) -> Iterator[BatchOfMetadata]:
        """The data batches at and after an offset. Raises OSError."""
        for header, data in LogReader(self.path).batches():
            if header.next_offset > from_offset and not header.is_control:
                yield _decoded(header, data)


def _decoded(header: BatchHeader, data: bytes) -> BatchOfMetadata:
    records: list[tuple[int, Any]] = []
    try:
        for record in decode_records(data):
            try:
                records.append((record.offset, decode_record(record.value or b"")))
            except (KafkaError, ValueError):
                continue  # of a version that this one does not know
    except (KafkaError, ValueError):
        pass
    return BatchOfMetadata(header.base_offset, header.leader_epoch, header.max_timestamp, records)
