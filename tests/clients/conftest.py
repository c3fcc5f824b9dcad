"""One cluster for all tests of strangers' clients that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from clients.world import UNTOUCHED, World

from heirlog.testing.cluster import Cluster


@contextmanager
def started() -> Iterator[World]:
    with Cluster(nodes=3, config=UNTOUCHED) as cluster:
        yield World(cluster)
        for node in cluster.node_ids:
            failed = "request-failed" in cluster.output(node)
            assert not failed, f"a handler of node {node} failed: no request may be able to do that"


@pytest.fixture(scope="package")
def world() -> Iterator[World]:
    with started() as world:
        yield world


@pytest.fixture(scope="module")
def own_world() -> Iterator[World]:
    """For one file whose tests do not leave the cluster as they found it."""
    with started() as world:
        yield world
