"""The rows of a batch by topic, and the partitioner of each topic."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from heirlog.blocking import Client, Topic
from heirlog.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

    from heirlog.spark.encode import Partitioner


_log = logging.getLogger("heirlog.spark")


class TopicPartitioners:
    """start: the sticky partition to start with, of rows without a key."""

    def __init__(self, client: Client, start: int, batch_bytes: int | None) -> None:
        from heirlog.spark.encode import BATCH_BYTES

        self.batch_bytes = batch_bytes or BATCH_BYTES
        self._client = client
        self._start = start
        self._partitioners: dict[str, Partitioner] = {}

    def of(self, topic: str) -> Partitioner:
        """Raises KafkaError for a topic that does not exist, OSError."""
        from heirlog.spark.encode import Partitioner

        if topic not in self._partitioners:
            count = len(topic_to_write(self._client, topic).partitions)
            self._partitioners[topic] = Partitioner(count, self._start % count, self.batch_bytes)
        return self._partitioners[topic]

    def by_topic(self, batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch, Any]]:
        """Each topic, its rows, and which rows of the batch those are. topic: of all rows, else their column.

        Raises Unencodable for a row without a topic.
        """
        if not batch.num_rows:
            return
        if topic is not None:
            yield topic, batch, slice(None)
            return
        from heirlog.spark.encode import Unencodable

        topics = batch.column("topic")
        if topics.null_count:
            raise Unencodable("null topic present in the data: set the option topic, or fill the column")
        found = topics.unique().to_pylist()
        if len(found) == 1:
            yield found[0], batch, slice(None)
            return
        import numpy as np
        from pyarrow import compute

        for name in found:
            chosen = compute.equal(topics, name)
            yield name, batch.filter(chosen), np.flatnonzero(np.asarray(chosen))


def topic_to_write(client: Client, name: str) -> Topic:
    """Brokers may create it, as they do for Spark's own sink. Raises KafkaError, OSError."""
    try:
        return client.topics([name])[name]
    except KafkaError as error:
        # one without a leader is waited for, too
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            _log.warning("topic %s does not exist: brokers with auto.create.topics.enable create it now", name)
    return client.topics([name], create=True)[name]
