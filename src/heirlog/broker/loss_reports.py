"""The internal topic `__heirlog_recoveries`: one report for every election that may have lost records.

The content of the reports is in the image (`metadata/basis.py`), so nothing has to be remembered or passed on. The
broker that leads the topic's one partition compares the image with the log: a report that the log has is never written
again, a missing one is.

    no leader, or another broker leads         nothing to do here
    this broker leads                          its log is read (`internal_topic_loader.py`) --> every report of the
                                               image that the log lacks is appended --> from then on, each that a new
                                               image brings

    killed before the append, or the record was never committed    the next leader finds it missing and writes it
    killed after the append                                        the next leader finds it in the log
    the topic itself lost records by such an election              the lost reports are missing, and written again

The topic is created when it is first needed, by the broker that leads a partition with something to report, as any
broker does for `__consumer_offsets`. Its key is (topic id, partition, leader epoch). It is compacted and no record is
ever deleted: a report outlives its topic.

A new leader may fail before its election is reported, and the next election may be lossy too. The image has the newest
election of each partition and a few before it, and each of them gets its report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from heirlog.broker.internal_topic_loader import InternalTopicLoader
from heirlog.broker.partition import ALL_IN_SYNC, Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.env import Cancel, Env
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.loss_report import LossReport, read_report
from heirlog.metadata.state import PartitionRegistration
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.batch import BatchHeader, Record, encode_batch
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.types import LeaderEpoch, PartitionKey

INDEX: Final = 0
REPORTS_PER_BATCH: Final = 100
FIRST_MS: Final = 500
"""Time that a report waits for others: when thousands of partitions get a leader at once, leading them comes first."""
RETRY_MS: Final = 1000
LOG_AGAIN_MS: Final = 60_000
"""Interval at which the node's log repeats that the reports are refused."""


class LossReports:
    """create_topics: requests missing topics; may be called repeatedly."""

    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        image: Callable[[], Image],
        create_topics: Callable[[list[str]], None],
    ) -> None:
        self._env = env
        self._replicas = replicas
        self._image = image
        self._create_topics = create_topics
        self._writer: _Writer | None = None
        self._stopped = False
        self._cancel_asking: Cancel | None = None

    def on_image(self, changed: ImageJournal | None) -> None:
        """Called after the partitions have followed the image. `changed` is None if anything may differ."""
        if self._stopped:
            return
        keys = None if changed is None else list(changed.partitions)
        if RECOVERIES_TOPIC not in self._image().topic_ids:
            self._ask_for_topic(keys)
        if self._writer is not None and not self._writer.leads:
            self._writer.stop()
            self._writer = None
        partition = self._replicas.partitions_named(RECOVERIES_TOPIC).get(INDEX)
        if self._writer is not None:
            self._writer.look_at(keys)
        elif partition is not None and partition.role is ReplicaRole.LEADER:
            self._writer = _Writer(self._env, self._replicas, partition, self._image)

    def stop(self) -> None:
        self._stopped = True
        if self._cancel_asking is not None:
            self._cancel_asking()
        if self._writer is not None:
            self._writer.stop()
            self._writer = None

    def _ask_for_topic(self, keys: Iterable[PartitionKey] | None) -> None:
        """Request the topic if a partition that we lead has something to report; repeated until the topic exists."""
        if self._cancel_asking is not None:
            return
        image = self._image()
        for key in _all_keys(image) if keys is None else keys:
            state = image.partition(*key)
            if state is None or state.basis is None:
                continue
            partition = self._replicas.partition(key)
            if partition is not None and partition.role is ReplicaRole.LEADER:
                self._ask_again()
                return

    def _ask_again(self) -> None:
        self._cancel_asking = None
        if RECOVERIES_TOPIC not in self._image().topic_ids:
            self._create_topics([RECOVERIES_TOPIC])
            self._cancel_asking = self._env.call_later(RETRY_MS, self._ask_again)


