"""Reads the log for a share fetch: which batches there are, by their headers, and the bytes that are sent.

Records stay opaque. The log names regions of files; their batches are walked header by header, only as far as the fetch
can acquire records. The answer then gets the part of the regions that holds acquired records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from heirlog.broker.share_partitions.acquisition import AcquiredRecords, FetchedBatch
from heirlog.client.aborted import AbortedTransactions
from heirlog.env import Region
from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, read_header


class ReadBatch(NamedTuple):
    region: Region
    position: int
    """In the file."""
    header: BatchHeader


def batches_of(regions: Iterable[Region], last_wanted: int) -> Iterator[ReadBatch]:
    """The batches up to the one that holds `last_wanted`. Raises InvalidBatch, OSError."""
    for region in regions:
        position, end = region.position, region.position + region.size
        while position < end:
            header = read_header(region.file.pread(HEADER_SIZE, position))
            yield ReadBatch(region, position, header)
            if header.last_offset >= last_wanted:
                return
            position += header.size


def as_fetched(batches: Sequence[ReadBatch], aborted: AbortedTransactions | None) -> list[FetchedBatch]:
    """`aborted`: of a group that reads committed records only; it never gets transaction markers either.

    Raises InvalidBatch, OSError.
    """
    fetched = []
    for region, position, header in batches:
        is_skipped = False
        if aborted is not None:
            records = region.file.pread(header.size, position) if header.is_control else b""
            is_skipped = aborted.skips(records, 0, header)
        fetched.append(FetchedBatch(header.base_offset, header.last_offset, is_skipped))
    return fetched


def regions_with(batches: Sequence[ReadBatch], acquired: Sequence[AcquiredRecords]) -> list[Region]:
    """The regions of the batches from the first to the last that has acquired records."""
    first, last = acquired[0].first, acquired[-1].last
    result: list[Region] = []
    source: Region | None = None
    for region, position, header in batches:
        if header.last_offset < first or header.base_offset > last:
            continue
        if source is region:
            result[-1] = Region(region.file, result[-1].position, position + header.size - result[-1].position)
        else:
            result.append(Region(region.file, position, header.size))
            source = region
    return result
