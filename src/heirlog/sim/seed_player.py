"""Plays seed after seed in a copy of this process that frees nothing of what a run leaves.

    this process: the first seed, which imports --fork--> copy: seed -> result, seed -> result ... until it is full
                                                --fork--> the next copy

A run leaves thousands of objects that refer to each other in circles. To find and free them takes longer than to make a
copy now and then: when a process has ended, the kernel takes back its memory as a whole. Only on Linux; elsewhere every
seed is played here.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

R = TypeVar("R")

LEFT_MAX_KB = 64 * 1024
"""How much a copy grows before the next one takes its place: some twenty runs."""
_SET_PARENT_DEATH_SIGNAL = 1


class SeedPlayer(Generic[R]):
    def __init__(self, play: Callable[[int], R]) -> None:
        self._play = play
        self._has_imported = False
        self._copy: Connection | None = None

    def play(self, seed: int) -> R:
        """What `play` returns, or raises. Raises BrokenExecutor if the copy was killed."""
        if sys.platform != "linux" or not self._has_imported:
            self._has_imported = True
            return self._play(seed)
        if self._copy is None:
            self._copy = self._fork()
        copy = self._copy
        try:
            copy.send(seed)
            result, error, is_full = copy.recv()
        except (EOFError, ConnectionError) as ended:
            raise BrokenExecutor("the process that played a seed was killed") from ended
        if is_full:
            copy.close()
            self._copy = None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _fork(self) -> Connection:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        # a daemon ends with this process, if that ends by itself
        context.Process(target=self._serve, args=(ours, theirs, os.getpid()), daemon=True).start()
        theirs.close()
        return ours

    def _serve(self, ours: Connection, theirs: Connection, maker: int) -> None:
        """In the copy. Ends when the other end is closed."""
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != maker:
            return
        ours.close()
        gc.disable()
        full_kb = _highest_kb() + LEFT_MAX_KB
        while True:
            try:
                seed = theirs.recv()
            except EOFError:
                return
            result: R | None = None
            error: Exception | None = None
            try:
                result = self._play(seed)
            except Exception as raised:  # raised again where `play` was called
                error = raised
            theirs.send((result, error, _highest_kb() >= full_kb))


def _highest_kb() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
