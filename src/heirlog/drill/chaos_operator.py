"""The operator of the chaos drill: changes replicas, configurations and topics, and asks for elections, all the time.

Topics are changed with librdkafka; replicas and leaders with heirlog's own client, because librdkafka's Python client
cannot. A change that fails is noted and not repeated, except that the topic which is deleted is created again until it
is there.

An unclean election is only asked for where a partition has no leader, as operators do in an emergency.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from heirlog.drill.chaos_clients import RECONNECT
from heirlog.drill.chaos_faults import FaultEvent
from heirlog.drill.chaos_plan import PlannedChange
from heirlog.drill.chaos_record import PARTITIONS, RECREATED, STABLE, now_ms
from heirlog.drill.observe import DrillFailure, partitions_of
from heirlog.drill.servers import Servers
from heirlog.drill.workload import Loop
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

REPLICAS = 3
PREFERRED, UNCLEAN = 0, 1
ATTEMPT_S = 8.0
RECREATE_S = 120.0
PAUSE_S = 0.1
MIN_ISRS = ("1", "2", "2", "2")
FLUSH_MESSAGES = ("1", "100", "9223372036854775807")
FEWER_REPLICAS = 0.3
"""How often a reassignment leaves two replicas; with three brokers only that moves data."""


class ChangeRefused(Exception):
    """The cluster answered with an error, or not at all."""


class ChaosOperator(Loop):
    """planned: in the order of their times, which count from `start`. calm: no change is made while another thread
    holds it."""

    def __init__(
        self, servers: Servers, brokers: Sequence[int], planned: Sequence[PlannedChange], calm: threading.Lock
    ) -> None:
        super().__init__()
        self.events: list[FaultEvent] = []
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.errors: list[str] = []
        self._brokers = list(brokers)
        self._planned = list(planned)
        self._calm = calm
        self._admin = AdminClient({**servers.librdkafka(), "client.id": "chaos-operator", **RECONNECT})
        self._client = servers.client(ATTEMPT_S)
        self._began_s = time.monotonic()

    def step(self) -> None:
        due = self._planned and self._planned[0].at_s <= time.monotonic() - self._began_s
        if not due:
            self._stopping.wait(PAUSE_S)
            return
        change = self._planned.pop(0)
        with self._calm:
            event = FaultEvent(change.kind, (), now_ms())
            self.events.append(event)
            try:
                event.text = self._make(change)
                self.done[change.kind] += 1
            except (KafkaException, ChangeRefused, OSError, TimeoutError) as error:
                event.text = f"failed: {error}"
                self.failed[change.kind] += 1
            event.end_ms = now_ms()

    def finish(self) -> None:
        self._client.close()

    def _make(self, change: PlannedChange) -> str:
        random = Random(change.seed)
        topic = random.choice(STABLE)
        index = random.randrange(PARTITIONS[topic])
        if change.kind == "reassign":
            count = REPLICAS if random.random() > FEWER_REPLICAS else REPLICAS - 1
            replicas = random.sample(self._brokers, count)
            self._reassign(topic, index, replicas)
            return f"{topic}-{index} to {replicas}"
        if change.kind == "cancel-reassignment":
            self._reassign(topic, index, None)
            return f"{topic}-{index}"
        if change.kind == "min-isr":
            return self._alter(topic, "min.insync.replicas", random.choice(MIN_ISRS))
        if change.kind == "flush":
            return self._alter(topic, "flush.messages", random.choice(FLUSH_MESSAGES))
        if change.kind == "recreate":
            return self._recreate()
        return self._elect(change.kind == "elect-unclean")

    def _reassign(self, topic: str, index: int, replicas: list[int] | None) -> None:
        nested = AlterPartitionReassignmentsRequest
        partition = nested.ReassignablePartition(partition_index=index, replicas=replicas)
        answer: AlterPartitionReassignmentsResponse = self._client.send_to_any(
            nested(
                timeout_ms=int(ATTEMPT_S * 1000),
                topics=[nested.ReassignableTopic(name=topic, partitions=[partition])],
            )
        )
        codes = [answer.error_code, *(one.error_code for each in answer.responses for one in each.partitions)]
        for code in codes:
            if error_code(code) is not ErrorCode.NONE:
                raise ChangeRefused(error_code(code).name)

    def _alter(self, topic: str, name: str, value: str) -> str:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for altered in self._admin.incremental_alter_configs([resource], request_timeout=ATTEMPT_S).values():
            altered.result(ATTEMPT_S + 1)
        return f"{topic}: {name}={value}"

    def _recreate(self) -> str:
        futures = self._admin.delete_topics([RECREATED], operation_timeout=ATTEMPT_S, request_timeout=ATTEMPT_S)
        try:
            futures[RECREATED].result(ATTEMPT_S + 1)
        except (KafkaException, TimeoutError) as error:
            # it may be deleted all the same, and must not stay so
            self.errors.append(f"deleting {RECREATED}: {error}")
        deadline = time.monotonic() + RECREATE_S
        while not self._is_there():
            try:
                create_topics(self._admin, [RECREATED], ATTEMPT_S)
            except (KafkaException, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise DrillFailure(f"{RECREATED} could not be created again within {RECREATE_S:g} s") from error
                time.sleep(PAUSE_S)
        return RECREATED

    def _is_there(self) -> bool:
        return (RECREATED, 0) in partitions_of(self._client, [RECREATED])

    def _elect(self, unclean: bool) -> str:
        found = partitions_of(self._client, STABLE)
        places = [Place(*place) for place, one in found.items() if one.leader_id < 0 or not unclean]
        if not places:
            return "no partition without a leader"
        nested = ElectLeadersRequest
        by_topic = {topic: [one.partition for one in places if one.topic == topic] for topic in STABLE}
        answer: ElectLeadersResponse = self._client.send_to_any(
            nested(
                election_type=UNCLEAN if unclean else PREFERRED,
                topic_partitions=[
                    nested.TopicPartitions(topic=topic, partitions=indexes)
                    for topic, indexes in by_topic.items()
                    if indexes
                ],
                timeout_ms=int(ATTEMPT_S * 1000),
            )
        )
        if error_code(answer.error_code) is not ErrorCode.NONE:
            raise ChangeRefused(error_code(answer.error_code).name)
        return " ".join(f"{place.topic}-{place.partition}" for place in places)


def create_topics(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> None:
    """Raises KafkaException and TimeoutError."""
    new = [NewTopic(name, PARTITIONS[name], REPLICAS, config={"min.insync.replicas": "2"}) for name in topics]
    for created in admin.create_topics(new, request_timeout=timeout_s).values():
        created.result(timeout_s + 1)
