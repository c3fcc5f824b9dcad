"""KIP-966's "last replica standing", played on real processes with a real client.

A, B and C are brokers 1, 2 and 3; the topic has three replicas and min.insync.replicas=2; flush settings are Kafka's,
so that acknowledged records may still be in page cache only.

    T0  A stops cleanly                                ISR B,C   ELR -
    T1  B stops cleanly; acks=1 records go to C alone  ISR C     ELR B
    T2  C is killed and loses what it had not flushed  ISR -     ELR B,C   no leader
    T3  A and B return                                 B leads (it holds every committed record), A follows
    T4  C returns uncleanly                            leaves the ELR, truncates, catches up

Without the ELR (`elr=False`: the feature at level 0, Kafka's rules before KIP-966) C stays in the ISR at T2. No other
replica may lead at T3, and at T4 C becomes leader with what its disk kept: acknowledged records are gone from all
replicas.

The result counts records acknowledged at acks=all that a new client no longer finds, at their offset, with their value.
The watermark is checked by ListOffsets(latest), not by the Fetch field, which may lag after a clean failover.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from heirlog.drill.observe import TimelineEntry, View
from heirlog.drill.partition_drill import PartitionDrill, write_acknowledged
from heirlog.drill.progress import ClientProgress
from heirlog.drill.workload import Acknowledged, EndOffsetWatch, Reader, Writer
from heirlog.local.cluster import Cluster
from heirlog.protocol.types import NO_LEADER

__all__ = ["Verdict", "run", "write_acknowledged"]

TOPIC = "last-replica-standing"
A, B, C = 1, 2, 3
NAMES = {A: "A", B: "B", C: "C"}
RECORDS_BEFORE = 3_000
RECORDS_BETWEEN = 500
UNDER_MIN_ISR_RECORDS = 200


@dataclass(slots=True)
class Verdict:
    """The result. `passed`: nothing acknowledged is lost, no watermark went back, C was never leader too early."""

    elr: bool
    acknowledged: int = 0
    readable: int = 0
    lost: int = 0
    acknowledged_acks_1: int = 0
    changed_values: int = 0
    watermark_went_back: list[tuple[int, int]] = field(default_factory=list)
    elected_before_caught_up: bool = False
    timeline: list[TimelineEntry] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return (
            not self.lost
            and not self.watermark_went_back
            and not self.changed_values
            and not self.elected_before_caught_up
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "drill": TOPIC,
            "elr": self.elr,
            "acknowledged": self.acknowledged,
            "readable": self.readable,
            "lost": self.lost,
            "acknowledged_acks_1": self.acknowledged_acks_1,
            "changed_values": self.changed_values,
            "watermark_went_back": self.watermark_went_back,
            "elected_before_caught_up": self.elected_before_caught_up,
            "passed": self.passed,
            "timeline": [moment.as_json() for moment in self.timeline],
        }


def run(
    cluster: Cluster,
    *,
    elr: bool = True,
    seed: int | None = None,
    say: Callable[[TimelineEntry], None] | None = None,
    progress: ClientProgress | None = None,
) -> tuple[Verdict, list[Acknowledged]]:
    """Play the drill on a started cluster of three brokers whose ELR feature is as `elr` says.

    seed: how much of C's unflushed tail survives (None: nothing). say: called with each moment as it happens. progress:
    gets the curves of what clients saw. Returns the verdict and the records acknowledged at acks=all. Raises
    DrillFailure if the cluster does not get to a state that the script needs.
    """
    drill = _Drill(cluster, elr, say, progress)
    try:
        return drill.run(seed)
    finally:
        drill.close()


class _Drill(PartitionDrill):
    def __init__(
        self, cluster: Cluster, elr: bool, say: Callable[[TimelineEntry], None] | None, progress: ClientProgress | None
    ) -> None:
        super().__init__(cluster, TOPIC, say, progress)
        self.cluster = cluster
        self.verdict = Verdict(elr, timeline=self.timeline)

    def run(self, seed: int | None) -> tuple[Verdict, list[Acknowledged]]:
        self.create_topic([A, B, C], {"min.insync.replicas": "2"})
        with (
            EndOffsetWatch(self.servers, TOPIC, self.progress) as watch,
            Reader(self.servers, TOPIC, self.progress) as reader,
        ):
            self.watch = watch
            with Writer(self.servers, TOPIC, acks="all", progress=self.progress) as writer:
                self.until(lambda: len(writer.acknowledged) >= RECORDS_BEFORE, "the first records to be acknowledged")
                self.note("all three replicas in the ISR", lambda view: set(view.isr) == {A, B, C})
                self._stop_a_and_b(writer)
                self._lose_c(seed)
                self._return_a_and_b(writer)
                self._return_c(writer)
            acknowledged = list(writer.acknowledged)
            # before the result is taken, consumers get time to see the last acknowledged records
            end = 1 + max(record.offset for record in acknowledged)
            if self.verdict.elr:
                self.until(lambda: watch.latest >= end, "the watermark to reach the last acknowledged record")
        self._judge(acknowledged, reader, watch)
        return self.verdict, acknowledged

    def _stop_a_and_b(self, writer: Writer) -> None:
        self.cluster.stop(A)
        self.note("T0: A stopped cleanly", lambda view: set(view.isr) == {B, C} and view.leader in (B, C))
        goal = len(writer.acknowledged) + RECORDS_BETWEEN
        self.until(lambda: len(writer.acknowledged) >= goal, "records acknowledged by B and C")
        self.cluster.stop(B)
        self.note("T1: B stopped cleanly", lambda view: view.isr == (C,) and view.leader == C)
        with Writer(self.servers, TOPIC, acks="1", flush_s=5.0, progress=self.progress) as alone:
            self.until(
                lambda: len(alone.acknowledged) >= UNDER_MIN_ISR_RECORDS, "acks=1 records acknowledged under min ISR"
            )
        self.verdict.acknowledged_acks_1 = len(alone.acknowledged)

    def _lose_c(self, seed: int | None) -> None:
        # no broker can be asked between T2 and T3: the line for T2 shows what the first broker back finds
        self.cluster.kill(C)
        self.cluster.lose_unflushed(C, seed)

    def _return_a_and_b(self, writer: Writer) -> None:
        self.cluster.start(A)
        self.note("T2: C was killed and lost what it had not flushed", lambda view: view.leader == NO_LEADER)
        self.cluster.start(B)
        if not self.verdict.elr:
            self.note("T3: A and B returned; without the ELR neither may lead", lambda view: view.leader == NO_LEADER)
            return
        self.note("T3: A and B returned, B was elected from the ELR", lambda view: view.leader == B)
        self.note("T3: A caught up", lambda view: set(view.isr) >= {A, B})
        goal = len(writer.acknowledged) + RECORDS_BETWEEN
        self.until(lambda: len(writer.acknowledged) >= goal, "records acknowledged by B and A")

    def _return_c(self, writer: Writer) -> None:
        self.cluster.start(C)
        if not self.verdict.elr:
            self.note("T4: C returned and leads with what its disk kept", lambda view: view.leader == C)
        else:
            self.note("T4: C returned uncleanly and left the ELR", self._c_only_follows)
        self.note("T4: all caught up", lambda view: set(view.isr) == {A, B, C})
        goal = len(writer.acknowledged) + RECORDS_BETWEEN
        self.until(lambda: len(writer.acknowledged) >= goal, "records acknowledged by all three")

    def _c_only_follows(self, view: View) -> bool:
        if view.leader == C:
            self.verdict.elected_before_caught_up = True
        return C not in view.elr

    def _judge(self, acknowledged: list[Acknowledged], reader: Reader, watch: EndOffsetWatch) -> None:
        kept, changed = self.readable(acknowledged)
        verdict = self.verdict
        verdict.acknowledged = len(acknowledged)
        verdict.readable = kept
        verdict.lost = len(acknowledged) - kept
        verdict.changed_values = reader.seen.changed + changed
        verdict.watermark_went_back = watch.went_back
