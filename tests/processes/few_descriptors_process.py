"""A broker with more replicas than descriptors: few_descriptors_process.py DESCRIPTORS

A program of its own, since nodes inherit the limit, and a limit that was lowered for good cannot be raised again.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from patience import eventually
from processes.observing import batch, client_of, create, delete, records_of

from heirlog.blocking import EARLIEST, LATEST, Client
from heirlog.protocol.batch import encode_batch
from heirlog.testing.cluster import Cluster

DESCRIPTORS = int(sys.argv[1])
PARTITIONS = 3 * DESCRIPTORS // 2
ROLLS = {"segment.ms": "1", "retention.bytes": "150", "file.delete.delay.ms": "100"}
COMPACTS = {"segment.ms": "1", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
CONFIG = {
    "log.retention.check.interval.ms": 200,
    "log.cleaner.backoff.ms": 200,
    "log.segment.delete.delay.ms": 200,
}


def descriptors(cluster: Cluster) -> int:
    return len(list(Path(f"/proc/{cluster.pids[1]}/fd").iterdir()))


def write_to_all(client: Client, value: bytes) -> None:
    for partition in range(PARTITIONS):
        answer = client.produce("many", partition, batch(value), acks=-1, timeout_s=60.0)
        assert answer.error_code == 0, answer


def read_all(client: Client, *expected: bytes) -> None:
    for partition in range(PARTITIONS):
        records = records_of(client.fetch_at("many", partition, 0).records)
        assert [record.value for record in records] == list(expected), (partition, records)


def check(cluster: Cluster, *expected: bytes) -> None:
    cluster.wait_until_ready()
    with client_of(cluster) as client:
        read_all(client, *expected)
        write_to_all(client, b"again")
        read_all(client, *expected, b"again")
    assert descriptors(cluster) < DESCRIPTORS


def keys_left(client: Client) -> int:
    """How many batches the compacted log has, by reading all of it."""
    count, offset = 0, 0
    while offset < 30:
        records = records_of(client.fetch_at("keys", 0, offset).records)
        count += len(records)
        offset = records[-1].offset + 1
    return count


def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with Cluster(nodes=1, config=CONFIG) as cluster:
        create(cluster, "many", partitions=PARTITIONS)
        create(cluster, "short", config=ROLLS)
        create(cluster, "keys", config=COMPACTS)
        pids = dict(cluster.pids)
        with client_of(cluster) as client:
            write_to_all(client, b"first")
            for number in range(30):
                assert client.produce("short", 0, batch(b"%06d" % number), acks=-1, timeout_s=60.0).error_code == 0
                keyed = encode_batch([(b"key", b"%06d" % number, [], int(time.time() * 1000))])
                assert client.produce("keys", 0, keyed, acks=-1, timeout_s=60.0).error_code == 0
            read_all(client, b"first")
            eventually(
                lambda: client.list_offsets({("short", 0): EARLIEST})["short", 0].offset > 20, "retention to delete"
            )
            start, end = (client.list_offsets({("short", 0): at})["short", 0].offset for at in (EARLIEST, LATEST))
            assert end == 30
            assert records_of(client.fetch_at("short", 0, start).records)[0].value == b"%06d" % start
            eventually(lambda: keys_left(client) < 10, "the cleaner to keep the last records of the key")
        assert descriptors(cluster) < DESCRIPTORS
        assert cluster.pids == pids, "no node ended"
        cluster.kill(1)
        cluster.start(1)
        check(cluster, b"first")
        cluster.stop(1)
        cluster.start(1)
        check(cluster, b"first", b"again")
        cluster.kill(1)
        cluster.lose_unflushed(1)
        cluster.start(1)
        cluster.wait_until_ready()
        with client_of(cluster) as client:
            write_to_all(client, b"after")
        delete(cluster, "many")
        directory = Path(cluster.data, "broker-1", "log")
        eventually(lambda: not list(directory.glob("many-*")), "the logs to be deleted", 120)
        assert "offline" not in cluster.output(1)


if __name__ == "__main__":
    main()
