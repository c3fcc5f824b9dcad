"""An operator who moves replicas: reassigns partitions, gives some of that up again, asks for preferred leaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heirlog.env import Env
from heirlog.protocol.messages import AlterPartitionReassignmentsRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.admin import PREFERRED, election
from heirlog.sim.clients.client import REQUEST_TIMEOUT_MS, Client

INDEXES = 3
"""Topics of a run have no more partitions; for one that is not there an error is answered."""
REPLICAS_MIN, REPLICAS_MAX = 2, 4


class Mover(Client):
    """Begins something every second or so, until it is stopped. What is answered does not matter."""

    def __init__(
        self, env: Env, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str], brokers: Sequence[int]
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
        self._ids = list(brokers)

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(200, 2000), self._move)

    def _move(self) -> None:
        if self.stopped:
            return
        random = self.env.random
        topic, index = self.topics[random.randrange(0, len(self.topics))], random.randrange(0, INDEXES)
        kind = random.randrange(0, 8)
        if kind == 0:
            self._begin(election(PREFERRED, {topic: [index]}))
        else:
            self._begin(reassignment(topic, index, None if kind == 1 else self._some_brokers()))

    def _begin(self, request: Any) -> None:
        self.env.send(self.any_endpoint(), "admin", request, lambda _: self.start(), REQUEST_TIMEOUT_MS)

    def _some_brokers(self) -> list[int]:
        shuffled = list(self._ids)
        self.env.random.shuffle(shuffled)
        return shuffled[: self.env.random.randrange(REPLICAS_MIN, min(REPLICAS_MAX, len(shuffled)) + 1)]


def reassignment(topic: str, index: int, replicas: Sequence[int] | None) -> AlterPartitionReassignmentsRequest:
    """replicas: None cancels what is under way."""
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=index, replicas=None if replicas is None else list(replicas)
    )
    moved = AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[partition])
    return AlterPartitionReassignmentsRequest(topics=[moved], timeout_ms=1000)
