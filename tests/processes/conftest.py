"""What tests of real processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heirlog.testing import Cluster


@pytest.fixture
def everybody_runs_again(cluster: Cluster) -> Iterator[None]:
    """Behind each test the module's cluster is whole."""
    yield
    for node in cluster.node_ids:
        if node not in cluster.pids:
            cluster.start(node)
    cluster.wait_until_ready()
