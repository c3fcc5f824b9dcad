"""The current state of the cluster, compared with an offset from which a stream or a user wants to continue.

An offset may contain topic ids and the leader epochs of the records that were read (offsets.py). They show whether a
log was truncated or a topic recreated; without them only the log's start and end can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from heirlog.blocking import Client
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.spark import recoveries, resolve
from heirlog.spark.loss import Cause, Loss
from heirlog.spark.offset_limits import EARLIEST, LATEST, TopicPartition
from heirlog.spark.offsets import StreamOffset
from heirlog.spark.options import Options


class CurrentState:
    """The cluster's state and an offset that was stored before. `losses` has the differences."""

    def __init__(self, client: Client, options: Options, before: StreamOffset) -> None:
        self._before = before
        self._options = options
        try:
            self._compare(client, options)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            # a topic that was deleted between two requests: one broker still named it, the next one does not
            self._compare(client, options)
        self.begins = {
            partition: before.offsets.get(partition, self._earliest[partition]) for partition in self.partitions
        }

    def _compare(self, client: Client, options: Options) -> None:
        self._look(client, options)
        self.losses = self._losses(client)
        """Sorted; at most one for each partition, the one with the most information."""
        if self.losses:
            # a topic that was recreated between two requests has the same name: its shorter log is not a truncation
            seen = self.topic_ids
            self._look(client, options)
            if self.topic_ids != seen:
                self.losses = self._losses(client)

    def _look(self, client: Client, options: Options) -> None:
        before = self._before
        subscribed = resolve.subscribed(client, options, tolerated=before.topics)
        self.partitions = subscribed.partitions
        # a deleted topic that was skipped stays known: the next batch does not report it again
        known = {topic: before.topic_ids[topic] for topic in sorted(options.named_topics & before.topic_ids.keys())}
        self.topic_ids = {**known, **subscribed.topic_ids}
        self._earliest = resolve.at(client, EARLIEST, self.partitions, options.isolation)
        self.latest = resolve.listed(client, LATEST, self.partitions, options.isolation)

    def ends(self, begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Never below the starting offset: a high watermark may be known late, and no record may be read twice."""
        return {partition: max(end.offset, begins[partition]) for partition, end in self.latest.items()}

    def _losses(self, client: Client) -> list[Loss]:
        truncated = self._truncated(client)
        found = [self._gone(key) for key in self._before.offsets if key not in self._earliest]
        for partition in self.partitions:
            one = self._recreated(partition) or truncated.get(partition) or self._out_of_range(client, partition)
            if one is not None:
                found.append(one)
        return recoveries.named(client, sorted(found), self._before.epochs)

    def _gone(self, partition: TopicPartition) -> Loss:
        offset = self._before.offsets[partition]
        cause = Cause.DELETED if resolve.reads(self._options, partition) else Cause.UNSUBSCRIBED
        return Loss(*partition, offset, -1, offset, cause.value)

    def _recreated(self, partition: TopicPartition) -> Loss | None:
        known = self._before.topic_ids.get(partition[0])
        now = self.topic_ids.get(partition[0])
        if partition not in self._before.offsets or known is None or now is None or known == now:
            return None
        return Loss(*partition, self._before.offsets[partition], -1, self._earliest[partition], Cause.RECREATED.value)

    def _truncated(self, client: Client) -> dict[TopicPartition, Loss]:
        """Partitions whose log ends, for the epoch of the last record that was read, before that record (KIP-320)."""
        asked = {
            partition: epoch
            for partition, epoch in self._before.epochs.items()
            if partition in self._earliest and partition in self._before.offsets and self._recreated(partition) is None
        }
        ends = client.end_offset_for_epoch(asked) if asked else {}
        losses = {}
        for partition in asked:
            end, offset = ends[partition].end_offset, self._before.offsets[partition]
            if 0 <= end < offset:
                resume = max(end, self._earliest[partition])
                losses[partition] = Loss(*partition, end, offset, resume, Cause.TRUNCATED.value)
        return losses

    def _out_of_range(self, client: Client, partition: TopicPartition) -> Loss | None:
        earliest, offset = self._earliest[partition], self._before.offsets.get(partition, 0)
        if offset < earliest:
            return Loss(*partition, offset, earliest, earliest, Cause.RETENTION.value)
        if offset <= self.latest[partition].offset:
            return None
        # the last stable offset may be behind the position of a query that read uncommitted records before
        latest = client.list_offsets({partition: LATEST})[partition].offset
        return Loss(*partition, latest, offset, latest, Cause.BEYOND.value) if offset > latest else None
