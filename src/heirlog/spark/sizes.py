"""Tasks of about equal bytes (`maxBytesPerPartition`): the sizes of a few batches say where the bytes of a range are.

Offsets say nothing about bytes: one partition has records of a kilobyte and another of ten, a topic grew a field last
week, and a compacted log has gaps. So each range is divided into sections, and the batch at the beginning of each is
fetched: its size, divided by the offsets that it covers, counts for its section. Where two neighbours differ, so that
bytes may be anywhere between them, the section is halved, until what is not known is a small part of a task: after a
change of the producers the large records may be a hundredth of the offsets and half of the bytes. A range is then cut
where the sum of bytes says. It is an estimate, from at most PROBES_MAX small requests for a plan, or one for each range
if there are more.

The batch of an offset comes whole, so a range can be cut anywhere. Only what was planned is affected, never what is
read: offsets that are gone, or a partition that does not answer, count as the others do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import cast

from heirlog.blocking import Client
from heirlog.env import Buffer
from heirlog.protocol.batch import InvalidBatch, walk
from heirlog.protocol.errors import KafkaError
from heirlog.spark import resolve
from heirlog.spark.options import Options
from heirlog.spark.plan import Range, cut_at, split

PROBES_MAX = 512
PROBES_EACH = 16
HALVED_EACH = 32
"""Sections of a range, at most."""
TOLERATED = 1 / 4
"""Of a task's bytes: so many may be on the other side of a section that is not halved."""
LEAST_DENSITY = 1e-6
"""Bytes for each offset, as in a log of which compaction has left a batch in a hundred million offsets."""
ONE_BATCH_BYTES = 1
"""A broker gives the first batch complete, however large it is."""

_log = logging.getLogger("heirlog.spark")


def tasks(options: Options, ranges: Sequence[Range]) -> list[Range]:
    """What each task reads. Raises KafkaError, OSError."""
    if options.max_bytes is None:
        return split(ranges, options.min_partitions, options.max_records)
    filled = [one for one in ranges if one.size]
    if not filled:
        return []
    sections = resolve.ask(options, lambda client: _Probes(client, options).sections(filled))
    cut = split_by_bytes(sections, options.max_bytes, options.min_partitions)
    return split(cut, None, options.max_records)


@dataclass(frozen=True, slots=True)
class Sections:
    """A range in parts, and how many bytes an offset takes in each; None where that is not known."""

    range: Range
    begins: tuple[int, ...]
    """Offset of the first record of each part."""
    density: tuple[float | None, ...]

    @property
    def lengths(self) -> list[int]:
        return [end - begin for begin, end in pairwise((*self.begins, self.range.stop))]


def split_by_bytes(sections: Sequence[Sections], max_bytes: int, min_partitions: int | None = None) -> list[Range]:
    """Each range in parts of equal bytes: at most about max_bytes, and min_partitions parts together."""
    sums = _all_sums(sections)
    target = _target(sums, max_bytes, min_partitions)
    return [part for one, of in zip(sections, sums, strict=True) for part in _equal_bytes(one, of, target)]


def _target(sums: Sequence[list[float]], max_bytes: int, min_partitions: int | None) -> float:
    """Bytes of a task."""
    return min(max_bytes, sum(of[-1] for of in sums) / min_partitions) if min_partitions else float(max_bytes)


def _all_sums(sections: Sequence[Sections]) -> list[list[float]]:
    """Of each range: bytes before each section, and of all."""
    known = [density for one in sections for density in one.density if density is not None]
    assumed = sum(known) / len(known) if known else 1.0
    return [
        [
            0.0,
            *accumulate(
                # never nothing: what has no length cannot be cut
                length * max(assumed if density is None else density, LEAST_DENSITY)
                for length, density in zip(one.lengths, one.density, strict=True)
            ),
        ]
        for one in sections
    ]


def _equal_bytes(one: Sections, sums: list[float], target: float) -> list[Range]:
    parts = max(1, min(one.range.size, -int(-sums[-1] // target)))
    lengths, offsets, section = one.lengths, [], 0
    for number in range(1, parts):
        wanted = sums[-1] * number / parts
        while sums[section + 1] < wanted:
            section += 1
        within = (wanted - sums[section]) / (sums[section + 1] - sums[section])
        offsets.append(one.begins[section] + round(within * lengths[section]))
    return cut_at(one.range, offsets)


def _doubts(known: Mapping[int, float | None]) -> Iterator[tuple[float, int, int]]:
    """Of each section that can be halved: bytes that may be in its other half, and its ends."""
    for begin, end in pairwise(sorted(known)):
        first, second = known[begin], known[end]
        if first is not None and second is not None and end - begin > 1:
            yield abs(second - first) * (end - begin), begin, end


class _Probes:
    """Asks for the batches of a plan."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options

    def sections(self, ranges: Sequence[Range]) -> list[Sections]:
        """Raises OSError."""
        each = max(1, min(PROBES_EACH, PROBES_MAX // len(ranges)))
        found = [self._equal(one, min(each, one.size)) for one in ranges]
        assert self._options.max_bytes is not None
        tolerated = TOLERATED * _target(_all_sums(found), self._options.max_bytes, self._options.min_partitions)
        left = min(HALVED_EACH, max(0, PROBES_MAX // len(ranges) - each))
        return [self._halved(one, left, tolerated) for one in found]

    def _equal(self, one: Range, count: int) -> Sections:
        begins = tuple(one.start + one.size * number // count for number in range(count))
        return Sections(one, begins, tuple(self._density(one, at) for at in begins))

    def _halved(self, one: Sections, left: int, tolerated: float) -> Sections:
        """With more sections where the density changes, `left` at most."""
        known = dict(zip(one.begins, one.density, strict=True))
        last = one.range.stop - 1
        if left and last not in known:
            known[last] = self._density(one.range, last)
            left -= 1
        for _ in range(left):
            doubt, begin, end = max(_doubts(known), default=(0.0, 0, 0))
            if doubt <= tolerated:
                break
            middle = (begin + end) // 2
            known[middle] = self._density(one.range, middle)
        return Sections(one.range, tuple(sorted(known)), tuple(known[at] for at in sorted(known)))

    def _density(self, one: Range, offset: int) -> float | None:
        """Bytes per offset at this offset."""
        try:
            data = self._client.fetch_at(
                one.topic,
                one.partition,
                offset,
                isolation=self._options.isolation,
                max_bytes=ONE_BATCH_BYTES,
                max_wait_ms=0,
            )
            _, first = next(iter(walk(cast(Buffer, data.records or b""), partial_tail=True)), (0, None))
        except (KafkaError, InvalidBatch) as error:
            _log.info("the size of %s-%d at offset %d is not known: %s", one.topic, one.partition, offset, error)
            return None
        # of a compacted log the batch may begin far behind the offset
        return None if first is None else first.size / (first.next_offset - min(offset, first.base_offset))
