"""Scripts that show what two guards prevent, at moments that a swarm reaches too rarely.

    overtaken-isr-change   guard 7: the leader A asks for B; before that arrives, the controller takes C out of the ISR,
                           and A commits without C; C is back, unfenced and behind, when A's request arrives, which
                           names A, B and C
    leader-epoch-jump      guard 3: A leads, loses the leadership to C and gets it back before it learns of either;
                           B has truncated its log to C's meanwhile, and A must not count what B fetched before

Each is a race: if the moment is missed, the run continues and is checked like any other.
"""

from __future__ import annotations

from random import Random

from heirlog.broker.partition import Partition
from heirlog.protocol.types import BrokerId
from heirlog.sim.clients.admin import PREFERRED, Operator, reassignment
from heirlog.sim.plan import RunPlan
from heirlog.sim.script import KILL, Script
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

_SESSION_MS = 9000
"""A's session does not expire while its connection to the controller is cut for a short time."""
SLOW_US = 1_700_000
"""Time for which A's request is in flight: longer than it takes until A knows that C is fenced, and until C is back."""


def overtaken_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=1,
        min_isr=1,
        idempotent=False,
        leader_acks=False,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(40, 120),
        config={"broker.session.timeout.ms": str(_SESSION_MS)},
    )


def overtaken_isr_change(simulation: Simulation) -> None:
    script = Script(simulation, "overtaken-isr-change")
    cluster, controller = simulation.cluster, simulation.cluster.controller.name
    script.run_for(800, 1500)
    script.roles()
    a, b, c = (f"broker-{broker}" for broker in (script.a, script.b, script.c))
    script.down(script.b, KILL)
    script.until("b left the ISR", lambda: script.b not in script.state.isr)
    cluster.block(b, a)
    script.up(script.b)
    script.until_registered(script.b)
    cluster.say(f"slow {a}>{controller}")
    cluster.network.link(a, controller).low_us += SLOW_US
    cluster.say(f"partition {c}>{controller}")
    cluster.block(c, controller)
    cluster.reset_between(c, controller)
    # the grace of a closed connection is one second: then C is fenced
    script.run_for(850, 1000)
    cluster.say(f"heal {b}>{a}")
    cluster.heal(b, a)
    script.until("c is fenced", lambda: script.c not in script.state.isr)
    cluster.say(f"partition {c}>{a}")
    cluster.block(c, a)
    cluster.run_until(lambda: _commits_without(script, script.c), 1200)
    cluster.say(f"heal {c}>{controller}")
    cluster.heal(c, controller)
    script.run_for(1500, 2500)
    cluster.network.link(a, controller).low_us -= SLOW_US
    cluster.heal(c, a)
    script.run_for(500, 1500)


def _partition(script: Script, broker: BrokerId) -> Partition | None:
    node = script.cluster.broker(broker).running
    return None if node is None else node.broker.replicas.partition(script.states()[0][0])


def _commits_without(script: Script, broker: BrokerId) -> bool:
    leader, follower = _partition(script, script.a), _partition(script, broker)
    return leader is not None and follower is not None and leader.high_watermark > follower.log.log_end_offset


def jump_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=1,
        idempotent=False,
        leader_acks=True,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(20, 60),
        config={"broker.session.timeout.ms": str(_SESSION_MS), "replica.lag.time.max.ms": "8000"},
    )


def leader_epoch_jump(simulation: Simulation) -> None:
    script = Script(simulation, "leader-epoch-jump")
    cluster, controller = simulation.cluster, simulation.cluster.controller.name
    script.run_for(800, 1500)
    script.roles()
    a, b, c = (f"broker-{broker}" for broker in (script.a, script.b, script.c))
    others = [endpoint for endpoint in cluster.bootstrap if endpoint.host != a]
    operator = cluster.run_client("mover", lambda env: Operator(env, "mover", others, []))
    cluster.say(f"partition {c}>{a}")
    cluster.block(c, a)
    script.run_for(300, 800)
    cluster.say(f"partition {controller}>{a}")
    cluster.block(controller, a)
    _lead(script, operator, (script.c, script.b, script.a))
    epoch = script.state.leader_epoch
    cluster.run_until(lambda: _last_epoch(script, script.b) >= epoch, 1000)
    cluster.say(f"partition {b}>{a}")
    cluster.block(b, a)
    _lead(script, operator, (script.a, script.b, script.c))
    cluster.say(f"heal {controller}>{a} {c}>{a}")
    cluster.heal(controller, a)
    cluster.heal(c, a)
    script.run_for(400, 1000)
    cluster.heal(b, a)
    script.run_for(500, 1500)


def _lead(script: Script, operator: Operator, order: tuple[BrokerId, ...]) -> None:
    """Make the first broker of `order` the leader, by a changed order of the replicas."""
    answers: list[object] = []
    operator.ask(reassignment(TOPIC, 0, order), answers.append)
    script.until("the order is another one", lambda: script.state.replicas == order and bool(answers))
    operator.elect(PREFERRED, [(TOPIC, 0)], answers.append)
    script.until("the preferred one leads", lambda: script.state.leader == order[0])


def _last_epoch(script: Script, broker: BrokerId) -> int:
    partition = _partition(script, broker)
    return -1 if partition is None else partition.log.epochs.latest
