"""What the oracle knows of one partition: what is committed, since when, and which replicas gave it up.

A *lineage* is the history that clients saw. It grows with the true high watermark: the highest high watermark that a
leader exposed. A lossy-basis election ends it. The next one begins where the winner's log ends or diverges from the
lineage, which is known when the winner has become leader.

Log matching says: two logs with the same leader epoch at the same offset have the same records up to there. So logs
need not be compared record by record: `common_end` is the offset up to which a log has the records of the lineage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from heirlog.protocol.types import BrokerId
from heirlog.sim.invariants import LogView, Watermark

NOTHING_EXPOSED = Watermark(0, -1)

Entries = Sequence[tuple[int, int]]
"""(leader epoch, first offset), ascending."""

LOOKED_AT_EACH_TIME = 100
"""Partitions of a broker. If it has more, they are checked only after one event in `checker.LOOK_EVERY`."""


@dataclass(slots=True)
class PartitionModel:
    """What is known of one partition."""

    name: str
    true: Watermark = NOTHING_EXPOSED
    entries: Entries = ()
    """The epochs below the true high watermark."""
    begins_at_epoch: int | None = None
    """A lossy-basis election was committed; its winner has not taken over yet."""
    began_at_epoch: int = -1
    """The last one whose winner has become leader; -1: none."""
    not_caught_up: dict[BrokerId, None] = field(default_factory=dict)
    """Brokers that stopped uncleanly and have not had every record since."""
    last_standing: dict[BrokerId, None] = field(default_factory=dict)
    """Brokers that stopped uncleanly as the last member of the ISR while the ELR was off. By Kafka's rule they stay in
    it, whatever they have lost. Until one has every record again, T4 does not hold for it; if it is elected before, a
    new lineage begins, as after an election on a lossy basis.
    """
    answers: tuple[tuple[int, int, int], ...] = ()
    """`history.KnownLoss.answers` of the newest election on a lossy basis."""
    stands_again: int = -1
    """The leader epoch of the newest election of such a broker; -1: there was none."""
    elected: dict[int, int] = field(default_factory=dict)
    """The leader by the committed records, per leader epoch; -1: none."""
    epoch_starts: dict[int, int] = field(default_factory=dict)
    """Per leader epoch, the log end of its leader when it took over."""
    lost: dict[BrokerId, None] = field(default_factory=dict)
    """Members of ISR and ELR whose data may be gone, since the ISR had its min ISR ..."""
    min_isr: int = 1
    """... which was this (smaller if the ISR never had it)."""
    taken_out: bool = False
    """Another event has taken a member out of ISR and ELR since."""
    left: dict[BrokerId, None] = field(default_factory=dict)
    """Brokers that have left the assignment at least once: their logs of that time are deleted."""
    leaderless_since_ms: int = -1

    def expose(self, high_watermark: int, epochs: Entries) -> None:
        """A leader of this lineage exposes a higher high watermark than all before."""
        below = [entry for entry in epochs if entry[1] < high_watermark]
        self.entries = below
        self.true = Watermark(high_watermark, below[-1][0] if below else -1)

    def begin(self, end: int, log: LogView) -> int:
        """The winner of a lossy-basis election has become leader, with a log that ended at `end`. Returns the start of
        the new lineage: `end`, or the offset at which the winner's log diverges from the lineage before (the winner may
        have a longer tail of an older leader).
        """
        assert self.begins_at_epoch is not None
        kept_end = self.common_end(log)
        start = end if kept_end == self.true.offset else kept_end
        self.began_at_epoch, self.begins_at_epoch = self.begins_at_epoch, None
        self.expose(min(self.true.offset, start), log.epochs.entries)
        return start

    def epoch_at(self, offset: int) -> int:
        """Of a record below the true high watermark; -1 where it is not known any more."""
        return next((epoch for epoch, start in reversed(self.entries) if start <= offset), -1)

    def common_end(self, log: LogView) -> int:
        """Below this offset the log has the records of the lineage; at most the true high watermark."""
        end = min(log.log_end_offset, self.true.offset)
        while end > log.log_start_offset:
            ours, theirs = self.epoch_at(end - 1), log.epochs.epoch_for_offset(end - 1)
            if ours == theirs:
                return end
            # the later of the two epochs is not in the other log: go below its start
            end = self._start_of(ours) if ours > theirs else _first_offset_of(log, theirs, end)
        return end

    def _start_of(self, epoch: int) -> int:
        return next(start for known, start in self.entries if known == epoch)


def _first_offset_of(log: LogView, epoch: int, below: int) -> int:
    return next(start for known, start in log.epochs.entries if known == epoch and start < below)
