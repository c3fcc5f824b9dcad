"""The streaming read: which offsets a micro-batch covers, and what happens with those of the batch before.

    latestOffset(start, limit)   the cluster now --> losses since `start` --> limits --> the next offset
    partitions(start, end)       both offsets --> ranges --> tasks
    latestOffset, commit(end)    the batch before is in the sink --> offsets of commitGroup

Spark may run a batch again that it stored and did not finish, with the same two offsets, in another process. So the
offset that `latestOffset` returns contains all its decisions: a skipped loss, and the epochs and topic ids by which the
tasks recognise the log. A second run does not ask the cluster again.

Limits are those of Spark's source. `ReadAllAvailable` overrides the options. With minOffsetsPerTrigger a batch waits
until that many records exist or maxTriggerDelay has passed since the last batch. Spark has no limit of this kind, so
this class measures the time itself. `Trigger.AvailableNow` fixes the end offsets once and ignores the minimum;
otherwise the query would never end.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from heirlog.blocking import Client
from heirlog.protocol.errors import KafkaError
from heirlog.spark import clients, groups, loss, resolve, sizes
from heirlog.spark.current_state import CurrentState
from heirlog.spark.loss import Cause, Loss
from heirlog.spark.offset_limits import EARLIEST, LATEST, TopicPartition
from heirlog.spark.offsets import MEMBER, StreamOffset, by_topic, stream_offset
from heirlog.spark.options import Options
from heirlog.spark.plan import Range, share, waiting
from heirlog.spark.read import read_range
from heirlog.spark.refusals import in_one_sentence
from heirlog.spark.worker import SentToWorkers

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("heirlog.spark")


class HeirlogStreamReader(SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._started: dict[str, Any] | None = None
        """Where the query starts. Spark asks several times, and `latest` moves."""
        self._target: dict[TopicPartition, int] | None = None
        """Where an AvailableNow query ends."""
        self._seen: dict[TopicPartition, int] | None = None
        """Where the logs ended when `latestOffset` looked."""
        self._lag: dict[TopicPartition, int] = {}
        """Records between the end of the batch and the end of the log, then."""
        self._last_batch_ms = 0.0
        self._committed_end: dict[str, Any] | None = None
        """Where the group of commitGroup is."""
        self._last_end: dict[str, Any] | None = None
        """What `latestOffset` returned last. These offsets exist; the end of a repeated batch may not."""

    # where

    @in_one_sentence
    def initialOffset(self) -> dict[str, Any]:
        if self._started is None:
            self._started = resolve.ask(self._options, self._initial, at_start=True).as_json()
        return self._started

    def _initial(self, client: Client) -> StreamOffset:
        options = self._options
        subscribed = resolve.subscribed(client, options)
        offsets = resolve.resolved(client, options.starting, "starting", subscribed.partitions, options.isolation)
        given = stream_offset(json.loads(options.starting.text or "{}"))
        latest = resolve.listed(client, LATEST, offsets, resolve.ALL_RECORDS)
        epochs = resolve.epochs_before(client, offsets, {}, latest)
        # of a checkpoint that was carried over, what it remembers counts and not what is there now; before an offset
        # behind the log's end, which a person made up, there is no record and so no epoch
        epochs = {key: epoch for key, epoch in epochs.items() if offsets[key] <= latest[key].offset}
        topic_ids = {**subscribed.topic_ids, **given.topic_ids}
        return StreamOffset(offsets, topic_ids, {**epochs, **given.epochs}, begins=offsets)

    @in_one_sentence
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """`start` itself where there is nothing to do. Raises DataLoss, KafkaError, OSError."""
        before = stream_offset(start)
        # Spark looks for the next batch when the one before is in the sink
        self.commit(start)
        current_state = resolve.ask(self._options, lambda client: CurrentState(client, self._options, before))
        self._seen = {partition: end.offset for partition, end in current_state.latest.items()}
        loss.handle(current_state.losses, self._options)
        for one in current_state.losses:
            _log.warning("%s", one)
        begins = {**current_state.begins, **{one.topic_partition: one.resume for one in current_state.losses}}
        begins = {partition: begins[partition] for partition in current_state.partitions}
        ends = self._limited(begins, current_state.ends(begins), limit)
        self._lag = {key: max(0, self._seen.get(key, end) - end) for key, end in ends.items()}
        if not current_state.losses and ends == dict(before.offsets):
            return start
        known = {} if current_state.losses else before.epochs
        epochs = resolve.ask(
            self._options, lambda client: resolve.epochs_before(client, ends, known, current_state.latest)
        )
        losses = tuple(current_state.losses)
        # equal only in the offset that initialOffset returned, so that later batches do not repeat it
        first = before.begins if before.begins == before.offsets else {}
        self._last_end = StreamOffset(ends, current_state.topic_ids, epochs, losses, first).as_json()
        return self._last_end

    def getDefaultReadLimit(self) -> ReadLimit:
        # this maximum only keeps Spark from requesting everything
        options = self._options
        if options.max_offsets is None and options.min_offsets is None:
            return ReadAllAvailable()
        return ReadMaxRows(options.max_offsets if options.max_offsets is not None else 2**63 - 1)

    @in_one_sentence
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For the progress of the query: what the logs have, and how far behind that the query is after this batch."""
        # Spark asks it right behind latestOffset
        seen, self._seen = self._seen, None
        if seen is None:
            return by_topic(resolve.ask(self._options, self._latest))
        return {**by_topic(seen), MEMBER: {"lag": by_topic(self._lag)}}

    @in_one_sentence
    def prepareForTriggerAvailableNow(self) -> None:
        self._target = resolve.ask(self._options, self._latest)

    def _latest(self, client: Client) -> dict[TopicPartition, int]:
        options = self._options
        # which of them went, and whether that may be, latestOffset tells
        partitions = resolve.subscribed(client, options, tolerated=options.named_topics).partitions
        return resolve.at(client, LATEST, partitions, options.isolation)

    def _limited(
        self, begins: Mapping[TopicPartition, int], ends: dict[TopicPartition, int], limit: ReadLimit
    ) -> dict[TopicPartition, int]:
        if self._target is not None:
            # a partition that came later is not part of it
            ends = {
                key: min(end, max(self._target[key], begins[key])) for key, end in ends.items() if key in self._target
            }
        if isinstance(limit, ReadAllAvailable):
            return ends
        if self._target is None and self._options.min_offsets is not None:
            now_ms = time.time() * 1000
            in_time = now_ms - self._last_batch_ms < self._options.max_trigger_delay_ms
            if in_time and waiting(begins, ends) < self._options.min_offsets:
                return {partition: begins[partition] for partition in ends}
            self._last_batch_ms = now_ms
        return ends if self._options.max_offsets is None else share(self._options.max_offsets, begins, ends)

    # what

    @in_one_sentence
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        options = self._options
        before, after = stream_offset(start), stream_offset(end)
        begins = after.resumed(before)
        unread = sorted(key for key in after.offsets if not resolve.reads(options, key))
        loss.handle(
            [Loss(*key, begins.get(key, 0), -1, begins.get(key, 0), Cause.UNSUBSCRIBED.value) for key in unread],
            options,
        )
        new = [partition for partition in after.offsets if partition not in begins and partition not in unread]
        if new:
            earliest = resolve.ask(options, lambda client: resolve.at(client, EARLIEST, new, options.isolation))
            begins.update(earliest)
        ends = dict(after.offsets) if end == self._last_end else self._still_there(after)
        for partition, stop in ends.items():
            if begins[partition] > stop:
                # offsets of a checkpoint that another program wrote
                loss.handle([Loss(*partition, stop, begins[partition], stop, Cause.BEYOND.value)], options)
        moved = {key for key, begin in begins.items() if before.offsets.get(key) != begin}
        moved |= {one.topic_partition for one in after.losses}
        ranges = [
            Range(
                *partition,
                start=begins[partition],
                stop=stop,
                last_epoch=-1 if partition in moved else before.epochs.get(partition, -1),
                topic_id=after.topic_ids.get(partition[0]),
            )
            for partition, stop in sorted(ends.items())
        ]
        return [InputPartition(part) for part in sizes.tasks(options, ranges)]

    def _still_there(self, after: StreamOffset) -> dict[TopicPartition, int]:
        """The ends of a batch that was planned by an earlier run: its tasks would wait for records that are gone."""
        ends = {key: end for key, end in after.offsets.items() if resolve.reads(self._options, key)}

        def there(client: Client) -> dict[TopicPartition, int]:
            known = resolve.subscribed(client, self._options, tolerated=after.topics).partitions
            return resolve.at(client, LATEST, [key for key in ends if key in known], resolve.ALL_RECORDS)

        latest = resolve.ask(self._options, there)
        losses = [
            Loss(*partition, latest.get(partition, 0), stop, latest.get(partition, 0), Cause.BEYOND.value)
            for partition, stop in sorted(ends.items())
            if stop > latest.get(partition, 0)
        ]
        loss.handle(losses, self._options)
        return {partition: min(stop, latest.get(partition, 0)) for partition, stop in ends.items()}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, partition.value, self._schema)

    # afterwards

    def commit(self, end: dict[str, Any]) -> None:
        """For tools that show a group's lag; the query itself uses its checkpoint. So a failure is only a warning, and
        is not retried before the next batch."""
        group = self._options.commit_group
        if group is None or end == self._committed_end:
            return
        self._committed_end = end
        try:
            groups.commit(self._options.properties, group, stream_offset(end))
        except (OSError, KafkaError) as error:
            _log.warning("offsets of group %s could not be committed: %s", group, error)

    def stop(self) -> None:
        clients.close()
