"""Power cuts on real processes: what was flushed is there afterwards, and what was not is gone without harm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest
from patience import eventually
from processes.observing import (
    NO_LEADER,
    create,
    delete,
    history,
    log_files,
    metadata_records,
    read,
    topics,
    wait_for,
    whole_batches_size,
    write,
)

from heirlog.protocol.records import RegisterBrokerRecord
from heirlog.testing.cluster import Cluster

pytestmark = pytest.mark.usefixtures("everybody_runs_again")

UNFLUSHED_METADATA = """
from heirlog.server.ledger_files import LedgerFiles

flush = LedgerFiles.flush

def pretend(files, file, on_flushed):
    if "__cluster_metadata-0" in file.path and file.path.endswith(".log"):
        files._flusher._deliver(lambda: on_flushed(None))
    else:
        flush(files, file, on_flushed)

LedgerFiles.flush = pretend

from heirlog.cli.main import main
main()
"""
"""A node that says its metadata log is flushed when it is not."""

SHORT_SESSIONS = {"broker.session.timeout.ms": 4_000, "broker.heartbeat.interval.ms": 500}
"""Where a controller dies together with brokers, whose next process waits for the end of their sessions."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3, config=SHORT_SESSIONS) as running:
        yield running


def cut_controller(cluster: Cluster) -> list[str]:
    """What its metadata log lost."""
    cluster.kill(100)
    report = cluster.lose_unflushed(100)
    return [cut.path for cut in report.cuts if cut.path.endswith(".log")]


def test_acknowledged_metadata_survive_a_power_cut_of_the_controller(cluster: Cluster) -> None:
    create(cluster, "promised", [1, 2, 3])
    assert cut_controller(cluster) == []
    cluster.start(100)
    cluster.wait_until_ready()
    create(cluster, "after", [1, 2, 3])
    assert {"promised", "after"} <= set(topics(cluster))


def test_with_one_flush_removed_acknowledged_metadata_disappear(tmp_path: Path) -> None:
    """The same power cut on a controller that answers without having flushed its metadata log."""
    with Cluster(nodes=1, config=SHORT_SESSIONS) as cluster:
        create(cluster, "flushed", [1])
        cluster.kill(100)
        liar = start_pretending(cluster)
        try:
            cluster.wait_until_ready()
            create(cluster, "promised", [1])
            assert set(topics(cluster)) == {"flushed", "promised"}
        finally:
            liar.kill()
            liar.communicate()
        cluster.kill(1)  # an observer that is ahead of the voter would say so
        lost = cluster.lose_unflushed(100)
        assert any("__cluster_metadata-0" in cut.path and cut.flushed < cut.written for cut in lost.cuts)
        cluster.start(100)
        assert "promised" not in names_in_metadata(cluster)
        assert "flushed" in names_in_metadata(cluster)


def start_pretending(cluster: Cluster) -> subprocess.Popen[bytes]:
    directory = cluster.data / "controller-100"
    arguments = ["node", "--config", str(directory / "server.properties"), "--ledger", str(directory / "ledger")]
    program = [sys.executable, "-P", "-c", UNFLUSHED_METADATA, *arguments, "--reuse-port", "--stop-with-stdin"]
    with (directory / "node.log").open("ab") as output:
        return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=output, stderr=output)


def names_in_metadata(cluster: Cluster) -> set[str]:
    return {record.name for _, record in metadata_records(cluster, 100) if type(record).__name__ == "TopicRecord"}


def test_the_quorum_state_survives_so_that_no_epoch_is_used_twice(cluster: Cluster) -> None:
    state = cluster.data / "controller-100" / "log" / "__cluster_metadata-0" / "quorum-state"
    before = epochs_of_controller(cluster)
    for _ in range(2):
        cut_controller(cluster)
        assert state.exists()
        cluster.start(100)
        cluster.wait_until_ready()
        eventually(lambda seen=before: epochs_of_controller(cluster) > seen, "a new epoch")
        before = epochs_of_controller(cluster)


def epochs_of_controller(cluster: Cluster) -> int:
    """The newest epoch the controller says it leads in."""
    lines = [json.loads(line) for line in cluster.output(100).splitlines() if '"controller-active"' in line]
    found = [line["epoch"] for line in lines]
    return max(found)


