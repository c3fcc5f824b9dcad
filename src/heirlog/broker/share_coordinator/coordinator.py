"""The share coordinator of this broker: the share partitions whose partition of `__share_group_state` it leads.

Leaders of share partitions read and write the state there, and group coordinators initialize, summarize and delete it
(APIs 83 to 87). A request names many share partitions of one group, each of which has a coordinator of its own; each
gets an error of its own: NOT_COORDINATOR (find the coordinator again), COORDINATOR_LOAD_IN_PROGRESS (retry), or
INVALID_REQUEST for what no state can have.

Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from heirlog.broker.internal_topic_shards import InternalTopicShards
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.share_coordinator.activity import ShareStateActivity
from heirlog.broker.share_coordinator.batches import StateBatch, are_well_formed
from heirlog.broker.share_coordinator.shard import ShareCoordinatorConfig, ShareCoordinatorShard
from heirlog.broker.share_coordinator.state import SharePartitionKey, ShareState, StateWrite
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from heirlog.protocol.types import Uuid

NO_OFFSET = -1

Answer: TypeAlias = Callable[[Any], None]
"""Gets the result of one partition."""


class ShareCoordinator:
    def __init__(self, env: Env, static: StaticConfig, replicas: ReplicaManager, image: Callable[[], Image]) -> None:
        self._env = env
        self._replicas = replicas
        self._image = image
        self.activity = ShareStateActivity()
        self._config = ShareCoordinatorConfig(
            write_timeout_ms=static.int("share.coordinator.write.timeout.ms"),
            updates_per_snapshot=static.int("share.coordinator.snapshot.update.records.per.snapshot"),
            compression=static.int("share.coordinator.state.topic.compression.codec"),
        )
        self._shards = InternalTopicShards(SHARE_STATE_TOPIC, replicas, self._new_shard)

    def _new_shard(self, partition: Partition) -> ShareCoordinatorShard:
        return ShareCoordinatorShard(self._env, self._replicas, partition, self._config, self._image, self.activity)

    # -- which share partitions this broker coordinates ----------------------------------------------------------

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """Called after the partitions have followed the image. `changed` is None if anything may differ."""
        if changed is not None:
            gone = {
                topic_id
                for topic_id, before in changed.topics.items()
                if before is not None and topic_id not in image.topics
            }
            for shard in self._shards.shards() if gone else ():
                shard.forget_topics(gone)
        self._shards.on_image(image, changed)

    def stop(self) -> None:
        """The broker stops serving."""
        self._shards.stop()

    def partition_of(self, key: str) -> int | None:
        """The partition of `__share_group_state` for a share partition; None while the topic does not exist."""
        return self._shards.partition_of(key)

    def shards(self) -> list[ShareCoordinatorShard]:
        """All shards of this broker, loaded or not."""
        return self._shards.shards()

    def _shard_of(self, key: SharePartitionKey) -> ShareCoordinatorShard | ErrorCode:
        shard = self._shards.shard_of(key.text)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.is_unreadable:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return shard if shard.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    # -- requests -----------------------------------------------------------------------------------------------

    def initialize(self, request: InitializeShareGroupStateRequest) -> Any:
        R = InitializeShareGroupStateResponse

        def ask(shard: ShareCoordinatorShard, key: SharePartitionKey, asked: Any, answer: Answer) -> None:
            shard.initialize(key, asked.state_epoch, asked.start_offset, _coded(R.PartitionResult, key, answer))

        return self._each(request, R, R.InitializeStateResult, ask)

    def read(self, request: ReadShareGroupStateRequest) -> Any:
        R = ReadShareGroupStateResponse

        def ask(shard: ShareCoordinatorShard, key: SharePartitionKey, asked: Any, answer: Answer) -> None:
            def done(state: ShareState | None, code: ErrorCode, why: str | None) -> None:
                result = R.PartitionResult(partition=key.partition, error_code=code, error_message=why)
                if state is not None:
                    result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
                    result.state_batches = [R.StateBatch(**batch._asdict()) for batch in state.batches]
                answer(result)

            shard.read(key, asked.leader_epoch, done)

        return self._each(request, R, R.ReadStateResult, ask)

    def write(self, request: WriteShareGroupStateRequest) -> Any:
        R = WriteShareGroupStateResponse

        def ask(shard: ShareCoordinatorShard, key: SharePartitionKey, asked: Any, answer: Answer) -> None:
            batches = tuple(
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in asked.state_batches
            )
            done = _coded(R.PartitionResult, key, answer)
            if not are_well_formed(batches):
                done(ErrorCode.INVALID_REQUEST, "A state batch ends before it begins, or begins below offset 0.")
                return
            write = StateWrite(
                asked.state_epoch, asked.leader_epoch, asked.start_offset, asked.delivery_complete_count, batches
            )
            shard.write(key, write, done)

        return self._each(request, R, R.WriteStateResult, ask)

    def delete(self, request: DeleteShareGroupStateRequest) -> Any:
        R = DeleteShareGroupStateResponse

        def ask(shard: ShareCoordinatorShard, key: SharePartitionKey, asked: Any, answer: Answer) -> None:
            shard.delete(key, _coded(R.PartitionResult, key, answer))

        return self._each(request, R, R.DeleteStateResult, ask)

    def read_summary(self, request: ReadShareGroupStateSummaryRequest) -> Any:
        R = ReadShareGroupStateSummaryResponse

        def ask(shard: ShareCoordinatorShard, key: SharePartitionKey, asked: Any, answer: Answer) -> None:
            def done(state: ShareState | None, code: ErrorCode, why: str | None) -> None:
                result = R.PartitionResult(partition=key.partition, error_code=code, error_message=why)
                if state is not None:
                    result.state_epoch, result.leader_epoch = state.state_epoch, state.leader_epoch
                    result.start_offset = state.start_offset
                    result.delivery_complete_count = state.delivery_complete_count
                elif code is ErrorCode.NONE:
                    result.start_offset = NO_OFFSET
                answer(result)

            shard.read_summary(key, done)

        return self._each(request, R, R.ReadStateSummaryResult, ask)

    def _each(
        self,
        request: Any,
        response_class: Any,
        topic_class: Any,
        ask: Callable[[ShareCoordinatorShard, SharePartitionKey, Any, Answer], None],
    ) -> Any:
        """Ask the shard of each partition of the request; the answers keep its order.

        As on Apache Kafka, a partition that is in the request twice is asked twice and answered once, with the last
        result; and there is no result at all without a group, or where a topic is named without partitions.
        """
        if not request.group_id or not all(topic.partitions for topic in request.topics):
            return response_class()
        asked_for = [(topic.topic_id, asked) for topic in request.topics for asked in topic.partitions]
        slots: dict[Uuid, dict[int, Any]] = {}
        last: dict[tuple[Uuid, int], int] = {}
        for position, (topic_id, asked) in enumerate(asked_for):
            last[topic_id, asked.partition] = position
            slots.setdefault(topic_id, {})[asked.partition] = None
        left = len(asked_for)
        pending: Pending[Any] = Pending()

        def response() -> Any:
            return response_class(
                results=[
                    topic_class(topic_id=topic_id, partitions=list(results.values()))
                    for topic_id, results in slots.items()
                ]
            )

        def answered(topic_id: Uuid, partition: int, position: int) -> Answer:
            def answer(result: Any) -> None:
                nonlocal left
                if last[topic_id, partition] == position:
                    slots[topic_id][partition] = result
                left -= 1
                if not left:
                    pending.complete(response())

            return answer

        if not left:
            return response()
        for position, (topic_id, asked) in enumerate(asked_for):
            key = SharePartitionKey(request.group_id, Uuid(bytes(topic_id)), asked.partition)
            answer = answered(topic_id, asked.partition, position)
            refusal = _coded(response_class.PartitionResult, key, answer)
            wrong = _wrong_in(key)
            shard = ErrorCode.INVALID_REQUEST if wrong else self._shard_of(key)
            if isinstance(shard, ErrorCode):
                refusal(shard, wrong)
            else:
                ask(shard, key, asked, answer)
        return pending


def _wrong_in(key: SharePartitionKey) -> str | None:
    """Why no share partition can have this key."""
    return "The partition id cannot be a negative number." if key.partition < 0 else None


def _coded(result_class: Any, key: SharePartitionKey, answer: Answer) -> Callable[[ErrorCode, str | None], None]:
    def done(code: ErrorCode, why: str | None) -> None:
        answer(result_class(partition=key.partition, error_code=code, error_message=why))

    return done


def refused_states(response_class: Any, topic_class: Any, topics: Sequence[Any], code: ErrorCode) -> Any:
    """The same error for every partition of a request."""
    return response_class(
        results=[
            topic_class(
                topic_id=topic.topic_id,
                partitions=[
                    response_class.PartitionResult(partition=asked.partition, error_code=code)
                    for asked in topic.partitions
                ],
            )
            for topic in topics
        ]
    )
