"""Restarts a lost controller, or a quorum that lost its majority, from a copy of the metadata log.

    copy the log -> drop an unfinished metadata transaction -> this controller is the only voter, in a new epoch
                 -> append records that replace what may be wrong in the copy

A copy may lag behind what was committed, and even a complete copy is older than the brokers' logs. So nothing in it is
trusted that could make a replica leader which lacks records:

    partitions               no leader, ISR and ELR, in a leader epoch above those of all logs: `reset_partition.py`
    registrations            new broker epochs: no older clean-shutdown file proves anything
    producer ids             blocks that the copy does not know may be in use
    the recovery manager     on: otherwise the first replica that comes back would lead, or none

The log continues the copy. So brokers whose copies are as old or older follow it. A broker whose copy is newer refuses
(`raft/observer.py`) instead of losing what it knows. Logs of topics that the copy does not know are moved aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from heirlog.controller.producer_ids import after_older_metadata
from heirlog.controller.reset_partition import reset_partition
from heirlog.env import Env, Files
from heirlog.metadata.apply import apply_all, image_of_snapshot
from heirlog.metadata.as_records import broker_record, partition_record
from heirlog.metadata.image import Image
from heirlog.metadata.state import RECOVERY_VERSION
from heirlog.protocol.batch import InvalidBatch, decode_records, encode_batch, walk
from heirlog.protocol.metadata_record import decode_record
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import AbortTransactionRecord, FeatureLevelRecord
from heirlog.protocol.types import (
    METADATA_TOPIC,
    NO_BROKER_EPOCH,
    ZERO_UUID,
    BrokerEpoch,
    PartitionKey,
)
from heirlog.raft import control, quorum_state
from heirlog.raft.committed_offset import NAME as COMMITTED_OFFSET
from heirlog.raft.control import Voter, encode_controls
from heirlog.raft.metadata_log import SCAN_BYTES, MetadataLog, MetadataLogConfig, open_log
from heirlog.raft.values import encode_value
from heirlog.storage.atomic import read_file
from heirlog.storage.checkpoints import parse_checkpoint
from heirlog.storage.directory_names import parse_directory_name
from heirlog.storage.epochs import LEADER_EPOCH_CHECKPOINT, UNDEFINED_EPOCH
from heirlog.storage.identity import PartitionMetadataFile
from heirlog.storage.segment import Segment

EPOCH_MARGIN: Final = 1_000
"""Controller elections that may be missing in all available copies."""
RECORDS_PER_BATCH: Final = 1_000
_COPIED_BYTES: Final = 1 << 20
_OF_THE_NODE: Final = (quorum_state.NAME, COMMITTED_OFFSET)
"""Files of the quorum's directory that describe the node and not the log."""


@dataclass(frozen=True, slots=True)
class Seeded:
    copied_to_offset: int
    """End offset of the copy, exclusive."""
    end_offset: int
    topics: int
    partitions: int


class MetadataLogCopy(NamedTuple):
    """A copy of the metadata log: a broker's, or that of a controller that is left of a quorum."""

    directory: str
    end: tuple[int, int]
    """Epoch and end offset."""
    seen_epoch: int
    """The newest quorum epoch that its node has seen."""
    committed: tuple[int, bytes] | None
    """Base offset and bytes of the last batch that its node knew to be committed, if any."""
    voters: tuple[Voter, ...]
    """As the copy names them."""


def copy_files(source: Files, source_directory: str, target: Files, target_directory: str) -> None:
    """Copy the log, its snapshots and the files that belong to them. Raises OSError."""
    target.mkdirs(target_directory)
    for name in source.list(source_directory):
        if name in _OF_THE_NODE or source.is_dir(f"{source_directory}/{name}"):
            continue
        read = source.open(f"{source_directory}/{name}")
        written = target.open(f"{target_directory}/{name}", create=True)
        for position in range(0, read.size, _COPIED_BYTES):
            written.append(read.pread(min(_COPIED_BYTES, read.size - position), position))
        read.close()
        written.close()


def read_copy(env: Env, directory: str) -> MetadataLogCopy:
    """Raises what opening and reading the log and `quorum-state` raise. Opening may cut off an incomplete batch."""
    log = open_log(env, directory, MetadataLogConfig())
    last = log.last_committed_batch()
    seen_epoch = max(log.end.epoch, quorum_state.QuorumStateFile(env.files, directory).stored.leader_epoch)
    voters = tuple(log.voters)
    log.close()
    end = (log.end.epoch, log.end_offset)
    return MetadataLogCopy(
        directory, end, seen_epoch, None if last is None else (last.before.offset, last.data), voters
    )