class _Writer:
    """The reports of the topic's partition, while this broker leads it in one leader epoch."""

    def __init__(self, env: Env, replicas: ReplicaManager, partition: Partition, image: Callable[[], Image]) -> None:
        self._env = env
        self._replicas = replicas
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._image = image
        self._reported: dict[PartitionKey, set[LeaderEpoch]] = {}
        """The elections of each partition whose report is in the log."""
        self._missing: dict[PartitionKey, None] = {}
        """Partitions that may have something to report."""
        self._is_loaded = False
        self._write_is_due = False
        self._log_refusal_from_ms = 0
        self._stopped = False
        self._replay = InternalTopicLoader(
            env,
            replicas,
            partition,
            on_record=self._take_over,
            on_unreadable=self._unreadable,
            on_done=self._loading_is_done,
        )
        self._replay.read()

    @property
    def leads(self) -> bool:
        partition = self._partition
        return (
            partition.role is ReplicaRole.LEADER and partition.leader_epoch == self._leader_epoch and not self._stopped
        )

    def stop(self) -> None:
        self._stopped = True
        self._replay.stop()

    # reports in the log

    def _take_over(self, _: BatchHeader, record: Record) -> None:
        report = read_report(record.value)
        if report is not None:
            self._note(report)

    def _note(self, report: LossReport) -> None:
        self._reported.setdefault((report.topic_id, report.partition), set()).add(report.election.leader_epoch)

    def _unreadable(self, offset: int, error: Exception) -> None:
        self._env.log("error", "loss-report-unreadable", offset=offset, error=str(error))

    def _loading_is_done(self) -> None:
        self._is_loaded = True
        self.look_at(None)

    # missing reports

    def look_at(self, keys: Iterable[PartitionKey] | None) -> None:
        """Check these partitions, which have changed; None: check all."""
        if not self._is_loaded:
            return
        image = self._image()
        for key in _all_keys(image) if keys is None else keys:
            if self._reports_of(key, image.partition(*key)):
                self._missing[key] = None
        if self._missing:
            self._write_in(FIRST_MS)

    def _reports_of(self, key: PartitionKey, state: PartitionRegistration | None) -> list[LossReport]:
        """The missing reports of the partition, oldest first."""
        topic = self._image().topics.get(key[0])
        if state is None or state.basis is None or topic is None:
            return []
        reported = self._reported.get(key, ())
        return [
            LossReport(topic.name, key[0], key[1], election)
            for election in reversed((state.basis, *state.earlier))
            if election.leader_epoch not in reported
        ]

    def _write_in(self, delay_ms: int) -> None:
        if not self._write_is_due:
            self._write_is_due = True
            self._env.call_later(delay_ms, self._write)

    def _write(self) -> None:
        """Write one batch; the next one follows in a later turn of the event loop."""
        self._write_is_due = False
        if not self.leads:
            return
        image = self._image()
        reports: list[LossReport] = []
        for key in list(self._missing):
            del self._missing[key]
            reports += self._reports_of(key, image.partition(*key))
            if len(reports) >= REPORTS_PER_BATCH:
                break
        if reports and not self._append(reports):
            self._missing.update(((report.topic_id, report.partition), None) for report in reports)
            self._write_in(RETRY_MS)
        elif self._missing:
            self._write_in(0)

    def _append(self, reports: list[LossReport]) -> bool:
        partition, wall_ms = self._partition, self._env.wall_ms()
        batch = encode_batch([(report.key, report.value, (), wall_ms) for report in reports])
        watermark = partition.high_watermark
        try:
            partition.append(batch, ALL_IN_SYNC, wall_ms, self._env.now_ms())
        except KafkaError as error:
            if self._env.now_ms() >= self._log_refusal_from_ms:
                self._log_refusal_from_ms = self._env.now_ms() + LOG_AGAIN_MS
                self._env.log("warning", "loss-report-refused", error=error.code.name, why=str(error))
            return False
        except OSError as error:
            self._replicas.storage_failed(partition, error)
            return False
        for report in reports:
            self._note(report)
            self._log_report(report)
        self._replicas.log_grew(partition, watermark, wall_ms)
        return True

    def _log_report(self, report: LossReport) -> None:
        election, loss = report.election, report.loss
        level, event = "warning", "records-given-up"
        if loss.records_max == 0:
            # a power cut may have taken the same records from all replicas: no election gave them up
            level, event = (
                ("warning", "records-may-be-missing") if report.may_lack_records else ("info", "nothing-given-up")
            )
        self._env.log(
            level,
            event,
            topic=report.topic,
            partition=report.partition,
            leader=election.leader,
            leader_epoch=election.leader_epoch,
            basis=election.basis.value,
            first_offset=loss.first_offset,
            end_offset=loss.end_offset,
            exact=loss.is_exact,
            may_lack_records=list(report.may_lack_records),
        )


def _all_keys(image: Image) -> Iterable[PartitionKey]:
    for topic_id in sorted(image.partitions):
        for index in sorted(image.partitions[topic_id]):
            yield topic_id, index
