"""A pytest plugin for suites of others: what became of each test, and an end to each that hangs.

HEIRLOG_SUITE_RESULTS names the file to write: a JSON object, the name of a test -> "passed", "failed" or "skipped".
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TEST_TIMEOUT_S = int(os.environ.get("HEIRLOG_SUITE_TEST_TIMEOUT_S", "90"))
outcomes: dict[str, str] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} took longer than {TEST_TIMEOUT_S} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(TEST_TIMEOUT_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_runtest_logreport(report: Any) -> None:
    """A test fails with its setup or teardown too; what failed stays failed."""
    if report.outcome == "failed" or (report.outcome == "skipped" and outcomes.get(report.nodeid) != "failed"):
        outcomes[report.nodeid] = report.outcome
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, report.outcome)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        outcomes[report.nodeid] = "failed"


def pytest_sessionfinish() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        Path(os.environ["HEIRLOG_SUITE_RESULTS"]).write_text(json.dumps(outcomes, indent=1, sort_keys=True))
