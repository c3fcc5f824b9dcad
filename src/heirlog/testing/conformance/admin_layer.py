"""Layer `admin`: DescribeTopicPartitions, page by page, from an image with the setup's topics.

Each request passes the authorization of its API, with an authorizer that allows every operation except describing the
topics of `denied`. `kafka_topics_describe` shows the answer as Apache Kafka's `kafka-topics --describe` would print it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from heirlog.apis.common.ports import HasImage, Ports
from heirlog.apis.describe_topic_partitions import API, describe
from heirlog.context import ANONYMOUS, Context
from heirlog.metadata.acls import ANY_HOST, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.metadata.apply import apply_all
from heirlog.metadata.authorizer import Authorizer
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from heirlog.protocol.records import AccessControlEntryRecord, PartitionRecord, TopicRecord
from heirlog.protocol.types import Uuid
from heirlog.testing.conformance.controller_layer import Observed
from heirlog.testing.conformance.setup_records import Members
from heirlog.testing.conformance.vocabulary import UnknownName

_LISTENER: Final = "PLAINTEXT"
_DEFAULT_LIMIT: Final = 2000


class _OneImage:
    """What the guard of DescribeTopicPartitions asks of a node."""

    def __init__(self, image: Image) -> None:
        self.image = image

    def log_denied(self, *what: object) -> None:
        """Ignored."""


class AdminScenario:
    def __init__(self, setup: Members) -> None:
        self._limit: int = setup.get("serverLimit", _DEFAULT_LIMIT)
        self.image = Image()
        for number, topic in enumerate(setup.get("topics", [])):
            self._add(number, topic["name"], [{"replicas": [1]}] * topic["partitions"])
        if "partition" in setup:
            self._add(len(self.image.topics), "foo", [setup["partition"]])
        for number, name in enumerate(setup.get("denied", [])):
            self._deny(number, name)
        self._authorizer = Authorizer((), True, lambda: self.image.acls)

    def _deny(self, number: int, name: str) -> None:
        record = AccessControlEntryRecord(
            id=Uuid(number.to_bytes(15, "big") + b"a"),
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            pattern_type=PatternType.LITERAL,
            principal=ANONYMOUS,
            host=ANY_HOST,
            operation=AclOperation.DESCRIBE,
            permission_type=AclPermissionType.DENY,
        )
        apply_all(self.image, [record], self.image.offset + 1, 1)

    def _add(self, number: int, name: str, partitions: list[Any]) -> None:
        topic_id = Uuid(number.to_bytes(15, "big") + b"t")
        records: list[Any] = [TopicRecord(name=name, topic_id=topic_id)]
        for index, partition in enumerate(partitions):
            replicas = partition.get("replicas", [1])
            records.append(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=partition.get("isr", replicas),
                    leader=partition.get("leader", replicas[0]),
                    eligible_leader_replicas=partition.get("elr"),
                    last_known_elr=partition.get("lastKnownElr"),
                )
            )
        apply_all(self.image, records, self.image.offset + 1, 1)

    def play(self, event: Members) -> Observed:
        handler: Callable[[Members], Observed] | None = getattr(self, f"_on_{event['type']}", None)
        if handler is None:
            raise UnknownName(f"event {event['type']} is not implemented")
        return handler(event)

    def _on_describe_topic_partitions(self, event: Members) -> Observed:
        cursor = event.get("cursor")
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in event.get("topics", [])],
            response_partition_limit=event.get("limit", _DEFAULT_LIMIT),
            cursor=None
            if cursor is None
            else DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        try:
            response = self._answer(request)
        except KafkaError as error:
            return {"error": error.code.name}
        following = response.next_cursor
        return {
            "error": "NONE",
            "errors": [[topic.name, ErrorCode(topic.error_code).name] for topic in response.topics if topic.error_code],
            "result": [
                [topic.name, [partition.partition_index for partition in topic.partitions]]
                for topic in response.topics
                if not topic.error_code
            ],
            "nextCursor": None if following is None else [following.topic_name, following.partition_index],
        }

    def _answer(self, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
        """Raises KafkaError: the whole request is refused."""
        served = API.broker
        assert served is not None
        context = Context(served.versions[1], "client", "host", _LISTENER, object())
        port = cast(Ports, _OneImage(self.image))
        answer = API.guarded(served, self._describe, port, self._authorizer, request, context)
        return cast(DescribeTopicPartitionsResponse, answer)

    def _describe(
        self, node: HasImage, request: DescribeTopicPartitionsRequest, context: Context
    ) -> DescribeTopicPartitionsResponse:
        return describe(node.image, context.listener, request, self._limit)

    def _on_kafka_topics_describe(self, event: Members) -> Observed:
        (topic,) = self._answer(DescribeTopicPartitionsRequest()).topics
        (partition,) = topic.partitions
        leader = "none" if partition.leader_id < 0 else partition.leader_id
        return {
            "line": f"\tTopic: {topic.name}\tPartition: {partition.partition_index}\tLeader: {leader}"
            f"\tReplicas: {_joined(partition.replica_nodes)}\tIsr: {_joined(partition.isr_nodes)}"
            f"\tElr: {_joined(partition.eligible_leader_replicas)}\tLastKnownElr: {_joined(partition.last_known_elr)}"
        }


def _joined(brokers: Iterable[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(str(broker) for broker in brokers)
