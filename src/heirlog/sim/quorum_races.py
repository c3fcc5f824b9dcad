"""Scripts that show what the guards of the metadata quorum prevent, at moments that a swarm reaches too rarely.

    forgotten-vote       guard 17: C votes for A, which leads, and loses power before the vote is flushed. Back again,
                         it may vote for B in the same epoch
    older-epoch-commit   guard 18: A has records of epoch 1 that no other voter has. B is elected in epoch 2, by C, and
                         dies before C has a record of it. A leads epoch 3, and C fetches the records of epoch 1, but
                         none of epoch 3. Both have them now, and yet B is elected without them when A dies (figure 8 of
                         the Raft paper)
    late-vote            guard 19: B's vote for A in an epoch arrives when A asks for votes in the next one, which C
                         leads
    replaced-voter       guard 20: C's disk is replaced. It fetches from A with its new one while B is down. Then A
                         dies, B returns, and C's former disk is put back
    two-voter-changes    guard 21: A is cut off from B and C, and receives the requests to remove B and to remove C.
                         Alone in the newest set it could commit records that B and C, voters of the committed set, do
                         not have. Both requests are answered in time (L6)

In each, the voters are stopped, started and cut off from each other such that exactly this happens. Afterwards the
cluster is healed and checked like any other.
"""

from __future__ import annotations

from heirlog.raft.epoch_state import QuorumRole
from heirlog.sim.quorum_liveness import CHANGE_LIMIT_MS
from heirlog.sim.quorum_script import QuorumScript, both_ways, plan_of_voters
from heirlog.sim.simulation import Simulation

SLOW_FLUSH_US = (300_000, 400_000)
SEGMENT_MS = "metadata.log.segment.ms"
ELECTION_TIMEOUT = "controller.quorum.election.timeout.ms"
REQUEST_TIMEOUT = "controller.quorum.request.timeout.ms"
PATIENT_MS = 60_000

forgotten_vote_plan = plan_of_voters()
older_epoch_plan = plan_of_voters({SEGMENT_MS: "1000"})
"""Each answer of a fetch ends with a segment, so that a follower can get the records of one epoch alone."""
late_vote_plan = plan_of_voters({REQUEST_TIMEOUT: str(PATIENT_MS)})
replaced_voter_plan = plan_of_voters()
two_changes_plan = plan_of_voters()


def forgotten_vote(simulation: Simulation) -> None:
    script = QuorumScript(simulation, "forgotten-vote")
    cluster = script.cluster
    script.run_for(500, 1500)
    # C leads: after a restart it may neither vote nor lead in its epoch again, so it asks for votes later than B
    c = script.until_active()
    a, b = script.others_than(c)
    script.until("all have the same", script.logs_are_equal)
    script.kill(a, b, c)
    cluster.configure(a, {ELECTION_TIMEOUT: "6000"})
    script.block(*both_ways(a, b))
    fast = cluster.machines.disk(c).flush_us
    cluster.machines.disk(c).flush_us = SLOW_FLUSH_US
    script.start(a)
    script.until("A asks for pre-votes", lambda: script.is_in(a, QuorumRole.PROSPECTIVE))
    script.start(c)
    script.until("A leads", lambda: script.leads(a))
    script.kill(c, lose_unflushed=True)
    cluster.machines.disk(c).flush_us = fast
    script.block(*both_ways(a, c))
    script.start(b, c)
    script.until("B or C leads", lambda: script.leads(b) or script.leads(c))
    script.run_for(300, 800)
    script.kill(a)
    cluster.configure(a, {ELECTION_TIMEOUT: "1000"})
    script.start(a)
    script.heal_all()
    script.run_for(500, 1500)


