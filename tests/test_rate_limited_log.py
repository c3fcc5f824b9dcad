from __future__ import annotations

from heirlog.rate_limited_log import LOG_AGAIN_MS, RateLimitedLog


def test_each_kind_is_told_at_once_and_then_once_in_ten_seconds_with_the_number_of_those_left_out() -> None:
    lines: list[tuple[str, str, object]] = []
    now = 5.0
    log_limited = RateLimitedLog(
        lambda level, event, **values: lines.append((level, event, values["suppressed"])), lambda: now
    )
    for _ in range(100_000):
        log_limited("warning", "frame-refused", why="malformed")
    log_limited("error", "request-failed", why="another kind")
    assert lines == [("warning", "frame-refused", 0), ("error", "request-failed", 0)]
    now += LOG_AGAIN_MS
    for _ in range(3):
        log_limited("warning", "frame-refused", why="malformed")
    assert lines[2:] == [("warning", "frame-refused", 99_999)]
    now += LOG_AGAIN_MS
    log_limited("warning", "frame-refused", why="malformed")
    assert lines[3:] == [("warning", "frame-refused", 2)]
