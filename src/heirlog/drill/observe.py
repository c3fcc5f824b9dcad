"""How a drill reads the state of a partition, and waits for an expected state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from heirlog.blocking import Client
from heirlog.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

POLL_S = 0.02
LIMIT = 2_000
"""Partitions in one answer."""

Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


@dataclass(frozen=True, slots=True)
class View:
    """Partition 0 of a topic as DescribeTopicPartitions shows it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One line of a timeline. `high_watermark` is ListOffsets(latest), -1 while no broker could be asked."""

    at_ms: int
    event: str
    view: View
    high_watermark: int

    def as_json(self) -> dict[str, Any]:
        return {"at_ms": self.at_ms, "event": self.event, **asdict(self.view), "high_watermark": self.high_watermark}


class DrillFailure(Exception):
    """An expected state was not reached. The message has the expectation and the state of the partition."""


def partitions_of(client: Client, topics: Iterable[str]) -> dict[tuple[str, int], Partition]:
    """By topic and index, those that the broker that answers knows; empty while none can answer."""
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=topic) for topic in topics],
        response_partition_limit=LIMIT,
    )
    try:
        response: DescribeTopicPartitionsResponse = client.send_to_any(request)
    except OSError:
        return {}
    return {(topic.name or "", one.partition_index): one for topic in response.topics for one in topic.partitions}


class PartitionObserver:
    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._topic = topic

    def view(self) -> View | None:
        """None while no broker can answer or none knows the topic yet."""
        found = partitions_of(self._client, [self._topic]).get((self._topic, 0))
        if found is None:
            return None
        return View(
            found.leader_id,
            found.leader_epoch,
            tuple(found.isr_nodes),
            tuple(found.eligible_leader_replicas or ()),
            tuple(found.last_known_elr or ()),
        )

    def wait(self, what: str, condition: Callable[[View], bool], timeout_s: float = 60.0) -> View:
        """The first view that satisfies `condition`. Raises DrillFailure."""
        deadline = time.monotonic() + timeout_s
        last: View | None = None
        while time.monotonic() < deadline:
            last = self.view() or last
            if last is not None and condition(last):
                return last
            time.sleep(POLL_S)
        raise DrillFailure(f"waited {timeout_s:g} s for {what}; the partition last looked like {last}")
