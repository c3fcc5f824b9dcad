"""One Spark session for all tests of a process, and one cluster beside it: a JVM takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from heirlog.spark import java, session
from heirlog.testing.cluster import Cluster

# a JVM of a test lives too briefly for the optimising compiler: two cores do without its threads and the collector's
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# nor does a query of a few rows live long enough for Java that is generated and compiled for it
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # .ci/run has the tests once more on the other Java, as Spark runs by default
    conf = {} if os.environ.get(java.CHOICE) else INTERPRETED
    started = session.start("local[2]", conf, app_name="heirlog tests")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    # tests write records of 1970 and of 2023, and read them for minutes: retention must not pass by meanwhile
    config = {"log.retention.check.interval.ms": 3_600_000, "auto.leader.rebalance.enable": False}
    with Cluster(nodes=3, ledger=False, config=config) as started:
        yield started
