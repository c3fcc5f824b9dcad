"""Disks that fill up, and files that are damaged between a stop and a start, on real processes.

Broker 1 has two log directories. A limit on the size of its files (RLIMIT_FSIZE, which needs no root) stands for a full
disk: the directory whose files reach it fails, the other one does not. What only a simulated disk can do (a failing
fsync, EIO) is in tests/sim.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from patience import eventually
from processes.observing import client_of, create, read, topics, view_of, wait_for, write, write_once

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import MetadataRequest
from heirlog.testing.cluster import Cluster

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits a process that runs")
LIMIT_BYTES = 300_000
BIG = b"x" * 50_000
NODE_LINE = "heirlog: "
NUMBERS = count()


def limit_files(pid: int, size: int) -> None:
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def heirlog(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "heirlog", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def second_directory(cluster: Cluster) -> Path:
    """Give broker 1 one more, and start it again."""
    cluster.stop(1)
    home = cluster.data / "broker-1"
    properties = home / "server.properties"
    text = properties.read_text()
    properties.write_text(text.replace(f"log.dirs={home / 'log'}\n", f"log.dirs={home / 'log'},{home / 'more'}\n"))
    cluster_id = re.search("cluster.id=(.*)", (home / "log" / "meta.properties").read_text())
    assert cluster_id is not None
    done = heirlog("storage", "format", "-t", cluster_id[1], "-c", str(properties), "--ignore-formatted")
    assert done.returncode == 0, done.stderr
    cluster.start(1)
    cluster.wait_until_ready()
    return home / "more"


def topic_in(cluster: Cluster, directory: Path, leader: int = 1) -> str:
    """The name of a topic whose replica on broker 1 is in this directory of it."""
    for _ in range(20):
        name = f"{directory.name}-{next(NUMBERS)}"
        create(cluster, name, [leader, *(broker for broker in (1, 2, 3) if broker != leader)])
        if (directory / f"{name}-0").exists():
            return name
    raise AssertionError(f"no replica was placed in {directory}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # a clean stop waits until the others' heartbeats say that they know
    with Cluster(nodes=3, ledger=False, config={"broker.heartbeat.interval.ms": 500}) as cluster:
        second_directory(cluster)
        yield cluster


def offline_replicas(cluster: Cluster, topic: str) -> list[int]:
    with client_of(cluster) as client:
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        found: list[int] = client.send_to_any(asked).topics[0].partitions[0].offline_replicas
    return found


def test_a_full_disk_takes_one_directory_offline_and_nothing_that_was_acknowledged(cluster: Cluster) -> None:
    home = cluster.data / "broker-1"
    failing, living = topic_in(cluster, home / "more"), topic_in(cluster, home / "log")
    assert write(cluster, living, b"before").error_code == 0
    pid = cluster.pids[1]
    limit_files(pid, LIMIT_BYTES)
    acknowledged = 0
    while (answer := write_once(cluster, 1, failing, BIG, acks=-1)) is not None and answer.error_code == 0:
        acknowledged += 1
    assert answer is not None and answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert acknowledged >= 3
    view = wait_for(cluster, failing, lambda view: view.leader in (2, 3) and 1 not in view.isr)
    assert 1 not in view.elr
    eventually(lambda: offline_replicas(cluster, failing) == [1], "clients to hear of the offline replica")
    # the other directory goes on as if nothing had happened
    assert cluster.pids[1] == pid
    there = view_of(cluster, living)
    assert there is not None and there.leader == 1 and len(there.isr) == 3
    assert write(cluster, living, b"after").error_code == 0
    assert write(cluster, failing, b"elsewhere").error_code == 0
    assert read(cluster, failing) == [BIG] * acknowledged + [b"elsewhere"]
    # the next start finds a disk with room: unclean, because one directory was not closed
    cluster.stop(1)
    assert not (home / "more" / ".kafka_cleanshutdown").exists()
    cluster.start(1)
    for topic in (failing, living):
        wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    assert read(cluster, failing) == [BIG] * acknowledged + [b"elsewhere"]
    assert read(cluster, living) == [b"before", b"after"]


def test_acks_all_continues_soon_after_a_followers_directory_has_failed(cluster: Cluster) -> None:
    """Not after replica.lag.time.max.ms, 30 s here; below a second on a machine that does nothing else."""
    topic = topic_in(cluster, cluster.data / "broker-1" / "more", leader=2)
    seen = len(cluster.output(1))
    limit_files(cluster.pids[1], LIMIT_BYTES)
    took_s = []
    for _ in range(2 * LIMIT_BYTES // len(BIG)):
        began = time.monotonic()
        answer = write_once(cluster, 2, topic, BIG, acks=-1)
        assert answer is not None and answer.error_code == 0
        took_s.append(time.monotonic() - began)
    assert "log-directory-offline" in cluster.output(1)[seen:]
    assert max(took_s) < 10, "as long as a third of the lag time: who is too slow was waited for"
    wait_for(cluster, topic, lambda view: view.leader == 2 and 1 not in view.isr)
    cluster.stop(1)
    cluster.start(1)
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)


def replace(path: Path) -> None:
    """By a directory in which the node can write."""
    other = path.with_name(f"{path.name}-other")
    (other / "__cluster_metadata-0").mkdir(parents=True)
    path.rename(path.with_name(f"{path.name}-away"))
    other.rename(path)


def test_a_directory_whose_place_another_one_has_taken_is_offline(cluster: Cluster) -> None:
    """The files that are open could still be written, and the next start would not find what they got."""
    home = cluster.data / "broker-1"
    topic = topic_in(cluster, home / "more")
    assert write(cluster, topic, b"before").error_code == 0
    seen = len(cluster.output(1))
    replace(home / "more")
    wait_for(cluster, topic, lambda view: view.leader in (2, 3) and 1 not in view.isr)
    (line,) = [line for line in cluster.output(1)[seen:].splitlines() if "log-directory-offline" in line]
    assert "another directory has taken the place" in line and str(home / "more") in line
    assert write(cluster, topic, b"after").error_code == 0
    # the one with the metadata log
    replace(home / "log")
    eventually(lambda: 1 not in cluster.pids, "the broker to end")
    (sentence,) = [line for line in cluster.output(1)[seen:].splitlines() if line.startswith(NODE_LINE)]
    assert "metadata log" in sentence and str(home / "log") in sentence
    for name in ("more", "log"):
        shutil.rmtree(home / name)
        (home / f"{name}-away").rename(home / name)
    cluster.start(1)
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    assert read(cluster, topic) == [b"before", b"after"]


def empty(path: Path) -> None:
    path.write_bytes(b"")


def unreadable(path: Path) -> None:
    """A root may read everything, but nobody a directory as a file."""
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (empty, "meta.properties"),
        (unreadable, "recovery-point-offset-checkpoint"),
        (unreadable, "TOPIC-0/00000000000000000000.log"),
        (empty, "TOPIC-0/partition.metadata"),
    ],
)
def test_a_directory_that_cannot_be_opened_or_loaded_is_offline_and_its_replicas_are_made_again_in_another_one(
    cluster: Cluster, damage: Callable[[Path], None], name: str
) -> None:
    home = cluster.data / "broker-1"
    more = home / "more"
    topic = topic_in(cluster, more)
    assert write(cluster, topic, b"kept").error_code == 0
    cluster.stop(1)
    backup = home / "backup"
    shutil.copytree(more, backup)
    seen = len(cluster.output(1))
    damage(more / name.replace("TOPIC", topic))
    cluster.start(1)
    cluster.wait_until_ready()
    (line,) = [line for line in cluster.output(1)[seen:].splitlines() if "log-directory-offline" in line]
    assert str(more) in line
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    assert (home / "log" / f"{topic}-0").exists()
    assert write(cluster, topic, b"later").error_code == 0
    # the old copy comes back, and is not taken for the one that has gone on meanwhile
    cluster.stop(1)
    shutil.rmtree(more)
    backup.rename(more)
    cluster.start(1)
    cluster.wait_until_ready()
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    assert read(cluster, topic) == [b"kept", b"later"]
    assert list(more.glob(f"{topic}-0.*-stray")) and not (more / f"{topic}-0").exists()


def test_a_segment_that_is_cut_while_the_node_runs_takes_its_directory_offline(cluster: Cluster) -> None:
    home = cluster.data / "broker-1"
    topic = topic_in(cluster, home / "more")
    for _ in range(4):
        assert write(cluster, topic, BIG).error_code == 0
    os.truncate(home / "more" / f"{topic}-0" / f"{0:020d}.log", 60_000)
    assert read(cluster, topic) == [BIG] * 4, "from another replica, once the first has found out"
    wait_for(cluster, topic, lambda view: view.leader in (2, 3) and 1 not in view.isr)
    assert 1 in cluster.pids
    cluster.stop(1)
    cluster.start(1)
    cluster.wait_until_ready()
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    assert '"log-cut-by-recovery"' in cluster.output(1)
    assert read(cluster, topic) == [BIG] * 4


def test_damaged_helpers_are_made_again_and_a_cut_log_gives_up_its_seat(cluster: Cluster) -> None:
    log = cluster.data / "broker-1" / "log"
    topic = topic_in(cluster, log)
    values = [b"%d" % number for number in range(5)]
    for value in values:
        assert write(cluster, topic, value).error_code == 0
    directory = log / f"{topic}-0"
    cluster.stop(1)
    for path in sorted(directory.glob("*index")) + sorted(directory.glob("*.snapshot")):
        path.write_bytes(b"\xff" * 7)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\nnonsense\n")
    (log / "log-start-offset-checkpoint").write_text("0\n1\n" + f"{topic} 0 {'9' * 18}\n")
    (log / "replication-offset-checkpoint").write_bytes(b"")
    cluster.start(1)
    cluster.wait_until_ready()
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    assert read(cluster, topic) == values
    cluster.stop(1)
    segment = directory / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-10])
    cluster.start(1)
    eventually(lambda: "log-shorter-than-flushed" in cluster.output(1), "the log line that names what is missing")
    cluster.wait_until_ready()
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    assert read(cluster, topic) == values


def test_foreign_directories_are_refused_with_a_sentence(cluster: Cluster) -> None:
    home = cluster.data / "broker-1"
    identities = [home / "log" / "meta.properties", home / "more" / "meta.properties"]
    # without the line that shows damage: an operator wrote these files on purpose
    before = [re.sub("# crc32c.*\\n", "", path.read_text()) for path in identities]
    eventually(lambda: bool(topics(cluster)), "the cluster runs")
    cluster.stop(1)
    foreign = re.sub("cluster.id=.*", "cluster.id=" + "A" * 22, before[1])
    both_foreign = [re.sub("cluster.id=.*", "cluster.id=" + "A" * 22, text) for text in before]
    for texts, words in (
        ([before[0], foreign], "belongs to cluster AAAA"),
        ([before[0], before[1].replace("node.id=1", "node.id=7")], "belongs to node 7, not 1"),
        ([before[0], before[0]], "is a copy of"),
        (["", before[1]], "is damaged"),
        (both_foreign, "belongs to another cluster than AAAA"),
    ):
        for path, text in zip(identities, texts, strict=True):
            path.write_text(text)
        ended = heirlog("node", "--config", str(home / "server.properties"), "--reuse-port")
        sentences = [line for line in ended.stderr.splitlines() if line.startswith(NODE_LINE)]
        assert ended.returncode == 1 and len(sentences) == 1, ended.stderr
        assert words in sentences[0]
    for path, text in zip(identities, before, strict=True):
        path.write_text(text)
    properties = home / "server.properties"
    in_order = properties.read_text()
    properties.write_text(in_order.replace(f"{home}/log,{home}/more", f"{home}/more,{home}/log"))
    assert properties.read_text() != in_order
    ended = heirlog("node", "--config", str(properties), "--reuse-port")
    assert ended.returncode == 1 and f"set metadata.log.dir={home}/log (" in ended.stderr, ended.stderr
    properties.write_text(in_order)
    cluster.start(1)
    cluster.wait_until_ready()


def test_a_broker_without_any_directory_left_ends_with_one_sentence() -> None:
    with Cluster(nodes=1, ledger=False) as cluster:
        create(cluster, "t", [1])
        limit_files(cluster.pids[1], LIMIT_BYTES)
        for _ in range(10):
            try:
                answer = write_once(cluster, 1, "t", BIG, acks=-1)
            except OSError:
                break
            if answer is None or answer.error_code:
                break
        eventually(lambda: 1 not in cluster.pids, "the broker to end")
        (sentence,) = [line for line in cluster.output(1).splitlines() if line.startswith(NODE_LINE)]
        assert "every log directory has failed" in sentence and "File too large" in sentence
        cluster.start(1)
        cluster.wait_until_ready()
        wait_for(cluster, "t", lambda view: view.leader == 1)
        assert set(read(cluster, "t")) == {BIG}
