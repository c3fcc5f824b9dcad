"""Running a command line in this process, as a person would type it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from cli.json_shapes import mistakes

from heirlog.cli.app import run
from heirlog.testing import Cluster


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Heirlog = Callable[..., Outcome]
LIBRDKAFKA = re.compile(r"^%\d\|.*\n", re.MULTILINE)
"""A line that the thread of a client writes, which an earlier test has left behind in this process."""


@pytest.fixture
def heirlog(capfd: pytest.CaptureFixture[str]) -> Heirlog:
    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        # a command is a process of its own: the variables that it sets end with it
        with patch.dict(os.environ):
            code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        if "--json" in arguments and not code:
            wrong = mistakes(arguments, captured.out)
            assert not wrong, wrong
        return Outcome(code, captured.out, LIBRDKAFKA.sub("", captured.err))

    return call


def stderr(capfd: pytest.CaptureFixture[str]) -> str:
    """What was said on standard error since it was last asked for."""
    return LIBRDKAFKA.sub("", capfd.readouterr().err)


@pytest.fixture
def default_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands talk to the module's cluster."""
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)


def rows(heirlog: Heirlog, *arguments: str) -> list[dict[str, Any]]:
    """What a command prints for programs."""
    outcome = heirlog(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    found: list[dict[str, Any]] = json.loads(outcome.out)
    return found
