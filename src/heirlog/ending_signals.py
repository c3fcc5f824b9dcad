"""The signals that end a command: Ctrl-C, `kill`, and a terminal that is closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_wait() -> Iterator[None]:
    """They come afterwards, and processes that start meanwhile never get them.

    Ctrl-C reaches every process of the terminal, and the caller decides. Processes that only ignored it later, after
    their imports, would print a traceback for one that comes before.
    """
    came: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    # another thread, such as that of a progress bar, may get a signal: its handler runs in the main thread all the same
    is_main = threading.current_thread() is threading.main_thread()
    handlers = [signal.signal(number, lambda number, _: came.append(number)) for number in SIGNALS if is_main]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, handlers, strict=False):
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for caught in came:
            signal.raise_signal(caught)
