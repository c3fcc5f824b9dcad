"""Each test uses a player in a worker of a pool, as `heirlog sim run` does: that process has one thread."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from typing import Any

import pytest
from sim.seeds_in_copies import fails_in_between, is_killed, who_plays, who_plays_while_copies_grow

from heirlog.sim.many_seeds import in_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no copies")


def in_a_worker(function: Callable[[int], Any], argument: int = 0) -> Any:
    (result,) = in_processes(function, [argument], jobs=1)
    return result


def test_the_first_seed_is_played_here_and_the_others_in_a_copy() -> None:
    worker, played = in_a_worker(who_plays, 7)
    assert [seed for seed, _ in played] == [7, 8, 9, 10]
    first, *others = (process for _, process in played)
    assert first == worker
    assert len(set(others)) == 1 and others[0] != worker


def test_a_copy_that_has_grown_makes_room_for_the_next_one() -> None:
    processes, kept_by_the_worker = in_a_worker(who_plays_while_copies_grow, 8)
    assert 2 < len(set(processes)) < 8
    assert kept_by_the_worker == 0


def test_an_error_is_raised_where_the_seed_was_asked_for() -> None:
    assert in_a_worker(fails_in_between) == [0, 1, "no seed 2", 3]


def test_a_copy_that_is_killed_breaks_the_pool() -> None:
    with pytest.raises(BrokenExecutor, match="the process that played a seed was killed"):
        in_a_worker(is_killed, 3)


KILLED_WHILE_IT_PLAYS = """
import os, signal, time
from heirlog.sim.seed_player import SeedPlayer

maker = os.getpid()

def play(seed):
    if seed:
        print(os.getpid(), flush=True)
        os.kill(maker, signal.SIGKILL)
        time.sleep(600)

player = SeedPlayer(play)
player.play(0)
player.play(1)
"""


def test_a_copy_ends_with_its_maker_even_within_a_seed() -> None:
    # the copy has this pipe as well, so this call returns only when both have ended
    ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_PLAYS], stdout=subprocess.PIPE, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert int(ended.stdout) > 0
