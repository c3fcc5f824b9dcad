"""A log directory examined while its node is stopped.

    recovery itself  --runs on-->  the directory under an overlay  --what it changed-->  "the next start would ..."
    every batch, index, epoch, checkpoint read  ---------------------------------------->  what it would not notice

So a prediction is no second opinion: `LogDirectory.load_logs` and `open_log` made it. Logs are looked at one after the
other and let go, so that memory does not grow with the directory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, NoReturn

from heirlog.cli.offline.findings import Report
from heirlog.cli.offline.open_transactions import Known, note_open_transactions
from heirlog.cli.offline.overlay import Change, OverlayFiles
from heirlog.cli.offline.segments import LogCheck
from heirlog.env import Files
from heirlog.protocol.batch import InvalidBatch, decode_records
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.metadata_record import decode_record
from heirlog.protocol.types import METADATA_TOPIC, ZERO_UUID, uuid_text
from heirlog.raft import quorum_state
from heirlog.raft.bootstrap import BOOTSTRAP_RECORDS, log_directory, read_bootstrap_records
from heirlog.raft.metadata_log import MetadataLogConfig, MetadataLogLost, open_log
from heirlog.raft.quorum_state import MalformedQuorumState, QuorumStateFile
from heirlog.raft.snapshot import PART, InvalidSnapshot, list_snapshots, load
from heirlog.storage.atomic import read_file
from heirlog.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    parse_checkpoint,
    read_offsets,
)
from heirlog.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE, read_clean_shutdown
from heirlog.storage.cleaning.checkpoint import CLEANER_CHECKPOINT
from heirlog.storage.config import LogConfig
from heirlog.storage.directory_names import DELETE_SUFFIX, STRAY_SUFFIX, parse_directory_name
from heirlog.storage.errors import StorageFormatError
from heirlog.storage.identity import META_PROPERTIES, PARTITION_METADATA, PartitionMetadataFile, read_meta_properties
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory
from heirlog.storage.segment import SEGMENT_SUFFIXES, Segment

CHECKPOINTS = (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, CLEANER_CHECKPOINT)
OFFLINE = "the broker continues without this directory, or does not start if it is the only one"


class OfflineEnv:
    """The parts of `heirlog.env.Env` that opening a metadata log needs; there is no other node."""

    def __init__(self, files: Files, on_event: Callable[[str, dict[str, object]], None]) -> None:
        self.files = files
        self.random = Random(0)
        self._on_event = on_event

    def log(self, level: str, event: str, /, **values: object) -> None:
        self._on_event(event, values)

    def now_ms(self) -> int:
        return 0

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def send(self, *asked: Any) -> NoReturn:
        raise AssertionError("a stopped node sends nothing")

    def stop(self, exit_code: int, reason: str) -> NoReturn:
        raise AssertionError("a stopped node cannot stop")


def examine(
    path: str,
    on_read: Callable[[int], None] = lambda count: None,
    known: Mapping[int, list[Known]] = MappingProxyType({}),
) -> Report:
    """Everything that is wrong below one log directory. Changes nothing.

    on_read: called with the number of bytes just read. known: from `known_to_coordinators`. Raises OSError if the
    directory itself cannot be listed.
    """
    return DirectoryCheck(os.path.abspath(path), on_read, known).run()


class DirectoryCheck:
    def __init__(
        self,
        path: str,
        on_read: Callable[[int], None] = lambda count: None,
        known: Mapping[int, list[Known]] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self._known = known
        self.report = Report(path)
        self.after = OverlayFiles(on_read)
        """As the next start would leave it."""
        self._disk = OverlayFiles()
        """As it is; never written to."""
        self.keep_changes = False
        """For tests, which compare all of them with what recovery does."""

    def run(self) -> Report:
        names = self._disk.list(self.path)
        self._check_identity()
        self._check_checkpoint_files()
        if any(parse_directory_name(name) for name in names if not name.startswith(METADATA_TOPIC)):
            self._check_logs()
        self._check_leftovers(names)
        if self._disk.exists(log_directory(self.path)):
            self._check_metadata_log()
        self._check_bootstrap()
        return self.report

    # the directory

    def _check_identity(self) -> None:
        path = f"{self.path}/{META_PROPERTIES}"
        try:
            found = read_meta_properties(self._disk, self.path)
        except (StorageFormatError, OSError) as error:
            self.report.damage("meta-properties-damaged", path, str(error), OFFLINE)
            return
        if found is None:
            self.report.damage(
                "not-formatted", path, "there is no meta.properties: the directory is not formatted", OFFLINE
            )
            return
        self.report.cluster_id, self.report.node_id = found.cluster_id, found.node_id

    def _check_checkpoint_files(self) -> None:
        for name in CHECKPOINTS:
            path = f"{self.path}/{name}"
            try:
                content = read_file(self._disk, path)
            except OSError as error:
                self.report.damage("checkpoint-damaged", path, str(error), OFFLINE)
                continue
            if content is not None and parse_checkpoint(content, 3) is None:
                self.report.damage(
                    "checkpoint-damaged",
                    path,
                    "the file is not an offset checkpoint",
                    "the file is ignored: logs are read from the start, and offsets are copied from the leader again",
                )

    def _check_bootstrap(self) -> None:
        try:
            read_bootstrap_records(self._disk, self.path)
        except (InvalidSnapshot, OSError) as error:
            path = f"{self.path}/{BOOTSTRAP_RECORDS}"
            self.report.damage("bootstrap-damaged", path, str(error), "the node refuses to start")

    def _check_leftovers(self, names: list[str]) -> None:
        for name in names:
            if name.endswith(STRAY_SUFFIX):
                self._note_stray(name)
            elif name.endswith(DELETE_SUFFIX):
                self.report.note("deleted-log", f"{self.path}/{name}", "a deleted partition's log", "it is removed")

    def _note_stray(self, name: str) -> None:
        path = f"{self.path}/{name}"
        if name.startswith(METADATA_TOPIC):
            sentence = "a copy of the metadata log that was set aside when older metadata were accepted"
            self.report.note("stray-metadata-log", path, sentence, "nothing: remove it once you are sure")
            return
        topic_id = PartitionMetadataFile(self._disk, path).topic_id
        logs = [file for file in self._disk.list(path) if file.endswith(".log")]
        size = sum(self._disk.open(f"{path}/{file}").size for file in logs)
        known = "unknown" if topic_id is None else uuid_text(topic_id)
        self.report.note(
            "stray-log",
            path,
            f"a log of {size} bytes that the metadata did not know (topic id {known}), set aside",
            "it is used again if the metadata assign the partition of this topic id to this broker and it has no other "
            "log; else it stays: remove it once you are sure",
            topic_id=None if topic_id is None else known,
            bytes=size,
        )

    # the logs of partitions

    def _check_logs(self) -> None:
        was_clean = self._read_clean_shutdown()
        directory = LogDirectory(self.after, self.path, ZERO_UUID, was_clean)
        ended: list[OSError | None] = []
        directory.load_logs(lambda topic: LogConfig(), time.time_ns() // 1_000_000, ended.append, self._check_log)
        self.after.settle()
        for error in ended:
            if error is not None:
                self.report.damage("log-unreadable", self.path, f"{error}; what comes after it was not read", OFFLINE)
        self._check_ends(directory)
        directory.close()

    def _read_clean_shutdown(self) -> Any:
        path = f"{self.path}/{CLEAN_SHUTDOWN_FILE}"
        try:
            epoch = read_clean_shutdown(self._disk, self.path)
        except OSError as error:
            self.report.damage("clean-shutdown-damaged", path, str(error), OFFLINE)
            return None
        self.report.stopped_cleanly = epoch is not None
        if epoch is None and self._disk.exists(path):
            self.report.damage(
                "clean-shutdown-damaged",
                path,
                "the file cannot be parsed",
                "the stop counts as unclean: the broker leaves every ISR and ELR",
            )
        elif epoch is None:
            self.report.note(
                "unclean-stop",
                path,
                "the node did not stop cleanly",
                "logs are read from their recovery points; the broker leaves every ISR and ELR",
            )
        return epoch

    def _check_log(self, log: Log) -> None:
        self.report.logs += 1
        if log.topic_id is None:
            self.report.damage(
                "topic-id-missing",
                f"{log.dir_path}/{PARTITION_METADATA}",
                "the file is missing or damaged",
                "the broker takes the id from the metadata of the topic of that name",
            )
        RecoveryFindings(self.report, self._disk, log, self.after.changes(log.dir_path)).add_all()
        LogCheck(self.report, self._disk, log, clean=self.report.stopped_cleanly).run()
        note_open_transactions(self.report, log, self._known)
        for segment in log.segments:
            segment.retire()
        self.after.settle()
        if not self.keep_changes:
            self.after.forget(log.dir_path)

    def _check_ends(self, directory: LogDirectory) -> None:
        """Checkpoints against the logs as they will be."""
        ends = {key: log.log_end_offset for key, log in directory.logs.items()}
        for (topic, partition), flushed, end in directory.missing:
            self._beyond(RECOVERY_POINT_CHECKPOINT, "log-shorter-than-flushed", topic, partition, flushed, end)
        reported = {key for key, *_ in directory.missing}
        for name in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT):
            for key, offset in sorted(read_offsets(self._disk, f"{self.path}/{name}").items()):
                if key in ends and offset > ends[key] and key not in reported:
                    self._beyond(name, "checkpoint-beyond-end", *key, offset, ends[key])

    def _beyond(self, name: str, kind: str, topic: str, partition: int, offset: int, end: int) -> None:
        self.report.damage(
            kind,
            f"{self.path}/{name}",
            f"{topic}-{partition} ends at offset {end}, but {name} says {offset}",
            "the stop counts as unclean, and what is missing is copied from other replicas"
            if kind == "log-shorter-than-flushed"
            else "the end offset of the log itself is used",
            topic=topic,
            partition=partition,
            end_offset=end,
            checkpoint=offset,
        )

    # the metadata log

    def _check_metadata_log(self) -> None:
        path = log_directory(self.path)
        self._check_quorum_state(path)
        for snapshot_id in list_snapshots(self._disk, path):
            try:
                for _ in load(self._disk, path, snapshot_id).records():
                    pass
            except (InvalidSnapshot, KafkaError, ValueError, OSError) as error:
                self.report.damage(
                    "metadata-snapshot-damaged",
                    f"{path}/{snapshot_id.file_name}",
                    str(error),
                    "an older snapshot and the log are used, if they reach far enough",
                )
        for name in self._disk.list(path):
            if name.endswith(PART):
                self.report.note(
                    "metadata-snapshot-unfinished", f"{path}/{name}", "an incomplete snapshot", "it is removed"
                )
        try:
            opened = open_log(OfflineEnv(self.after, self._metadata_event), path, MetadataLogConfig())
        except (OSError, MetadataLogLost, StorageFormatError, KafkaError, ValueError) as error:
            self.report.damage("metadata-log-lost", path, str(error), "the node refuses to start")
            return
        RecoveryFindings(self.report, self._disk, opened.log, self.after.changes(path)).add_all()
        LogCheck(self.report, self._disk, opened.log, clean=False).run()
        self._check_metadata_records(opened.log)
        self.report.logs += 1
        opened.close()
        self.after.settle()

    def _metadata_event(self, event: str, values: dict[str, object]) -> None:
        if event == "metadata-log-replaced":
            self.report.damage(
                event,
                log_directory(self.path),
                f"the log ends at {values['end_offset']} and does not continue the snapshot {values['snapshot']}",
                "the log restarts, empty, at the end offset of the snapshot",
            )

    def _check_quorum_state(self, path: str) -> None:
        file = f"{path}/{quorum_state.NAME}"
        try:
            QuorumStateFile(self._disk, path)
        except (MalformedQuorumState, OSError) as error:
            self.report.damage("quorum-state-damaged", file, str(error), "the node refuses to start")

    def _check_metadata_records(self, log: Log) -> None:
        for segment in log.segments:
            for position, header in segment.scan():
                try:
                    batch = b"" if header.is_control else segment.read_batch(position)
                    for record in decode_records(batch) if batch else []:
                        decode_record(record.value or b"")
                except (InvalidBatch, KafkaError, ValueError) as error:
                    self.report.damage(
                        "metadata-record-unreadable",
                        segment.log.path,
                        f"a record of the batch at byte {position}, offset {header.base_offset}: {error}",
                        "the node refuses to start if that is committed",
                    )
                    return


class RecoveryFindings:
    """What recovery did to one log under the overlay, in sentences."""

    def __init__(self, report: Report, disk: OverlayFiles, log: Log, changes: list[Change]) -> None:
        self._report = report
        self._disk = disk
        self._log = log
        self._changes = changes

    def add_all(self) -> None:
        cut = [change for change in self._changes if change.path.endswith(".log") and self._is_cut(change)]
        if cut:
            self._add_cut(cut)
        for change in self._changes:
            if change.path.endswith((".swap", ".cleaned", ".deleted")):
                self._report.note(
                    "cleaning-unfinished",
                    change.path,
                    "the log cleaner was interrupted",
                    "its work is finished or undone",
                )
            elif change.after is None and self._is_orphan(change.path):
                self._report.note("index-orphan", change.path, "an index without its segment", "it is removed")

    def _is_orphan(self, path: str) -> bool:
        return path.endswith(SEGMENT_SUFFIXES[1:]) and not self._disk.exists(f"{path.rpartition('.')[0]}.log")

    def _is_cut(self, change: Change) -> bool:
        """Records go: not where a compacted segment takes the place of others."""
        if change.before is None or change.before == (change.after or 0):
            return False
        base_offset = int(os.path.basename(change.path)[:-4])
        return change.after is not None or not self._log.log_start_offset <= base_offset < self._log.log_end_offset

    def _add_cut(self, cut: list[Change]) -> None:
        log = self._log
        size = sum((change.before or 0) - (change.after or 0) for change in cut)
        last = max(self._last_offset(change) for change in cut)
        first = log.log_end_offset
        known = last >= first
        offsets = f"offsets {first} to {last}" if known else f"everything from offset {first} on, which is not readable"
        self._report.damage(
            "log-cut",
            log.dir_path,
            f"{log.topic}-{log.partition}: {size} bytes in {len(cut)} segment(s) are torn, damaged or not consecutive",
            f"recovery cuts {offsets}, {size} bytes",
            topic=log.topic,
            partition=log.partition,
            first_offset=first,
            last_offset=last if known else None,
            bytes=size,
            end_offset=first,
            segments=[os.path.basename(change.path) for change in cut],
        )

    def _last_offset(self, change: Change) -> int:
        """As far as headers tell; -1 if none can be read."""
        segment = Segment.open(self._disk, os.path.dirname(change.path), int(os.path.basename(change.path)[:-4]))
        last = -1
        try:
            for _, header in segment.headers_from(change.after or 0):
                last = max(last, header.last_offset)
        except InvalidBatch:
            pass
        return last
