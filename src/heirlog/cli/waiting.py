"""Sentences on stderr while a command waits for a cluster that does not answer."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from heirlog.blocking import Client

SAID_EVERY_S = 5.0
SAID_AFTER_S, LOOKED_EVERY_S = 2.5, 0.5
"""Records that have no answer for so long are named on stderr: an election after a failure takes up to ten seconds."""


class Saying:
    """A context manager that calls `said` every few seconds, in a thread of its own: also while the command waits for
    an answer. It prints what it returns, if that is not None."""

    def __init__(self, said: Callable[[], str | None], every_s: float | None = None) -> None:
        """every_s: None for `SAID_EVERY_S`."""
        self._said = said
        self._every_s = SAID_EVERY_S if every_s is None else every_s
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
        while not self._ended.wait(self._every_s):
            sentence = self._said()
            if sentence is not None:
                say(sentence)


class Unanswered:
    """For a `Saying` around many questions: the sentence, once for each that has had no answer for some seconds.

    A context manager around each question.
    """

    def __init__(self, sentence: str | Callable[[], str | None], after_s: float | None = None) -> None:
        """sentence: or what returns it, and None where there is nothing to say yet.

        after_s: None for `SAID_EVERY_S`.
        """
        self._sentence = sentence
        self._after_s = after_s
        self._asked_at_s: float | None = None
        self._said_of_s: float | None = None

    def __enter__(self) -> None:
        self._asked_at_s = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._asked_at_s = None

    @property
    def asked_at_s(self) -> float | None:
        """On the monotonic clock; None between two questions."""
        return self._asked_at_s

    def said(self) -> str | None:
        asked_at_s = self.asked_at_s
        after_s = SAID_EVERY_S if self._after_s is None else self._after_s
        if asked_at_s is None or asked_at_s == self._said_of_s or time.monotonic() - asked_at_s < after_s:
            return None
        sentence = self._sentence if isinstance(self._sentence, str) else self._sentence()
        if sentence is not None:
            self._said_of_s = asked_at_s
        return sentence


class UnansweredCall(Unanswered):
    """The same for every call of a client."""

    def __init__(self, client: Client, sentence: str) -> None:
        super().__init__(sentence)
        self._client = client

    @property
    def asked_at_s(self) -> float | None:
        return self._client.waiting_since_s


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def once(sentence: Callable[[], str]) -> Callable[[], str | None]:
    left = iter([sentence])

    def said() -> str | None:
        last = next(left, None)
        return None if last is None else last()

    return said
