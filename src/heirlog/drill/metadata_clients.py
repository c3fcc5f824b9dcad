"""Two clients of the drill of the controllers that change metadata without pause, and know what must be there.

    TopicChanger       create (2 partitions, two settings) -> change both settings -> 4 partitions ... delete the oldest
    PartitionMover     every partition of one topic gets other replicas, again and again

A change is asked for until it is acknowledged. An answer that says that it was made before counts as acknowledged: the
first request may have been carried out although its answer was lost. So in the end exactly the acknowledged state must
be there, and a topic with some of its partitions, or one of two settings that were changed together, was half made.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from heirlog.drill.observe import DrillFailure
from heirlog.drill.servers import Servers
from heirlog.drill.workload import Loop
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
)

PREFIX = "changed-"
"""Of the names of the topics that are created and deleted."""
MOVED = "moved"
MOVED_PARTITIONS = 4
KEPT_MAX = 8
"""Topics of the changer that exist at one time."""
CREATED_PARTITIONS, GROWN_PARTITIONS = 2, 4
REPLICAS = 3
ATTEMPT_S = 15.0
"""For one request and its answer; librdkafka and the broker ask again within it."""
CHANGE_S = 90.0
"""A change that is not acknowledged in this time is a failure of the drill."""
PAUSE_S = 0.05


@dataclass(slots=True)
class AnsweredChanges:
    """When changes were acknowledged (time.monotonic), and how many of which kind."""

    kinds: Counter[str] = field(default_factory=Counter)
    _at: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, at_s: float) -> None:
        with self._lock:
            self.kinds[kind] += 1
            self._at.append(at_s)

    def longest_gap_s(self, begin_s: float, end_s: float) -> float:
        """Between two answers, or the begin and an answer, within this time; an answer after its end closes a gap."""
        with self._lock:
            after = sorted(at for at in self._at if at >= begin_s)
        longest, before = 0.0, begin_s
        for at in after:
            longest = max(longest, at - before)
            before = at
            if at >= end_s:
                return longest
        return max(longest, end_s - before)


class TopicChanger(Loop):
    """Creates, alters, grows and deletes topics with librdkafka, one change after the other."""

    def __init__(self, servers: Servers, answered: AnsweredChanges) -> None:
        super().__init__()
        self.expected: dict[str, dict[str, str]] = {}
        """Topics that must be there, with GROWN_PARTITIONS partitions and these settings."""
        self.deleted: list[str] = []
        self._answered = answered
        self._admin = AdminClient(
            {
                **servers.librdkafka(),
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._names: deque[str] = deque()
        self._number = 0

    def step(self) -> None:
        name, number = f"{PREFIX}{self._number}", self._number
        self._number += 1
        self.expected[name] = settings(number)
        new = NewTopic(name, CREATED_PARTITIONS, REPLICAS, config=settings(number))
        self._until_done("create", KafkaError.TOPIC_ALREADY_EXISTS, lambda: self._admin.create_topics([new], **WITHIN))
        self._names.append(name)
        changed = settings(number + 1)
        resource = ConfigResource(
            ResourceType.TOPIC,
            name,
            incremental_configs=[
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in changed.items()
            ],
        )
        self._until_done("alter", None, lambda: self._admin.incremental_alter_configs([resource], **WITHIN))
        self.expected[name] = changed
        grown = NewPartitions(name, GROWN_PARTITIONS)
        self._until_done(
            "grow", KafkaError.INVALID_PARTITIONS, lambda: self._admin.create_partitions([grown], **WITHIN)
        )
        if len(self._names) > KEPT_MAX:
            oldest = self._names.popleft()
            self._until_done(
                "delete",
                KafkaError.UNKNOWN_TOPIC_OR_PART,
                lambda: self._admin.delete_topics([oldest], operation_timeout=ATTEMPT_S, request_timeout=ATTEMPT_S),
            )
            del self.expected[oldest]
            self.deleted.append(oldest)

    def _until_done(self, kind: str, done_before: int | None, ask: Callable[[], Mapping[Any, Future[Any]]]) -> None:
        """Ask until the change is acknowledged. done_before: the error that says that it was made. Raises
        DrillFailure."""
        deadline = time.monotonic() + CHANGE_S
        while True:
            try:
                for future in ask().values():
                    future.result(ATTEMPT_S + 5)
            except (KafkaException, TimeoutError) as error:
                code = error.args[0].code() if isinstance(error, KafkaException) else None
                if code != done_before or code is None:
                    if time.monotonic() > deadline:
                        raise DrillFailure(f"{kind}: not acknowledged within {CHANGE_S:g} s: {error}") from error
                    time.sleep(PAUSE_S)
                    continue
            self._answered.add(kind, time.monotonic())
            return

    def findings(self, found: Mapping[str, tuple[int, Mapping[str, str]]]) -> list[str]:
        """A sentence for each topic that is not as it was acknowledged. found: partitions and settings by name."""
        sentences = [f"{name}: was created, and is not there" for name in self.expected if name not in found]
        for name, (partitions, there) in found.items():
            if name not in self.expected:
                was = "deleted" if name in self.deleted else "never created"
                sentences.append(f"{name}: was {was}, and is there")
                continue
            if partitions != GROWN_PARTITIONS:
                sentences.append(f"{name}: has {partitions} partitions, not {GROWN_PARTITIONS}")
            for key, value in self.expected[name].items():
                if there.get(key) != value:
                    sentences.append(f"{name}: {key} is {there.get(key)}, not {value}")
        return sentences

    def found(self) -> dict[str, tuple[int, dict[str, str]]]:
        """Partitions and settings of each topic of this client that the cluster has now."""
        topics = self._admin.list_topics(timeout=ATTEMPT_S).topics
        counts = {name: len(topic.partitions) for name, topic in topics.items() if name.startswith(PREFIX)}
        if not counts:
            return {}
        asked = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in counts], **WITHIN)
        values = {resource.name: future.result(ATTEMPT_S + 5) for resource, future in asked.items()}
        return {name: (count, {key: values[name][key].value for key in settings(0)}) for name, count in counts.items()}


WITHIN: dict[str, Any] = {"request_timeout": ATTEMPT_S}


def settings(number: int) -> dict[str, str]:
    """Two settings of a topic, always changed together."""
    return {"retention.ms": str(86_400_000 + number), "max.message.bytes": str(1_000_000 + number)}


class PartitionMover(Loop):
    """Gives every partition of `MOVED` two other brokers, and waits until they are its replicas."""

    def __init__(self, servers: Servers, brokers: Sequence[int], answered: AnsweredChanges) -> None:
        super().__init__()
        self.replicas: list[int] = []
        """Of every partition, as acknowledged last."""
        self.moves = 0
        self._brokers = list(brokers)
        self._answered = answered
        self._client = servers.client(ATTEMPT_S)
        self._turn = 0

    def step(self) -> None:
        self._turn += 1
        first = self._turn % len(self._brokers)
        wanted = [self._brokers[first], self._brokers[(first + 1) % len(self._brokers)]]
        self._within_time("move", lambda: self._asked(wanted))
        self._answered.add("move", time.monotonic())
        self.replicas = wanted
        self._within_time("the end of a move", self._ended)
        self.moves += 1

    def _within_time(self, what: str, done: Callable[[], bool]) -> None:
        deadline, last = time.monotonic() + CHANGE_S, "refused"
        while True:
            try:
                if done():
                    return
            except OSError as error:
                last = str(error)
            if time.monotonic() > deadline:
                raise DrillFailure(f"{what}: not within {CHANGE_S:g} s: {last}")
            time.sleep(PAUSE_S)

    def _asked(self, wanted: list[int]) -> bool:
        nested = AlterPartitionReassignmentsRequest
        partitions = [
            nested.ReassignablePartition(partition_index=index, replicas=wanted) for index in range(MOVED_PARTITIONS)
        ]
        request = nested(
            timeout_ms=int(ATTEMPT_S * 1000), topics=[nested.ReassignableTopic(name=MOVED, partitions=partitions)]
        )
        answer: AlterPartitionReassignmentsResponse = self._client.send_to_any(request)
        codes = [answer.error_code, *(one.error_code for topic in answer.responses for one in topic.partitions)]
        return all(error_code(code) is ErrorCode.NONE for code in codes)

    def _ended(self) -> bool:
        answer = self._client.send_to_any(ListPartitionReassignmentsRequest(timeout_ms=int(ATTEMPT_S * 1000)))
        return error_code(answer.error_code) is ErrorCode.NONE and not answer.topics

    def finish(self) -> None:
        self._client.close()

    def findings(self, found: Mapping[int, Sequence[int]]) -> list[str]:
        """A sentence for each partition whose replicas are not those acknowledged last. found: by partition."""
        return [
            f"{MOVED}-{index}: is on brokers {list(found.get(index, ()))}, not {self.replicas}"
            for index in range(MOVED_PARTITIONS)
            if self.replicas and set(found.get(index, ())) != set(self.replicas)
        ]
