"""pytest plug-in: the fixture `heirlog_cluster`, a fresh cluster for one test.

    @pytest.mark.heirlog(nodes=1, config={"num.partitions": 6})
    def test_something(heirlog_cluster):
        ...

The marker's arguments are those of `heirlog.testing.Cluster`. After a failed test the end of each node's output is
part of the report.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heirlog.testing.cluster import Cluster

MARKER = "heirlog(nodes=3, config=None, combined=False, ...): arguments of the Cluster of the fixture heirlog_cluster"
OUTPUT_LINES = 30

_cluster_of_test = pytest.StashKey["Cluster"]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def heirlog_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A started cluster; parameters come from the marker `heirlog`."""
    from heirlog.testing.cluster import Cluster

    marker = request.node.get_closest_marker("heirlog")
    with Cluster(*(marker.args if marker else ()), **(marker.kwargs if marker else {})) as cluster:
        request.node.stash[_cluster_of_test] = cluster
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    cluster = item.stash.get(_cluster_of_test, None)
    if cluster is not None and report.when == "call" and report.failed:
        for node in cluster.node_ids:
            last = cluster.output(node).splitlines()[-OUTPUT_LINES:]
            report.sections.append((f"output of node {node}", "\n".join(last)))
    return report
