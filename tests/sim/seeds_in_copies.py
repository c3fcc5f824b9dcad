"""What `test_seed_player.py` runs in a worker of a pool, in a module that the worker finds by its name."""

from __future__ import annotations

import os
import signal

from heirlog.sim.seed_player import LEFT_MAX_KB, SeedPlayer


def who_plays(first: int) -> tuple[int, list[tuple[int, int]]]:
    player = SeedPlayer(lambda seed: (seed, os.getpid()))
    return os.getpid(), [player.play(seed) for seed in range(first, first + 4)]


def who_plays_while_copies_grow(seeds: int) -> tuple[list[int], int]:
    kept: list[bytearray] = []

    def grow(seed: int) -> int:
        if seed:
            # of pages that are really there
            kept.append(bytearray(b"x") * (LEFT_MAX_KB * 1024 // 2))
        return os.getpid()

    player = SeedPlayer(grow)
    player.play(0)
    return [player.play(seed) for seed in range(1, seeds + 1)], len(kept)


def fails_in_between(_: int) -> list[int | str]:
    def fail(seed: int) -> int:
        if seed == 2:
            raise ValueError(f"no seed {seed}")
        return seed

    player, seen = SeedPlayer(fail), list[int | str]()
    for seed in range(4):
        try:
            seen.append(player.play(seed))
        except ValueError as error:
            seen.append(str(error))
    return seen


def is_killed(at: int) -> None:
    player = SeedPlayer(lambda seed: os.kill(os.getpid(), signal.SIGKILL) if seed == at else None)
    for seed in range(at + 1):
        player.play(seed)
