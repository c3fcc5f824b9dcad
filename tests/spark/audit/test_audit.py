"""An audit as its user runs it: real directories of a cluster that was stopped, healthy and with planted damage."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli.json_shapes import mistakes_of
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from patience import eventually
from pyspark.sql import SparkSession
from spark.audit import planted

from heirlog.metadata.basis import Basis
from heirlog.protocol.records import PartitionChangeRecord
from heirlog.protocol.types import Uuid
from heirlog.spark.audit.audit import Audit, run
from heirlog.spark.audit.inventory import Inventory, take_inventory
from heirlog.spark.audit.job import SPARK_ERRORS, Job
from heirlog.spark.audit.segment_scan import Unit
from heirlog.storage.checkpoints import HIGH_WATERMARK_CHECKPOINT
from heirlog.storage.identity import PARTITION_METADATA, parse_partition_metadata
from heirlog.testing.cluster import Cluster

FLIPPED, SEGMENT, TRUNCATED, DIVERGED, EPOCH, ELR, DOUBLED, LOST = range(8)
"""The partitions, by what is done to them."""
NODES = (1, 2, 3)
RECORDS = 80
"""In each partition."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a cluster with eight partitions of three replicas, one of them in three segments."""
    data = tmp_path_factory.mktemp("audit") / "data"
    config = {
        "log.segment.bytes": 1 << 20,
        "min.insync.replicas": 2,
        "replica.high.watermark.checkpoint.interval.ms": 100,
    }
    with Cluster(nodes=3, data=data, ledger=False, config=config) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for created in admin.create_topics([NewTopic("orders", 8, 3)]).values():
            created.result()
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "batch.num.messages": 2}
        )
        for number in range(RECORDS):
            for partition in range(8):
                size = 40_000 if partition == SEGMENT else 40
                producer.produce("orders", b"%d " % number * size, partition=partition)
            if number % 8 == 0:
                producer.flush()
            if number == 60:
                cluster.stop(1)
                cluster.start(1)
        assert producer.flush(30) == 0
        eventually(partial(_all_in_sync, admin), "replicas in sync")
        # a follower learns of the last one with a fetch of its own
        eventually(partial(_all_know_the_high_watermark, data), "high watermarks on the disks of followers")
        del producer, admin  # they would log each connection that they lose
    yield data


def _all_in_sync(admin: AdminClient) -> bool:
    found = admin.list_topics("orders", timeout=5).topics["orders"].partitions
    return all(len(partition.isrs) == 3 for partition in found.values())


def _all_know_the_high_watermark(data: Path) -> bool:
    known = {f"orders {partition} {RECORDS}" for partition in range(8)}
    checkpoints = [log_directory(data, node) / HIGH_WATERMARK_CHECKPOINT for node in NODES]
    return all(path.exists() and known <= {*map(str.strip, path.read_text().splitlines())} for path in checkpoints)


def log_directory(data: Path, node: int) -> Path:
    return data / (f"broker-{node}" if node < 100 else f"controller-{node}") / "log"


def inventory_of(data: Path) -> Inventory:
    return take_inventory([str(log_directory(data, node)) for node in (*NODES, 100)])


def audited(spark: SparkSession, data: Path, out: Path) -> Audit:
    out.mkdir()
    found = run(spark, inventory_of(data), out)
    assert not mistakes_of("audit", found.as_json())
    return found


def page_of(found: Audit) -> str:
    """The page, whose plots are well-formed and which refers to nothing elsewhere."""
    text = (found.out / "audit.html").read_text("utf-8")
    plots = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    for plot in plots:
        ElementTree.fromstring(plot)
    assert len(plots) > 16
    assert not re.search(r"https?:|<script|<link|<img", text)
    return text


def topic_id(data: Path) -> Uuid:
    found = parse_partition_metadata((log_directory(data, 1) / "orders-0" / PARTITION_METADATA).read_bytes())
    assert found is not None
    return found


def test_healthy_directories_have_no_findings(spark: SparkSession, stopped: Path, tmp_path: Path) -> None:
    found = audited(spark, stopped, tmp_path / "out")
    assert found.findings == []
    assert (found.partitions, found.replicas) == (8, 24)
    assert "No findings." in page_of(found)
    assert found.records == 3 * 8 * 80


