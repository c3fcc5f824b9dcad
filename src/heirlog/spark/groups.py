"""Offsets of a stream, committed to a consumer group: for tools that show its lag, never for the stream itself.

Spark asks the source for the next batch when the one before is in the sink, so the group is one batch behind only until
the next trigger. If a query stops or fails before that trigger, the group stays behind. `commit_progress` then commits
from outside: the progress of a query names the offsets of the last batch that is in the sink.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from heirlog.blocking import CommittedOffset
from heirlog.spark import clients
from heirlog.spark.offsets import MEMBER, StreamOffset, stream_offset
from heirlog.spark.option_values import kafka_properties

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def commit(properties: Mapping[str, str], group: str, done: StreamOffset) -> None:
    """Raises KafkaError, OSError."""
    committing = {
        partition: CommittedOffset(offset, done.epochs.get(partition, -1), "")
        for partition, offset in done.offsets.items()
    }
    with clients.lend(properties) as client:
        client.commit(group, committing)


def commit_progress(query: StreamingQuery, group: str, options: Mapping[str, str]) -> None:
    """What the last finished batch of this query read from topics; to be called once it stopped.

    options: those of the source, `kafka.*`. Raises OptionError, KafkaError, OSError.
    """
    properties = kafka_properties(options)
    progress = query.lastProgress
    for source in progress.sources if progress is not None else ():
        end = json.loads(source.endOffset) if isinstance(source.endOffset, str) else None
        if isinstance(end, dict) and MEMBER in end:
            commit(properties, group, stream_offset(end))
