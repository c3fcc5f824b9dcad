"""What the controllers committed during a drill, read from a copy of the metadata log on disk.

    every record, in order --> applied to an image --> for each partition: how it was before and after, and when

So a drill knows every leader, ISR and ELR that there was, also those that lasted for a millisecond, and which topic a
name meant at what time. Times are those at which the active controller appended the batch. Nothing is asked of a node:
the log of any controller will do, up to an offset that is committed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heirlog.blocking import Client
from heirlog.drill.observe import DrillFailure
from heirlog.local import properties
from heirlog.local.cluster import Cluster
from heirlog.local.secure import security_of
from heirlog.metadata.apply import apply
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.batch import BatchHeader, InvalidBatch, decode_records, walk
from heirlog.protocol.messages import DescribeQuorumRequest
from heirlog.protocol.metadata_record import decode_record
from heirlog.protocol.records import LeaderChangeMessage, RemoveTopicRecord, TopicRecord
from heirlog.protocol.types import METADATA_TOPIC, Uuid
from heirlog.raft.control import decode_controls

LOG_DIRECTORY = f"{METADATA_TOPIC}-0"


@dataclass(slots=True)
class Incarnation:
    """A topic between its creation and its deletion."""

    name: str
    topic_id: Uuid
    created_ms: int
    removed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """One record's effect on a partition. `after` None: it was deleted."""

    at_ms: int
    topic: str
    topic_id: Uuid
    index: int
    before: PartitionRegistration | None
    after: PartitionRegistration | None
    min_isr: int
    """The effective one after the record."""
    elr_enabled: bool
    active: frozenset[int]
    """Brokers that could be elected then: unfenced, and not shutting down."""


@dataclass(slots=True)
class CommittedLog:
    changes: list[PartitionChange] = field(default_factory=list)
    incarnations: list[Incarnation] = field(default_factory=list)
    """In the order of creation."""
    controllers: list[tuple[int, int]] = field(default_factory=list)
    """(time, node id) of each controller that became active."""
    end_offset: int = 0

    def named(self, name: str) -> list[Incarnation]:
        return [one for one in self.incarnations if one.name == name]

    def last(self, topic_id: Uuid, index: int) -> PartitionRegistration | None:
        """How the partition is in the end."""
        found = None
        for change in self.changes:
            if change.topic_id == topic_id and change.index == index:
                found = change.after
        return found


def committed(cluster: Cluster) -> CommittedLog:
    """What the controllers of a running cluster have committed. Raises DrillFailure."""
    active = cluster.active_controller()
    if active is None:
        raise DrillFailure("no controller is active after the drill")
    directory = cluster.data / f"controller-{active}"
    static = properties.read_static(directory / "server.properties")
    nested = DescribeQuorumRequest
    asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
    address = str(static.advertised_controller_listeners[0].endpoint)
    security = security_of(static, static.controller_listener_names[0])
    with Client(address, security=security, timeout_s=5.0) as client:
        answer = client.send_to_any(nested(topics=[asked]))
    return read_committed(directory / "log" / LOG_DIRECTORY, answer.topics[0].partitions[0].high_watermark, static)


def read_committed(directory: Path, end_offset: int, static: StaticConfig) -> CommittedLog:
    """directory: `__cluster_metadata-0` of a controller. end_offset: the high watermark that it has told, or less.
    static: a controller's configuration. Raises DrillFailure if the log does not begin at 0 or ends too early.
    """
    reader = _Reader(static)
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        try:
            # a node may append while this reads
            for position, header in walk(data, partial_tail=True):
                if header.base_offset != reader.log.end_offset:
                    raise DrillFailure(f"{segment} continues at {header.base_offset}, not at {reader.log.end_offset}")
                if header.next_offset > end_offset:
                    return reader.log
                reader.add(data, position, header)
        except InvalidBatch as error:
            raise DrillFailure(f"{segment} cannot be read: {error.message}") from error
    if reader.log.end_offset < end_offset:
        raise DrillFailure(f"{directory} ends at offset {reader.log.end_offset}, before {end_offset}")
    return reader.log


class _Reader:
    def __init__(self, static: StaticConfig) -> None:
        self.log = CommittedLog()
        self._static = static
        self._image = Image()

    def add(self, data: bytes, position: int, header: BatchHeader) -> None:
        at_ms = header.max_timestamp
        if header.is_control:
            for control in decode_controls(data, position):
                if isinstance(control, LeaderChangeMessage):
                    self.log.controllers.append((at_ms, control.leader_id))
        else:
            for record in decode_records(data, position):
                assert record.value is not None, "records of metadata have a value"
                self._apply(decode_record(record.value), record.offset, header.leader_epoch, at_ms)
        self._image.offset, self._image.epoch = header.last_offset, header.leader_epoch
        self.log.end_offset = header.next_offset

    def _apply(self, record: Any, offset: int, epoch: int, at_ms: int) -> None:
        if isinstance(record, TopicRecord):
            self.log.incarnations.append(Incarnation(record.name, Uuid(record.topic_id), at_ms))
        names = {topic_id: topic.name for topic_id, topic in self._image.topics.items()}
        journal = self._image.journal()
        apply(self._image, record, offset, epoch, journal)
        if isinstance(record, RemoveTopicRecord):
            next(one for one in self.log.incarnations if one.topic_id == record.topic_id).removed_ms = at_ms
        names |= {topic_id: topic.name for topic_id, topic in self._image.topics.items()}
        for (topic_id, index), before in journal.partitions.items():
            after = self._image.partition(topic_id, index)
            self.log.changes.append(
                PartitionChange(
                    at_ms,
                    names[topic_id],
                    topic_id,
                    index,
                    before,
                    after,
                    0 if after is None else min_isr_of(self._image, self._static, topic_id, after),
                    self._image.elr_enabled,
                    frozenset(broker.id for broker in self._image.brokers.values() if broker.is_active),
                )
            )
