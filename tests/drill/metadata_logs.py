"""Metadata logs for tests: batches of records with a time each, as a controller writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heirlog.drill.committed_log import CommittedLog, read_committed
from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.records import FeatureLevelRecord, PartitionRecord, TopicRecord
from heirlog.protocol.types import Uuid
from heirlog.raft.values import encode_value

TOPIC_ID = Uuid(bytes(15) + b"\x07")
STATIC: StaticConfig = parse_static(
    {
        "process.roles": "controller",
        "node.id": "100",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "min.insync.replicas": "2",
    }
)


def created(name: str, topic_id: Uuid, replicas: list[int]) -> list[Any]:
    """A topic with one partition, led by its first replica."""
    partition = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=replicas, isr=replicas, leader=replicas[0], leader_epoch=0
    )
    return [TopicRecord(name=name, topic_id=topic_id), partition]


def elr_on() -> list[Any]:
    return [FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)]


def committed(folder: Path, batches: list[tuple[int, list[Any]]], end: int | None = None) -> CommittedLog:
    """Write the batches, each at its time in milliseconds, and read them up to `end` (None: all)."""
    data = bytearray()
    offset = 0
    for at_ms, records in batches:
        values = [(None, encode_value(record), (), at_ms) for record in records]
        data += encode_batch(values, base_offset=offset, leader_epoch=1)
        offset += len(records)
    folder.mkdir(exist_ok=True)
    (folder / f"{0:020d}.log").write_bytes(data)
    return read_committed(folder, offset if end is None else end, STATIC)
