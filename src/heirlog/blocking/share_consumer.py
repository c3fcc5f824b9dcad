"""A member of a share group with blocking sockets, in one thread.

    with client.share_consumer("g", ["t"]) as consumer:
        for delivered in consumer.poll():
            ...
            consumer.acknowledge(delivered, Acknowledge.ACCEPT)

Leaders take turns. Acknowledgements leave with the next `poll` that asks the same leader, or with `close`; what has
none is delivered again. Heartbeats are sent
within `poll`: a program that does not call it for the session timeout of the group is no member any more, and what it
holds is delivered to others once the locks end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

from heirlog.client.call import Call, Send
from heirlog.client.coordinators import ask_coordinator
from heirlog.client.groups import Step
from heirlog.client.share_groups import (
    SESSION_LOST,
    Acknowledge,
    DeliveredRecords,
    ShareGroupMember,
    ShareSessionHandler,
)
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import ShareFetchRequest, ShareFetchResponse
from heirlog.protocol.types import NO_LEADER, Endpoint, PartitionKey, Uuid

if TYPE_CHECKING:
    from heirlog.blocking.connections import Connections

MAX_RECORDS: Final = 500
MAX_BYTES: Final = 16 << 20
MAX_WAIT_MS: Final = 500
PAUSE_S: Final = 0.1
LEAVE_S: Final = 5.0
ANSWER_S: Final = 30.0
_PASSING: Final = SESSION_LOST | {ErrorCode.SHARE_SESSION_LIMIT_REACHED}


class ShareConsumer:
    """A member of a share group; `Client.share_consumer` creates it. The end of a `with` block leaves the group."""

    def __init__(self, connections: Connections, group: str, topics: Sequence[str], timeout_s: float) -> None:
        self._connections = connections
        self._timeout_s = timeout_s
        self._topics = list(topics)
        self._member = ShareGroupMember(group, str(uuid4()), topics=topics)
        self._sessions: dict[int, ShareSessionHandler] = {}
        self._leaders: dict[PartitionKey, int] = {}
        self._names: dict[Uuid, str] = {}
        self._next_heartbeat_s = 0.0
        self._asked_last = -1
        self._endpoints: dict[int, Endpoint] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            # the first failure is what counts, and the locks end by themselves
            with suppress(KafkaError, OSError):
                self.close()

    def topic_name(self, key: PartitionKey) -> str:
        """The topic of a delivered partition."""
        return self._names[key[0]]

    def poll(self, max_records: int = MAX_RECORDS, *, is_exact: bool = False) -> list[DeliveredRecords]:
        """What the next leader delivers; empty if there is nothing for a moment. Raises KafkaError, OSError.

        is_exact: not more than `max_records`, even if a batch has more. What is not acknowledged before the lock ends
        is delivered again.
        """
        self._beat()
        if any(key not in self._leaders for key in self._member.assigned):
            self._find_leaders()
        led: dict[int, set[PartitionKey]] = {}
        for key in self._member.assigned:
            if key in self._leaders:
                led.setdefault(self._leaders[key], set()).add(key)
        # from the one behind the last: otherwise one that always has enough for `max_records` is the only one asked
        brokers = sorted(led.keys() | self._sessions.keys(), key=lambda broker: (broker <= self._asked_last, broker))
        found: list[DeliveredRecords] = []
        for broker in brokers:
            left = max_records - sum(each.last - each.first + 1 for each in found)
            if left <= 0:
                break
            self._asked_last = broker
            wait_ms = 0 if found else MAX_WAIT_MS // len(brokers)
            found += self._fetch(broker, frozenset(led.get(broker, ())), left, wait_ms, is_exact)
        if not brokers:
            time.sleep(PAUSE_S)
        return found

    def acknowledge(self, delivered: DeliveredRecords, kind: Acknowledge) -> None:
        """What became of all records of a delivery. Nothing happens if its session has ended meanwhile."""
        for session in self._sessions.values():
            if session.acknowledge(delivered, kind):
                return

    def close(self) -> None:
        """Send the last acknowledgements, give back what is not acknowledged, and leave. Raises KafkaError, OSError."""
        for broker, session in self._sessions.items():
            if session.is_open:
                self._ask(broker, session.close(), LEAVE_S)
        self._sessions = {}
        if self._member.epoch > 0:
            self._send_heartbeat(self._member.leave(), LEAVE_S)

    def _beat(self) -> None:
        while time.monotonic() >= self._next_heartbeat_s:
            step = self._member.answered(self._send_heartbeat(self._member.request(), self._timeout_s))
            if step is Step.HEARTBEAT:
                # a member without partitions waits for the next ones, which the next heartbeat may bring
                interval_s = self._member.interval_ms / 1000 if self._member.assigned else PAUSE_S
                self._next_heartbeat_s = time.monotonic() + interval_s
            elif step is not Step.SEND:
                time.sleep(PAUSE_S)

    def _send_heartbeat(self, request: Any, timeout_s: float) -> Any:
        call = ask_coordinator(
            self._connections.cluster,
            self._member.group,
            request,
            timeout_s,
            code_of=lambda answer: int(answer.error_code),
        )
        return self._connections.run(call)

    def _find_leaders(self) -> None:
        self._leaders = {}
        metadata = self._connections.run(self._connections.cluster.metadata(self._topics, self._timeout_s))
        self._endpoints = {broker.node_id: Endpoint(broker.host, broker.port) for broker in metadata.brokers}
        for topic in metadata.topics:
            self._names[Uuid(topic.topic_id)] = topic.name or ""
            for partition in topic.partitions:
                if partition.leader_id != NO_LEADER:
                    self._leaders[Uuid(topic.topic_id), partition.partition_index] = partition.leader_id

    def _fetch(
        self, broker: int, partitions: frozenset[PartitionKey], max_records: int, wait_ms: int, is_exact: bool
    ) -> list[DeliveredRecords]:
        session = self._sessions.setdefault(broker, ShareSessionHandler(self._member.group, self._member.member_id))
        if not partitions:
            del self._sessions[broker]
            if session.is_open:
                with suppress(OSError, KafkaError):
                    self._ask(broker, session.close(), LEAVE_S)
            return []
        request = session.fetch(
            partitions, max_records=max_records, max_bytes=MAX_BYTES, max_wait_ms=wait_ms, is_exact=is_exact
        )
        try:
            response = self._ask(broker, request, ANSWER_S)
            found = session.answered(response)
        except OSError:
            # the broker may be gone; another one leads its partitions, then
            session.lost()
            self._leaders = {}
            time.sleep(PAUSE_S)
            return []
        except KafkaError as error:
            if error.code not in _PASSING:
                raise
            return []
        self._look_at_errors(response)
        return found

    def _look_at_errors(self, response: ShareFetchResponse) -> None:
        failed = [data for topic in response.responses for data in topic.partitions if data.error_code]
        for data in failed:
            if (code := error_code(data.error_code)) is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise KafkaError(code, data.error_message or "this client may not read the topic")
        if failed:
            # another leader, or none for a moment
            self._leaders = {}
            time.sleep(PAUSE_S)

    def _ask(self, broker: int, request: ShareFetchRequest, timeout_s: float) -> ShareFetchResponse:
        """Raises OSError."""
        endpoint = self._endpoints.get(broker)
        if endpoint is None:
            raise ConnectionError(f"there is no live broker {broker}")
        response: ShareFetchResponse = self._connections.run(_sent(Send(endpoint, request, timeout_s)))
        return response


def _sent(send: Send) -> Call[Any]:
    return (yield send)
