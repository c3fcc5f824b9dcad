"""The librdkafka clients of the chaos drill that use transactions: copiers of a topic, and what is left of them.

    members of one group read KEPT --> transaction: a copy of each record into COPIED, then the offsets --> commit
         ^                                                      |
         +---- back to what the group has committed ---- aborted, or unknown

Each copier has a transactional id of its own. So each record of KEPT below the offset that the group has committed is
in COPIED once, for readers of committed records, whatever is killed meanwhile. A copier reads only between two
transactions: a rebalance never comes into one, unless the group removes the member.

librdkafka may wait for ever in send_offsets_to_transaction, whatever the time limit of the call: for a connection to a
coordinator of the group that it remembers, although that broker has left the metadata (its issues 5511 and 5456, open
with 2.14). It then sends no request to any broker. So this call has a thread of its own, and a producer that hangs in
it is replaced.

Traps. A call that librdkafka calls retriable is resumed by calling it again, however long a fault lasts; only after the
end of all faults it has a time limit. And an error of a commit may leave the outcome unknown: then the next producer
with the id waits for the outcome, and the offsets of the group tell what it was.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from heirlog.blocking import Client
from heirlog.blocking.hanging_transactions import NO_TRANSACTION, producers_of
from heirlog.drill.chaos_clients import FLUSH_S, RECONNECT, SILENT, group_consumer, named
from heirlog.drill.chaos_record import COPIED, KEPT, PARTITIONS, ClientRecord, encode, now_ms, value_of
from heirlog.drill.servers import Servers
from heirlog.drill.workload import Loop
from heirlog.sim.history import TransactionAttempt

GROUP = "chaos-copiers"
TRANSACTION_TIMEOUT_MS = 10_000
COPIED_AT_ONCE = 50
CALL_S = 5.0
HANGS_S = TRANSACTION_TIMEOUT_MS / 1000 + CALL_S
"""A call with the limit CALL_S that has not returned by then never returns, and its transaction is aborted."""
ASK_S = 5.0
TURN_S = 0.1
SETTLE_S = 45.0
"""For the coordinators to abort what a client left open: the timeout of a transaction, and some fail-overs."""
FIRST_NUMBER = 20
"""Of the copiers, in their values."""

T = TypeVar("T")


class Stuck(Exception):
    """A call has not succeeded long after the end of all faults."""


class Hangs(Exception):
    """A call of librdkafka does not return."""


class ChaosCopier(Loop):
    """One of the group. leaves_every_s: closes its consumer and joins again; 0: never."""

    def __init__(self, servers: Servers, number: int, record: ClientRecord, *, leaves_every_s: float = 0) -> None:
        super().__init__()
        self._servers = servers
        self._name = f"{GROUP}-{number}"
        self._number = FIRST_NUMBER + number
        self._record = record
        self._leaves_every_s = leaves_every_s
        self._counter = itertools.count()
        self._stopping_since_s = 0.0
        self._joined_s = time.monotonic()
        self._consumer = self._joined()
        self._producer: Producer | None = None

    def _joined(self) -> Consumer:
        consumer = group_consumer(self._servers, self._name, GROUP)
        consumer.subscribe([KEPT])
        return consumer

    def step(self) -> None:
        try:
            if self._producer is None:
                self._producer = self._initialized()
            self._copy(self._producer)
        except KafkaException as error:
            self._failed("copies", error)
            self._producer = None
        except Hangs as hangs:
            self._record.failed(f"{self._name}: {hangs}")
            self._producer = None
        except Stuck as stuck:
            self._record.stuck.append(str(stuck))
            self._producer = None
        now_s = time.monotonic()
        if self._leaves_every_s and now_s - self._joined_s > self._leaves_every_s:
            self._joined_s = now_s
            self._consumer.close()
            self._consumer = self._joined()

    def _failed(self, what: str, error: KafkaException) -> None:
        self._record.failed(f"{self._name} {what}: {named(error)}")

    def _initialized(self) -> Producer:
        producer = Producer(
            {
                **self._servers.librdkafka(),
                "client.id": self._name,
                "transactional.id": self._name,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 5,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 500,
                "error_cb": lambda error: self._record.failed(f"{self._name}: {error.name()}"),
                **RECONNECT,
            },
            logger=SILENT,
        )
        self._patiently("init_transactions", lambda: producer.init_transactions(CALL_S))
        self._rewind()
        return producer

    def _patiently(self, what: str, call: Callable[[], T]) -> T:
        """Call again while librdkafka says that this may help. Raises Stuck, and KafkaException of other errors."""
        while True:
            try:
                return call()
            except KafkaException as error:
                self._failed(what, error)
                if not error.args[0].retriable():
                    raise
                if self._is_late():
                    why = f"{self._name} still waits in {what} {FLUSH_S:g} s after the cluster had healed"
                    raise Stuck(f"{why}: {named(error)}") from error
                self._stopping.wait(TURN_S)

    def _is_late(self) -> bool:
        if not self._stopping.is_set():
            return False
        self._stopping_since_s = self._stopping_since_s or time.monotonic()
        return time.monotonic() - self._stopping_since_s > FLUSH_S

    def _copy(self, producer: Producer) -> None:
        """One transaction, if there is something to copy."""
        messages = [message for message in self._consumer.consume(COPIED_AT_ONCE, timeout=0.2) if not message.error()]
        if not messages:
            return
        attempt = TransactionAttempt(self._name, self._name, -1, -1, now_ms())
        self._record.transactions.append(attempt)
        producer.begin_transaction()
        try:
            self._write(producer, attempt, messages)
            attempt.commit_sent = self._record.tick()
            self._patiently("commit_transaction", lambda: producer.commit_transaction(CALL_S))
        except KafkaException as error:
            self._failed("copies", error)
            if not error.args[0].txn_requires_abort():
                raise
            self._patiently("abort_transaction", lambda: producer.abort_transaction(CALL_S))
            attempt.committed = False
            self._rewind()
        else:
            attempt.committed = True
        attempt.ended_ms = now_ms()

    def _write(self, producer: Producer, attempt: TransactionAttempt, messages: list[Message]) -> None:
        offsets: dict[int, int] = {}
        for message in messages:
            index, offset = message.partition(), message.offset()
            assert index is not None and offset is not None, "a record that was read has a place"
            offsets[index] = offset + 1
            self._send(producer, attempt, (index, offset))
        while producer.flush(TURN_S) and not self._is_late():
            pass
        places = [Place(KEPT, index, offset) for index, offset in offsets.items()]
        member = self._consumer.consumer_group_metadata()
        what = "send_offsets_to_transaction"
        self._patiently(
            what, lambda: _in_time(what, lambda: producer.send_offsets_to_transaction(places, member, CALL_S))
        )

    def _send(self, producer: Producer, attempt: TransactionAttempt, copied: tuple[int, int]) -> None:
        count = next(self._counter)
        value, partition, sent = value_of(self._number, count), count % PARTITIONS[COPIED], self._record.tick()
        attempt.values[value] = f"{COPIED}-{partition}"
        attempt.inputs[value] = copied

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                attempt.acknowledged[value] = sent

        producer.produce(COPIED, encode(value), partition=partition, on_delivery=delivered)

    def _rewind(self) -> None:
        """Read on where the group's committed offsets are. Raises KafkaException."""
        mine = self._consumer.assignment()
        if not mine:
            return
        for place in self._patiently("asks for its offsets", lambda: self._consumer.committed(mine, timeout=CALL_S)):
            if place.error is not None:
                raise KafkaException(place.error)
            self._consumer.seek(Place(place.topic, place.partition, max(0, place.offset)))

    def finish(self) -> None:
        self._consumer.close()


