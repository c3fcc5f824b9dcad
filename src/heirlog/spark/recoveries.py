"""Which recovery caused a truncation: by the reports of a heirlog cluster about elections that gave records up.

The records that a stream has read were written in some leader epoch. The first election after it that gave records up
started the lineage without those records. Without such reports (Apache Kafka, or no permission to read them) the loss
is returned unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from heirlog.blocking import Client
from heirlog.blocking.loss_reports import read_reports
from heirlog.metadata.loss_report import LossReport
from heirlog.protocol.errors import KafkaError
from heirlog.spark.loss import Cause, Loss
from heirlog.spark.offset_limits import TopicPartition

_log = logging.getLogger("heirlog.spark")


def named(client: Client, losses: Sequence[Loss], epochs: Mapping[TopicPartition, int]) -> list[Loss]:
    """The losses, truncations with their recovery. epochs: of the last record that was read, -1 or none if unknown."""
    if not any(loss.cause == Cause.TRUNCATED.value for loss in losses):
        return list(losses)
    try:
        reports = read_reports(client)
    except (KafkaError, OSError) as error:
        _log.info("the cluster's reports of recoveries cannot be read: %s", error)
        return list(losses)
    return [_named(loss, recovery_of(loss, epochs.get(loss.topic_partition, -1), reports)) for loss in losses]


def _named(loss: Loss, report: LossReport | None) -> Loss:
    return loss if report is None else replace(loss, recovery=sentence(report))


def recovery_of(loss: Loss, epoch: int, reports: Sequence[LossReport]) -> LossReport | None:
    """The first election of the partition after `epoch` that gave something up; None for a loss of another cause."""
    if loss.cause != Cause.TRUNCATED.value:
        return None
    later = [
        report
        for report in reports
        if (report.topic, report.partition) == loss.topic_partition and report.election.leader_epoch > epoch
    ]
    return min(later, key=lambda report: report.election.leader_epoch, default=None)


def sentence(report: LossReport) -> str:
    election, lost = report.election, report.loss
    at = datetime.fromtimestamp(election.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
    extent = "gave up records"
    if lost.end_offset is not None and lost.first_offset is not None:
        extent = f"gave up offsets {lost.first_offset} to {lost.end_offset - 1}{'' if lost.is_exact else ' at most'}"
    elif election.end_offset >= 0:
        # if the epoch of a leader was not the newest, some of its records differ from those of other replicas
        extent = f"gave up records behind offset {election.end_offset}, or before"
    return (
        f"the election of broker {election.leader} at {at} (leader epoch {election.leader_epoch}, basis "
        f"{election.basis.value}) {extent}: heirlog recover report"
    )
