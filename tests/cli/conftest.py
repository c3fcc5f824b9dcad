"""Running a command line in this process, as a person would type it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from heirlog.cli.app import run


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Heirlog = Callable[..., Outcome]


@pytest.fixture
def heirlog(capfd: pytest.CaptureFixture[str]) -> Heirlog:
    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
