from __future__ import annotations

from heirlog.node.complaints import TELL_AGAIN_MS, Complaints


def test_each_kind_is_told_at_once_and_then_once_in_ten_seconds_with_the_number_of_those_left_out() -> None:
    lines: list[tuple[str, str, object]] = []
    now = 5.0
    complain = Complaints(lambda level, event, **values: lines.append((level, event, values["untold"])), lambda: now)
    for _ in range(100_000):
        complain("warning", "frame-refused", why="malformed")
    complain("error", "request-failed", why="another kind")
    assert lines == [("warning", "frame-refused", 0), ("error", "request-failed", 0)]
    now += TELL_AGAIN_MS
    for _ in range(3):
        complain("warning", "frame-refused", why="malformed")
    assert lines[2:] == [("warning", "frame-refused", 99_999)]
    now += TELL_AGAIN_MS
    complain("warning", "frame-refused", why="malformed")
    assert lines[3:] == [("warning", "frame-refused", 2)]
