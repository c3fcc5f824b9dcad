"""What is printed of a verdict; the drills themselves are played in `tests/drill/`."""

from __future__ import annotations

from typing import Any

from heirlog.cli.drill_verdict import failure_sentence, verdict_lines
from heirlog.drill.last_replica_standing import Verdict


def shown(verdict: dict[str, Any]) -> dict[str, str]:
    lines = (line.split("  ", 2) for line in verdict_lines(verdict))
    return {name: value.strip() for _, name, value in lines}


def test_a_watermark_that_went_back_is_shown_with_both_offsets_and_none_in_words() -> None:
    assert shown(Verdict(elr=True).as_json())["watermark went back"] == "none"
    failed = Verdict(elr=False, lost=3, watermark_went_back=[(50, 40), (60, 10)]).as_json()
    assert shown(failed)["watermark went back"] == "50 to 40, 60 to 10"
    assert failure_sentence(failed) == "the drill failed: lost: 3, watermark went back: 50 to 40, 60 to 10"


def test_no_value_is_shown_as_python_writes_it() -> None:
    fault = {"kind": "kill", "controllers": [100, 102], "at_s": 3.5, "gap_s": 0.2}
    verdict = {
        "drill": "controllers",
        "passed": True,
        "reported_lost": None,
        "waited_for": [1, 3],
        "changes": {"move": 171, "alter": 3},
        "client_errors": {},
        "faults": [fault, {**fault, "kind": "pause", "controllers": []}],
    }
    assert list(verdict_lines(verdict)) == [
        "  passed                     yes",
        "  reported lost              none",
        "  waited for                 1, 3",
        "  changes                    move 171, alter 3",
        "  client errors              none",
        "  faults                     kind kill, controllers 100 and 102, at_s 3.5, gap_s 0.2",
        "                             kind pause, controllers none, at_s 3.5, gap_s 0.2",
    ]
