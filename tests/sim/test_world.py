from __future__ import annotations

import os
import subprocess
import sys

import pytest
from sim.toys import Pair

from heirlog.sim.world import Exit, World


def test_events_of_one_moment_run_in_the_order_in_which_they_were_scheduled() -> None:
    world, seen = World(1), []
    for number in range(5):
        world.schedule(7, None, "e", lambda number=number: seen.append(number))
    world.run_for(1)
    assert seen == [0, 1, 2, 3, 4]


def test_nothing_of_a_dead_incarnation_runs() -> None:
    world, seen = World(1), []
    process = world.begin(world.host("a"))
    world.schedule(10, process, "old", lambda: seen.append("old"))
    world.end(process, Exit("killed", -9, ""))
    successor = world.begin(world.host("a"))
    world.schedule(10, successor, "new", lambda: seen.append("new"))
    world.run_for(1)
    assert seen == ["new"]
    assert successor.number == 2


def test_a_paused_process_catches_up_in_order_when_it_goes_on() -> None:
    world, seen = World(1), []
    process = world.begin(world.host("a"))
    for delay_us in (30, 10, 20):
        world.schedule(delay_us, process, "e", lambda delay_us=delay_us: seen.append((delay_us, world.now_us)))
    world.pause(process)
    world.run_for(5)
    assert seen == []
    world.resume(process)
    world.run_for(1)
    assert seen == [(10, 5000), (20, 5000), (30, 5000)]


def test_a_cancelled_timer_does_not_fire() -> None:
    pair = Pair()
    seen: list[int] = []
    cancel = pair.caller.env.call_later(10, lambda: seen.append(1))
    pair.caller.env.call_later(20, lambda: seen.append(2))
    cancel()
    pair.world.run_for(50)
    assert seen == [2]


def test_clocks_are_skewed_and_drift_apart() -> None:
    pair = Pair()
    host = pair.world.host("client")
    host.wall_offset_ms = -5000
    host.drift(100_000)
    before_ms, before_wall_ms = pair.caller.env.now_ms(), pair.caller.env.wall_ms()
    fired: list[int] = []
    pair.caller.env.call_later(110, lambda: fired.append(pair.world.now_us))
    start_us = pair.world.now_us
    pair.world.run_for(1000)
    assert pair.caller.env.now_ms() - before_ms == 1100
    assert pair.caller.env.wall_ms() - before_wall_ms == 1100
    assert fired == [start_us + 100_000]


def test_a_clock_goes_on_from_where_it_is_when_its_rate_changes() -> None:
    pair = Pair()
    host = pair.world.host("client")
    began_ms = pair.caller.env.now_ms()
    for ppm in (50_000, -50_000, 0):
        host.drift(ppm)
        before_ms = pair.caller.env.now_ms()
        pair.world.run_for(1000)
        assert pair.caller.env.now_ms() - before_ms in range(1000 + ppm // 1000 - 1, 1000 + ppm // 1000 + 2)
    assert pair.caller.env.now_ms() - began_ms in range(2999, 3002)


def test_stop_ends_the_incarnation_after_the_current_callback() -> None:
    pair = Pair()
    env = pair.server.env
    order: list[str] = []

    def stopping() -> None:
        env.stop(0, "as asked")
        order.append("still in the callback")
        env.call_later(0, lambda: order.append("too late"))

    env.call_later(1, stopping)
    pair.world.run_for(10)
    assert order == ["still in the callback"]
    assert pair.server_process.exit == Exit("stopped", 0, "as asked")


def _busy_hash(seed: int) -> str:
    pair = Pair(seed)
    for number in range(50):
        pair.caller.env.call_later(number * 3, pair.caller.ask)
    pair.network.link("client", "server").loss = 0.05
    pair.world.run_for(3000)
    return pair.world.trace_hash()


def test_two_runs_of_a_seed_give_one_hash_and_another_seed_gives_another() -> None:
    assert _busy_hash(3) == _busy_hash(3)
    assert _busy_hash(3) != _busy_hash(4)


def test_the_hash_does_not_depend_on_pythonhashseed() -> None:
    program = "from sim.test_world import _busy_hash; print(_busy_hash(3))"
    path = os.pathsep.join(sys.path)
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1)
    }
    assert hashes == {_busy_hash(3) + "\n"}


@pytest.mark.parametrize("name", ["network", "disk a"])
def test_a_stream_of_chance_is_the_same_in_every_run_and_on_every_python(name: str) -> None:
    assert World(9).stream(name).getrandbits(64) == World(9).stream(name).getrandbits(64)
    assert World(9).stream(name).random() != World(10).stream(name).random()


def test_chance_is_what_it_was_when_this_was_written() -> None:
    stream = World(9).stream("network")
    assert [stream.randrange(0, 1000), stream.getrandbits(20), int(stream.random() * 1e9)] == [898, 676407, 592149552]
