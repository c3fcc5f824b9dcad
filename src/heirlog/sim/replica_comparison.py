"""What replicas hold below their high watermarks, compared batch by batch (T6).

The first replica that is seen with a batch below its high watermark determines what the others must have there. Each
batch of each replica is read once; a replica that has truncated is read again from there. After a lossy-basis election,
a replica is ignored until it has joined the new lineage, because its log may still diverge below its high watermark.

Compacted topics are left out, because replicas compact at different moments. Readers check what must survive there
(`heirlog.sim.compaction_checker`, and inconsistent offsets).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.protocol.batch import walk
from heirlog.sim.invariants import t6_batch_is_the_same
from heirlog.sim.partition_model import PartitionModel

READ_BYTES = 1 << 20


@dataclass(slots=True)
class _Read:
    partition: Partition
    """Of one incarnation: the next one has to be read from the beginning."""
    end: int


@dataclass(slots=True)
class ReplicaComparison:
    """Of one partition."""

    _batches: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By base offset: leader epoch and CRC."""
    _read: dict[int, _Read] = field(default_factory=dict)
    """By broker."""

    def lineage_begins(self, start: int) -> None:
        """Offsets from `start` on are assigned again."""
        self._batches = {offset: batch for offset, batch in self._batches.items() if offset < start}
        for read in self._read.values():
            read.end = min(read.end, start)

    def compare(self, broker: int, partition: Partition, model: PartitionModel) -> str | None:
        """The sentence of T6, if a batch that was not compared yet breaks it."""
        log = partition.log
        if log.config.compact or not _has_joined(partition, model):
            return None
        read = self._read.get(broker)
        if read is None or read.partition is not partition:
            read = self._read[broker] = _Read(partition, log.log_start_offset)
        read.end = max(min(read.end, log.log_end_offset), log.log_start_offset)
        while read.end < partition.high_watermark:
            try:
                sentence, end = self._compare_from(broker, partition, read.end)
            except OSError:
                return None  # the disk is broken, or the node is stopping and has closed its files
            if sentence is not None or end == read.end:
                return sentence
            read.end = end
        return None

    def _compare_from(self, broker: int, partition: Partition, start: int) -> tuple[str | None, int]:
        result = partition.log.read(start, READ_BYTES, partition.high_watermark)
        end = start
        for region in result.regions:
            for _, header in walk(region.read()):
                now = (header.leader_epoch, header.crc)
                before = self._batches.setdefault(header.base_offset, now)
                sentence = t6_batch_is_the_same(broker, (header.base_offset, *before), (header.base_offset, *now))
                if sentence is not None:
                    return sentence, end
                end = header.next_offset
        return None, end


def _has_joined(partition: Partition, model: PartitionModel) -> bool:
    if model.begins_at_epoch is not None:
        return False
    if model.began_at_epoch < 0 or partition.role is ReplicaRole.LEADER:
        return partition.leader_epoch >= model.began_at_epoch
    return (
        partition.leader_epoch >= model.began_at_epoch
        and partition.high_watermark <= model.true.offset
        and model.common_end(partition.log) >= partition.high_watermark
    )
