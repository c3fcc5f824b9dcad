"""Sentences on stderr while a command waits for a cluster that does not answer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

SAID_EVERY_S = 5.0


class Saying:
    """A context manager that calls `said` every five seconds, in a thread of its own: also while the command waits for
    an answer. It prints what it returns, if that is not None."""

    def __init__(self, said: Callable[[], str | None]) -> None:
        self._said = said
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(SAID_EVERY_S):
            sentence = self._said()
            if sentence is not None:
                say(sentence)


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def once(sentence: str) -> Callable[[], str | None]:
    left = iter([sentence])
    return lambda: next(left, None)
