"""The reports of `__heirlog_recoveries`, read from the beginning.

The topic is compacted: of several records with one key the newest counts, and compaction may not have met them yet.
"""

from __future__ import annotations

from heirlog.blocking import EARLIEST, LATEST, Client
from heirlog.metadata.loss_report import LossReport, read_report
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.errors import ErrorCode, KafkaError


def read_reports(client: Client) -> list[LossReport]:
    """One per election, oldest first; none where the topic was never needed. Raises KafkaError, OSError."""
    try:
        topic = client.topics([RECOVERIES_TOPIC])[RECOVERIES_TOPIC]
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return []
        raise
    partitions = [(topic.name, partition) for partition in topic.partitions]
    begins = client.list_offsets(dict.fromkeys(partitions, EARLIEST))
    ends = client.list_offsets(dict.fromkeys(partitions, LATEST))
    found: dict[bytes, LossReport] = {}
    for name, partition in partitions:
        place = name, partition
        for part in client.fetch(name, partition, begins[place].offset, ends[place].offset):
            for position, header in walk(part.records):
                for record in [] if header.is_control else decode_records(part.records, position):
                    report = read_report(record.value)
                    if record.key is not None and report is not None:
                        found[record.key] = report
    return sorted(found.values(), key=lambda report: (report.election.timestamp_ms, report.key))
