"""What a truncation took from transactions, from the producers that a log remembers before and after it."""

from __future__ import annotations

import pytest

from heirlog.broker.lost_transactions import LostPart, lost_parts, remembered
from heirlog.protocol.batch import encode_batch, read_header
from heirlog.protocol.transaction_marker import TransactionMarker, encode_marker
from heirlog.storage.producers import ProducerStateManager

COMMIT = TransactionMarker(commit=True, coordinator_epoch=0)
LOG = ("data 1", "data 2", "data 1", "marker 1", "plain 3", "marker 2", "data 1")
"""A batch of one record at each offset."""


def producers_upto(end: int) -> ProducerStateManager:
    manager = ProducerStateManager()
    sequences: dict[int, int] = {}
    for offset, entry in enumerate(LOG[:end]):
        kind, number = entry.split()
        producer = int(number)
        if kind == "marker":
            header = read_header(encode_marker(COMMIT, producer, 0, offset, 0, offset))
            manager.end_transaction(COMMIT, header)
            continue
        sequence = sequences[producer] = sequences.get(producer, -1) + 1
        batch = encode_batch(
            [(None, b"v", (), offset)],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=kind == "data",
        )
        manager.update(read_header(batch))
    return manager


@pytest.mark.parametrize(
    ("end", "lost"),
    [
        (7, []),
        (6, [LostPart(1, 0, "transaction", -1)]),
        # the producer that is not transactional is not named
        (4, [LostPart(1, 0, "transaction", -1), LostPart(2, 0, "marker", 1)]),
        # the transaction that is open now is not the one that was open before
        (3, [LostPart(1, 0, "marker", 0), LostPart(2, 0, "marker", 1)]),
        (1, [LostPart(1, 0, "marker", 0), LostPart(2, 0, "transaction", -1)]),
        (0, [LostPart(1, 0, "transaction", -1), LostPart(2, 0, "transaction", -1)]),
    ],
)
def test_what_was_lost(end: int, lost: list[LostPart]) -> None:
    assert lost_parts(remembered(producers_upto(len(LOG))), remembered(producers_upto(end))) == lost


def test_an_open_transaction_lost_its_end() -> None:
    before, after = remembered(producers_upto(3)), remembered(producers_upto(2))
    assert lost_parts(before, after) == [LostPart(1, 0, "records", 0)]
