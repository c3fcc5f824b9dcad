"""A producer of transactions: some it commits, some it aborts, and now and then it is not what its cluster hopes for.

    it sleeps inside a transaction       its time limit passes, or the other instance of its id fences it
    it ends in the midst of one          the next instance, or the time limit, aborts the transaction
    it does not know what became of a    it asks for an abort, or begins again as a new process
    commit

Two instances of one id are two clients: what one of them begins, the other one fences.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count

from heirlog.client.call import Call, Pause
from heirlog.client.offsets import TopicPartition
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import CALL_TIMEOUT_S, Client
from heirlog.sim.clients.transactions import MustAbort, Restart, TransactionalId, TransactionRequests
from heirlog.sim.env import SimEnv
from heirlog.sim.history import History, TransactionAttempt

ABORTS_OF_10 = 3
FORGETS_OF_40 = 2
OFTEN = 0.2
"""Who sleeps more often than this does not sleep beyond the time limit."""


class TransactionalProducer(Client):
    """first_value: of the numbers that it writes. unrecorded: as in `TransactionRequests`. pause_ms: between two
    transactions.
    """

    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topics: Sequence[str],
        history: History,
        who: TransactionalId,
        first_value: int,
        *,
        unrecorded: Collection[str] = (),
        pause_ms: int,
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
        self._transactions = TransactionRequests(self, history, who, count(first_value), unrecorded)
        self._pause_s = pause_ms / 1000
        self.ended = False
        """It has stopped, and nothing of it is on its way."""

    def start(self) -> None:
        self.driver.run(self._run(), lambda _: None, lambda _: None)

    def _run(self) -> Call[None]:
        while not self.stopped:
            try:
                yield from self.cluster.find_topics(self.topics, CALL_TIMEOUT_S)
                yield from self._transactions.initialize()
                while not self.stopped:
                    yield from self._transaction()
                    yield Pause(self._pause_s)
            except (Restart, MustAbort, OSError, KafkaError) as error:
                self.env.log("info", "transactional-producer-restarts", reason=str(error))
                yield Pause(self.env.random.uniform(0.1, 2.0))
        self.ended = True

    def _transaction(self) -> Call[None]:
        transactions, random = self._transactions, self.env.random
        attempt = transactions.begin()
        try:
            yield from self._write(attempt)
        except MustAbort:
            yield from transactions.abort_and_continue(attempt)
            return
        yield from self._maybe_sleep()
        drawn = random.randrange(0, 40)
        if drawn < FORGETS_OF_40:
            raise Restart("it ended inside a transaction")
        commit = random.randrange(0, 10) >= ABORTS_OF_10
        try:
            yield from transactions.end(attempt, commit=commit)
        except (Restart, OSError, KafkaError):
            if commit and random.randrange(0, 2):
                # what was asked first may have happened, or may still happen
                yield from transactions.end(attempt, commit=False)
            raise

    def _write(self, attempt: TransactionAttempt) -> Call[None]:
        random, transactions = self.env.random, self._transactions
        known = self._partitions()
        random.shuffle(known)
        chosen = known[: random.randrange(1, 4)]
        together = not random.randrange(0, 2)
        if together:
            yield from transactions.add(chosen)
        for _ in range(random.randrange(1, 3)):
            for partition in chosen:
                yield from self._maybe_sleep()
                if not together:
                    yield from transactions.add([partition])
                yield from transactions.write(attempt, partition, [None] * random.randrange(1, 6))

    def _partitions(self) -> list[TopicPartition]:
        return [
            (topic, index)
            for topic, known in sorted(self.cluster.view.topics.items())
            if topic in self.topics
            for index in sorted(known.partitions)
        ]

    def _maybe_sleep(self) -> Call[None]:
        who = self._transactions.who
        if self.env.random.random() < who.sleeps:
            yield Pause(self.env.random.uniform(0.1, 1.5 if who.sleeps < OFTEN else 0.4) * who.timeout_ms / 1000)