def test_after_a_clean_stop_a_power_cut_takes_nothing_and_the_broker_keeps_its_seat(cluster: Cluster) -> None:
    create(cluster, "clean", [1, 2, 3])
    write(cluster, "clean", b"a", b"b")
    cluster.stop(3)
    write(cluster, "clean", b"c")
    cluster.stop(2)
    wait_for(cluster, "clean", lambda view: (view.isr, view.elr, view.leader) == ((1,), (2,), 1))
    report = cluster.lose_unflushed(2)
    assert [cut.path for cut in report.cuts] == []
    assert not [change for change in report.undone if "cleanshutdown" in change]
    assert (cluster.data / "broker-2" / "log" / ".kafka_cleanshutdown").exists()
    cluster.kill(1)
    cluster.lose_unflushed(1)
    cluster.start(2)
    elected = wait_for(cluster, "clean", lambda view: view.leader == 2)
    assert elected.isr == (2,)
    cluster.start(3)
    wait_for(cluster, "clean", lambda view: set(view.isr) >= {2, 3})
    assert read(cluster, "clean") == [b"a", b"b", b"c"]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_power_cut_right_after_start_up_finds_the_logs_scanned_and_the_torn_tail_gone(
    cluster: Cluster, seed: int
) -> None:
    topic = f"torn-{seed}"
    create(cluster, topic, [1, 2, 3])
    write(cluster, topic, b"flushed by a clean stop")
    for node in (3, 2):
        cluster.stop(node)
    cluster.stop(1)
    clean_file = cluster.data / "broker-1" / "log" / ".kafka_cleanshutdown"
    assert clean_file.exists()
    cluster.start(1)
    wait_for(cluster, topic, lambda view: view.leader == 1)
    assert not clean_file.exists(), "a crash from here on must not pass for a clean stop"
    # min.insync.replicas is 2, so that nothing of this is committed
    for number in range(3):
        assert write(cluster, topic, bytes([number]) * 50_000, acks=1).error_code == 0
    cluster.kill(1)
    (segment,) = log_files(cluster, 1, f"{topic}-0")
    (cut,) = [cut for cut in cluster.lose_unflushed(1, seed).cuts if cut.path == str(segment)]
    torn, whole = segment.stat().st_size, whole_batches_size(segment)
    assert cut.flushed <= whole < torn < cut.written, "this seed tears no batch: take another one"

    cluster.start(1)
    cluster.start(2)
    wait_for(cluster, topic, lambda view: view.leader == 2)
    eventually(lambda: segment.stat().st_size == whole_batches_size(segment), "the torn tail to be cut")
    cluster.start(3)
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    since_election = list(dropwhile(lambda state: state.leader != 2, history(cluster, topic)))
    assert since_election[0].isr == (2,)
    before_return = list(takewhile(lambda state: 1 not in state.isr, since_election))[-1]
    assert 1 not in before_return.elr, "broker 1 was still eligible after an unclean stop"
    assert read(cluster, topic) == [b"flushed by a clean stop"]
    assert (
        log_files(cluster, 1, f"{topic}-0")[0].stat().st_size == log_files(cluster, 2, f"{topic}-0")[0].stat().st_size
    )


def test_a_broker_registers_as_unclean_after_a_power_cut_and_leaves_its_seat(cluster: Cluster) -> None:
    create(cluster, "unclean", [1, 2, 3])
    write(cluster, "unclean", b"a")
    cluster.stop(3)
    cluster.stop(2)
    cluster.kill(1)
    cluster.lose_unflushed(1)
    registrations = registrations_of(cluster, 1)
    cluster.start(1)
    eventually(lambda: registrations_of(cluster, 1) > registrations, "its registration")
    left = wait_for(cluster, "unclean", lambda view: view.leader == NO_LEADER and 1 not in view.elr)
    assert (left.isr, left.elr, left.last_known_elr) == ((), (2,), (1,))
    cluster.start(2)
    cluster.start(3)
    wait_for(cluster, "unclean", lambda view: view.leader == 2 and len(view.isr) == 3)
    assert read(cluster, "unclean") == [b"a"]


def registrations_of(cluster: Cluster, broker: int) -> int:
    return sum(
        isinstance(record, RegisterBrokerRecord) and record.broker_id == broker
        for _, record in metadata_records(cluster, 100)
    )


def test_undone_creates_renames_and_unlinks_never_stand_in_the_way_of_a_restart(cluster: Cluster) -> None:
    undone: list[str] = []
    for seed in range(3):
        kept, gone, burst = f"kept-{seed}", f"gone-{seed}", f"burst-{seed}"
        create(cluster, kept, [1, 2, 3])
        create(cluster, gone, [1, 2, 3])
        write(cluster, kept, b"acknowledged by all")
        delete(cluster, gone)
        create(cluster, burst, partitions=30)
        eventually(lambda name=burst: log_files(cluster, 1, f"{name}-0"), "the first new logs")
        victims = [1, 100] if seed % 2 else [1]
        for node in victims:
            cluster.kill(node)
        for node in victims:
            undone += cluster.lose_unflushed(node, seed).undone
            cluster.start(node)
        cluster.wait_until_ready()
        for topic in (kept, burst):
            wait_for(cluster, topic, lambda view: len(view.isr) == 3)
        assert gone not in topics(cluster)
        assert read(cluster, kept) == [b"acknowledged by all"]
        assert write(cluster, burst, b"a").error_code == 0
    assert undone, "these seeds undo nothing: take others"