def _in_time(what: str, call: Callable[[], None]) -> None:
    """Call in a thread of its own, which is left behind if it does not return. Raises Hangs, and what `call` raises."""
    failures: list[KafkaException] = []

    def run() -> None:
        try:
            call()
        except KafkaException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANGS_S)
    if thread.is_alive():
        raise Hangs(f"{what} has not returned after {HANGS_S:g} s")
    if failures:
        raise failures[0]


@dataclass(slots=True)
class LeftOver:
    """What is there after all transactional clients have stopped."""

    committed: dict[int, int] = field(default_factory=dict)
    """Offsets of the copiers' group, by partition of KEPT."""
    open: set[int] = field(default_factory=set)
    """Partitions of COPIED in which a transaction is still open, or that cannot tell."""


def committed_offsets(servers: Servers) -> dict[int, int]:
    """Of the copiers' group. Raises KafkaException while they are not known, as within an open transaction."""
    consumer = Consumer({**servers.librdkafka(), "group.id": GROUP, **RECONNECT})
    try:
        asked = [Place(KEPT, index) for index in range(PARTITIONS[KEPT])]
        places = consumer.committed(asked, timeout=ASK_S)
    finally:
        consumer.close()
    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)
    return {place.partition: max(0, place.offset) for place in places}


def left_over(servers: Servers, client: Client) -> LeftOver:
    """Once every transaction has ended, or SETTLE_S is over."""
    deadline = time.monotonic() + SETTLE_S
    found = LeftOver(open=_open_partitions(client))
    while found.open and time.monotonic() < deadline:
        time.sleep(TURN_S)
        found.open = _open_partitions(client)
    while True:
        try:
            found.committed = committed_offsets(servers)
        except KafkaException:
            if time.monotonic() > deadline:
                return found
            time.sleep(TURN_S)
        else:
            return found


def _open_partitions(client: Client) -> set[int]:
    places = [(COPIED, index) for index in range(PARTITIONS[COPIED])]
    try:
        producers = producers_of(client, places)
    except OSError:
        return set(range(PARTITIONS[COPIED]))
    opened = {
        index
        for (_, index), found in producers.by_partition.items()
        if any(producer.current_txn_start_offset != NO_TRANSACTION for producer in found)
    }
    return opened | {index for _, index in producers.not_asked}
