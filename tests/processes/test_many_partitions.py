"""Thousands of partitions on the default test cluster, with the ledger of what is flushed.

By hand, with 10,000 partitions: HEIRLOG_PARTITIONS=10000 pytest tests/processes/test_many_partitions.py
"""

from __future__ import annotations

import os
from pathlib import Path

from patience import eventually
from processes.observing import client_of, create, delete

from heirlog.testing.cluster import Cluster

PARTITIONS = int(os.environ.get("HEIRLOG_PARTITIONS", "3000"))
PER_TOPIC = 500
PATIENCE_S = 60 + PARTITIONS / 20


def logs(cluster: Cluster) -> list[str]:
    """Directories of partitions, also of those that are about to be deleted."""
    return [path.name for path in Path(cluster.data, "broker-1", "log").iterdir() if path.name.startswith("many-")]


def test_thousands_of_partitions_come_and_go_lose_what_was_not_flushed_and_stop() -> None:
    """The ledger was full after some 2,600 partitions, and its broker ended while it wrote a new one."""
    with Cluster(nodes=1, config={"log.segment.delete.delay.ms": 1_000}) as cluster:
        pids = dict(cluster.pids)
        names = [f"many-{number}" for number in range(PARTITIONS // PER_TOPIC)]
        for name in names:
            create(cluster, name, partitions=PER_TOPIC)
        eventually(lambda: len(logs(cluster)) >= PARTITIONS, "the partitions to be there", PATIENCE_S)
        for name in names[1:]:
            delete(cluster, name)
        eventually(lambda: len(logs(cluster)) == PER_TOPIC, "the partitions to be gone", PATIENCE_S)
        assert cluster.pids == pids, "no node ended"
        assert not Path(cluster.data, "broker-1", "ledger.failed").exists()
        cluster.kill(1)
        cluster.lose_unflushed(1)
        cluster.start(1)
        cluster.wait_until_ready()
        with client_of(cluster) as client:
            (topic,) = client.metadata([names[0]]).topics
        assert len(topic.partitions) == PER_TOPIC
        eventually(lambda: len(logs(cluster)) == PER_TOPIC, "the partitions to be as before", PATIENCE_S)
        cluster.stop(1)
