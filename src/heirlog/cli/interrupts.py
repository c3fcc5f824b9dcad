"""What SIGINT, SIGTERM and SIGHUP do to a command: all three end it as Ctrl-C does, with KeyboardInterrupt.

Python raises KeyboardInterrupt between any two instructions. A command that counts what it has done cannot be right
then: a signal between an effect and its count loses the effect. Such a command names the places that may be
interrupted (`Interrupts.allowed`); elsewhere a signal waits for the next of them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from heirlog.ending_signals import SIGNALS

T = TypeVar("T")


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt as SIGINT does, anywhere.

    So does an error after it: what a library does to clean up may fail, and hide the KeyboardInterrupt.
    """
    is_asked = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        is_asked = True
        raise KeyboardInterrupt

    before = [signal.signal(number, interrupt) for number in SIGNALS]
    try:
        yield
    except Exception as error:
        if is_asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


class Interrupts:
    """Signals raise KeyboardInterrupt in `allowed`, once; a signal that comes elsewhere does so in the next `allowed`.

    A context manager: it handles the signals in between. After the first KeyboardInterrupt further signals have no
    effect, so that a second Ctrl-C does not cut off the command's last report.
    """

    def __init__(self) -> None:
        self._before: list[Any] = []
        self._is_allowed = False
        self._is_asked = False

    def __enter__(self) -> Self:
        self._before = [signal.signal(number, self._on_signal) for number in SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        self._is_allowed = True
        try:
            if self._is_asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_allowed = False

    def allowing(self, items: Iterable[T]) -> Iterator[T]:
        """`items`; a signal interrupts what makes the next of them."""
        iterator = iter(items)
        while True:
            with self.allowed():
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def _on_signal(self, *_: object) -> None:
        self._is_asked = True
        if self._is_allowed:
            # at once, not only by `allowed`: another signal may come before its end
            self._is_allowed = False
            raise KeyboardInterrupt
