"""An idempotent producer with several batches under way to each partition, as real ones have.

What fails is sent again with everything behind it, in order, to the leader that the newest metadata name; answers to
what was sent before that no longer count. So a new leader receives repeats of batches that an older one has appended,
older ones than the last among them. DUPLICATE_SEQUENCE_NUMBER counts as a success without an offset, as it does for
librdkafka and for Apache Kafka's own producer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heirlog.env import SendFailure
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ProduceRequest
from heirlog.sim.clients.direct import REQUEST_TIMEOUT_MS
from heirlog.sim.clients.producer import NEW_PRODUCER_ID, Batch, Producer

IN_FLIGHT = 5
"""max.in.flight.requests.per.connection, the most that idempotence allows."""


@dataclass(slots=True)
class _Line:
    """To one partition."""

    generation: int = -1
    waiting: list[Batch] = field(default_factory=list)
    """Not answered yet, oldest first; the first `sent` of them are under way."""
    sent: int = 0
    attempt: int = 0
    resting: bool = False
    """Until newer metadata are there."""


class PipelinedProducer(Producer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lines: dict[str, _Line] = {}

    def _run_partitions(self) -> None:
        for name in sorted(self.leaders):
            self._lines[name] = _Line()
            self._turn(name)

    def unanswered(self, name: str) -> int:
        """Batches to this partition that wait for an answer."""
        return len(self._lines[name].waiting) if name in self._lines else 0

    def _turn(self, name: str) -> None:
        line = self._lines[name]
        if self.stopped and not line.waiting:
            return
        if line.generation != self._generation:
            # a new producer id: what is left of the old one's may have been written or not
            self._lines[name] = line = _Line(self._generation, attempt=line.attempt + 1)
        if not self.stopped and len(line.waiting) < IN_FLIGHT:
            line.waiting.append(self.new_batch(name))
        self._send_on(name)
        self.env.call_later(self.interval_ms, lambda: self._turn(name))

    def _send_on(self, name: str) -> None:
        line, leader = self._lines[name], self.leaders[name]
        if line.resting or line.generation != self._generation:
            return
        endpoint = self.endpoint_of(leader)
        if endpoint is None:
            self._send_again(name)
            return
        for batch in line.waiting[line.sent :]:
            line.sent += 1
            batch.sent_ms = self.history.now_ms()
            request = ProduceRequest(acks=self.acks, timeout_ms=1500, topic_data=[self.topic_data(leader, batch)])
            self.env.send(endpoint, f"produce-{name}", request, self._told_of(name, batch), REQUEST_TIMEOUT_MS)

    def _told_of(self, name: str, batch: Batch) -> Any:
        attempt = self._lines[name].attempt

        def told(response: Any) -> None:
            line = self._lines[name]
            if line.attempt != attempt:
                return
            if isinstance(response, SendFailure):
                self._send_again(name)
                return
            answer = response.responses[0].partition_responses[0]
            if answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                line.waiting.remove(batch)
                line.sent -= 1
                self.acknowledged(batch, answer.base_offset)
            elif answer.error_code in NEW_PRODUCER_ID:
                line.attempt += 1
                self._get_producer_id(lambda: None)
            else:
                self._send_again(name)

        return told

    def _send_again(self, name: str) -> None:
        line = self._lines[name]
        line.attempt += 1
        line.sent = 0
        if not line.resting:
            line.resting = True
            self.later(lambda: self._rested(line, name))

    def _rested(self, line: _Line, name: str) -> None:
        line.resting = False
        if self._lines[name] is line:
            self._send_on(name)
