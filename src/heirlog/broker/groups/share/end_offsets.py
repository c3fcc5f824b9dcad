"""The ends of partitions, from their leaders: what the lag of a share group is measured by.

A partition without an answer has no end: the lag is not known. Nothing is asked twice, because an operator who wants a
newer answer asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from heirlog.env import Env, SendFailure
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ListOffsetsRequest
from heirlog.protocol.types import NO_LEADER, BrokerId, Endpoint

CHANNEL = "share-group-lag"
LATEST = -1
NO_REPLICA = -1


class EndOffsets:
    def __init__(
        self, env: Env, image: Callable[[], Image], endpoint_of: Callable[[BrokerId], Endpoint | None], timeout_ms: int
    ) -> None:
        """endpoint_of: of a broker's listener for other brokers."""
        self._env = env
        self._image = image
        self._endpoint_of = endpoint_of
        self._timeout_ms = timeout_ms

    def find(
        self, partitions: Iterable[tuple[str, int]], on_done: Callable[[dict[tuple[str, int], int]], None]
    ) -> None:
        """partitions: names and indexes. `on_done` is called once, perhaps within this call."""
        by_leader: dict[BrokerId, list[tuple[str, int]]] = {}
        for topic, index in partitions:
            state = self._image().partition_named(topic, index)
            if state is not None and state.leader != NO_LEADER and self._endpoint_of(state.leader) is not None:
                by_leader.setdefault(state.leader, []).append((topic, index))
        found: dict[tuple[str, int], int] = {}
        waiting = len(by_leader)

        def answered(result: Any) -> None:
            nonlocal waiting
            waiting -= 1
            for topic in () if isinstance(result, SendFailure) else result.topics:
                for part in topic.partitions:
                    if part.error_code == ErrorCode.NONE:
                        found[(topic.name, part.partition_index)] = part.offset
            if not waiting:
                on_done(found)

        if not by_leader:
            on_done(found)
        for leader, asked in by_leader.items():
            endpoint = self._endpoint_of(leader)
            assert endpoint is not None
            self._env.send(endpoint, CHANNEL, _request(asked, self._timeout_ms), answered, self._timeout_ms)


def _request(partitions: Iterable[tuple[str, int]], timeout_ms: int) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for name, index in partitions:
        topic = topics.setdefault(name, ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[]))
        topic.partitions.append(
            ListOffsetsRequest.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=LATEST)
        )
    return ListOffsetsRequest(replica_id=NO_REPLICA, topics=list(topics.values()), timeout_ms=timeout_ms)
