"""The reports of `__heirlog_recoveries`, read from the beginning.

The topic is compacted: of several records with one key the newest counts, and compaction may not have met them yet.
"""

from __future__ import annotations

from heirlog.blocking.cluster import EARLIEST, LATEST, BlockingClient
from heirlog.metadata.loss_report import LossReport, read_report
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

FETCH_BYTES = 4 << 20


def read_reports(client: BlockingClient) -> list[LossReport]:
    """One per election, oldest first; none where the topic was never needed. Raises KafkaError, OSError."""
    (topic,) = client.metadata([RECOVERIES_TOPIC]).topics
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return []
    if topic.error_code:
        raise KafkaError(error_code(topic.error_code), f"{RECOVERIES_TOPIC} cannot be read")
    found: dict[bytes, LossReport] = {}
    for partition in sorted(partition.partition_index for partition in topic.partitions):
        _read(client, partition, found)
    return sorted(found.values(), key=lambda report: (report.election.timestamp_ms, report.key))


def _read(client: BlockingClient, partition: int, found: dict[bytes, LossReport]) -> None:
    offset = client.offset(RECOVERIES_TOPIC, partition, EARLIEST)
    end = client.offset(RECOVERIES_TOPIC, partition, LATEST)
    while offset < end:
        data = client.fetch(RECOVERIES_TOPIC, partition, offset, max_bytes=FETCH_BYTES)
        if data.error_code:
            raise KafkaError(error_code(data.error_code), f"{RECOVERIES_TOPIC}-{partition} cannot be read at {offset}")
        fetched = data.records or b""
        assert not isinstance(fetched, list), "a decoded answer has its records in one piece"
        before = offset
        for position, header in walk(fetched, partial_tail=True):
            offset = header.next_offset
            for record in [] if header.is_control else decode_records(fetched, position):
                report = read_report(record.value)
                if record.key is not None and report is not None:
                    found[record.key] = report
        if offset == before:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{RECOVERIES_TOPIC}-{partition} ends at {offset}")
