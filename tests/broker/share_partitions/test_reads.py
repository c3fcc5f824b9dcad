"""What a share fetch sees of a log with transactions, and which of its bytes the answer has."""

from __future__ import annotations

from heirlog.broker.share_partitions.acquisition import AcquiredRecords, FetchedBatch
from heirlog.broker.share_partitions.reads import as_fetched, batches_of, regions_with
from heirlog.client.aborted import AbortedTransactions
from heirlog.env import Region
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.transaction_marker import TransactionMarker, encode_marker


class Bytes:
    """A file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def pread(self, size: int, position: int) -> bytes:
        return self.data[position : position + size]


def written(producer_id: int, offset: int) -> bytes:
    transactional = producer_id >= 0
    record = (None, b"v", (), 0)
    return bytes(
        encode_batch([record, record], offset, producer_id=producer_id, producer_epoch=0, transactional=transactional)
    )


def marker(producer_id: int, offset: int, *, commit: bool) -> bytes:
    return bytes(encode_marker(TransactionMarker(commit, 0), producer_id, 0, offset, 0, 0))


BATCHES = (
    written(7, 0),
    written(8, 2),
    marker(7, 4, commit=False),
    written(7, 5),
    marker(8, 7, commit=True),
    marker(7, 8, commit=True),
    written(-1, 9),
)
LOG = Region(Bytes(b"".join(BATCHES)), 0, sum(map(len, BATCHES)))  # type: ignore[arg-type]


def test_a_group_that_reads_committed_records_gets_neither_markers_nor_what_is_aborted() -> None:
    found = as_fetched(list(batches_of([LOG], 10)), AbortedTransactions([(7, 0)]))
    assert [(batch.first, batch.last) for batch in found if not batch.is_aborted] == [(2, 3), (5, 6), (9, 10)]


def test_any_other_group_gets_everything() -> None:
    found = as_fetched(list(batches_of([LOG], 10)), None)
    assert found == [FetchedBatch(*ends) for ends in ((0, 1), (2, 3), (4, 4), (5, 6), (7, 7), (8, 8), (9, 10))]


def test_no_more_is_read_than_up_to_the_wanted_offset() -> None:
    assert [read.header.base_offset for read in batches_of([LOG], 3)] == [0, 2]


def test_the_answer_has_the_batches_from_the_first_to_the_last_that_is_acquired() -> None:
    batches = list(batches_of([LOG], 10))
    (region,) = regions_with(batches, [AcquiredRecords(3, 3, 1), AcquiredRecords(5, 6, 1)])
    assert region.file.pread(region.size, region.position) == b"".join(BATCHES[1:4])
