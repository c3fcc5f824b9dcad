"""An operator that moves replicas: reassigns partitions, cancels some reassignments, asks for preferred leaders."""

from __future__ import annotations

from collections.abc import Sequence

from heirlog.client.admin import to_controller
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.admin import PREFERRED, Admin, election, reassignment
from heirlog.sim.env import SimEnv

INDEXES = 3
"""Topics of a run have no more partitions than this; for a missing partition the answer is an error."""
REPLICAS_MIN, REPLICAS_MAX = 2, 5


class Reassigner(Admin):
    """Starts an action about every second, until it is stopped. The answers are ignored."""

    def __init__(
        self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str], brokers: Sequence[int]
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
            self.once(election(PREFERRED, [(topic, index)]), self.start)
        else:
            request = reassignment(topic, index, None if kind == 1 else self._some_brokers())
            self.once(to_controller(request, lambda response: [response.error_code]), self.start)

    def _some_brokers(self) -> list[int]:
        shuffled = list(self._ids)
        self.env.random.shuffle(shuffled)
        return shuffled[: self.env.random.randrange(REPLICAS_MIN, min(REPLICAS_MAX, len(shuffled)) + 1)]
