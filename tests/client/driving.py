"""A driver for calls of the core: servers are a function, and time passes only in pauses and timeouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from heirlog.client.call import Call, Pause, Send
from heirlog.client.cluster import Cluster
from heirlog.protocol.messages import MetadataRequest, MetadataResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

R = TypeVar("R")

ONE, TWO, THREE = (Endpoint(f"b{n}", n) for n in (1, 2, 3))
EFFECTS_MAX = 1000
SHORTEST_ANSWER_S = 0.002


class World:
    """answer: the response of this server to this message, or an exception instead of one."""

    def __init__(self, answer: Callable[[Endpoint, Message], Any]) -> None:
        self.answer = answer
        self.now = 0.0
        self.asked: list[tuple[Endpoint, Message]] = []
        self.pauses: list[float] = []

    def now_s(self) -> float:
        return self.now

    def random(self) -> float:
        return 0.5

    def cluster(self, *bootstrap: Endpoint) -> Cluster:
        return Cluster(bootstrap or (ONE, TWO, THREE), self)

    def run(self, call: Call[R]) -> R:
        try:
            effect = next(call)
            for _ in range(EFFECTS_MAX):
                if isinstance(effect, Pause):
                    self.now += effect.seconds
                    self.pauses.append(effect.seconds)
                    effect = call.send(None)
                elif isinstance(effect, Send):
                    response = self.response(effect)
                    effect = call.throw(response) if isinstance(response, Exception) else call.send(response)
                else:
                    effect = call.send([self.response(send) for send in effect.sends])
        except StopIteration as end:
            result: R = end.value
            return result
        raise AssertionError("the call never ends")

    def response(self, send: Send) -> Any:
        self.asked.append((send.to, send.message))
        response = TimeoutError("no time") if send.timeout_s < SHORTEST_ANSWER_S else self.answer(send.to, send.message)
        if isinstance(response, TimeoutError):
            self.now += send.timeout_s
        return response

    def servers(self, kind: type[Message]) -> list[Endpoint]:
        """Which were asked this, in order."""
        return [server for server, message in self.asked if isinstance(message, kind)]


def described(
    leaders: Sequence[int] = (), *, topic: str = "t", code: int = 0, epoch: int = 0, controller: int = 1
) -> MetadataResponse:
    """Three brokers, and a topic whose partitions have these leaders."""
    partitions = [
        MetadataResponse.MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=epoch)
        for index, leader in enumerate(leaders)
    ]
    found = MetadataResponse.MetadataResponseTopic(
        name=topic, topic_id=topic.encode().ljust(16), error_code=code, partitions=partitions
    )
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=endpoint.port, host=endpoint.host, port=endpoint.port)
        for endpoint in (ONE, TWO, THREE)
    ]
    return MetadataResponse(brokers=brokers, controller_id=controller, topics=[found] if leaders or code else [])


def topics_of(message: Message) -> list[str]:
    assert isinstance(message, MetadataRequest)
    return [topic.name or "" for topic in message.topics or ()]
