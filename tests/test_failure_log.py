from __future__ import annotations

from heirlog.failure_log import REASONS_MAX, REMIND_MS, FailureLog


class Lines:
    def __init__(self) -> None:
        self.found: list[tuple[str, str, object, object]] = []
        self.now_ms = 5
        self.log = FailureLog(self._log, lambda: self.now_ms, "fetch-failed", "fetch-resumed")

    def _log(self, level: str, event: str, /, **values: object) -> None:
        self.found.append((level, event, values.get("why"), values["failures"]))

    def failed(self, why: str, level: str = "info") -> None:
        self.log.failed(level, why, why=why)

    def take(self) -> list[tuple[str, str, object, object]]:
        found, self.found = self.found, []
        return found


def test_each_reason_has_one_line_until_it_works_and_then_the_failures_are_counted() -> None:
    lines = Lines()
    for _ in range(1000):
        lines.failed("refused")
        lines.failed("timed out", "error")
    assert lines.take() == [("info", "fetch-failed", "refused", 1), ("error", "fetch-failed", "timed out", 2)]
    lines.log.worked()
    lines.log.worked()
    assert lines.take() == [("info", "fetch-resumed", None, 2000)]
    lines.failed("refused")
    assert lines.take() == [("info", "fetch-failed", "refused", 1)]


def test_a_single_failure_needs_no_line_of_its_end() -> None:
    lines = Lines()
    lines.failed("refused")
    lines.log.worked()
    assert len(lines.take()) == 1


def test_what_lasts_is_said_again_once_a_minute() -> None:
    lines = Lines()
    lines.failed("refused")
    lines.now_ms += REMIND_MS - 1
    lines.failed("refused")
    lines.now_ms += 1
    lines.failed("refused")
    lines.failed("refused")
    assert [failures for _, _, _, failures in lines.take()] == [1, 3]


def test_the_reasons_that_are_remembered_are_limited() -> None:
    lines = Lines()
    for number in range(REASONS_MAX + 1):
        lines.failed(str(number))
    lines.failed(str(REASONS_MAX))
    lines.failed("0")
    assert len(lines.take()) == REASONS_MAX + 2
