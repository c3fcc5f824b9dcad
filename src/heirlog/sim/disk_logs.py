"""What a disk holds of a replica, read from the disk itself: also of a node that is down.

Batches count as in recovery after an unclean stop: in order, whole, and with a matching CRC. The first batch that is
not valid ends the log.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from heirlog.protocol.batch import InvalidBatch, crc_matches, walk
from heirlog.protocol.types import Uuid
from heirlog.sim.disk import SimDisk
from heirlog.storage.identity import PARTITION_METADATA, parse_partition_metadata

LOG_SUFFIX = ".log"


@dataclass(slots=True)
class EpochsOnDisk:
    entries: list[tuple[int, int]] = field(default_factory=list)
    """(leader epoch, first offset), ascending."""

    def epoch_for_offset(self, offset: int) -> int:
        """-1 below the first record."""
        return next((epoch for epoch, start in reversed(self.entries) if start <= offset), -1)


@dataclass(slots=True)
class LogOnDisk:
    """A `heirlog.sim.invariants.LogView`."""

    log_start_offset: int = 0
    log_end_offset: int = 0
    epochs: EpochsOnDisk = field(default_factory=EpochsOnDisk)


def log_on_disk(
    disk: SimDisk, directories: Collection[str], topic: str, partition: int, topic_id: Uuid
) -> LogOnDisk | None:
    """None: there is no log of it (one that was moved aside or is being deleted does not count)."""
    for directory in directories:
        path = f"{directory}/{topic}-{partition}"
        files = dict(disk.contents(path))
        metadata = files.get(f"{path}/{PARTITION_METADATA}")
        if metadata is not None and parse_partition_metadata(bytes(metadata)) == topic_id:
            return _read([bytes(data) for name, data in sorted(files.items()) if name.endswith(LOG_SUFFIX)])
    return None


def _read(segments: list[bytes]) -> LogOnDisk:
    held, begun = LogOnDisk(), False
    for content in segments:
        try:
            for position, header in walk(content, partial_tail=True):
                if not crc_matches(content, position, header):
                    return held
                if not begun:
                    held.log_start_offset, begun = header.base_offset, True
                if not held.epochs.entries or held.epochs.entries[-1][0] != header.leader_epoch:
                    held.epochs.entries.append((header.leader_epoch, header.base_offset))
                held.log_end_offset = header.next_offset
        except InvalidBatch:
            return held
    return held
