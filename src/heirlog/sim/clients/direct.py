"""Producers and consumers that find leaders themselves, until the core has theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heirlog.env import Env, SendFailure
from heirlog.protocol.messages import MetadataRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim.history import partition_name

RETRY_MS = 150
REQUEST_TIMEOUT_MS = 2000


@dataclass(slots=True)
class Leader:
    """What a client believes about one partition."""

    topic_id: bytes
    topic: str
    index: int
    broker: int = -1
    epoch: int = -1

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def partition(self) -> str:
        """Its name in a history: a topic made again is another one."""
        return partition_name(self.topic, self.index, self.topic_id)


class DirectClient:
    """Knows brokers and leaders."""

    def __init__(self, env: Env, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str]) -> None:
        self.env = env
        self.name = name
        self.bootstrap = list(bootstrap)
        self.topics = list(topics)
        self.brokers: dict[int, Endpoint] = {}
        self.leaders: dict[str, Leader] = {}
        """Of each partition as last heard, by its name; `_known` has those of deleted topics, too."""
        self._known: dict[str, Leader] = {}
        self.stopped = False
        self._asking = False
        self._waiting: list[Callable[[], None]] = []

    def start(self) -> None:
        raise NotImplementedError

    def refresh(self, then: Callable[[], None]) -> None:
        """Ask any broker for metadata; `then` runs when an answer has come, whatever it says."""
        self._waiting.append(then)
        if not self._asking:
            self._asking = True
            self._ask()

    def _ask(self) -> None:
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in self.topics]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        self.env.send(self.any_endpoint(), "metadata", request, self._told, REQUEST_TIMEOUT_MS)

    def _told(self, response: Any) -> None:
        if isinstance(response, SendFailure):
            # the broker may be gone for good: ask the ones that we started from, too
            self.brokers = {}
            self.env.call_later(RETRY_MS, self._ask)
            return
        self.brokers = {broker.node_id: Endpoint(broker.host, broker.port) for broker in response.brokers}
        for topic in response.topics:
            for partition in topic.partitions:
                self._learn(topic, partition)
        self._asking = False
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()

    def _learn(self, topic: Any, partition: Any) -> None:
        index = partition.partition_index
        known = partition_name(topic.name, index, topic.topic_id)
        leader = self._known.setdefault(known, Leader(topic.topic_id, topic.name, index))
        self.leaders[leader.name] = leader
        if partition.leader_epoch >= leader.epoch:
            leader.epoch = partition.leader_epoch
            leader.broker = partition.leader_id

    @property
    def knows_its_topics(self) -> bool:
        return {leader.topic for leader in self.leaders.values()} >= set(self.topics)

    def any_endpoint(self) -> Endpoint:
        """Of any broker."""
        endpoints = list(self.brokers.values()) or self.bootstrap
        return endpoints[self.env.random.randrange(0, len(endpoints))]

    def endpoint_of(self, leader: Leader) -> Endpoint | None:
        return self.brokers.get(leader.broker)

    def later(self, fn: Callable[[], None]) -> None:
        """After a pause, with newer metadata."""
        self.env.call_later(RETRY_MS, lambda: self.refresh(fn))

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopped = True
