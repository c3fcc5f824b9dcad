"""A cluster as one peer: finds a server that answers, finds partition leaders, asks again where that may help.

    admin                any server: the last one that answered, then the known ones, then the bootstrap ones
    send_to_leader       Metadata --> leader --> request;  no answer or "not leader" --> Metadata again, after a pause
    send_to_coordinator  the same with FindCoordinator

Everything ends at a deadline, with a `TimeoutError` or the last failure. What was sent may have been executed although
the answer was lost: `produce` without idempotence may append twice, as with any client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from heirlog.blocking.peers import Peers
from heirlog.client.call import Conversation
from heirlog.client.coordinators import ask_coordinator
from heirlog.client.leaders import ask_leader
from heirlog.client.security import PLAINTEXT, Security
from heirlog.env import Buffer
from heirlog.protocol.errors import KafkaError, error_code
from heirlog.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

R = TypeVar("R")

LATEST = -1
EARLIEST = -2


class BlockingClient:
    """bootstrap: "host:port,host:port" or a sequence of "host:port". timeout_s: of each call, its retries included."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        timeout_s: float = 30.0,
        client_id: str = "heirlog",
        security: Security = PLAINTEXT,
    ) -> None:
        self._peers = Peers(bootstrap, security=security, client_id=client_id)
        self._cluster = self._peers.cluster
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._peers.close()

    # any server

    def admin(self, message: Message, *, timeout_s: float | None = None) -> Any:
        """The response of the first server that answers. Raises OSError when none did in time."""
        return self._peers.run(self._cluster.ask_any(message, self._time(timeout_s)))

    def metadata(self, topics: Sequence[str] | None = None, *, timeout_s: float | None = None) -> MetadataResponse:
        """Brokers, and these topics (None: all). Creates no topic."""
        return self._peers.run(self._cluster.metadata(topics, self._time(timeout_s)))

    # one broker, a group's coordinator

    def brokers(self) -> dict[int, Endpoint]:
        """Where each live broker listens for clients. Raises OSError."""
        self.metadata([])
        return dict(self._cluster.view.brokers)

    def send_to_broker(self, broker_id: int, message: Message, *, timeout_s: float | None = None) -> Any:
        """The response of this broker. Raises KafkaError if there is no such broker now, OSError."""
        return self._peers.run(self._cluster.ask_broker(broker_id, message, self._time(timeout_s)))

    def send_to_coordinator(
        self,
        group: str,
        message: Message,
        *,
        error_code: Callable[[Any], int],
        newest: int | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """The response of the group's coordinator; asked again while the code in it may pass.

        newest: speak no later version. Raises KafkaError without a coordinator, OSError.
        """
        time_s = self._time(timeout_s)
        call = ask_coordinator(self._cluster, group, message, time_s, code_of=error_code, newest=newest)
        return self._peers.run(call)

    def run(self, conversation: Conversation[R], *, timeout_s: float | None = None) -> R:
        """The result of a conversation of `heirlog.client.admin`. timeout_s: without any progress.

        Raises KafkaError where the call does or when there is no time to ask again, OSError when nobody answers.
        """
        return self._peers.run(self._cluster.converse(conversation, self._time(timeout_s)))

    # a partition's leader

    def send_to_leader(
        self,
        topic: str,
        partition: int,
        message: Message | Callable[[bytes], Message],
        *,
        error_code: Callable[[Any], int] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """The leader's response; asked again, from the new leader if there is one, when no answer came.

        message: a message, or a function of the topic's id that makes it. error_code: the code in a response for which
        the request is repeated while it is in `LOOK_AGAIN`; the last response is returned when time is over.
        """

        def made(topic_id: bytes) -> Message:
            return message if isinstance(message, Message) else message(topic_id)

        call = ask_leader(self._cluster, topic, partition, made, self._time(timeout_s), code_of=error_code)
        return self._peers.run(call)

    def produce(
        self,
        topic: str,
        partition: int,
        records: Buffer,
        *,
        acks: int = -1,
        timeout_s: float | None = None,
        tries: list[int | None] | None = None,
    ) -> ProduceResponse.PartitionProduceResponse:
        """Append encoded batches. The partition's answer, its error code included.

        tries: gets one entry for each request that is sent: the error code of its answer, None while it has none.
        """
        codes = [] if tries is None else tries
        wait_ms = int((self._timeout_s if timeout_s is None else timeout_s) * 1000)

        def request(topic_id: bytes) -> ProduceRequest:
            data = ProduceRequest.PartitionProduceData(index=partition, records=records)
            topic_data = ProduceRequest.TopicProduceData(topic_id=topic_id, name=topic, partition_data=[data])
            codes.append(None)
            return ProduceRequest(acks=acks, timeout_ms=wait_ms, topic_data=[topic_data])

        def answer(response: ProduceResponse) -> ProduceResponse.PartitionProduceResponse:
            return response.responses[0].partition_responses[0]

        def code(response: ProduceResponse) -> int:
            codes[-1] = error = answer(response).error_code
            return error

        assert acks, "acks=0 has no answer to wait for"
        response = self.send_to_leader(topic, partition, request, error_code=code, timeout_s=timeout_s)
        return answer(response)

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int = 1 << 20,
        max_wait_ms: int = 500,
        timeout_s: float | None = None,
    ) -> FetchResponse.PartitionData:
        """Whole batches from `offset` on (the first may begin before it), empty at the high watermark."""

        def request(topic_id: bytes) -> FetchRequest:
            wanted = FetchRequest.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
            )
            topics = [FetchRequest.FetchTopic(topic_id=topic_id, topic=topic, partitions=[wanted])]
            return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, topics=topics)

        def answer(response: FetchResponse) -> FetchResponse.PartitionData | None:
            return response.responses[0].partitions[0] if response.responses else None

        def code(response: FetchResponse) -> int:
            data = answer(response)
            return response.error_code or (data.error_code if data is not None else 0)

        response: FetchResponse = self.send_to_leader(topic, partition, request, error_code=code, timeout_s=timeout_s)
        data = answer(response)
        if data is None:
            raise KafkaError(error_code(response.error_code), f"{topic}-{partition} at {offset} could not be fetched")
        return data

    def offset(self, topic: str, partition: int, timestamp: int = LATEST, *, timeout_s: float | None = None) -> int:
        """ListOffsets: `LATEST` is the high watermark, `EARLIEST` the log start. Raises KafkaError."""
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        response = self.send_to_leader(
            topic,
            partition,
            request,
            error_code=lambda got: got.topics[0].partitions[0].error_code,
            timeout_s=timeout_s,
        )
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(error_code(found.error_code), f"the offset of {topic}-{partition} could not be listed")
        return int(found.offset)

    # plumbing

    def _time(self, timeout_s: float | None) -> float:
        return self._timeout_s if timeout_s is None else timeout_s
