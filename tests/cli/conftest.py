"""Running a command line in this process, as a person would type it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from heirlog.cli.app import run
from heirlog.testing import Cluster


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Heirlog = Callable[..., Outcome]


@pytest.fixture
def heirlog(capsys: pytest.CaptureFixture[str]) -> Heirlog:
    # not capfd: threads of a client that an earlier test left behind in this process may write to the descriptor
    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


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
