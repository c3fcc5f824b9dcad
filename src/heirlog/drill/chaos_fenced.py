"""Producers of aiokafka that share a transactional id in the chaos drill: each new one replaces the one before.

    producer 1   transactions ... | replaced |-- one more transaction, which must fail
    producer 2                    initialised -- transactions ... | replaced |-- one more ...

The one that was replaced is a zombie: what it asks for afterwards must not be done. Some transactions are aborted on
purpose, and a reader of committed records must see nothing of them.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from random import Random
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from heirlog.drill.chaos_record import COPIED, PARTITIONS, ClientRecord, encode, now_ms, value_of
from heirlog.sim.history import InitializedProducer, TransactionAttempt

TRANSACTIONAL_ID = "chaos-fenced"
NUMBER = 30
"""Of the producers, in their values."""
TRANSACTIONS_EACH = 15
RECORDS_MAX = 6
ABORTED = 0.25
TURN_S = 0.1
CALL_S = 30.0
CLOSE_S = 5.0


class FencedProducers:
    def __init__(self, settings: dict[str, Any], record: ClientRecord, seed: int) -> None:
        """settings: of the client."""
        self._settings = settings
        self._record = record
        self._random = Random(seed)
        self._counter = itertools.count()
        self._names = itertools.count(1)

    async def run(self, stopping: threading.Event) -> None:
        before: _Initialized | None = None
        while not stopping.is_set():
            found = await self._initialized()
            if before is not None:
                await self._transaction(before)
                await _close(before.producer)
            before = found
            if found is None:
                await asyncio.sleep(TURN_S)
                continue
            for _ in range(TRANSACTIONS_EACH):
                if stopping.is_set() or not await self._transaction(found):
                    break
                await asyncio.sleep(TURN_S)
        if before is not None:
            await _close(before.producer)

    async def _initialized(self) -> _Initialized | None:
        """None: it could not be initialised."""
        producer = AIOKafkaProducer(
            transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=10_000, linger_ms=5, **self._settings
        )
        sent = self._record.tick()
        try:
            await asyncio.wait_for(producer.start(), CALL_S)
        except (KafkaError, OSError) as error:  # TimeoutError is one
            self._record.failed(f"{TRANSACTIONAL_ID} starts: {type(error).__name__}")
            await _close(producer)
            return None
        # aiokafka shows them nowhere else
        manager = producer._txn_manager
        found = InitializedProducer(
            TRANSACTIONAL_ID,
            f"{TRANSACTIONAL_ID}-{next(self._names)}",
            manager.producer_id,
            manager.producer_epoch,
            sent,
            self._record.tick(),
        )
        self._record.initialized.append(found)
        return _Initialized(producer, found)

    async def _transaction(self, by: _Initialized) -> bool:
        """Whether the producer may begin another one."""
        who = by.answer
        attempt = TransactionAttempt(
            TRANSACTIONAL_ID, who.client, who.producer_id, who.producer_epoch, now_ms(), who.answered
        )
        self._record.transactions.append(attempt)
        try:
            await asyncio.wait_for(self._play(by.producer, attempt), CALL_S)
        except (KafkaError, OSError, AssertionError) as error:
            # the last one is how aiokafka refuses to begin a transaction after a fatal error
            self._record.failed(f"{TRANSACTIONAL_ID}: {type(error).__name__}")
            # its next producer ends whatever this one has left open
            return False
        return True

    async def _play(self, producer: AIOKafkaProducer, attempt: TransactionAttempt) -> None:
        await producer.begin_transaction()
        await asyncio.gather(
            *[await self._send(producer, attempt) for _ in range(self._random.randint(1, RECORDS_MAX))]
        )
        if self._random.random() < ABORTED:
            await producer.abort_transaction()
            attempt.committed = False
        else:
            attempt.commit_sent = self._record.tick()
            await producer.commit_transaction()
            attempt.committed = True
        attempt.ended_ms = now_ms()

    async def _send(self, producer: AIOKafkaProducer, attempt: TransactionAttempt) -> asyncio.Future[Any]:
        """What waits for the answer."""
        value, sent = value_of(NUMBER, next(self._counter)), self._record.tick()
        partition = self._random.randrange(PARTITIONS[COPIED])
        attempt.values[value] = f"{COPIED}-{partition}"

        def delivered(answer: asyncio.Future[Any]) -> None:
            if not answer.cancelled() and answer.exception() is None:
                attempt.acknowledged[value] = sent

        waiting: asyncio.Future[Any] = await producer.send(COPIED, encode(value), partition=partition)
        waiting.add_done_callback(delivered)
        return waiting


class _Initialized:
    def __init__(self, producer: AIOKafkaProducer, answer: InitializedProducer) -> None:
        self.producer = producer
        self.answer = answer


async def _close(producer: AIOKafkaProducer) -> None:
    """One that cannot end is given up: its transaction is another one's to abort."""
    try:
        await asyncio.wait_for(producer.stop(), CLOSE_S)
    except (KafkaError, OSError, asyncio.CancelledError):
        return
