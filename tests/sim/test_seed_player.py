from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor

import pytest

from heirlog.sim.seed_player import LEFT_MAX_KB, SeedPlayer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no copies")


def test_the_first_seed_is_played_here_and_the_others_in_a_copy() -> None:
    player = SeedPlayer(lambda seed: (seed, os.getpid()))
    assert player.play(7) == (7, os.getpid())
    played = [player.play(seed) for seed in range(3)]
    assert [seed for seed, _ in played] == [0, 1, 2]
    (copy,) = {process for _, process in played}
    assert copy != os.getpid()


def test_a_copy_that_has_grown_makes_room_for_the_next_one() -> None:
    kept: list[bytearray] = []

    def grow(seed: int) -> int:
        if seed:
            # by pages that are really there
            kept.append(bytearray(b"x") * (LEFT_MAX_KB * 1024 // 2))
        return os.getpid()

    player = SeedPlayer(grow)
    player.play(0)
    processes = [player.play(seed) for seed in range(1, 9)]
    assert 2 < len(set(processes)) < 8
    assert processes == sorted(processes, key=processes.index)
    assert not kept


def test_an_error_is_raised_where_the_seed_was_asked_for() -> None:
    def fail(seed: int) -> int:
        if seed:
            raise ValueError(f"no seed {seed}")
        return seed

    player = SeedPlayer(fail)
    assert player.play(0) == 0
    with pytest.raises(ValueError, match="no seed 5"):
        player.play(5)
    assert player.play(0) == 0


def test_a_copy_that_is_killed_breaks_the_pool() -> None:
    player = SeedPlayer(lambda seed: os.kill(os.getpid(), signal.SIGKILL) if seed else None)
    player.play(0)
    player.play(0)
    with pytest.raises(BrokenExecutor):
        player.play(1)


KILLED_WHILE_IT_PLAYS = """
import os, signal, sys, time
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
