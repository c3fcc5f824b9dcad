"""What is printed of a verdict; the drills themselves are played in `tests/drill/`."""

from __future__ import annotations

from heirlog.cli.drill import failure_sentence, verdict_lines
from heirlog.drill.last_replica_standing import Verdict


def shown(verdict: Verdict) -> dict[str, str]:
    lines = (line.split("  ", 2) for line in verdict_lines(verdict.as_json()))
    return {name: value.strip() for _, name, value in lines}


def test_a_watermark_that_went_back_is_shown_with_both_offsets_and_none_in_words() -> None:
    assert shown(Verdict(elr=True))["watermark went back"] == "none"
    failed = Verdict(elr=False, lost=3, watermark_went_back=[(50, 40), (60, 10)])
    assert shown(failed)["watermark went back"] == "50 to 40, 60 to 10"
    assert failure_sentence(failed.as_json()) == ("the drill failed: lost: 3, watermark went back: 50 to 40, 60 to 10")