def older_epoch_commit(simulation: Simulation) -> None:
    script = QuorumScript(simulation, "older-epoch-commit")
    script.run_for(500, 1500)
    a = script.until_active()
    others = script.others_than(a)
    script.until("all have the same", script.logs_are_equal)
    # A appends a NoOp twice a second, and no other voter gets it
    script.block(*((a, other) for other in others))
    script.until("another voter leads", lambda: any(script.leads(other) for other in others))
    b, c = others if script.leads(others[0]) else reversed(others)
    end = script.end_of(a)
    script.kill(a)
    script.block((b, c))
    script.run_for(50, 100)
    script.kill(b)
    script.heal_all()
    script.start(a)
    script.until("A leads again", lambda: script.leads(a))
    script.until("C has what A had", lambda: script.end_of(c) >= end)
    script.block((a, c))
    script.run_for(300, 500)
    # C too: what A has sent to it would arrive when the connection is healed
    script.kill(a, c)
    script.heal_all()
    script.start(b, c)
    script.until("B or C leads", lambda: script.leads(b) or script.leads(c))
    script.run_for(300, 800)


def late_vote(simulation: Simulation) -> None:
    script = QuorumScript(simulation, "late-vote")
    script.run_for(500, 1500)
    a = script.until_active()
    b, c = script.others_than(a)
    script.kill(a, b, c)
    script.cluster.configure(a, {ELECTION_TIMEOUT: "6000"})
    script.cluster.configure(b, {ELECTION_TIMEOUT: str(PATIENT_MS)})
    script.block(*both_ways(a, c))
    script.start(a)
    script.until("A asks for pre-votes", lambda: script.is_in(a, QuorumRole.PROSPECTIVE))
    script.start(b)
    script.until("A asks for votes", lambda: script.is_in(a, QuorumRole.CANDIDATE))
    epoch = script.epoch_of(a)
    script.until("B votes for A", lambda: script.epoch_of(b) == epoch)
    script.block((b, a))
    script.until("A asks for pre-votes again", lambda: script.is_in(a, QuorumRole.PROSPECTIVE, epoch))
    script.heal(*both_ways(a, c))
    script.start(c)
    script.until("A asks for votes in the next epoch", lambda: script.is_in(a, QuorumRole.CANDIDATE, epoch + 1))
    script.block(*both_ways(a, c), (a, b))
    script.until("C leads that one", lambda: script.leads(c, epoch + 1))
    script.heal((b, a))
    script.run_for(400, 900)
    for name in (a, b):
        script.kill(name)
        script.cluster.configure(name, {ELECTION_TIMEOUT: "1000"})
        script.start(name)
    script.heal_all()
    script.run_for(500, 1500)


def replaced_voter(simulation: Simulation) -> None:
    script = QuorumScript(simulation, "replaced-voter")
    cluster = script.cluster
    script.run_for(500, 1500)
    a = script.until_active()
    b, c = script.others_than(a)
    script.kill(c)
    former = cluster.machines.back_up(c)
    simulation.replace_voter_disk(c)
    script.until("B has what A has", lambda: script.end_of(b) == script.end_of(a))
    script.kill(b)
    script.start(c)
    script.until("C has what A has", lambda: script.end_of(c) == script.end_of(a))
    script.run_for(600, 1200)
    script.kill(a, c)
    simulation.restore_voter_disk(c, former)
    script.start(b, c)
    script.until("B or C leads", lambda: script.leads(b) or script.leads(c))
    script.run_for(300, 800)


def two_voter_changes(simulation: Simulation) -> None:
    script = QuorumScript(simulation, "two-voter-changes")
    script.run_for(500, 1500)
    a = script.until_active()
    b, c = script.others_than(a)
    script.block(*both_ways(a, b), *both_ways(a, c))
    script.run_for(0, 300)
    answers = [script.remove_voter(c, at=a)]
    script.run_for(0, 50)
    answers.append(script.remove_voter(b, at=a))
    script.until_within("L6", "both requests are answered", lambda: all(answers), CHANGE_LIMIT_MS)
    script.until("B or C leads", lambda: script.leads(b) or script.leads(c))
    script.run_for(300, 800)
    script.heal_all()
    script.run_for(500, 1500)
