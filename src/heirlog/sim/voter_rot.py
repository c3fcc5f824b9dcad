"""Controllers' files that rot while one of them is down: flipped bits, and ends that are zeros or missing.

    settled --> a voter stops, dies or loses power --> some of its files are damaged --> it starts, perhaps often
        --> it votes with all that was committed, or refuses and gets a new disk --> settled --> the leader is killed

One controller at a time, and the next one only once all vote with the same log. Nothing that was committed may be lost
(R1, Q5, Q6), although a controller whose log was cut may be the next leader. What it has to do with each file:

    .log                 what is behind a damaged batch is fetched again. If the log then ends below what the controller
                         knew to be committed and flushed, it may have acknowledged what is missing: it does not start
    .checkpoint          the snapshot before it is used if the log reaches back that far; otherwise it does not start
                         Left out after a crash: what was flushed in the last second before it is not known
    indexes, epochs      rebuilt
    committed-offset     it does not start: only this file would say that the log is too short
    quorum-state         it does not start: it might vote twice in an epoch
    meta.properties      it does not start
"""

from __future__ import annotations

from random import Random

from heirlog.sim.bit_rot import FILES_MAX, draw_damage, start_after_attempts
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import AUTO_JOIN, draw_snapshots
from heirlog.sim.voter_operator import VoterOperator

ROUNDS = 5
STEP_LIMIT_MS = 30_000
REFUSES_AFTER_MS = 5_000
"""A controller that has ended this long after its start, in spite of being started again, gets a new disk."""


def voter_rot_plan(random: Random) -> RunPlan:
    plan = RunPlan(
        controllers=(3, 3, 5)[random.randrange(0, 3)],
        partitions=1,
        min_isr=1,
        idempotent=False,
        batch_records=random.randrange(3, 10),
        recreated=True,
        min_isr_changes=True,
    )
    draw_snapshots(plan, random)
    if not random.randrange(0, 4):
        plan.config = {**plan.config, AUTO_JOIN: "true"}
    return plan


def voter_rot(simulation: Simulation) -> None:
    random, cluster = simulation.random, simulation.cluster
    operator = simulation.operate_voters(asks=AUTO_JOIN not in simulation.plan.config)
    for _ in range(ROUNDS):
        cluster.run_for(random.randrange(300, 2500))
        _wait_until_settled(simulation, operator)
        names = cluster.controller_names
        name = names[random.randrange(0, len(names))]
        was_stopped = _take_down(simulation, name)
        for _ in range(random.randrange(1, FILES_MAX + 1)):
            path, how = draw_damage(simulation, name)
            if was_stopped or not path.endswith(".log"):
                cluster.damage_disk(name, path, how)
        _bring_back(simulation, name)
        _wait_until_settled(simulation, operator)
        # who leads next has to have everything
        leader = cluster.controller.name
        cluster.kill(leader)
        cluster.run_for(random.randrange(0, 3000))
        cluster.start(leader)


def _take_down(simulation: Simulation, name: str) -> bool:
    """Whether it stopped cleanly."""
    cluster, random = simulation.cluster, simulation.random
    how = random.randrange(0, 3)
    if how == 0:
        cluster.stop(name)
        simulation.wait(f"{name} has stopped", lambda: not cluster.is_up(name), STEP_LIMIT_MS)
    else:
        cluster.kill(name, lose_unflushed=how == 1)
    cluster.run_for(random.randrange(0, 3000))
    return how == 0


def _bring_back(simulation: Simulation, name: str) -> None:
    cluster = simulation.cluster
    start_after_attempts(simulation, name)
    cluster.run_for(REFUSES_AFTER_MS)
    process = cluster.machine(name).process
    if process is not None and process.exit is not None:
        cluster.say(f"{name} refuses: {process.exit.reason}")
        simulation.world.counters["rot.voter-refused"] += 1
        simulation.replace_voter_disk(name)
        cluster.start(name)
    else:
        simulation.world.counters["rot.voter-returned"] += 1


def _wait_until_settled(simulation: Simulation, operator: VoterOperator) -> None:
    """All vote, and each has what the leader has committed."""

    def settled() -> bool:
        nodes = [simulation.cluster.machine(name).running for name in simulation.cluster.controller_names]
        committed = simulation.checker.committed.end
        return operator.is_settled and all(
            node is not None and node.quorum.log is not None and node.quorum.log.flushed_offset >= committed
            for node in nodes
        )

    simulation.wait("every controller votes and has everything", simulation.supervised(settled), STEP_LIMIT_MS)
