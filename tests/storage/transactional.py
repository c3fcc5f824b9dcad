"""For the tests of transactions in a log: batches and markers, and a plain second definition of what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.logs import batch

from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.transaction_marker import TransactionMarker, encode_marker, read_marker
from heirlog.storage.log import Log

ABORT = TransactionMarker(commit=False, coordinator_epoch=0)
COMMIT = TransactionMarker(commit=True, coordinator_epoch=0)


@dataclass(frozen=True)
class Entry:
    """A batch of the log, in the model."""

    first: int
    last: int
    producer_id: int
    """-1: of no producer."""
    epoch: int = 0
    base_sequence: int = -1
    transactional: bool = False
    marker: TransactionMarker | None = None
    values: tuple[str, ...] = ()

    def encode(self, leader_epoch: int = 0) -> bytearray:
        if self.marker is not None:
            return encode_marker(self.marker, self.producer_id, self.epoch, self.first, leader_epoch, 0)
        return batch(
            *self.values,
            base_offset=self.first,
            leader_epoch=leader_epoch,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if self.producer_id >= 0 else -1,
            base_sequence=self.base_sequence,
            transactional=self.transactional,
        )


@dataclass(frozen=True)
class Transaction:
    producer_id: int
    first: int
    marker: int | None
    """None: it is open."""
    aborted: bool


def transactions_of(entries: Iterable[Entry]) -> list[Transaction]:
    """Every transaction with data, by a walk from the first entry."""
    opened: dict[int, int] = {}
    found = []
    for entry in entries:
        if entry.marker is not None and entry.producer_id in opened:
            first = opened.pop(entry.producer_id)
            found.append(Transaction(entry.producer_id, first, entry.first, not entry.marker.commit))
        elif entry.marker is None and entry.transactional:
            opened.setdefault(entry.producer_id, entry.first)
    return found + [Transaction(producer_id, first, None, False) for producer_id, first in opened.items()]


def last_stable_offset(entries: Sequence[Entry], high_watermark: int, log_start: int) -> int:
    undecided = [one.first for one in transactions_of(entries) if one.marker is None or one.marker >= high_watermark]
    return min(max(min(undecided, default=high_watermark), log_start), high_watermark)


def committed_values(entries: Sequence[Entry], from_offset: int, upto_offset: int) -> list[str]:
    """What a read_committed consumer has to see."""
    aborted = [one for one in transactions_of(entries) if one.aborted]
    found = []
    for entry in entries:
        hidden = entry.transactional and any(
            one.producer_id == entry.producer_id and one.first <= entry.first <= (one.marker or 0) for one in aborted
        )
        if not hidden:
            offsets = range(entry.first, entry.last + 1)
            found += [
                value
                for offset, value in zip(offsets, entry.values, strict=False)
                if from_offset <= offset < upto_offset
            ]
    return found


def read_committed(log: Log, upto_offset: int, max_bytes: int = 300) -> list[str]:
    """All values as Apache Kafka's consumer reads them: fetch by fetch, each filtered by its aborted transactions."""
    at, found = log.log_start_offset, []
    while at < upto_offset:
        part = log.read_for_client(at, max_bytes, upto_offset)
        waiting = sorted(
            (aborted.first_offset, aborted.producer_id) for aborted in log.aborted_in(at, part, upto_offset)
        )
        data = b"".join(region.read() for region in part.regions)
        active: set[int] = set()
        start = at
        for position, header in walk(data):
            while waiting and waiting[0][0] <= header.last_offset:
                active.add(waiting.pop(0)[1])
            if header.is_control:
                marker = read_marker(data[position : position + header.size], header)
                if marker is not None and not marker.commit:
                    active.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in active):
                records = decode_records(data, position)
                found += [(record.value or b"").decode() for record in records if record.offset >= start]
            at = header.next_offset
    return found


def put(log: Log, *entries: Entry, epoch: int = 0) -> None:
    """As a follower receives them."""
    log.append_as_follower(b"".join(entry.encode(epoch) for entry in entries), epoch)


def entries_of(log: Log) -> list[Entry]:
    """The batches of a log, from its first segment on."""
    found = []
    for segment in log.segments:
        for position, header in segment.headers_from(0):
            batch_bytes = segment.read_batch(position)
            marker = read_marker(batch_bytes, header) if header.is_control else None
            values = () if header.is_control else tuple((r.value or b"").decode() for r in decode_records(batch_bytes))
            found.append(
                Entry(
                    header.base_offset,
                    header.last_offset,
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                    header.is_transactional,
                    marker,
                    values,
                )
            )
    return found


def data(first: int, producer_id: int, sequence: int = 0, *, epoch: int = 0, count: int = 1) -> Entry:
    values = tuple(f"v{first + n}" for n in range(count))
    return Entry(first, first + count - 1, producer_id, epoch, sequence, transactional=True, values=values)


def end(first: int, producer_id: int, marker: TransactionMarker, *, epoch: int = 0) -> Entry:
    return Entry(first, first, producer_id, epoch, transactional=True, marker=marker)
