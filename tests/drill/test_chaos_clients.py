"""What the clients of the chaos drill make of librdkafka's reports."""

from __future__ import annotations

from heirlog.drill.chaos_clients import KnownOffsets
from heirlog.drill.chaos_record import UNKNOWN_OFFSET


def test_offsets_that_librdkafka_counts_on_from_an_unknown_one_are_unknown() -> None:
    known = KnownOffsets()
    reports = ((2, 7), (2, None), (2, 0), (1, 0), (2, 1), (2, -1), (2, 8), (2, 0))
    assert [known.add(*report) for report in reports] == [
        7,
        UNKNOWN_OFFSET,
        UNKNOWN_OFFSET,
        0,
        UNKNOWN_OFFSET,
        UNKNOWN_OFFSET,
        8,
        0,
    ]
