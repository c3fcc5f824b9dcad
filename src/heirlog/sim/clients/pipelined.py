"""An idempotent producer with several batches in flight to each partition, as real ones have.

Batches that fail are sent again, in order, to the leader that the newest metadata name. So a new leader receives
repeats of batches that an earlier leader has appended, not only of the last one.
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
        """Send at the interval, whatever happened to the batches before."""
        if self.stopped:
            return
        if self.unanswered(partition) < IN_FLIGHT_MAX:
            self._add(partition)
            self._pump()
        super()._rest(partition)

    def _rest(self, partition: TopicPartition) -> None:
        """There is no pause: the next batch has its own time."""
