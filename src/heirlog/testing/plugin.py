"""pytest plug-in: the fixtures `heirlog_cluster`, a new cluster for one test, and `heirlog_shared_cluster`, for all.

    @pytest.mark.heirlog(nodes=1, config={"num.partitions": 6})
    def test_something(heirlog_cluster):
        ...

The marker's arguments are those of `heirlog.testing.Cluster`; those of the shared cluster come from the fixture
`heirlog_shared_arguments`, which a conftest.py replaces. After a failed test that had a cluster from any fixture, the
report names the folder to which the output of its nodes was copied; `--heirlog-logs` shows the end of it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heirlog.testing.cluster import Cluster

MARKER = "heirlog(nodes=3, config=None, combined=False, ...): arguments of the Cluster of the fixture heirlog_cluster"
LOGS = "--heirlog-logs"
OUTPUT_LINES = 30
NAME_MAX = 100

_folders = pytest.StashKey[pytest.TempPathFactory]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("heirlog").addoption(
        LOGS, action="store_true", help="after a failed test, show the end of what each node of its cluster printed"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marker that counts for nothing is a mistake; one of a module or a class may be for some of its tests."""
    is_marked = any(marker.name == "heirlog" for marker in item.own_markers)
    if is_marked and "heirlog_cluster" not in getattr(item, "fixturenames", ()):
        item.warn(
            pytest.PytestWarning("@pytest.mark.heirlog has no effect: it is for tests with the fixture heirlog_cluster")
        )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def heirlog_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A started cluster of the test's own; its arguments come from the marker `heirlog`."""
    marker = request.node.get_closest_marker("heirlog")
    if marker is not None:
        _refuse_unknown(marker)
    with _started(marker.args if marker else (), marker.kwargs if marker else {}) as cluster:
        yield cluster


@contextmanager
def _started(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Cluster]:
    """What is wrong with the arguments fails the test in one line: the source of this module says nothing about it."""
    from heirlog.testing.cluster import Cluster, ClusterError

    with ExitStack() as stack:
        refused = ""
        try:
            cluster = stack.enter_context(Cluster(*args, **kwargs))
        except ClusterError as error:
            refused = str(error)
        if refused:
            # outside of `except`: pytest would show the same sentence twice
            pytest.fail(refused, pytrace=False)
        yield cluster


def _refuse_unknown(marker: pytest.Mark) -> None:
    """Fails the test, with the name that was meant."""
    from difflib import get_close_matches

    from heirlog.testing.cluster import Cluster

    known = list(inspect.signature(Cluster).parameters)
    for name in marker.kwargs:
        if name not in known:
            like = get_close_matches(name, known, 1)
            meant = f"did you mean {like[0]}?" if like else f"there are {', '.join(known)}"
            pytest.fail(f"@pytest.mark.heirlog has no argument {name}; {meant}", pytrace=False)


@pytest.fixture(scope="session")
def heirlog_shared_arguments() -> dict[str, Any]:
    """Arguments of the Cluster of `heirlog_shared_cluster`; to be replaced in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def heirlog_shared_cluster(heirlog_shared_arguments: dict[str, Any]) -> Iterator[Cluster]:
    """A started cluster for all tests of the session; with pytest-xdist, one for each worker."""
    with _started((), heirlog_shared_arguments) as cluster:
        yield cluster


@pytest.fixture(scope="session", autouse=True)
def _heirlog_folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Remember where this session keeps files: pytest itself removes them some sessions later."""
    request.config.stash[_folders] = tmp_path_factory


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when != "teardown" and report.failed:
        for name, cluster in _clusters(item):
            report.sections.extend(_said(item, name, cluster))
    return report


def _clusters(item: pytest.Item) -> list[tuple[str, Cluster]]:
    """Clusters that the test got from fixtures, with the fixtures' names; none without the class being imported."""
    module = sys.modules.get("heirlog.local.cluster")
    if module is None:
        return []
    given: dict[str, Any] = getattr(item, "funcargs", {})
    return [(name, value) for name, value in given.items() if isinstance(value, module.Cluster)]


def _said(item: pytest.Item, name: str, cluster: Cluster) -> list[tuple[str, str]]:
    """Sections of the report: where the output of the nodes is and, on request, its end."""
    try:
        outputs = {node: cluster.output(node) for node in cluster.node_ids}
    except OSError:
        # a cluster that was closed has no files any more
        return []
    if not outputs:
        return []
    folder = _copied(item, name, outputs)
    sections = [(f"output of the nodes of {name}", f"{folder} (pytest {LOGS} shows its end)")]
    if item.config.getoption(LOGS):
        for node, said in outputs.items():
            sections.append((f"output of node {node} of {name}", "\n".join(said.splitlines()[-OUTPUT_LINES:])))
    return sections


def _copied(item: pytest.Item, name: str, outputs: dict[int, str]) -> Path:
    test = re.sub(r"\W+", "-", item.nodeid)[-NAME_MAX:]
    folder = item.config.stash[_folders].mktemp(f"heirlog-logs-{test}-{name}")
    for node, said in outputs.items():
        (folder / f"node-{node}.log").write_text(said, encoding="utf-8")
    return folder
