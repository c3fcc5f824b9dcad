"""Scripts in which an answer arrives late, when the one who asked is no longer what it was.

    late-fetch-answer   guard 5: F fetches from X, and the answer is held back. Y leads meanwhile: F truncates what X
                        had written, and copies as many records of Y, which X never had. X leads again when its answer
                        arrives: the records fit F's log end, and do not fit its log

    late-registration   guard 1, on a loose transport (`heirlog.sim.loose_transport`): the answer to B's registration is
                        late, B asks again and is registered. B loses power, with records that it has acknowledged. Its
                        next incarnation asks, gets the late answer, and cannot reach A. Then A goes, and B may lead
                        only if it counts as the incarnation that it no longer is

In the first one both leaders have written without a majority, so none of these records is committed before X leads
again. It is a race: if the moment is missed, the run continues and is checked like any other.
"""

from __future__ import annotations

from random import Random

from heirlog.broker.partition import Partition
from heirlog.protocol.types import BrokerId
from heirlog.sim.clients.admin import PREFERRED, reassignment
from heirlog.sim.loose_transport import LooseTransport
from heirlog.sim.plan import RunPlan
from heirlog.sim.script import KILL, POWER_CUT, STOP, Script
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

RACE_LIMIT_MS = 1500


def late_fetch_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=1,
        idempotent=False,
        leader_acks=True,
        batch_records=random.randrange(2, 6),
        interval_ms=random.randrange(60, 120),
        config={
            "broker.session.timeout.ms": "9000",
            "replica.lag.time.max.ms": "20000",
            "replica.socket.timeout.ms": "20000",
        },
    )


def late_fetch_answer(simulation: Simulation) -> None:
    script = Script(simulation, "late-fetch-answer")
    cluster = simulation.cluster
    script.run_for(800, 1500)
    script.roles()
    first, second, follower = script.a, script.b, script.c
    y, x, f = (f"broker-{broker}" for broker in (first, second, follower))
    base = _log_end(script, second)
    # Y has records that the others lack
    for source, target in ((y, x), (y, f)):
        cluster.block(source, target)
    cluster.run_until(lambda: _log_end(script, first) > max(base, _log_end(script, follower)), RACE_LIMIT_MS)
    _lead(script, second, first, follower)
    tail_end = _log_end(script, first)
    cluster.heal(y, f)
    # F copies as many records of X, and then the answers of X are held back
    cluster.run_until(lambda: _log_end(script, follower) >= tail_end, RACE_LIMIT_MS)
    cluster.block(x, f)
    cluster.run_until(lambda: _log_end(script, second) > _log_end(script, follower), RACE_LIMIT_MS)
    script.run_for(1, 60)
    for producer in simulation.producers:
        cluster.block(producer.name, y)
    epoch = _last_epoch(script, first)
    _lead(script, first, second, follower)
    cluster.run_until(lambda: _last_epoch(script, follower) == epoch, RACE_LIMIT_MS)
    script.down(first, KILL)
    script.until("x leads again", lambda: script.state.leader == second)
    script.until("f follows it", lambda: _follows(script, follower, second))
    cluster.heal(x, f)
    script.run_for(500, 1500)
    cluster.heal(y, x)
    for producer in simulation.producers:
        cluster.heal(producer.name, y)
    script.up(first)
    script.run_for(500, 1500)


def late_registration_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=1,
        idempotent=False,
        leader_acks=False,
        batch_records=random.randrange(3, 10),
        interval_ms=random.randrange(40, 100),
        config={"broker.session.timeout.ms": "9000"},
    )


def late_registration(simulation: Simulation) -> None:
    script = Script(simulation, "late-registration")
    cluster = simulation.cluster
    loose = cluster.network.loose = LooseTransport(simulation.world.stream("loose"), 0.0)
    script.run_for(800, 1500)
    script.roles()
    script.down(script.c, STOP)
    script.until("c left the ISR", lambda: script.c not in script.state.isr)
    script.down(script.b, STOP)
    loose.keep_next_answer(f"broker-{script.b}")
    cluster.say(f"the answer to the registration of broker-{script.b} is late")
    script.up(script.b)
    script.until_registered(script.b)
    script.until("b is in sync", lambda: script.b in script.state.isr)
    script.run_for(500, 1500)
    script.down(script.b, POWER_CUT)
    a, b = f"broker-{script.a}", f"broker-{script.b}"
    cluster.block(a, b)
    script.up(script.b)
    script.run_for(100, 900)
    script.down(script.a, KILL)
    script.run_for(2000, 4000)
    cluster.heal(a, b)
    script.up(script.a, script.c)
    script.run_for(500, 1500)


def _lead(script: Script, *order: BrokerId) -> None:
    """Make the first broker of `order` the leader, by a changed order of the replicas."""
    script.ask(reassignment(TOPIC, 0, order))
    script.until("the order is another one", lambda: script.state.replicas == order)
    script.elect(PREFERRED)
    script.until("the preferred one leads", lambda: script.state.leader == order[0])


def _partition(script: Script, broker: BrokerId) -> Partition | None:
    node = script.cluster.broker(broker).running
    return None if node is None else node.broker.replicas.partition(script.states()[0][0])


def _log_end(script: Script, broker: BrokerId) -> int:
    partition = _partition(script, broker)
    return -1 if partition is None else partition.log.log_end_offset


def _last_epoch(script: Script, broker: BrokerId) -> int:
    """Of the last record."""
    partition = _partition(script, broker)
    return -1 if partition is None else partition.log.epochs.epoch_for_offset(partition.log.log_end_offset - 1)


def _follows(script: Script, broker: BrokerId, leader: BrokerId) -> bool:
    partition = _partition(script, broker)
    return partition is not None and partition.leader == leader
