"""Which logs are in the directories, and what their small files say. Only names and small files are read.

A directory is a node's log directory: it has `meta.properties`. One node may have several. Logs that a node has set
aside (`-stray`), deleted (`-delete`) or not finished to move (`-future`) are not replicas, and are not looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from heirlog.protocol.types import METADATA_TOPIC, METADATA_TOPIC_ID, Uuid, uuid_text
from heirlog.raft.committed_offset import read_committed_offset
from heirlog.server.files import OsFiles
from heirlog.spark.audit.findings import AuditFinding
from heirlog.spark.audit.segment_scan import Unit
from heirlog.storage.atomic import read_file
from heirlog.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    parse_checkpoint,
)
from heirlog.storage.clean_shutdown import read_clean_shutdown
from heirlog.storage.cleaning.checkpoint import CLEANER_CHECKPOINT
from heirlog.storage.directory_names import TopicPartition, parse_directory_name
from heirlog.storage.epochs import LEADER_EPOCH_CHECKPOINT
from heirlog.storage.errors import StorageFormatError
from heirlog.storage.identity import PARTITION_METADATA, parse_partition_metadata, read_meta_properties

CHECKPOINTS = (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, CLEANER_CHECKPOINT)
END_OF_TIME = 2**63 - 1
_SEGMENT = re.compile(r"\d{20}\.log")
_SWAP = ".swap"


class AuditError(ValueError):
    """The audit cannot begin; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class LogCopy:
    """One replica's log of a partition, as its names and checkpoints describe it."""

    number: int
    node: int
    path: str
    topic: str
    topic_id: str
    """Empty if no file says it."""
    partition: int
    segments: tuple[int, ...]
    """Their base offsets, rising."""
    stopped_cleanly: bool
    recovery_point: int
    log_start_offset: int
    high_watermark: int
    """From the checkpoint; -1: it has none."""
    cleaned_to: int
    """The log cleaner has been there below this offset."""
    epochs: tuple[tuple[int, int], ...] | None
    """Entries of leader-epoch-checkpoint, none if it is missing or empty; None: it is damaged."""
    was_being_cleaned: bool
    """The log cleaner was interrupted while it replaced segments."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What the replicas of one partition have in common."""
        return self.topic, self.topic_id, self.partition

    @property
    def is_metadata(self) -> bool:
        return self.topic == METADATA_TOPIC

    def units(self) -> Iterator[Unit]:
        """One per segment."""
        trusted_to = END_OF_TIME if self.stopped_cleanly else self.recovery_point
        epochs = None if self.epochs is None else [list(entry) for entry in self.epochs]
        for i, base_offset in enumerate(self.segments):
            is_last = i + 1 == len(self.segments)
            ends_at = END_OF_TIME if is_last else self.segments[i + 1]
            yield Unit(
                self.number,
                f"{self.path}/{base_offset:020d}.log",
                base_offset,
                is_last,
                trusted_to,
                self.stopped_cleanly or (not is_last and ends_at <= trusted_to),
                self.log_start_offset,
                epochs,
            )


@dataclass(slots=True)
class Inventory:
    cluster_id: str = ""
    nodes: dict[int, list[str]] = field(default_factory=dict)
    """Node id → ids of its directories that were given."""
    stopped_cleanly: dict[int, bool] = field(default_factory=dict)
    """Node id → whether its last stop was clean in all directories."""
    logs: list[LogCopy] = field(default_factory=list)
    findings: list[AuditFinding] = field(default_factory=list)
    """Of the checkpoint files."""

    def units(self) -> Iterator[Unit]:
        for log in self.logs:
            yield from log.units()


