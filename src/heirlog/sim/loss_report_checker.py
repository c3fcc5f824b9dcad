"""Compares the reports in `__heirlog_recoveries` with the losses in the image.

Checked when a run is quiet again: each lossy election that the image remembers has exactly one report, with exactly the
bytes that follow from its record, however often controllers and leaders were killed in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from heirlog.broker.partition import Partition
from heirlog.metadata.loss_report import LossReport, read_report
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.types import BrokerId
from heirlog.sim.history import AcknowledgedRecord, partition_name
from heirlog.sim.oracle import Oracle
from heirlog.sim.world import START_WALL_MS

READ_BYTES = 1 << 20


def reported_by(oracle: Oracle, lost: Iterable[AcknowledgedRecord]) -> list[tuple[LossReport, int]]:
    """How many of these records are in the range of each report of an election after they were sent, by the
    controller's clock. A record counts once.
    """
    values = (value for values in _found(oracle).values() for value in values)
    reports = [report for value in values if (report := read_report(value)) is not None]
    counts = Counter(next((at for at, report in enumerate(reports) if _covers(report, one)), -1) for one in lost)
    return [(reports[at], count) for at, count in sorted(counts.items()) if at >= 0]


def _covers(report: LossReport, one: AcknowledgedRecord) -> bool:
    loss = report.loss
    return (
        one.partition == partition_name(report.topic, report.partition, report.topic_id)
        and START_WALL_MS + one.time_ms <= report.election.timestamp_ms
        and (one.offset < 0 or one.offset >= (loss.first_offset or 0))
        and (loss.end_offset is None or one.offset < loss.end_offset)
    )


def unreported(oracle: Oracle) -> str | None:
    """What is missing, doubled, or not what the image says; None: nothing."""
    wanted = _wanted(oracle)
    if not wanted:
        return None
    found = _found(oracle)
    missing = sorted(key.decode() for key, value in wanted.items() if value not in found.get(key, ()))
    if missing:
        return f"{len(missing)} of {len(wanted)} elections that gave something up have no report: {missing[:3]}"
    doubled = sorted(key.decode() for key, values in found.items() if sum(values.values()) > 1)
    return f"reported more than once: {doubled[:3]}" if doubled else None


def _wanted(oracle: Oracle) -> dict[bytes, bytes]:
    image = oracle.image
    wanted = {}
    for topic_id, partitions in sorted(image.partitions.items()):
        for index, state in sorted(partitions.items()):
            for election in (*state.earlier, state.basis):
                if election is not None:
                    report = LossReport(image.topics[topic_id].name, topic_id, index, election)
                    wanted[report.key] = report.value
    return wanted


def _found(oracle: Oracle) -> dict[bytes, Counter[bytes]]:
    """Per key, the committed values, of the leader's log."""
    found: dict[bytes, Counter[bytes]] = {}
    partition = _led(oracle)
    offset = 0 if partition is None else partition.log.log_start_offset
    while partition is not None and offset < partition.high_watermark:
        before = offset
        for region in partition.log.read(offset, READ_BYTES, partition.high_watermark).regions:
            content = region.read()
            for position, header in walk(content):
                offset = header.next_offset
                for record in decode_records(content, position):
                    found.setdefault(record.key or b"", Counter())[record.value or b""] += 1
        if offset == before:
            break
    return found


def _led(oracle: Oracle) -> Partition | None:
    topic_id = oracle.image.topic_ids.get(RECOVERIES_TOPIC)
    if topic_id is None:
        return None
    leader = oracle.image.partitions[topic_id][0].leader
    node = oracle.cluster.broker(BrokerId(leader)).running if leader >= 0 else None
    return None if node is None else node.broker.replicas.partition((topic_id, 0))
