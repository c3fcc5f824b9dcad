from __future__ import annotations

from heirlog.rate_limited_log import CLIENTS_MAX, LOG_AGAIN_MS, RateLimitedLog


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


class Lines:
    def __init__(self) -> None:
        self.found: list[tuple[object, object]] = []
        self.now = 5.0
        self.log = RateLimitedLog(
            lambda level, event, **values: self.found.append((values["peer"], values["suppressed"])), lambda: self.now
        )

    def failed(self, host: str) -> None:
        self.log.of_client("info", "authentication-failed", host, peer=host)


def test_a_noisy_client_does_not_hide_a_quiet_one() -> None:
    lines = Lines()
    for _ in range(1000):
        lines.failed("10.0.0.1")
    lines.failed("10.0.0.2")
    assert lines.found == [("10.0.0.1", 0), ("10.0.0.2", 0)]
    lines.now += LOG_AGAIN_MS
    lines.failed("10.0.0.1")
    assert lines.found[2:] == [("10.0.0.1", 999)]


def test_further_clients_share_a_line_until_others_are_quiet_and_no_count_is_lost() -> None:
    lines = Lines()
    for number in range(CLIENTS_MAX):
        lines.failed(f"10.0.0.{number}")
        lines.failed(f"10.0.0.{number}")
    lines.failed("10.0.1.1")
    lines.failed("10.0.1.2")
    assert len(lines.found) == CLIENTS_MAX + 1
    assert len(lines.log._clients) == CLIENTS_MAX
    lines.now += LOG_AGAIN_MS
    lines.failed("10.0.1.3")
    assert lines.found[-1] == ("10.0.1.3", 0)
    for number in range(CLIENTS_MAX):
        lines.failed(f"10.0.2.{number}")
    assert lines.found[-1] == (f"10.0.2.{CLIENTS_MAX - 1}", CLIENTS_MAX + 1)
    assert len(lines.log._clients) == CLIENTS_MAX
