"""What an observer says about itself with each fetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heirlog.protocol.messages import FetchRequest

from .quorum_world import World


def test_an_observer_names_no_high_watermark_that_it_has_not_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while one answer takes several turns to apply; it does not ask again and again meanwhile."""
    world = World(observers=1)
    world.start()
    world.commit("a")
    world.run_until_all_have("a")
    observer = world.observers[0]
    disk = world.leader.disk
    flush = disk.flush

    def slow_flush(file: Any, on_flushed: Callable[[OSError | None], None]) -> None:
        world.later(50, lambda: flush(file, on_flushed), disk.owner)

    monkeypatch.setattr(disk, "flush", slow_flush)
    names = [f"{'x' * 200}-{number}" for number in range(10_000)]
    for first in range(0, len(names), 1_000):
        # the leader's disk is slow: the observer has fetched and flushed all of it before it is committed
        world.append(*names[first : first + 1_000])
    named: list[int] = []
    too_early: list[tuple[int, int]] = []
    fetches = 0
    send, step = world.send, world.step

    def watched(sender: Any, to: Any, request: Any, on_result: Callable[[Any], None], timeout_ms: int) -> None:
        if isinstance(request, FetchRequest):
            named.append(request.topics[0].partitions[0].high_watermark)
        send(sender, to, request, on_result, timeout_ms)

    def stepped() -> None:
        """What is sent in a turn may name what the rest of the turn applies."""
        nonlocal fetches
        step()
        applied = observer.quorum.applied_offset + 1
        fetches += len(named)
        too_early.extend((high_watermark, applied) for high_watermark in named if high_watermark > applied)
        named.clear()

    monkeypatch.setattr(world, "send", watched)
    monkeypatch.setattr(world, "step", stepped)
    world.run_until_all_have("a", *names)
    world.run_for(2_000)
    assert too_early == []
    assert 3 < fetches < 15, "one per answer, then a long poll each half second"
