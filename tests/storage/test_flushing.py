from __future__ import annotations

from heirlog.storage.flushing import PendingFlush


def test_a_flush_is_done_when_every_part_is() -> None:
    received: list[OSError | None] = []
    pending = PendingFlush(5, lambda _, error: received.append(error))
    first, second = pending.part(), pending.part()
    first(None)
    assert received == []
    second(None)
    assert received == [None]


def test_the_first_failed_part_is_told_at_once_and_only_once() -> None:
    received: list[OSError | None] = []
    pending = PendingFlush(5, lambda _, error: received.append(error))
    parts = [pending.part() for _ in range(3)]
    failure = OSError(5, "input/output error")
    parts[0](failure)
    assert received == [failure]
    parts[1](None)
    parts[2](OSError(5, "another one"))
    assert received == [failure]
