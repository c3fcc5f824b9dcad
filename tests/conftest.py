"""How the tests are dealt out to the processes that run them (PROCESSES in the Makefile).

A file stays in one process, since its fixtures may cost seconds; so do all files that share the Spark session. What
takes longest comes first, so that no process is left with it at the end; xdist by itself would sort by the number of
tests, which says nothing of their length. Then files that wait for nodes, JVMs and clients take turns with those that
compute: only waiting ones would leave a core idle, and only computing ones would take it from each other.

Hypothesis judges what comes out, never how long it takes: on a busy machine any example may take a second.

Each process reads all tests before it runs one. Meanwhile the garbage collector is off: what is read stays to the end.

Tests send signals to the commands that they start. A command ignores what it was started with as ignored, and a shell
ignores SIGINT for what runs in the background, nohup ignores SIGHUP: so those are restored here, for all children.

Traps. Markers of groups (`--dist loadgroup`) do not reach the scheduler of xdist 3.8 with pytest 9.2.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from functools import cached_property
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

settings.register_profile("heirlog", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("heirlog")

for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# the contexts of the person who runs the tests stay as they are
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="heirlog-contexts-")
atexit.register(shutil.rmtree, os.environ["XDG_CONFIG_HOME"], ignore_errors=True)

TESTS = Path(__file__).parent
SPARK = "spark/"
LONGEST_FIRST = ("drill/test_pipeline.py", SPARK, "sim/test_run.py", "processes/test_guides.py", "clients/")
"""Files of clients/ one after the other, since they share a cluster."""
WAITING = ("drill/", "processes/", "cli/test_up.py", "local/", "testing/", "server/", "cli/", "blocking/")
COMPUTING = ("sim/", "node/", "controller/", "raft/", "protocol/", "")
"""Both: longer files first."""


class FileByFile(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(f"tests/{SPARK}") else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        """As in the base class, which searches the list of all tests for each of them."""
        scope, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = tests
        node.send_runtest_some([self._number[test] for test, completed in tests.items() if not completed])

    @cached_property
    def _number(self) -> dict[str, int]:
        """Every process has the same tests in the same order."""
        return {test: number for number, test in enumerate(self.collection)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="Text scripts: write what comes out into the files.")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    config.option.loadscopereorder = False
    return FileByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    files = list(dict.fromkeys(item.path for item in items))
    names = [path.relative_to(TESTS).as_posix() for path in files]
    turn = {files[names.index(name)]: number for number, name in enumerate(in_turn(names))}
    items.sort(key=lambda item: turn[item.path])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def in_turn(paths: list[str]) -> list[str]:
    """The files in the order in which they begin."""
    first = [path for start in LONGEST_FIRST for path in paths if path.startswith(start)]
    rest = [path for path in paths if path not in first]
    waiting = list(dict.fromkeys(path for start in WAITING for path in rest if path.startswith(start)))
    rest = [path for path in rest if path not in waiting]
    computing = list(dict.fromkeys(path for start in COMPUTING for path in rest if path.startswith(start)))
    # each kind is spread over the whole time
    place = {path: number / len(kind) for kind in (waiting, computing) for number, path in enumerate(kind)}
    return first + sorted(place, key=lambda path: place[path])