def take_inventory(directories: Sequence[str]) -> Inventory:
    """Raises AuditError for directories that cannot be audited together, and OSError."""
    inventory = Inventory()
    known: dict[Uuid, str] = {}
    files = OsFiles(lambda deliver: None)
    for path in map(os.path.realpath, directories):
        try:
            identity = read_meta_properties(files, path)
        except StorageFormatError as error:
            raise AuditError(str(error)) from error
        if identity is None:
            raise AuditError(f"{path} is not a node's log directory: it has no meta.properties")
        if inventory.cluster_id not in ("", identity.cluster_id):
            raise AuditError(
                f"{path} belongs to cluster {identity.cluster_id}, the directories before it to "
                f"{inventory.cluster_id}: give the directories of one cluster"
            )
        other = known.setdefault(identity.directory_id, path)
        if other != path:
            raise AuditError(
                f"{other} and {path} are copies of the same log directory of node {identity.node_id}: give one of them"
            )
        inventory.cluster_id = identity.cluster_id
        held = inventory.nodes.setdefault(identity.node_id, [])
        if uuid_text(identity.directory_id) not in held:
            held.append(uuid_text(identity.directory_id))
            _Directory(inventory, path, identity.node_id, files).read()
    return inventory


class _Directory:
    def __init__(self, inventory: Inventory, path: str, node: int, files: OsFiles) -> None:
        self._inventory = inventory
        self._path = path
        self._node = node
        self._files = files
        self._offsets: dict[str, dict[TopicPartition, int]] = {}

    def read(self) -> None:
        for name in CHECKPOINTS:
            self._offsets[name] = self._read_checkpoint(name)
        is_clean = read_clean_shutdown(self._files, self._path) is not None
        cleanly = self._inventory.stopped_cleanly
        cleanly[self._node] = is_clean and cleanly.get(self._node, True)
        for name in sorted(os.listdir(self._path)):
            key = parse_directory_name(name)
            if key is not None and os.path.isdir(f"{self._path}/{name}"):
                self._inventory.logs.append(self._log(key, f"{self._path}/{name}", is_clean))

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        content = read_file(self._files, f"{self._path}/{name}")
        entries = parse_checkpoint(content, 3)
        # Apache Kafka makes the file, empty, before it has anything to write
        if content and entries is None:
            self._inventory.findings.append(
                AuditFinding(
                    "checkpoint-damaged", "", -1, self._node, -1, f"{self._path}/{name} is not an offset checkpoint"
                )
            )
        return {(topic, int(partition)): int(offset) for topic, partition, offset in entries or ()}

    def _log(self, key: TopicPartition, path: str, is_clean: bool) -> LogCopy:
        names = os.listdir(path)
        topic, partition = key
        is_metadata = topic == METADATA_TOPIC
        committed = read_committed_offset(self._files, path) if is_metadata else 0
        topic_id = METADATA_TOPIC_ID if is_metadata else self._topic_id(path)
        return LogCopy(
            number=len(self._inventory.logs),
            node=self._node,
            path=path,
            topic=topic,
            topic_id="" if topic_id is None else uuid_text(topic_id),
            partition=partition,
            segments=tuple(sorted(int(name[:20]) for name in names if _SEGMENT.fullmatch(name))),
            # a metadata log is recovered at each start, whatever the stop was
            stopped_cleanly=is_clean and not is_metadata,
            recovery_point=committed if is_metadata else self._offset(RECOVERY_POINT_CHECKPOINT, key, 0),
            log_start_offset=self._offset(LOG_START_CHECKPOINT, key, 0),
            high_watermark=(committed or -1) if is_metadata else self._offset(HIGH_WATERMARK_CHECKPOINT, key, -1),
            cleaned_to=self._offset(CLEANER_CHECKPOINT, key, 0),
            epochs=_epochs(read_file(self._files, f"{path}/{LEADER_EPOCH_CHECKPOINT}")),
            was_being_cleaned=any(name.endswith(_SWAP) for name in names),
        )

    def _topic_id(self, path: str) -> Uuid | None:
        return parse_partition_metadata(read_file(self._files, f"{path}/{PARTITION_METADATA}"))

    def _offset(self, checkpoint: str, key: TopicPartition, default: int) -> int:
        return self._offsets[checkpoint].get(key, default)


def _epochs(content: bytes | None) -> tuple[tuple[int, int], ...] | None:
    entries = parse_checkpoint(content, 2) if content else []
    return None if entries is None else tuple((int(epoch), int(start)) for epoch, start in entries)


def partitions_of(logs: Iterable[LogCopy]) -> dict[tuple[str, str, int], list[LogCopy]]:
    """The replicas of each partition that are there."""
    found: dict[tuple[str, str, int], list[LogCopy]] = {}
    for log in logs:
        found.setdefault(log.key, []).append(log)
    return found
