"""What an observer says about itself with each fetch, and how long it waits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from heirlog.env import SendFailure
from heirlog.protocol.messages import FetchRequest
from heirlog.raft.observer import FETCH_WAIT_MS
from heirlog.raft.quorum_config import QuorumConfig

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


def fetch_times(world: World, config: QuorumConfig, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], set[int]]:
    """When an observer without a leader sends its fetches within ten seconds, and the time limits that they have."""
    world.observers[0].quorum_config = config
    sent_ms: list[int] = []
    limits_ms: set[int] = set()

    def dropped(sender: Any, to: Any, request: Any, on_result: Callable[[Any], None], timeout_ms: int) -> None:
        sent_ms.append(world.now_ms)
        limits_ms.add(timeout_ms)
        world.later(1, lambda: on_result(SendFailure("disconnected")), sender)

    monkeypatch.setattr(world, "send", dropped)
    world.observers[0].start()
    world.run_for(10_000)
    return sent_ms, limits_ms


def test_a_fetch_takes_no_longer_than_the_configured_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wait included: an observer of a silent leader looks for another one when the voters elect it."""
    assert fetch_times(World(observers=1), QuorumConfig(), monkeypatch)[1] == {2_000}


def test_an_observer_follows_the_successor_of_a_silent_leader_at_once() -> None:
    """And does not wait for the silent one a second time, whenever in its rotation of controllers that falls."""
    waits_ms = []
    for seed in range(20):
        world = World(observers=3, voters=3, seed=seed)
        for node in world.nodes:
            node.start()
        world.run_until(lambda world=world: any(node.quorum.is_leader for node in world.controllers))
        world.leader = next(node for node in world.controllers if node.quorum.is_leader)
        world.commit("a")
        world.run_until_all_have("a")
        silent, begin_ms = world.leader, world.now_ms
        world.isolate(silent)
        others = [node for node in world.controllers if node is not silent]
        world.run_until(lambda others=others: any(node.quorum.is_leader for node in others))
        world.leader = next(node for node in others if node.quorum.is_leader)
        world.append("b")
        world.run_until_all_have("a", "b")
        waits_ms.append(world.now_ms - begin_ms)
    assert max(waits_ms) < 3_000, waits_ms


def test_an_observer_logs_an_outage_once_and_the_next_one_again() -> None:
    world = World(observers=1)
    world.start()
    names = ["a", "b", "c"]
    lines: list[list[str]] = []
    world.commit("a")
    for count in (2, 3):
        world.logged.clear()
        world.isolate(world.observers[0])
        world.run_for(20_000)
        world.heal()
        world.commit(names[count - 1])
        world.run_until_all_have(*names[:count])
        lines.append([event for _, _, event, _ in world.logged if event.startswith("metadata-fetch-")])
    assert lines == [["metadata-fetch-failed", "metadata-fetch-resumed"]] * 2


def test_the_time_limit_and_the_back_off_of_a_fetch_are_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    sent_ms, limits_ms = fetch_times(
        World(observers=1), QuorumConfig(request_timeout_ms=300, retry_backoff_ms=400), monkeypatch
    )
    assert limits_ms == {2 * FETCH_WAIT_MS}
    pauses_ms = [later - earlier for earlier, later in pairwise(sent_ms)]
    assert 200 <= pauses_ms[0] <= 401
    assert 400 <= pauses_ms[1] <= 801
    assert all(500 <= pause_ms <= 1001 for pause_ms in pauses_ms[2:])


def test_without_a_back_off_an_observer_still_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    sent_ms, _ = fetch_times(World(observers=1), QuorumConfig(retry_backoff_ms=0), monkeypatch)
    assert len(sent_ms) < 40


def test_without_a_leader_every_known_endpoint_is_asked_in_turn_and_never_two_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two answers could have the same records, which would be appended twice."""
    world = World(observers=1, voters=3)
    in_flight: list[str] = []
    asked: list[str] = []

    def unanswered(sender: Any, to: Any, request: Any, on_result: Callable[[Any], None], timeout_ms: int) -> None:
        in_flight.append(to.host)
        asked.append(to.host)
        assert len(in_flight) == 1

        def answer() -> None:
            in_flight.clear()
            on_result(SendFailure("timed-out"))

        world.later(timeout_ms, answer, sender)

    monkeypatch.setattr(world, "send", unanswered)
    world.observers[0].start()
    world.run_for(25_000)
    hosts = {node.endpoint.host for node in world.controllers}
    assert len(asked) >= 6
    assert all({*asked[first : first + 3]} == hosts for first in range(len(asked) - 2))
