"""The differences that are meant: each with the row of docs/compatibility.md that says so.

A difference has one name at most, the first that applies; `examples` show each in every run, so that a name that
nothing needs any more is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from answers.admin_deviations import ADMIN_DEVIATIONS
from answers.data_deviations import DATA_DEVIATIONS
from answers.deviation import Deviation
from answers.group_deviations import GROUP_DEVIATIONS
from answers.players import Difference
from answers.shape import Plan
from answers.share_group_deviations import SHARE_GROUP_DEVIATIONS
from answers.share_state_deviations import SHARE_STATE_DEVIATIONS
from answers.transaction_deviations import TRANSACTION_DEVIATIONS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
DEVIATIONS: list[Deviation] = [
    *ADMIN_DEVIATIONS,
    *DATA_DEVIATIONS,
    *GROUP_DEVIATIONS,
    *TRANSACTION_DEVIATIONS,
    *SHARE_GROUP_DEVIATIONS,
    *SHARE_STATE_DEVIATIONS,
]


def explained(difference: Difference) -> Deviation | None:
    return next((each for each in DEVIATIONS if each.applies(difference)), None)


def examples_of() -> Iterator[Plan]:
    # after one that is not harmless the topics of the others are gone
    for deviation in sorted(DEVIATIONS, key=lambda each: not each.is_harmless):
        yield from deviation.examples


def rowless() -> list[str]:
    """Deviations without a row."""
    text = DOCUMENT.read_text()
    return [each.name for each in DEVIATIONS if f"| {each.row}" not in text]
