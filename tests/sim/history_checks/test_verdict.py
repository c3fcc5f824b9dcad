"""Each check is part of the verdict."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heirlog.sim.history import (
    AcknowledgedBatch,
    AcknowledgedBy,
    AcknowledgedRecord,
    Copies,
    History,
    KnownLoss,
    Latest,
    Observed,
)
from heirlog.sim.history_checks.verdict import findings

AUDITOR = "auditor"
LOSS = KnownLoss("t-0", 1, 5, time_ms=50, winner=((1, 0), (5, 1)), answers=((1, 1, 1), (2, 1, 3)))


def healthy() -> History:
    history = History(lambda: 0)
    for client in ("reader", AUDITOR):
        history.observed += [Observed("t-0", offset, offset, 1, client, offset) for offset in range(3)]
    history.acknowledge("t-0", 0, [0, 1, 2], 10)
    history.batches.append(AcknowledgedBatch("t-0", "p", 0, 2, 1, 2, 10))
    history.acknowledged_by.add(AcknowledgedBy("t-0", 1, 1))
    history.copies.append(Copies("t-0", 3, 2, 2))
    history.latest.append(Latest("t-0", 3, 1, "reader"))
    return history


def reads(*records: Observed) -> Callable[[History], None]:
    return lambda history: history.observed.extend(records)


BREAKS: dict[str, Callable[[History], None]] = {
    "high-watermark-regression": lambda history: history.latest.append(Latest("t-0", 2, 1, "reader")),
    "two-leaders": lambda history: history.acknowledged_by.add(AcknowledgedBy("t-0", 1, 2)),
    "few-copies": lambda history: history.copies.append(Copies("t-0", 4, 1, 2)),
    "inconsistent-offsets": reads(Observed("t-0", 2, "x", 1, "reader", 9)),
    "lost-write": lambda history: (
        history.acknowledge("u-0", 0, ["a"], 10) or history.observed.append(Observed("u-0", 1, "b", 1, "reader", 9))
    ),
    "unseen": lambda history: history.acknowledge("t-0", 3, [3], 10),
    "duplicate": reads(Observed("t-0", 3, 1, 1, "reader", 9)),
    "stray": lambda history: (
        history.acknowledged.append(AcknowledgedRecord("u-0", 0, "a"))
        or reads(Observed("t-0", 3, "a", 1, "reader", 9))(history)
    ),
    "nonmonotonic-send": lambda history: history.batches.append(AcknowledgedBatch("t-0", "p", 1, 1, 3, 4, 10)),
    "int-poll-skip": reads(Observed("t-0", 0, 0, 1, "other", 1), Observed("t-0", 2, 2, 1, "other", 1)),
    "ext-poll-skip": reads(Observed("t-0", 0, 0, 1, "other", 1), Observed("t-0", 2, 2, 1, "other", 2)),
    "nonmonotonic-poll": reads(Observed("t-0", 1, 1, 1, "reader", 9)),
}


def test_a_healthy_history_has_no_findings() -> None:
    assert findings(healthy(), [], AUDITOR, {"t-0"}) == []


@pytest.mark.parametrize("check", BREAKS)
def test_a_broken_history_has_the_finding(check: str) -> None:
    history = healthy()
    BREAKS[check](history)
    assert check in {finding.check for finding in findings(history, [], AUDITOR, {"t-0"})}


def test_a_record_that_a_recovery_gave_up_needlessly_is_a_finding() -> None:
    history = healthy()
    del history.observed[-2:]
    found = findings(history, [LOSS], AUDITOR, {"t-0"})
    assert {finding.check for finding in found} == {"discarded-record"}


def test_compacted_partitions_may_have_holes() -> None:
    history = healthy()
    history.observed += [Observed("c-0", offset, f"c{offset}", 1, AUDITOR, 1) for offset in (0, 7)]
    history.acknowledge("c-0", 3, ["c3"], 10)
    assert findings(history, [], AUDITOR, {"t-0", "c-0"}, is_compacted=lambda name: name == "c-0") == []
    assert findings(history, [], AUDITOR, {"t-0", "c-0"}) != []
