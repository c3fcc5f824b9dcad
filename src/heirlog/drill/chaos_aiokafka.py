"""The aiokafka clients of the chaos drill, in a thread with an event loop of their own.

    a writer of AIOKAFKA    idempotent, acks=all
    writers of COPIED       transactional, with one id (`chaos_fenced`)
    a reader                every partition of both stable topics, from the beginning; it does not tell leader epochs
    two members of a group  share AIOKAFKA; what each is assigned in which generation is noted

aiokafka shows the generation of a group and the id of a member only on the coordinator inside of its consumer.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka import TopicPartition as Place
from aiokafka.errors import KafkaError, OutOfOrderSequenceNumber
from aiokafka.structs import OffsetAndMetadata

from heirlog.drill.chaos_clients import COMMIT_EVERY_S, FLUSH_S, IN_FLIGHT_MAX, Pace
from heirlog.drill.chaos_fenced import FencedProducers
from heirlog.drill.chaos_record import (
    AIOKAFKA,
    PARTITIONS,
    STABLE,
    UNKNOWN_OFFSET,
    Answered,
    ClientRecord,
    RecordRead,
    decode,
    encode,
    now_ms,
    value_of,
)
from heirlog.drill.servers import Servers
from heirlog.sim.group_history import Commit, GroupHistory, Owned

GROUP = "chaos-aiokafka"
READER = "aiokafka"
MEMBERS = 2
NUMBER = 9
"""Of the producer, in its values."""
TURN_S = 0.05
POLL_MS = 200
END_S = 30.0
"""For a client to close."""
REQUEST_TIMEOUT_MS = 10_000


class AiokafkaClients:
    """`start`, `ask_to_stop` and `stop` as `heirlog.drill.workload.Loop`; history: of the group.

    `stop_writing` ends the writer only, and returns when each of its records was answered or given up.
    """

    def __init__(self, servers: Servers, per_s: float, record: ClientRecord, history: GroupHistory, seed: int) -> None:
        self._settings = {
            **servers.aiokafka(),
            "metadata_max_age_ms": 2_000,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "retry_backoff_ms": 50,
        }
        self._pace = Pace(per_s)
        self._record = record
        self._history = history
        self._fenced = FencedProducers(self._settings, record, seed)
        self._is_desynchronized = False
        self._waiting: set[asyncio.Task[None]] = set()
        self._stopping = threading.Event()
        self._stopping_writes = threading.Event()
        self._written = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        # what it logs about lost brokers would bury the drill's own lines
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stopping_writes.set()
        self._stopping.set()

    def stop_writing(self) -> None:
        self._stopping_writes.set()
        while not self._written.wait(TURN_S) and self._thread.is_alive():
            pass

    def stop(self) -> None:
        self._stopping_writes.set()
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as failure:
            self._failure = failure

    async def _work(self) -> None:
        # errors that aiokafka keeps in futures of its own, for which nothing waits
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self._record.failed(f"aiokafka: {type(context.get('exception')).__name__}")
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_all())
            group.create_task(self._read())
            for number in range(MEMBERS):
                group.create_task(self._share(f"{GROUP}-{number}"))

    async def _attempt(self, what: str, step: Callable[[], Awaitable[Any]]) -> bool:
        """Whether it went without an error of the client."""
        try:
            await step()
        except (KafkaError, OSError) as error:
            self._record.failed(f"aiokafka {what}: {type(error).__name__}")
            return False
        return True

    # the writers

    async def _write_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write())
            group.create_task(self._fenced.run(self._stopping_writes))
        self._written.set()

    async def _write(self) -> None:
        producer = await self._producer()
        counter = itertools.count()
        while not self._stopping_writes.is_set():
            if self._is_desynchronized:
                self._is_desynchronized = False
                await self._close(producer)
                # a producer that is closed answers nothing any more: what it still owes, the client has lost
                self._record.refused[AIOKAFKA] += len(self._waiting)
                for task in list(self._waiting):
                    task.cancel()
                self._waiting.clear()
                producer = await self._producer()
            for _ in range(self._pace.due()):
                if len(self._waiting) < IN_FLIGHT_MAX:
                    task = asyncio.create_task(self._send(producer, next(counter)))
                    self._waiting.add(task)
                    task.add_done_callback(self._waiting.discard)
            await asyncio.sleep(TURN_S)
        if self._waiting:
            _, late = await asyncio.wait(self._waiting, timeout=FLUSH_S)
            for task in late:
                task.cancel()
            self._record.refused[AIOKAFKA] += len(late)
            if late:
                self._record.stuck.append(
                    f"{len(late)} records of {AIOKAFKA} had no answer {FLUSH_S:g} s after the cluster had healed"
                )
        await self._close(producer)

    async def _producer(self) -> AIOKafkaProducer:
        """A started one; while no broker can be reached, or none has a producer id to give, this takes time."""
        while True:
            producer = AIOKafkaProducer(acks="all", enable_idempotence=True, linger_ms=5, **self._settings)
            if await self._attempt("starts a writer", producer.start) or self._stopping_writes.is_set():
                return producer
            await self._close(producer)
            await asyncio.sleep(TURN_S)

    async def _send(self, producer: AIOKafkaProducer, count: int) -> None:
        value, sent, sent_ms = value_of(NUMBER, count), self._record.tick(), now_ms()
        self._record.sent[AIOKAFKA] += 1
        try:
            answer = await producer.send_and_wait(AIOKAFKA, encode(value), partition=count % PARTITIONS[AIOKAFKA])
        except (KafkaError, OSError) as error:
            self._record.refused[AIOKAFKA] += 1
            self._record.failed(f"aiokafka writes: {type(error).__name__}")
            # an election lost records of this producer: from now on all of its batches are refused
            self._is_desynchronized |= isinstance(error, OutOfOrderSequenceNumber)
            return
        offset = answer.offset if answer.offset is not None and answer.offset >= 0 else UNKNOWN_OFFSET
        answered = self._record.tick()
        # records wait for their places in batches in tasks of their own, so their order is not kept
        self._record.answered.append(
            Answered(
                AIOKAFKA,
                answer.partition,
                offset,
                value,
                f"writer-{NUMBER}",
                sent,
                answered,
                sent_ms,
                now_ms(),
                in_order=False,
            )
        )

    # the reader

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(auto_offset_reset="earliest", enable_auto_commit=False, **self._settings)
        await consumer.start()
        consumer.assign([Place(topic, index) for topic in STABLE for index in range(PARTITIONS[topic])])
        while not self._stopping.is_set():
            await self._attempt("reads", lambda: self._read_some(consumer))
        await self._close(consumer)

    async def _read_some(self, consumer: AIOKafkaConsumer) -> None:
        found = await consumer.getmany(timeout_ms=POLL_MS)
        poll = self._record.tick()
        for place, messages in found.items():
            for message in messages:
                value = decode(message.value)
                if value is None:
                    where = f"{place.topic}-{place.partition} at offset {message.offset}"
                    self._record.changed.append(f"{READER} read bytes that no client wrote in {where}")
                else:
                    self._record.read.append(
                        RecordRead(READER, place.topic, place.partition, message.offset, value, -1, poll)
                    )

    # the group

    async def _share(self, name: str) -> None:
        consumer = AIOKafkaConsumer(
            group_id=GROUP,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=500,
            **self._settings,
        )
        noted = Assignments(consumer, self._history)
        await consumer.start()
        consumer.subscribe([AIOKAFKA], listener=noted)
        tokens = itertools.count()
        positions: dict[int, int] = {}
        commits_s = asyncio.get_running_loop().time()

        async def step() -> None:
            nonlocal commits_s
            for place, messages in (await consumer.getmany(timeout_ms=POLL_MS)).items():
                positions[place.partition] = messages[-1].offset + 1
            if positions and asyncio.get_running_loop().time() - commits_s > COMMIT_EVERY_S:
                commits_s = asyncio.get_running_loop().time()
                given = {index: positions.pop(index) for index in list(positions)}
                await self._commit(consumer, given, f"{name}:{next(tokens)}", noted)

        while not self._stopping.is_set():
            if not await self._attempt(f"group, {name}", step):
                await asyncio.sleep(TURN_S)
        await self._close(consumer)

    async def _commit(
        self, consumer: AIOKafkaConsumer, positions: dict[int, int], token: str, noted: Assignments
    ) -> None:
        owned = noted.newest
        sent, sent_ms = self._history.tick(), now_ms()
        given = {}
        for index, offset in positions.items():
            self._history.commits[f"{token}:{index}"] = Commit(index, offset, sent, sent_ms)
            given[Place(AIOKAFKA, index)] = OffsetAndMetadata(offset, f"{token}:{index}")
        await consumer.commit(given)
        answered = self._history.tick()
        for index in positions:
            self._history.commits[f"{token}:{index}"].answered = answered
        if owned is not None and owned is noted.newest:
            owned.confirmed = True

    async def _close(self, client: AIOKafkaProducer | AIOKafkaConsumer) -> None:
        with suppress(TimeoutError):
            await self._attempt("closes", lambda: asyncio.wait_for(client.stop(), END_S))


class Assignments(ConsumerRebalanceListener):  # type: ignore[misc]
    """What a member is assigned, generation by generation."""

    def __init__(self, consumer: AIOKafkaConsumer, history: GroupHistory) -> None:
        self._consumer = consumer
        self._history = history
        self._sent = history.tick()
        self._sent_ms = now_ms()
        self.newest: Owned | None = None

    def on_partitions_revoked(self, revoked: list[Place]) -> None:
        """Before it joins again."""
        self.newest = None
        self._sent, self._sent_ms = self._history.tick(), now_ms()

    def on_partitions_assigned(self, assigned: list[Place]) -> None:
        coordinator = self._consumer._coordinator
        self.newest = Owned(
            generation=coordinator.generation,
            member=coordinator.member_id,
            partitions=tuple(place.partition for place in assigned),
            sent=self._sent,
            answered=self._history.tick(),
            sent_ms=self._sent_ms,
        )
        self._history.owned.append(self.newest)
