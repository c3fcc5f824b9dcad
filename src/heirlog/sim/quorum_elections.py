"""Scripts of elections: the scenarios of Apache Kafka's `RaftEventSimulationTest`, with three or five voters.

    initial-leader           canElectInitialLeader: the voters start at different moments
    leader-failure           canElectNewLeaderAfterOldLeaderFailure: the leader stops cleanly, or is killed
    all-voters-killed        canRecoverAfterAllNodesKilled: all are killed or lose power, and a majority returns
    leader-cut-off           canElectNewLeaderAfterOldLeaderPartitionedAway
    majority-reachable       canMakeProgressIfMajorityIsReachable: a minority, with the leader or without it, is cut off
    split-start              leadershipAssignedOnlyOnceWithNetworkPartitionIfThereExistsMajority: two groups that only
                             one voter reaches elect one leader, and keep it
    split-followers          leadershipWillNotChangeDuringNetworkPartitionIfMajorityStillReachable: the same groups form
                             under a leader that keeps a majority
    back-to-back-failures    canMakeProgressAfterBackToBackLeaderFailures: the next leader is cut off at once
    lost-voter-disk          canRecoverFromSingleNodeCommittedDataLoss: a voter has lost what it had acknowledged

Each waits for what must happen within the bounds of `heirlog.sim.quorum_liveness`. Meanwhile the broker stays
registered and unfenced (L7): no fail-over here takes as long as its session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from heirlog.raft.votes import majority
from heirlog.sim.plan import RunPlan
from heirlog.sim.quorum_liveness import (
    CLAIM_LIMIT_MS,
    DELIVERY_LIMIT_MS,
    ELECTION_LIMIT_MS,
    ISOLATED_LIMIT_MS,
    l7_no_broker_is_fenced,
)
from heirlog.sim.quorum_script import QuorumScript, both_ways, plan_of_voters
from heirlog.sim.record_checker import FENCED
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import AUTO_JOIN

PROGRESS = 4
"""Records that a quorum commits to show that it makes progress; an idle one writes two per second."""


def elections_plan(random: Random) -> RunPlan:
    plan = plan_of_voters()(random)
    plan.controllers = (3, 5)[random.randrange(0, 2)]
    return plan


class ElectionScript(QuorumScript):
    def __init__(self, simulation: Simulation, name: str) -> None:
        super().__init__(simulation, name)
        self.run_for(500, 1500)

    def fresh_order(self) -> list[str]:
        """The voters in a random order."""
        order = list(self.voters)
        self.random.shuffle(order)
        return order

    def until_elected(self, *among: str, above: int = -1) -> str:
        """The active controller of an epoch above this one, once there is one (L1)."""
        names = among or tuple(self.voters)

        def found() -> str | None:
            return next((name for name in names if self.leads(name, above + 1) and self.is_active(name)), None)

        self.until_within("L1", "a voter is the active controller", lambda: found() is not None, ELECTION_LIMIT_MS)
        name = found()
        assert name is not None
        return name

    def until_progress(self, *names: str) -> None:
        """More records are committed, and each of these voters knows it (L5)."""
        end = self.simulation.checker.committed.end + PROGRESS
        self.until_within(
            "L5",
            f"{', '.join(names)} know that everything below {end} is committed",
            lambda: all(self.committed_to(name) >= end for name in names),
            DELIVERY_LIMIT_MS,
        )

    def cut_between(self, one: list[str], other: list[str]) -> None:
        self.block(*(link for left in one for right in other for link in both_ways(left, right)))

    def expect_stable(self, name: str, epoch: int, duration_ms: int) -> None:
        """This voter leads this epoch, and no other epoch begins (L3)."""
        newest = max(map(self.epoch_of, self.voters))
        self.cluster.run_until(lambda: max(map(self.epoch_of, self.voters)) > newest, duration_ms)
        self.expect_rule("L3", self.leads(name, epoch), f"{name} leads epoch {epoch} all the time")
        self.expect_rule("L3", max(map(self.epoch_of, self.voters)) == newest, f"no epoch after {newest} begins")

    def split(self, bridge: str, order: list[str]) -> None:
        """Two groups of equal size that do not reach each other; the bridge reaches both."""
        others = [name for name in order if name != bridge]
        half = len(others) // 2
        self.cut_between(others[:half], others[half:])


def initial_leader(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "initial-leader")
    order = script.fresh_order()
    script.kill(*order)
    for name in order[: majority(len(order)) - 1]:
        script.start(name)
        script.run_for(0, 2000)
        script.expect_rule("Q1", not script.any_leads(), "a minority elects no leader")
    rest = order[majority(len(order)) - 1 :]
    script.start(rest[0])
    script.until_elected()
    script.start(*rest[1:])
    script.until_progress(*order)


def leader_failure(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "leader-failure")
    leader = script.until_active()
    epoch, others = script.epoch_of(leader), script.others_than(leader)
    if script.random.randrange(0, 2):
        script.cluster.stop(leader)
        script.until_within(
            "L4",
            "a successor is the active controller",
            lambda: any(script.leads(name, epoch + 1) and script.is_active(name) for name in others),
            CLAIM_LIMIT_MS,
        )
        script.until(f"{leader} has stopped", lambda: not script.cluster.is_up(leader))
    else:
        script.kill(leader, lose_unflushed=bool(script.random.randrange(0, 2)))
        script.until_elected(*others, above=epoch)
    script.until_progress(*others)
    script.start(leader)
    script.until_progress(*script.voters)


def all_voters_killed(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "all-voters-killed")
    script.until_active()
    order = script.fresh_order()
    script.kill(*order, lose_unflushed=bool(script.random.randrange(0, 2)))
    script.run_for(0, 1000)
    returning = order[: majority(len(order))]
    for name in returning:
        script.start(name)
        script.run_for(0, 300)
    script.until_elected()
    script.until_progress(*returning)


def leader_cut_off(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "leader-cut-off")
    leader = script.until_active()
    epoch, others = script.epoch_of(leader), script.others_than(leader)
    script.cut_between([leader], [*others, *script.cluster.broker_names])
    script.until_within("L2", f"{leader} resigns", lambda: not script.leads(leader), ISOLATED_LIMIT_MS)
    script.until_elected(*others, above=epoch)
    script.until_progress(*others)
    script.heal_all()
    script.until_progress(*script.voters)


def majority_reachable(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "majority-reachable")
    leader = script.until_active()
    epoch, order = script.epoch_of(leader), script.fresh_order()
    few = len(order) - majority(len(order))
    minority, rest = order[:few], order[few:]
    # the broker is with the majority
    script.cut_between(minority, [*rest, *script.cluster.broker_names])
    if leader in minority:
        leader = script.until_elected(*rest, above=epoch)
    script.until_progress(*rest)
    ahead = max(map(script.committed_to, rest))
    script.expect(max(map(script.committed_to, minority)) < ahead, "the minority commits nothing")
    epoch = script.epoch_of(leader)
    script.heal_all()
    script.until_progress(*order)
    script.expect_stable(leader, epoch, 3000)


def split_start(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "split-start")
    order = script.fresh_order()
    script.kill(*order)
    script.split(order[0], order)
    script.start(*order)
    leader = script.until_elected()
    epoch = script.epoch_of(leader)
    script.expect_stable(leader, epoch, 8000)
    script.heal_all()
    script.expect_stable(leader, epoch, 3000)


def split_followers(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "split-followers")
    leader = script.until_active()
    epoch, order = script.epoch_of(leader), script.fresh_order()
    script.split(order[0], order)
    script.expect_stable(leader, epoch, 8000)
    script.heal_all()
    script.expect_stable(leader, epoch, 3000)


def back_to_back_failures(simulation: Simulation) -> None:
    script = ElectionScript(simulation, "back-to-back-failures")
    former, epoch = "", -1
    for _ in range(script.random.randrange(2, 4)):
        leader = script.until_elected(above=epoch)
        epoch = script.epoch_of(leader)
        if former:
            script.heal_all()
        script.cut_between([leader], [*script.others_than(leader), *script.cluster.broker_names])
        former = leader
    script.until_elected(*script.others_than(former), above=epoch)
    script.until_progress(*script.others_than(former))
    script.heal_all()


def lost_voter_disk(simulation: Simulation) -> None:
    """The disk is empty, and an operator adds it as another voter, or it adds itself; or it is an older copy."""
    script = ElectionScript(simulation, "lost-voter-disk")
    leader, cluster = script.until_active(), script.cluster
    voter = script.fresh_order()[0]
    older = cluster.machines.back_up(voter)
    script.until_progress(*script.voters)
    # a copy may be older than what only a bare majority has: the others have to have everything
    script.until("all have the same", script.logs_are_equal)
    epoch = script.epoch_of(leader)
    script.kill(voter)
    others = script.others_than(voter)
    script.until_elected(*others, above=epoch if voter == leader else epoch - 1)
    script.until_progress(*others)
    way = script.random.randrange(0, 3)
    if way:
        simulation.replace_voter_disk(voter)
        if way == 1:
            cluster.configure(voter, {AUTO_JOIN: "true"})
        operator = simulation.operate_voters(asks=way == 2)
        script.start(voter)
        script.until("the new disk votes", lambda: operator.is_settled)
    else:
        simulation.restore_voter_disk(voter, older)
        script.start(voter)
    script.until_progress(*script.voters)


_SCRIPTS: Mapping[str, Callable[[Simulation], None]] = {
    "initial-leader": initial_leader,
    "leader-failure": leader_failure,
    "all-voters-killed": all_voters_killed,
    "leader-cut-off": leader_cut_off,
    "majority-reachable": majority_reachable,
    "split-start": split_start,
    "split-followers": split_followers,
    "back-to-back-failures": back_to_back_failures,
    "lost-voter-disk": lost_voter_disk,
}


def _fences_no_broker(play: Callable[[Simulation], None]) -> Callable[[Simulation], None]:
    """The script, and L7 of it."""

    def played(simulation: Simulation) -> None:
        counters = simulation.world.counters
        before = counters[FENCED]
        play(simulation)
        simulation.checker.oracle.must_not("L7", l7_no_broker_is_fenced(before, counters[FENCED]))

    return played


ELECTIONS = {name: _fences_no_broker(play) for name, play in _SCRIPTS.items()}
"""By name of the scenario."""
