"""Members of share groups on one broker, each with a connection of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apis.guarded import ADMIN, HOST, Guarded
from apis.shares import coordinate_shares, initializing

from heirlog.protocol.batch import iter_records, walk
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import ShareAcknowledgeRequest, ShareFetchRequest

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


def share_topic(node: Guarded, name: str, group: str, start: int = 0) -> bytes:
    """A new topic of which the group may read partition 0; its id. start: -1 for the group's configuration."""
    node.create_topics(name)
    topic_id = coordinate_shares(node, name)
    node.ask(initializing(topic_id, group, start=start), principal=ADMIN)
    return topic_id


class Member:
    def __init__(
        self, node: Guarded, group: str, topic: bytes, member: str = "m", *, principal: str = ADMIN, version: int = 2
    ) -> None:
        self._node = node
        self.group = group
        self.topic = topic
        self.member = member
        self.version = version
        self.epoch = 0
        self.wire, self.connection = node.connect(principal, HOST)

    def send(self, request: Any) -> None:
        """Its answer is `last_answer`, once there is one."""
        self._asked = request
        header = RequestHeader(request.API_KEY, self.version, 1, "member")
        frame = b"".join(encode_request(header, request))[4:]  # type: ignore[arg-type]
        self.wire.answers.clear()
        self.connection.received_frame(memoryview(bytearray(frame)))

    @property
    def is_answered(self) -> bool:
        return bool(self.wire.answers)

    @property
    def last_answer(self) -> Any:
        return decode_response(self._asked.API_KEY, self.version, memoryview(self.wire.answers[0][1])[4:])[1]

    def ask(self, request: Any) -> Any:
        self.send(request)
        self._node.wait(lambda: self.is_answered)
        return self.last_answer

    def fetching(self, *acknowledged: tuple[int, int, Sequence[int]], **more: Any) -> ShareFetchRequest:
        """acknowledged: first and last offset, types."""
        R = ShareFetchRequest
        values: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 1, "max_records": 100, "batch_size": 100}
        batches = [
            R.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[*t]) for a, b, t in acknowledged
        ]
        parts = [R.FetchPartition(partition_index=0, acknowledgement_batches=batches)]
        return R(
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=self.epoch,
            topics=[R.FetchTopic(topic_id=self.topic, partitions=parts)],
            **(values | more),
        )

    def fetch(self, *acknowledged: tuple[int, int, Sequence[int]], **more: Any) -> Any:
        """The answer to the next request of the session."""
        answer = self.ask(self.fetching(*acknowledged, **more))
        if answer.error_code == ErrorCode.NONE:
            self.epoch += 1
        return answer

    def acknowledging(self, *acknowledged: tuple[int, int, Sequence[int]], **more: Any) -> ShareAcknowledgeRequest:
        R = ShareAcknowledgeRequest
        batches = [
            R.AcknowledgementBatch(first_offset=a, last_offset=b, acknowledge_types=[*t]) for a, b, t in acknowledged
        ]
        parts = [R.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)]
        values: dict[str, Any] = {"share_session_epoch": self.epoch}
        return R(
            group_id=self.group,
            member_id=self.member,
            topics=[R.AcknowledgeTopic(topic_id=self.topic, partitions=parts)],
            **(values | more),
        )

    def acknowledge(self, *acknowledged: tuple[int, int, Sequence[int]], **more: Any) -> Any:
        answer = self.ask(self.acknowledging(*acknowledged, **more))
        if answer.error_code == ErrorCode.NONE:
            self.epoch += 1
        return answer


def partition_of(answer: Any) -> Any:
    """Of an answer with one partition."""
    (topic,) = answer.responses
    (partition,) = topic.partitions
    return partition


def acquired_in(answer: Any) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count of what an answer delivers; of one partition at most."""
    if not answer.responses:
        return []
    return [
        (each.first_offset, each.last_offset, each.delivery_count) for each in partition_of(answer).acquired_records
    ]


def values_in(answer: Any) -> list[bytes | None]:
    records = memoryview(partition_of(answer).records)
    return [record.value for position, _ in walk(records) for record in iter_records(records, position)]


def ack_code(answer: Any) -> int:
    """The error code of the only partition's acknowledgements."""
    partition = partition_of(answer)
    return int(
        partition.acknowledge_error_code if hasattr(partition, "acknowledge_error_code") else partition.error_code
    )
