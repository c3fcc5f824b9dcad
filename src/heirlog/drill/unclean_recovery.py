"""Unclean recovery, played on real processes with a real client: one scenario of KIP-966's second half per run.

Brokers 1, 2 and 3 have the topic (assignment 1,2,3, min.insync.replicas=2). Flush settings are Kafka's, so that
acknowledged records may still be in the page cache only. Broker 3 stops cleanly at the beginning, so 1 and 2 are the
last that have everything. Then both are killed, and neither counts as complete any more.

    U1   the longest log has a tail of an old leader epoch    the replica with the newest epoch leads
    U2   a member of LastKnownELR is away                     no leader, and the status names the brokers to wait for
    U3   a replica answers, and then loses what it had        the answer is forgotten with its incarnation
    U11  the last leader lost its tail, 2 has everything      2 leads; by Kafka's rule (manager off) the last leader
                                                              does, and what it lost is lost
    U16  an operator names a leader that has less             the loss report says exactly what was given up

With the manager off each script does the same with the brokers, elections follow the rules of Apache Kafka, and the
result shows what happened to acknowledged records.

U11 needs only `Nodes`: `make interop` plays it on Apache Kafka, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from heirlog.blocking.loss_reports import read_reports
from heirlog.client.admin import elect_leaders
from heirlog.client.recovery import RecoveryPartition, describe_recovery
from heirlog.drill.observe import DrillFailure, TimelineEntry
from heirlog.drill.partition_drill import QUICK_STOPS, Nodes, PartitionDrill
from heirlog.drill.progress import ClientProgress
from heirlog.drill.workload import Acknowledged, EndOffsetWatch, Writer
from heirlog.local.cluster import Cluster
from heirlog.metadata.loss_report import LossReport
from heirlog.protocol.types import NO_LEADER

TOPIC = "unclean-recovery"
LAST, OTHER, EARLY = 1, 2, 3
"""The leader in the end, the replica that is with it until then, and the replica that stops before."""
RECORDS = 2_000
TAIL_RECORDS = 1_500
LEADERLESS_S = 2.0
CALL_S = 30.0
"""For one answer of the controller, which may ask the replicas first."""
UNCLEAN, DESIGNATION = 1, 4
SEED = 966
"""How much of an unflushed tail survives a power cut; another one by `seed`."""
LoseTail = Callable[[int], None]


@dataclass(slots=True)
class Verdict:
    """`passed`: nothing acknowledged lost; in U16, the report tells exactly what was given up."""

    scenario: str
    manager: bool
    acknowledged: int = 0
    readable: int = 0
    lost: int = 0
    leader: int = NO_LEADER
    """The leader that was elected."""
    basis: str = ""
    reported_lost: int | None = None
    """Offsets that the loss report says were given up; None: without limit, or there is no report."""
    reported_exactly: bool = False
    waited_for: list[int] = field(default_factory=list)
    timeline: list[TimelineEntry] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        if self.scenario == "U16":
            return self.lost == self.reported_lost and self.reported_exactly
        return self.lost == 0

    def as_json(self) -> dict[str, Any]:
        return {
            "drill": TOPIC,
            "scenario": self.scenario,
            "manager": self.manager,
            "acknowledged": self.acknowledged,
            "readable": self.readable,
            "lost": self.lost,
            "leader": self.leader,
            "basis": self.basis,
            "reported_lost": self.reported_lost,
            "reported_exactly": self.reported_exactly,
            "waited_for": self.waited_for,
            "passed": self.passed,
            "timeline": [moment.as_json() for moment in self.timeline],
        }


def config(*, manager: bool) -> dict[str, Any]:
    """What the nodes need in their server.properties."""
    return {"unclean.recovery.manager.enabled": manager, **QUICK_STOPS}


def run(
    cluster: Cluster,
    scenario: str = "U11",
    *,
    manager: bool = True,
    seed: int = SEED,
    say: Callable[[TimelineEntry], None] | None = None,
    progress: ClientProgress | None = None,
) -> tuple[Verdict, list[Acknowledged]]:
    """Play one of SCENARIOS on a started cluster of three brokers, whose nodes have `config(...)`.

    seed: how much of a lost tail survives. progress: gets the curves of what clients saw. Returns the verdict and the
    records acknowledged at acks=all. Raises DrillFailure if the cluster does not get to a state that the script needs.
    """
    drill = Recovery(cluster, scenario, manager, lambda node: _cut(cluster, node, seed), say, progress)
    try:
        return drill.run(SCENARIOS[scenario])
    finally:
        drill.close()


def _cut(cluster: Cluster, node: int, seed: int) -> None:
    cluster.lose_unflushed(node, seed)


class Recovery(PartitionDrill):
    """One scenario at work. lose_tail: what a power cut does to the log of a node that was killed."""

    def __init__(
        self,
        nodes: Nodes,
        scenario: str,
        manager: bool,
        lose_tail: LoseTail,
        say: Callable[[TimelineEntry], None] | None = None,
        progress: ClientProgress | None = None,
    ) -> None:
        super().__init__(nodes, TOPIC, say, progress)
        self.manager = manager
        self.lose_tail = lose_tail
        self.verdict = Verdict(scenario, manager, timeline=self.timeline)
        self.acknowledged: list[Acknowledged] = []

    def run(self, scenario: Callable[[Recovery], None]) -> tuple[Verdict, list[Acknowledged]]:
        self.create_topic([LAST, OTHER, EARLY], {"min.insync.replicas": "2", **_strategy(self)})
        with EndOffsetWatch(self.servers, self.topic, self.progress) as self.watch:
            self.note("all three replicas in the ISR", lambda view: len(view.isr) == 3)
            self.write(TAIL_RECORDS // 3)
            scenario(self)
            self.note("all caught up", lambda view: view.leader != NO_LEADER and len(view.isr) == 3)
        self._read_report()
        verdict = self.verdict
        verdict.acknowledged = len(self.acknowledged)
        verdict.readable, _ = self.readable(self.acknowledged)
        verdict.lost = verdict.acknowledged - verdict.readable
        return verdict, self.acknowledged

    def _read_report(self) -> None:
        """The report of the cluster about the last election that may have lost records."""
        if not isinstance(self.nodes, Cluster):
            # Apache Kafka has no report
            return
        reports: list[LossReport] = []

        def is_there() -> bool:
            reports[:] = [report for report in read_reports(client) if report.topic == self.topic]
            return bool(reports)

        with self.servers.client(timeout_s=10.0) as client:
            self.until(is_there, "the loss report")
        newest = max(reports, key=lambda report: report.election.leader_epoch)
        self.verdict.basis = newest.election.basis.value
        self.verdict.reported_lost, self.verdict.reported_exactly = newest.loss.records_max, newest.loss.is_exact

    # steps

    def write(self, records: int) -> None:
        """Write this many records, acknowledged by all members of the ISR."""
        with Writer(self.servers, self.topic, acks="all", progress=self.progress) as writer:
            self.until(lambda: len(writer.acknowledged) >= records, f"{records} records to be acknowledged")
        self.acknowledged += writer.acknowledged

    def write_tail(self, records: int) -> None:
        """Write this many records that only the leader has: they are not acknowledged with acks=all."""
        with Writer(self.servers, self.topic, acks="1", flush_s=5.0, progress=self.progress) as alone:
            self.until(lambda: len(alone.acknowledged) >= records, f"{records} records written under min ISR")

    def two_are_left(self) -> None:
        self.nodes.stop(EARLY)
        self.note(f"{EARLY} stopped cleanly", lambda view: set(view.isr) == {LAST, OTHER})
        self.write(RECORDS)

    def one_is_left(self) -> None:
        self.nodes.kill(OTHER)
        self.note(f"{OTHER} was killed", lambda view: view.isr == (LAST,) and view.leader == LAST)

    def returns(self, node: int, *, leaderless: bool = True) -> None:
        """Start the node again; with `leaderless` no leader is elected because of it."""
        self.nodes.start(node)
        if leaderless:
            self.stays_leaderless(f"{node} returned: no replica leads", LEADERLESS_S)

    def elected(self, event: str, *allowed: int) -> None:
        """Wait for a leader. With the manager on it is one of `allowed`."""
        view = self.note(event, lambda view: view.leader != NO_LEADER)
        self.verdict.leader = view.leader
        if self.manager and view.leader not in allowed:
            raise DrillFailure(f"{event}: broker {view.leader} was elected, where {allowed} may be")

    def described(self) -> RecoveryPartition:
        """What the controller says of the recovery (key 10094)."""
        described = self.client.run(describe_recovery({self.topic: [0]}), timeout_s=CALL_S)
        return described.topics[0].partitions[0]


def _strategy(drill: Recovery) -> dict[str, str]:
    if drill.verdict.scenario == "U16" and drill.manager:
        return {"unclean.recovery.strategy": "None"}
    return {}


# scenarios


def newest_epoch(drill: Recovery) -> None:
    """U1."""
    drill.nodes.stop(OTHER)
    drill.note(f"{OTHER} stopped cleanly", lambda view: OTHER not in view.isr)
    drill.write(RECORDS)
    drill.nodes.stop(EARLY)
    drill.note(f"{EARLY} stopped cleanly", lambda view: view.isr == (LAST,))
    drill.write_tail(TAIL_RECORDS)
    drill.nodes.kill(LAST)
    drill.nodes.start(EARLY)
    drill.nodes.start(OTHER)
    drill.note(
        f"{EARLY} and {OTHER} returned: {LAST} was killed with a tail that no replica acknowledged",
        lambda view: set(view.isr) == {EARLY, OTHER},
    )
    drill.write(TAIL_RECORDS // 3)
    for node in (OTHER, EARLY):
        drill.nodes.kill(node)
    drill.returns(LAST)
    for node in (OTHER, EARLY):
        drill.nodes.start(node)
    drill.elected("all returned: the newest leader epoch wins", OTHER, EARLY)


def waits_for_a_member(drill: Recovery) -> None:
    """U2."""
    drill.two_are_left()
    drill.one_is_left()
    drill.nodes.kill(LAST)
    drill.returns(EARLY)
    drill.returns(OTHER)
    drill.nodes.kill(OTHER)
    if not drill.manager:
        drill.nodes.start(LAST)
        drill.elected(f"{LAST} returned: the last known leader is elected, even if others are away")
        drill.nodes.start(OTHER)
        return
    drill.returns(LAST)
    # until LAST has registered and answered, the controller waits for it, too
    drill.until(lambda: list(drill.described().waits_for) == [OTHER], f"a status that waits for {OTHER} alone")
    drill.verdict.waited_for = [OTHER]
    drill.nodes.start(OTHER)
    drill.elected(f"{OTHER} returned: every replica has answered", LAST, OTHER, EARLY)


def forgets_old_answers(drill: Recovery) -> None:
    """U3. The last leader has a tail that makes it win, until it loses it."""
    drill.two_are_left()
    drill.one_is_left()
    drill.write_tail(TAIL_RECORDS)
    drill.nodes.kill(LAST)
    drill.returns(EARLY)
    drill.returns(OTHER)
    drill.nodes.kill(OTHER)
    if not drill.manager:
        drill.lose_tail(LAST)
        drill.nodes.start(LAST)
        drill.elected(f"{LAST} returned without its tail: it is elected without any question about its log")
        drill.nodes.start(OTHER)
        return
    drill.returns(LAST)
    drill.until(lambda: LAST in _who_answered(drill), f"{LAST} to answer")
    drill.nodes.kill(LAST)
    drill.lose_tail(LAST)
    drill.returns(LAST)
    drill.nodes.start(OTHER)
    drill.elected(f"{LAST} lost its tail after it had answered, {OTHER} returned", OTHER)


def _who_answered(drill: Recovery) -> set[int]:
    """The request is explicit: while a member of the quorum is away, the controller asks no replica on its own."""
    described = drill.client.run(describe_recovery({drill.topic: [0]}, ask_replicas=True), timeout_s=CALL_S)
    return {replica.broker_id for replica in described.topics[0].partitions[0].replicas if replica.is_valid}


def longest_log(drill: Recovery) -> None:
    """U11."""
    drill.two_are_left()
    drill.one_is_left()
    drill.nodes.kill(LAST)
    drill.lose_tail(LAST)
    drill.returns(EARLY)
    drill.returns(OTHER)
    drill.nodes.start(LAST)
    drill.elected(f"{LAST} returned without its tail; {OTHER} has everything", OTHER)


def reported_loss(drill: Recovery) -> None:
    """U16."""
    drill.two_are_left()
    drill.one_is_left()
    drill.nodes.kill(LAST)
    if not drill.manager:
        drill.nodes.start(EARLY)
        drill.note(f"{EARLY} returned: no replica leads", lambda view: view.leader == NO_LEADER)
        drill.client.run(elect_leaders(UNCLEAN, [(drill.topic, 0)], 10_000), timeout_s=CALL_S)
        drill.elected(f"an operator elects what is there: {EARLY}")
        drill.nodes.start(OTHER)
        drill.nodes.start(LAST)
        return
    drill.nodes.start(OTHER)
    drill.nodes.start(LAST)
    drill.returns(EARLY)
    drill.until(lambda: _who_answered(drill) == {EARLY, OTHER, LAST}, "every replica to answer")
    designated = elect_leaders(DESIGNATION, [(drill.topic, 0)], 10_000, desired={(drill.topic, 0): EARLY})
    drill.client.run(designated, timeout_s=CALL_S)
    drill.elected(f"an operator names {EARLY}, which has the least", EARLY)


SCENARIOS: dict[str, Callable[[Recovery], None]] = {
    "U1": newest_epoch,
    "U2": waits_for_a_member,
    "U3": forgets_old_answers,
    "U11": longest_log,
    "U16": reported_loss,
}
