"""One task's work: a range of offsets of one partition, from the leader to Arrow batches.

Changes between planning and reading are classified here as in `heirlog.spark.loss`, and handled as onDataLoss says. A
task that continues after a loss reads from the offset at which the log is still as planned:

    deleted in between     from the log start offset, if that is before the end of the range
    truncated              from the offset where the log diverges: the records there are new
    created again          nothing: a later batch reads the records of the new topic
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from heirlog.blocking import Client, LogTruncated, OffsetOutOfRange, TopicRecreated
from heirlog.spark import clients, loss, recoveries, worker
from heirlog.spark.loss import Cause, Loss
from heirlog.spark.options import OnDataLoss, Options
from heirlog.spark.plan import Range

if TYPE_CHECKING:
    import pyarrow as pa

FETCH_BYTES = 16 * 1024 * 1024

_log = logging.getLogger("heirlog.spark")


def read_range(options: Options, planned: Range, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """schema: of the columns that are wanted. Raises DataLoss, CorruptRecords, KafkaError, OSError."""
    # numba and pyarrow take a second to load: workers pay that, planning does not
    from heirlog.spark.decode import PartitionDecoder

    with clients.lend(options.properties) as client:
        rest: Range | None = planned
        while rest is not None and rest.size:
            left = rest
            decoder = PartitionDecoder(left.topic, left.partition, schema, left.start, left.stop)
            try:
                for fetched in client.fetch(
                    left.topic,
                    left.partition,
                    left.start,
                    left.stop,
                    isolation=options.isolation,
                    max_bytes=FETCH_BYTES,
                    last_epoch=left.last_epoch,
                    topic_id=left.topic_id,
                    stall_timeout_s=options.poll_timeout_ms / 1000,
                ):
                    yield from decoder.decode(fetched.records, fetched.aborted)
                rest = None
            except (OffsetOutOfRange, LogTruncated, TopicRecreated) as error:
                rest = _after(client, replace(left, start=max(left.start, decoder.next_offset)), error, options)
    worker.settle()


def _after(
    client: Client, rest: Range, error: OffsetOutOfRange | LogTruncated | TopicRecreated, options: Options
) -> Range | None:
    """The part of `rest` that is left to read after this. Raises DataLoss if a user has to decide."""
    lost, going_on = _what_happened(client, rest, error)
    (lost,) = recoveries.named(client, [lost], {lost.topic_partition: rest.last_epoch})
    loss.handle([lost], options)
    if options.on_data_loss is not OnDataLoss.FAIL:
        _log.warning("%s", lost)
    return going_on


def _what_happened(
    client: Client, rest: Range, error: OffsetOutOfRange | LogTruncated | TopicRecreated
) -> tuple[Loss, Range | None]:
    def lost(cause: Cause, first: int, until: int, resume: int) -> Loss:
        return Loss(rest.topic, rest.partition, first, until, resume, cause.value)

    if isinstance(error, TopicRecreated):
        return lost(Cause.RECREATED, rest.start, rest.stop, rest.stop), None
    if isinstance(error, LogTruncated):
        if error.end.end_offset < 0:
            # the leader does not know the epoch at all: what was read is of another history, and where the two diverge
            # is unknown. The current records were not read yet
            return lost(Cause.TRUNCATED, -1, rest.start, rest.start), replace(rest, last_epoch=-1)
        end = error.end.end_offset
        return lost(Cause.TRUNCATED, end, rest.start, end), replace(rest, start=end, last_epoch=-1)
    begin, end = error.log_start_offset, error.high_watermark
    if begin < 0 or end < 0:
        key = (rest.topic, rest.partition)
        begin = client.list_offsets({key: -2})[key].offset
        end = client.list_offsets({key: -1})[key].offset
    if rest.start < begin:
        until = min(begin, rest.stop)
        return lost(Cause.RETENTION, rest.start, until, until), replace(rest, start=until, last_epoch=-1)
    return lost(Cause.BEYOND, end, rest.start, rest.stop), None
