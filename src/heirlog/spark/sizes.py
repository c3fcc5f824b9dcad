"""Tasks of about equal bytes (`maxBytesPerPartition`): the sizes of a few batches say where the bytes of a range are.

Offsets say nothing about bytes: one partition has records of a kilobyte and another of ten, a topic grew a field last
week, and a compacted log has gaps. So each range is divided into sections, and the batch at the beginning of each is
fetched: its size, divided by the offsets that it covers, counts for its section. A range is then cut where the sum of
bytes says. It is an estimate, from at most PROBES_MAX small requests for a plan.

The batch of an offset comes whole, so a range can be cut anywhere. Only what was planned is affected, never what is
read: offsets that are gone, or a partition that does not answer, count as the others do.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
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
    each = max(1, min(PROBES_EACH, PROBES_MAX // max(1, len(filled))))
    sections = resolve.ask(options, lambda client: _sections(client, filled, each, options.isolation))
    cut = split_by_bytes(sections, options.max_bytes, options.min_partitions)
    return split(cut, None, options.max_records)


@dataclass(frozen=True, slots=True)
class Sections:
    """A range in parts of equal length, and how many bytes an offset takes in each; None where that is not known."""

    range: Range
    density: tuple[float | None, ...]


def split_by_bytes(sections: Sequence[Sections], max_bytes: int, min_partitions: int | None = None) -> list[Range]:
    """Each range in parts of equal bytes: at most about max_bytes, and min_partitions parts together."""
    known = [density for one in sections for density in one.density if density is not None]
    assumed = sum(known) / len(known) if known else 1.0
    sums = [_sums(one, assumed) for one in sections]
    target = float(max_bytes)
    if min_partitions is not None:
        target = min(target, sum(of[-1] for of in sums) / min_partitions)
    return [part for one, of in zip(sections, sums, strict=True) for part in _equal_bytes(one.range, of, target)]


def _sums(sections: Sections, assumed: float) -> list[float]:
    """Bytes before each section, and of all."""
    length = sections.range.size / len(sections.density)
    return [0.0, *accumulate(length * (assumed if one is None else one) for one in sections.density)]


def _equal_bytes(one: Range, sums: list[float], target: float) -> list[Range]:
    parts = max(1, min(one.size, -int(-sums[-1] // target) if target else one.size))
    length = one.size / (len(sums) - 1)
    offsets, section = [], 0
    for number in range(1, parts):
        wanted = sums[-1] * number / parts
        while sums[section + 1] < wanted:
            section += 1
        within = (wanted - sums[section]) / (sums[section + 1] - sums[section])
        offsets.append(one.start + round((section + within) * length))
    return cut_at(one, offsets)


def _sections(client: Client, ranges: Sequence[Range], each: int, isolation: int) -> list[Sections]:
    return [
        Sections(one, tuple(_density(client, one, at, isolation) for at in _beginnings(one, min(each, one.size))))
        for one in ranges
    ]


def _beginnings(one: Range, count: int) -> list[int]:
    return [one.start + one.size * number // count for number in range(count)]


def _density(client: Client, one: Range, offset: int, isolation: int) -> float | None:
    """Bytes per offset at this offset."""
    try:
        data = client.fetch_at(
            one.topic, one.partition, offset, isolation=isolation, max_bytes=ONE_BATCH_BYTES, max_wait_ms=0
        )
        _, first = next(iter(walk(cast(Buffer, data.records or b""), partial_tail=True)), (0, None))
    except (KafkaError, InvalidBatch) as error:
        _log.info("the size of %s-%d at offset %d is not known: %s", one.topic, one.partition, offset, error)
        return None
    # of a compacted log the batch may begin far behind the offset
    return None if first is None else first.size / (first.next_offset - min(offset, first.base_offset))