def test_each_planted_damage_is_found_where_it_is(spark: SparkSession, stopped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped, data)

    def log(node: int, partition: int) -> Path:
        return log_directory(data, node) / f"orders-{partition}"

    planted.wrong_epoch_entry(log(2, EPOCH))
    expected = {
        # also if it is the leader: the others agree with each other
        ("diverged", DIVERGED, 2): planted.diverge(log(2, DIVERGED)),
        ("batch-damaged", FLIPPED, 1): planted.flip_bit(log(1, FLIPPED)),
        ("offsets-missing", SEGMENT, 2): planted.remove_segment(log(2, SEGMENT))[0],
        ("below-high-watermark", TRUNCATED, 3): planted.truncate_tail(log(3, TRUNCATED)),
        ("batch-doubled", DOUBLED, 3): planted.double_batch_in_place(log(3, DOUBLED)),
    }
    # the controller has the newest copy of the metadata log
    offset = planted.append_metadata(log_directory(data, 100), *_broken_records(topic_id(data)))
    expected |= {
        ("elr-entry", ELR, -1): offset,
        ("loss-unreported", LOST, -1): offset + 1,
    }
    found = audited(spark, data, tmp_path / "out")
    there = {(each.kind, each.partition, each.replica): each.offset for each in found.findings}
    assert there.pop(("leader-epochs-wrong", EPOCH, 2)) >= 0
    assert there | expected == there
    assert all(escape(each.sentence) in page_of(found) for each in found.findings)
    # what follows from them: a broker of a stopped cluster leads, and an index points at batches that moved
    follow = {("T2", ELR), ("T10", ELR), ("T2", LOST), ("index-wrong", DOUBLED)}
    assert {(kind, partition) for kind, partition, _ in there.keys() - expected.keys()} <= follow


def _broken_records(topic: Uuid) -> list[PartitionChangeRecord]:
    """A replica enters the ELR from nowhere; a recovery gives up offsets 10 to 79 and nobody reports it."""
    answer = PartitionChangeRecord.ReplicaAnswer
    basis = PartitionChangeRecord.ElectionBasis(
        basis=Basis.RECOVERED.number,
        leader=1,
        leader_epoch=99,
        end_offset=10,
        replicas=[
            answer(broker_id=1, broker_epoch=5, last_written_leader_epoch=0, log_end_offset=10),
            answer(broker_id=2, broker_epoch=6, last_written_leader_epoch=0, log_end_offset=80),
        ],
    )
    return [
        PartitionChangeRecord(partition_id=ELR, topic_id=topic, eligible_leader_replicas=[9]),
        PartitionChangeRecord(partition_id=LOST, topic_id=topic, isr=[1], leader=1, election_basis=basis),
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_trace(stopped: Path, tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "heirlog", "audit", str(stopped), "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        eventually((out / "segments").exists, "the scan", 120)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode == 130


def test_a_failed_task_leaves_no_part_of_a_table_and_missing_rows_are_noticed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "t-0"
    log.mkdir()
    units = [Unit(0, str(log / f"{base:020d}.log"), base, base == 30, 0, False, 0, None) for base in (30, 10, 0, 20)]
    for unit in units:
        Path(unit.path).touch()
    job = Job(spark, tmp_path)
    for _ in range(2):  # as when Spark runs the tasks again
        job.scan(units)
        assert [row["base_offset"] for row in job.segments()] == [0, 10, 20, 30]
    before = sorted(path.name for path in (tmp_path / "segments").iterdir())
    with pytest.raises(SPARK_ERRORS):
        job.scan([unit._replace(base_offset=None) for unit in units])  # type: ignore[arg-type]  # fails in the task
    assert sorted(path.name for path in (tmp_path / "segments").iterdir()) == before
    for name in before:
        (tmp_path / "segments" / name).unlink()
    with pytest.raises(OSError, match="the workers must be able to write to --out"):
        list(job.segments())


def test_a_damaged_copy_of_the_metadata_does_not_make_the_replicas_wrong(
    spark: SparkSession, stopped: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped, data)
    at = planted.flip_bit(log_directory(data, 100) / planted.METADATA)
    found = audited(spark, data, tmp_path / "one").findings
    assert [(each.kind, each.topic, each.replica, each.offset) for each in found] == [
        ("batch-damaged", "__cluster_metadata", 100, at)
    ]
    for node in NODES:
        planted.flip_bit(log_directory(data, node) / planted.METADATA)
    # now nothing says how the cluster ended: the replicas are judged by each other only
    found = audited(spark, data, tmp_path / "all").findings
    assert {(each.kind, each.topic) for each in found} == {("batch-damaged", "__cluster_metadata")}
    assert len(found) == 1 + len(NODES)
