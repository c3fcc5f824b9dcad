"""Logs on real disks: they roll, are flushed as asked, and lose what is too old or too much."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import eventually
from processes.observing import client_of, create, log_files, wait_for, write

from heirlog.blocking import EARLIEST
from heirlog.testing.cluster import Cluster

SEGMENT = 1 << 20
"""The smallest that Kafka allows."""
AT_ONCE = {"file.delete.delay.ms": "0"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, config={"log.retention.check.interval.ms": 200}) as running:
        yield running


def fill(cluster: Cluster, topic: str, megabytes: int) -> None:
    for _ in range(4 * megabytes):
        assert write(cluster, topic, b"x" * 250_000).error_code == 0


def start_of(cluster: Cluster, topic: str) -> int:
    with client_of(cluster) as client:
        return client.list_offsets({(topic, 0): EARLIEST})[topic, 0].offset


def test_segments_roll_at_their_size(cluster: Cluster) -> None:
    create(cluster, "rolls", [1], config={"segment.bytes": str(SEGMENT)})
    fill(cluster, "rolls", 4)
    segments = log_files(cluster, 1, "rolls-0")
    assert [int(path.stem) for path in segments] == [0, 4, 8, 12]
    assert all(path.stat().st_size <= SEGMENT for path in segments)
    indexed = [int(path.stem) for path in log_files(cluster, 1, "rolls-0", ".index") if path.stat().st_size]
    assert indexed[:3] == [0, 4, 8], "a segment that is full has its index"


def test_segments_older_than_retention_ms_are_deleted(cluster: Cluster) -> None:
    create(cluster, "by-age", [1], config={"segment.bytes": str(SEGMENT), "retention.ms": "1000", **AT_ONCE})
    fill(cluster, "by-age", 3)
    eventually(lambda: start_of(cluster, "by-age") == 12, "everything to be too old")
    eventually(lambda: [int(path.stem) for path in log_files(cluster, 1, "by-age-0")] == [12], "the files to go")
    assert write(cluster, "by-age", b"new").base_offset == 12


def test_segments_beyond_retention_bytes_are_deleted(cluster: Cluster) -> None:
    create(cluster, "by-size", [1], config={"segment.bytes": str(SEGMENT), "retention.bytes": str(SEGMENT), **AT_ONCE})
    fill(cluster, "by-size", 5)
    eventually(lambda: start_of(cluster, "by-size") >= 12, "the oldest segments to be dropped")
    assert start_of(cluster, "by-size") < 20, "what retention.bytes allows stays"
    eventually(lambda: len(log_files(cluster, 1, "by-size-0")) <= 2, "the files to go")


def test_what_retention_deleted_stays_deleted_after_a_power_cut(cluster: Cluster) -> None:
    create(cluster, "gone", [1], config={"segment.bytes": str(SEGMENT), "retention.bytes": str(SEGMENT), **AT_ONCE})
    fill(cluster, "gone", 5)
    eventually(lambda: start_of(cluster, "gone") >= 12, "the oldest segments to be dropped")
    cluster.kill(1)
    cluster.lose_unflushed(1)
    cluster.start(1)
    cluster.wait_until_ready()
    wait_for(cluster, "gone", lambda view: view.leader == 1)
    answer = write(cluster, "gone", b"after")
    assert answer.error_code == 0
    assert answer.base_offset >= 12


def test_flush_messages_and_flush_ms_are_honoured_and_the_default_flushes_nothing(cluster: Cluster) -> None:
    create(cluster, "each", [1], config={"flush.messages": "1"})
    create(cluster, "soon", [1], config={"flush.ms": "100"})
    create(cluster, "never", [1])
    for topic in ("soon", "never", "each"):
        for value in (b"a", b"b", b"c"):
            assert write(cluster, topic, value).error_code == 0
    for topic in ("each", "soon"):
        (segment,) = log_files(cluster, 1, f"{topic}-0")
        size = segment.stat().st_size
        eventually(lambda path=segment, size=size: flushed_length(cluster, path) == size > 0, f"the flush of {topic}")
    cluster.kill(1)
    cut = {cut.path.split("/")[-2]: cut for cut in cluster.lose_unflushed(1).cuts if cut.path.endswith(".log")}
    assert "each-0" not in cut and "soon-0" not in cut
    assert cut["never-0"].flushed == 0 < cut["never-0"].written


def flushed_length(cluster: Cluster, path: Path) -> int:
    """What the running broker's ledger says, read without touching it."""
    data = (cluster.data / "broker-1" / "ledger").read_bytes()
    _, tail = struct.unpack_from("=QQ", data)
    at, found = 16, -1
    while at < tail:
        length, cell = struct.unpack_from("=IxxxxQ", data, at)
        entry = json.loads(data[at + 16 : at + 16 + length])
        if entry == {"op": "file", "path": str(path)}:
            found = cell
        at += 16 + length + -length % 8
    return found
