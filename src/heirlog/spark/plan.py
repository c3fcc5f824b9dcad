"""How much of each partition a batch takes, and which task reads what. Only arithmetic, the same as in Spark's source.

share        maxOffsetsPerTrigger is divided among the partitions in proportion to what each has waiting; a small
             one gets at least one record, so that it does not starve behind the large ones
split        a task per partition; a range above maxRecordsPerPartition is cut into equal parts, and if there are
             still fewer than minPartitions, the large ranges are cut in proportion to their size
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from heirlog.spark.offset_limits import TopicPartition


@dataclass(frozen=True, slots=True)
class Range:
    """What one task reads: offsets from start up to, not including, stop.

    last_epoch: leader epoch of the record before `start`, -1 unknown. topic_id: of the topic that was planned, None
    where the brokers have none.
    """

    topic: str
    partition: int
    start: int
    stop: int
    last_epoch: int = -1
    topic_id: bytes | None = None

    @property
    def size(self) -> int:
        return max(0, self.stop - self.start)


def share(
    limit: int, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """End offsets such that the ranges have about `limit` offsets. Each of `ends` has an entry in `begins`."""
    sizes = {partition: end - begins[partition] for partition, end in ends.items()}
    total = sum(size for size in sizes.values() if size > 0)
    if total <= 0:
        return dict(ends)
    shared = {}
    for partition, end in ends.items():
        size = sizes[partition]
        if size <= 0:
            shared[partition] = end
            continue
        part = limit * (size / total)
        offsets = math.ceil(part) if part < 1 else math.floor(part)
        shared[partition] = min(end, begins[partition] + offsets)
    return shared


def waiting(begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, end - begins.get(partition, 0)) for partition, end in ends.items())


def split(ranges: Sequence[Range], min_partitions: int | None = None, max_records: int | None = None) -> list[Range]:
    """Without empty ranges, and each cut as the two options ask."""
    cut: list[Range] = []
    for one in ranges:
        if one.size:
            cut += _equal_parts(one, math.ceil(one.size / max_records) if max_records is not None else 1)
    if min_partitions is None or len(cut) >= min_partitions:
        return cut
    total = sum(one.size for one in cut)
    whole = {one for one in cut if _parts(one.size, total, min_partitions) == 1}
    # ranges that are not divided do not count for the proportions of the others; otherwise there would be too few parts
    total -= sum(one.size for one in whole)
    wanted = max(min_partitions - len(whole), 1)
    parts: list[Range] = []
    for one in cut:
        parts += [one] if one in whole else _equal_parts(one, _parts(one.size, total, wanted))
    return parts


def _parts(size: int, total: int, wanted: int) -> int:
    # half up, as Java rounds
    return max(math.floor(size / total * wanted + 0.5), 1)


def cut_at(one: Range, offsets: Sequence[int]) -> list[Range]:
    """The range in parts that begin at its start and at these offsets, which are sorted; without empty parts."""
    places = sorted({one.start, one.stop, *(offset for offset in offsets if one.start < offset < one.stop)})
    return [
        # the epoch of the record before a later part is not known yet
        replace(one, start=start, stop=stop, last_epoch=one.last_epoch if start == one.start else -1)
        for start, stop in pairwise(places)
    ]


def _equal_parts(one: Range, parts: int) -> list[Range]:
    cut = []
    start, left = one.start, one.size
    # with more parts than records some parts would be empty
    parts = min(parts, one.size)
    for index in range(parts):
        size = left // (parts - index)
        left -= size
        if size:
            # the epoch of the record before a later part is not known yet
            epoch = one.last_epoch if start == one.start else -1
            cut.append(replace(one, start=start, stop=start + size, last_epoch=epoch))
        start += size
    return cut
