"""What went wrong under a task, told apart; no broker is needed where the error says it all."""

from __future__ import annotations

import pytest

from heirlog.blocking import Client, EpochEnd, LogTruncated
from heirlog.client.leaders import UNKNOWN_END
from heirlog.spark.plan import Range
from heirlog.spark.read import _what_happened

PLANNED = Range("t", 0, 40, 90, last_epoch=5)


@pytest.mark.parametrize(
    ("end", "first", "resume"),
    [(EpochEnd(3, 25), 25, 25), (EpochEnd(3, 0), 0, 0), (UNKNOWN_END, -1, 40)],
)
def test_a_truncation_is_read_on_from_where_the_logs_part_and_never_from_the_begin_for_want_of_that(
    end: EpochEnd, first: int, resume: int
) -> None:
    with Client("127.0.0.1:1") as client:
        lost, rest = _what_happened(client, PLANNED, LogTruncated("t", 0, 40, 5, end))
    assert (lost.cause, lost.first, lost.until, lost.resume) == ("truncated", first, 40, resume)
    assert rest == Range("t", 0, resume, 90, last_epoch=-1)
    assert ("the leader does not know their leader epoch" in str(lost)) is (end is UNKNOWN_END)
