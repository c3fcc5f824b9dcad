"""One Spark session for all tests of a process, and one cluster beside it: a JVM takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from heirlog.spark import session
from heirlog.testing.cluster import Cluster

# a JVM of a test lives too briefly for the optimising compiler: two cores do without its threads and the collector's
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session.start("local[2]", app_name="heirlog tests")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3, ledger=False) as started:
        yield started
