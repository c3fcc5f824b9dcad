"""A group whose offsets are committed in two ways: a plain commit after a transactional one, and before its marker.

    TxnOffsetCommit of n --> OffsetCommit of n + 1 --> EndTxn --> the stable offset is at least n + 1

The transaction writes first and ends last. What was written later counts, or the group reads something twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from heirlog.client import coordinators
from heirlog.client.call import Call, Pause
from heirlog.client.offsets import CommittedOffset
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import CALL_TIMEOUT_S, Client
from heirlog.sim.clients.transactions import MustAbort, Restart, TransactionalId, TransactionRequests
from heirlog.sim.env import SimEnv
from heirlog.sim.history import Finding, History

GROUP = "overtaken"
TIMEOUT_MS = 8000
PAUSE_S = 0.3
OFFSET_BACK = "lost-commit"


class OvertakenCommitter(Client):
    """topic: whose offsets are committed."""

    def __init__(
        self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topic: str, history: History, values: count[int]
    ) -> None:
        super().__init__(env, name, bootstrap, [topic])
        self._topic = topic
        self._transactions = TransactionRequests(self, history, TransactionalId(GROUP, TIMEOUT_MS), values)
        self.findings: list[Finding] = []
        self.ended = False

    def start(self) -> None:
        self.driver.run(self._run(), lambda _: None, lambda _: None)

    def _run(self) -> Call[None]:
        offset = 0
        while not self.stopped:
            try:
                yield from self.cluster.find_topics(self.topics, CALL_TIMEOUT_S)
                yield from self._transactions.initialize()
                while not self.stopped:
                    offset += 2
                    yield from self._once(offset)
                    yield Pause(PAUSE_S)
            except (Restart, MustAbort, OSError, KafkaError) as error:
                self.env.log("info", "overtaken-committer-restarts", reason=str(error))
                yield Pause(self.env.random.uniform(0.1, 2.0))
        self.ended = True

    def _once(self, offset: int) -> Call[None]:
        transactions = self._transactions
        attempt = transactions.begin()
        yield from transactions.add_offsets(GROUP)
        yield from transactions.commit_offsets(GROUP, -1, "", self._topic, {0: offset})
        place = (self._topic, 0)
        plainly = {place: CommittedOffset(offset + 1)}
        yield from coordinators.commit(self.cluster, GROUP, plainly, CALL_TIMEOUT_S)
        yield from transactions.end(attempt, commit=bool(self.env.random.randrange(0, 4)))
        found = yield from coordinators.committed(self.cluster, GROUP, [place], CALL_TIMEOUT_S)
        got = found[place].offset if place in found else -1
        if got <= offset:
            sentence = f"offset {offset + 1} was committed after {offset} was written, and the group is at {got}"
            self.findings.append(Finding(OFFSET_BACK, sentence))
