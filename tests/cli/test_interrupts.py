"""Where a signal may end a command that counts."""

from __future__ import annotations

import signal

import pytest

from heirlog.cli.interrupts import SIGNALS, Interrupts, signals_interrupt


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_until_it_is_allowed(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        signal.raise_signal(number)
        counted = 1
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            counted = 2
        # the report
        signal.raise_signal(number)
    assert counted == 1
    assert signal.getsignal(number) == before


def test_where_it_is_allowed_a_signal_interrupts_once() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)


def test_an_error_after_a_signal_does_not_hide_it() -> None:
    with pytest.raises(KeyboardInterrupt), signals_interrupt():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            raise OSError("a connection that was interrupted is cleaned up")
    with pytest.raises(OSError, match="alone"), signals_interrupt():
        raise OSError("alone")
