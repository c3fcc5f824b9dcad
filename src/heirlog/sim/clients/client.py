"""What all simulated clients share: they run calls of the product's client, and repeat calls that gave up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from heirlog.client.call import Call
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.driver import Driver
from heirlog.sim.env import SimEnv
from heirlog.sim.history import partition_name

R = TypeVar("R")

RETRY_MS = 150
REQUEST_TIMEOUT_MS = 2000
REQUEST_TIMEOUT_S = REQUEST_TIMEOUT_MS / 1000
CALL_TIMEOUT_S = 10.0
"""Timeout of a call. An outage may last longer; then the client repeats the call."""


class Client:
    """A process of its own, with a connection to the cluster of its own."""

    def __init__(self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str]) -> None:
        self.env = env
        self.name = name
        self.topics = list(topics)
        self.stopped = False
        self.driver = Driver(env, bootstrap)
        self.cluster = self.driver.cluster
        self._refreshing: list[Callable[[], None]] = []
        """What waits for newer metadata."""

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopped = True

    def until_done(self, make: Callable[[], Call[R]], done: Callable[[R], None]) -> None:
        """`done` gets the result of the call that `make` makes, however often it has to be made."""
        self.driver.run(make(), done, lambda _: self._later(lambda: self.until_done(make, done)))

    def find_topics(self, then: Callable[[], None]) -> None:
        """`then` runs once all topics of this client are known."""
        self.until_done(lambda: self.cluster.find_topics(self.topics, CALL_TIMEOUT_S), lambda _: then())

    def refresh_then(self, then: Callable[[], None]) -> None:
        """Call `then` after a pause, with newer metadata; calls in the meantime share one request."""
        self._refreshing.append(then)
        if len(self._refreshing) == 1:
            self._later(self._refresh)

    def _refresh(self) -> None:
        call = self.cluster.refresh_metadata_elsewhere(self.topics, REQUEST_TIMEOUT_S)
        self.driver.run(call, lambda _: self._refreshed(), lambda _: self._refreshed())

    def _refreshed(self) -> None:
        waiting, self._refreshing = self._refreshing, []
        for then in waiting:
            then()

    def partition_name(self, topic: str, index: int) -> str:
        """The partition as histories name it: a topic that was recreated is another one."""
        return partition_name(topic, index, self.cluster.view.topics[topic].topic_id or b"")

    def _later(self, fn: Callable[[], None]) -> None:
        self.env.call_later(RETRY_MS, fn)
