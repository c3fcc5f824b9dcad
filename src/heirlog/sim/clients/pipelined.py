"""An idempotent producer with several batches in flight to each partition, as real ones have.

What fails is sent again, in order, to the leader that the newest metadata name. So a new leader receives repeats of
batches that an older one has appended, older ones than the last among them.
"""

from __future__ import annotations

from heirlog.client.offsets import TopicPartition
from heirlog.client.record_accumulator import IN_FLIGHT_MAX
from heirlog.sim.clients.producer import Producer


class PipelinedProducer(Producer):
    def unanswered(self, partition: TopicPartition) -> int:
        """Batches to this partition that wait for an answer."""
        return sum(batch.partition == partition for batch in self._numbered)

    def _next_batch(self, partition: TopicPartition) -> None:
        """At its interval, whatever became of those before."""
        if self.stopped:
            return
        if self.unanswered(partition) < IN_FLIGHT_MAX:
            self._add(partition)
            self._pump()
        super()._rest(partition)

    def _rest(self, partition: TopicPartition) -> None:
        """It does not rest: the next batch has its time."""