def newest_leader_epochs(
    files: Files, log_directory: str, on_unknown_topic: Callable[[str], None]
) -> Iterator[tuple[PartitionKey, int]]:
    """The newest leader epoch of each log in the directory; where the checkpoint of epochs is damaged, by its records.

    on_unknown_topic: called with the path of a log that has records, and no readable file with the id of its topic.
    Raises OSError.
    """
    for name in files.list(log_directory):
        path, parsed = f"{log_directory}/{name}", parse_directory_name(name)
        if parsed is None or parsed[0] == METADATA_TOPIC or not files.is_dir(path):
            continue
        entries = parse_checkpoint(read_file(files, f"{path}/{LEADER_EPOCH_CHECKPOINT}"), 2)
        epoch = int(entries[-1][0]) if entries else _epoch_of_last_batch(files, path)
        if epoch == UNDEFINED_EPOCH:
            continue
        topic_id = PartitionMetadataFile(files, path).topic_id
        if topic_id is None:
            on_unknown_topic(path)
        else:
            yield (topic_id, parsed[1]), epoch


def _epoch_of_last_batch(files: Files, path: str) -> int:
    epoch = UNDEFINED_EPOCH
    names = files.list(path)
    bases = sorted(int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isdecimal())
    for base_offset in reversed(bases):
        segment = Segment.open(files, path, base_offset)
        try:
            for _, header in segment.headers_from(0):
                epoch = header.leader_epoch
        except InvalidBatch:
            pass  # the end of a file that was being written
        finally:
            segment.close()
        if epoch != UNDEFINED_EPOCH:
            break
    return epoch


def image_of(log: MetadataLog) -> Image:
    """The image that the snapshot and the whole log describe. Raises what reading and decoding raise."""
    loaded = log.loaded
    image = Image()
    if loaded is not None:
        image = image_of_snapshot(loaded.records(), loaded.id.end_offset - 1, loaded.id.epoch)
    offset = max(log.start_offset, image.offset + 1)
    while offset < log.end_offset:
        data = log.read_bytes(offset, SCAN_BYTES, log.end_offset)
        for position, header in walk(data):
            if header.base_offset >= offset and not header.is_control:
                values = [record.value for record in decode_records(data, position)]
                records = [decode_record(value) for value in values if value is not None]
                apply_all(image, records, header.base_offset, header.leader_epoch)
            image.offset, image.epoch = header.last_offset, header.leader_epoch
        offset = image.offset + 1
    return image


def seed(
    log: MetadataLog, voter: Voter, seen_epoch: int, leader_epochs: Mapping[PartitionKey, int], wall_ms: int
) -> Seeded:
    """Append the records that make a copy the log of a new controller; the caller flushes it.

    seen_epoch: the newest quorum epoch that any available node has seen. leader_epochs: the newest epoch in the
    available logs. Raises ValueError if the copy describes no cluster, and what reading it raises.
    """
    image = image_of(log)
    if not image.metadata_version:
        raise ValueError("it holds no metadata of a cluster that has run")
    copied_to = log.end_offset
    epoch = max(seen_epoch, log.end.epoch) + EPOCH_MARGIN
    head = [control.leader_change(voter.id, [voter.id], [voter.id]), control.kraft_version()]
    log.append(encode_controls([*head, control.voters_record([voter])], copied_to, epoch, wall_ms), epoch)
    records = list(_records(image, log.end_offset, leader_epochs))
    for first in range(0, len(records), RECORDS_PER_BATCH):
        values = [encode_value(record) for record in records[first : first + RECORDS_PER_BATCH]]
        log.append(encode_batch([(None, value, (), wall_ms) for value in values], log.end_offset, epoch), epoch)
    partitions = sum(map(len, image.partitions.values()))
    return Seeded(copied_to, log.end_offset, len(image.topics), partitions)


def _records(image: Image, base_offset: int, leader_epochs: Mapping[PartitionKey, int]) -> Iterator[Message]:
    offset = base_offset
    if image.open_transaction is not None:
        yield AbortTransactionRecord(reason="the controller was seeded from a broker's copy")
        offset += 1
    for broker in image.brokers.values():
        anew = replace(
            broker,
            epoch=BrokerEpoch(offset),
            incarnation_id=ZERO_UUID,
            fenced=True,
            in_controlled_shutdown=False,
            clean_stop_epoch=NO_BROKER_EPOCH,
        )
        yield broker_record(anew)
        offset += 1
    if not image.recovery_manager_enabled:
        yield FeatureLevelRecord(name=RECOVERY_VERSION, feature_level=1)
    yield after_older_metadata(image)
    for topic_id, partitions in image.partitions.items():
        for index, state in partitions.items():
            found = leader_epochs.get((topic_id, index), -1)
            yield partition_record(topic_id, index, reset_partition(state, found))
