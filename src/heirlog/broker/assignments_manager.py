"""Reports to the controller in which log directory each replica is: AssignReplicasToDirs (KIP-858).

    report --> waiting --request--> sent --the image says so--> settled
                  ^                   |
                  +---- failure ------+   again after a pause

At every change of a partition the replica manager compares the directory of its log with the image, and reports a
difference. The replica may be new on a broker with several directories, or its log was moved while the broker was
stopped. The report is sent even if the directory has failed meanwhile: without it the controller would wait for a
replica that is gone.

One request is in flight. An answer means that the change is committed. A partition that the controller does not know
(any more) is not reported again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from heirlog.broker.followers import RegisteredBrokers
from heirlog.env import Env, SendFailure
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from heirlog.protocol.types import Endpoint, PartitionKey, Uuid

CHANNEL: Final = "assign-directories"
RETRY_BACKOFF_MS: Final = 100
RETRY_BACKOFF_MAX_MS: Final = 5_000
REPLICAS_PER_REQUEST: Final = 2000

_FINAL: Final = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
Directory = AssignReplicasToDirsRequest.DirectoryData
Topic = AssignReplicasToDirsRequest.TopicData
Partition = AssignReplicasToDirsRequest.PartitionData


class AssignmentsManager:
    def __init__(
        self,
        env: Env,
        controller_endpoint: Callable[[], Endpoint | None],
        registered_brokers: RegisteredBrokers,
        timeout_ms: int,
    ) -> None:
        self._env = env
        self._controller_endpoint = controller_endpoint
        self._registered_brokers = registered_brokers
        self._timeout_ms = timeout_ms
        self._waiting: dict[PartitionKey, Uuid] = {}
        self._in_flight = False
        self._send_is_due = False
        self._backoff_ms = RETRY_BACKOFF_MS

    def report(self, key: PartitionKey, directory: Uuid) -> None:
        """The replica is in this directory, and the image does not say so yet."""
        self._waiting[key] = directory
        if not self._in_flight:
            # at the end of this event: one request carries all reports of one change of the image
            self._send_in(0)

    def settle(self, key: PartitionKey) -> None:
        """There is nothing (more) to report about this partition."""
        self._waiting.pop(key, None)

    def _send_in(self, delay_ms: int) -> None:
        if not self._send_is_due:
            self._send_is_due = True
            self._env.call_later(delay_ms, self._send)

    def _send(self) -> None:
        self._send_is_due = False
        if self._in_flight or not self._waiting:
            return
        controller = self._controller_endpoint()
        if controller is None:
            self._send_later()
            return
        self._in_flight = True
        sent = dict(islice(self._waiting.items(), REPLICAS_PER_REQUEST))
        request = AssignReplicasToDirsRequest(
            broker_id=self._registered_brokers.broker_id,
            broker_epoch=self._registered_brokers.broker_epoch,
            directories=_by_directory(sent.items()),
        )
        self._env.send(controller, CHANNEL, request, lambda result: self._answered(sent, result), self._timeout_ms)

    def _answered(self, sent: dict[PartitionKey, Uuid], result: AssignReplicasToDirsResponse | SendFailure) -> None:
        self._in_flight = False
        if isinstance(result, SendFailure) or result.error_code:
            error = result.kind if isinstance(result, SendFailure) else error_code(result.error_code).name
            self._env.log("info", "directory-report-failed", error=error)
            self._send_later()
            return
        assigned = 0
        for directory in result.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    key = (Uuid(topic.topic_id), partition.partition_index)
                    if partition.error_code in _FINAL and sent.get(key) == directory.id:
                        assigned += 1
                        if self._waiting.get(key) == directory.id:
                            del self._waiting[key]
        if assigned < len(sent):
            self._send_later()
            return
        self._backoff_ms = RETRY_BACKOFF_MS
        if self._waiting:
            self._send_in(0)

    def _send_later(self) -> None:
        self._send_in(self._backoff_ms)
        self._backoff_ms = min(2 * self._backoff_ms, RETRY_BACKOFF_MAX_MS)


def _by_directory(
    replicas: Iterable[tuple[PartitionKey, Uuid]],
) -> list[AssignReplicasToDirsRequest.DirectoryData]:
    """One entry per directory, with one entry per topic in it."""
    directories: dict[Uuid, AssignReplicasToDirsRequest.DirectoryData] = {}
    topics: dict[tuple[Uuid, Uuid], AssignReplicasToDirsRequest.TopicData] = {}
    for (topic_id, index), directory_id in sorted(replicas):
        if directory_id not in directories:
            directories[directory_id] = Directory(id=directory_id)
        if (directory_id, topic_id) not in topics:
            topics[directory_id, topic_id] = Topic(topic_id=topic_id)
            directories[directory_id].topics.append(topics[directory_id, topic_id])
        topics[directory_id, topic_id].partitions.append(Partition(partition_index=index))
    return list(directories.values())
