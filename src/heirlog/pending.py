"""An answer that is not there yet.

A handler never waits: it returns a response or a `Pending`. The owner of the wait (purgatory, commit queue, forwarder)
completes it once, and the connection's answer queue in `node` gets the result.

    waiting --complete--> completed      `then` runs at once if it was registered, else when it is
    waiting --abandon---> abandoned      the connection closed: `on_abandon` runs, a later complete is ignored
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    __slots__ = ("_abandoned", "_on_abandon", "_response", "_then")

    def __init__(self, on_abandon: Callable[[], None] | None = None) -> None:
        """on_abandon: of the owner of the wait, which forgets it: the answer has no listener any more."""
        self._response: T | None = None
        self._then: Callable[[T], None] | None = None
        self._abandoned = False
        self._on_abandon = on_abandon

    @property
    def done(self) -> bool:
        return self._response is not None or self._abandoned

    def complete(self, response: T) -> None:
        if self._abandoned:
            return
        assert self._response is None, "a Pending is completed once"
        self._response = response
        then = self._then
        if then is not None:
            # it usually holds this object, as the owner does, and in a circle the request and its answer, with all
            # their bytes, would wait for the garbage collector
            self._then, self._on_abandon = _was_called, None
            then(response)

    def then(self, fn: Callable[[T], None]) -> None:
        assert self._then is None, "a Pending has one listener"
        if self._response is None:
            self._then = fn
        else:
            self._then, self._on_abandon = _was_called, None
            fn(self._response)

    def abandon(self) -> None:
        if self.done:
            return
        self._abandoned = True
        on_abandon = self._on_abandon
        self._then = self._on_abandon = None
        if on_abandon is not None:
            on_abandon()


def _was_called(_: object) -> None:
    """In place of a listener that was called."""
