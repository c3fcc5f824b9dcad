"""What a signal does while it waits."""

from __future__ import annotations

import os
import signal
import threading

from patience import eventually

from heirlog.ending_signals import signals_wait


def test_a_signal_waits_where_another_thread_gets_it() -> None:
    steps = []

    def interrupt(number: int, frame: object) -> None:
        steps.append("signal")

    before = signal.signal(signal.SIGTERM, interrupt)
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        with signals_wait():
            os.kill(os.getpid(), signal.SIGTERM)
            steps.append("work")
        eventually(lambda: len(steps) > 1)
        assert list(steps) == ["work", "signal"]
    finally:
        signal.signal(signal.SIGTERM, before)
        ended.set()
        other.join()
