"""The administrator who ends a transaction without a time limit, as `heirlog transactions force-terminate` does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from heirlog.client.call import Call, Pause
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import Client
from heirlog.sim.clients.transactions import Restart, TransactionalId, TransactionRequests
from heirlog.sim.env import SimEnv
from heirlog.sim.history import History

TIMEOUT_MS = 30_000


class ForceTerminator(Client):
    def __init__(
        self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], history: History, transactional_id: str
    ) -> None:
        super().__init__(env, name, bootstrap, [])
        self._transactions = TransactionRequests(self, history, TransactionalId(transactional_id, TIMEOUT_MS), count())
        self.done = False

    def start(self) -> None:
        self.driver.run(self._run(), lambda _: None, lambda _: None)

    def _run(self) -> Call[None]:
        while not self.done:
            try:
                yield from self._transactions.initialize()
                self.done = True
            except (Restart, OSError, KafkaError):
                yield Pause(self.env.random.uniform(0.1, 0.5))
