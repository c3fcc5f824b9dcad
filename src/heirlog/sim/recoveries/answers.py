"""Which answers count, which replicas a partition waits for, and which log wins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heirlog.metadata.basis import Basis
from heirlog.sim.clients.admin import BALANCED, STRATEGY
from heirlog.sim.script import KILL, POWER_CUT, STOP, Script
from heirlog.sim.simulation import Simulation


def u1(simulation: Simulation) -> None:
    script = Script(simulation, "U1")
    script.run_for(800, 2000)
    script.roles()
    a, b, c = script.a, script.b, script.c
    script.down(b, STOP)
    script.until("b left the ISR", lambda: b not in script.state.isr)
    script.down(c, STOP)
    script.until("a is alone", lambda: script.state.isr == (a,))
    script.run_for(2000, 4000)  # a long tail that was not acknowledged with acks=all
    script.down(a, KILL)
    script.up(c, b)
    script.until("b and c are in the ISR", lambda: set(script.state.isr) == {b, c})
    newer, before = script.state.leader_epoch, len(simulation.history.acknowledged)
    script.until("something is acknowledged", lambda: len(simulation.history.acknowledged) > before)
    script.run_for(0, 400)
    for broker in (b, c):
        script.down(broker, KILL)
    script.until("no replica leads", lambda: not script.state.has_leader)
    script.up(a)
    script.run_for(0, 1500)
    script.up(b, c)
    script.until_led()
    script.expect(script.state.leader in (b, c), f"b or c leads, which have records of epoch {newer}, not {a}")


def u2(simulation: Simulation) -> None:
    script = Script(simulation, "U2")
    script.lose(b_by=KILL, a_by=KILL)
    script.return_lost(script.b, script.a)
    script.stays_leaderless(3000)
    described = script.recovery()
    script.expect(list(described.waits_for) == [script.b], f"it waits for broker {script.b} alone: {described!r}")
    script.up(script.b)
    script.until_led()


def u3(simulation: Simulation) -> None:
    script = Script(simulation, "U3")
    script.lose(b_by=KILL, a_by=KILL)
    a, b = script.a, script.b
    script.up(script.c, b)
    script.until_registered(script.c)
    script.until_registered(b)
    # b is unfenced and answers nothing, so that a is asked and nothing is decided
    script.cluster.pause(f"broker-{b}")
    script.up(a)
    script.until_registered(a)

    def has_answered() -> bool:
        return any(replica.broker_id == a and replica.is_valid for replica in script.recovery().replicas)

    script.until("a has answered", has_answered)
    script.down(a, POWER_CUT)
    script.run_for(0, 300)
    back: list[Callable[[], None]] = [partial(script.up, a), partial(script.cluster.resume, f"broker-{b}")]
    script.random.shuffle(back)
    for come in back:
        come()
    script.until_led()


def u4(simulation: Simulation) -> None:
    script = Script(simulation, "U4")
    script.lose(b_by=STOP, a_by=(KILL, POWER_CUT)[script.random.randrange(0, 2)])
    script.up(script.c)
    script.until_registered(script.c)
    if simulation.plan.topic_config[STRATEGY] == BALANCED:
        script.stays_leaderless(4000)
        script.up(script.b)
        script.until_led()
        script.expect(script.state.leader == script.b, f"broker {script.b} leads, which stopped cleanly")
        script.expect(script.lossy_elections == 0, "no election was lossy")
    else:
        script.until_led()
        script.expect(script.state.leader == script.c, f"broker {script.c} leads, the only one there")
        script.expect(script.basis is Basis.RECOVERED, "it was recovered")


def u6(simulation: Simulation) -> None:
    script = Script(simulation, "U6")
    script.lose(b_by=STOP, a_by=KILL)
    script.up(script.c)
    script.until_registered(script.c)
    script.until("c is asked", lambda: script.recovery().state == "Recovering")
    # well within the window in which Aggressive waits for others
    script.run_for(0, 2000)
    script.up(script.b)
    script.until_led()
    script.expect(script.state.leader == script.b, f"broker {script.b} leads, which stopped cleanly")
    script.expect(script.lossy_elections == 0, "the election of a clean candidate is not counted as lossy")


def u11(simulation: Simulation) -> None:
    script = Script(simulation, "U11")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c)
    script.until_registered(script.c)
    script.stays_leaderless(500)
    script.up(script.b)
    script.until_registered(script.b)
    script.stays_leaderless(500)
    script.up(script.a)
    script.until_led()


def u13(simulation: Simulation) -> None:
    script = Script(simulation, "U13")
    script.lose(b_by=KILL, a_by=POWER_CUT)
    names = [machine.name for machine in script.cluster.all_machines]
    controller = script.cluster.controller.name
    for name in names:
        if name != controller:
            for link in (script.cluster.network.link(name, controller), script.cluster.network.link(controller, name)):
                link.reset, link.loss = 0.02, 0.01
                link.span_us = script.random.randrange(1000, 400_000)
    brokers = [script.a, script.b, script.c]
    script.random.shuffle(brokers)
    for broker in brokers:
        script.up(broker)
        script.run_for(0, 1500)
    script.run_for(2000, 6000)
    for name in names:
        for other in names:
            if name != other:
                link = script.cluster.network.link(name, other)
                link.reset = link.loss = 0.0
                link.span_us = script.cluster.network.span_us
    script.until_led()


def old_leader(simulation: Simulation) -> None:
    """b still follows a leader that the controller has replaced, as its metadata are late; it is asked meanwhile."""
    script = Script(simulation, "U13-old-leader")
    network, controller = script.cluster.network, script.cluster.controller.name
    script.run_for(800, 2500)
    script.roles()
    a, b = f"broker-{script.a}", f"broker-{script.b}"
    script.down(script.c, STOP)
    script.cluster.say(f"partition {b}>{a}")
    script.cluster.block(b, a)
    script.until("a is alone", lambda: script.state.isr == (script.a,))
    script.cluster.say(f"partition {a}>{controller} {controller}>{a}")
    script.cluster.block(a, controller)
    script.cluster.block(controller, a)
    script.cluster.heal(b, a)
    script.cluster.say(f"slow {controller}>{b}")
    network.link(controller, b).span_us = 1_500_000
    script.until("no replica leads", lambda: not script.state.has_leader)
    script.until_led()
    network.link(controller, b).span_us = network.span_us
    script.cluster.heal(a, controller)
    script.cluster.heal(controller, a)


def u14(simulation: Simulation) -> None:
    script = Script(simulation, "U14")
    script.run_for(800, 2000)
    for producer in simulation.producers:
        producer.stop()
    script.run_for(3000, 4000)  # every replica has everything
    brokers = list(script.state.replicas)
    script.random.shuffle(brokers)
    for broker in brokers:
        script.down(broker, KILL)
    script.until("no replica leads", lambda: not script.state.has_leader)
    first = script.state.replicas[0]
    # a broker may answer while it is still fenced, and then it cannot lead: this one can before the others answer
    script.up(first)
    script.until_registered(first)
    script.random.shuffle(brokers)
    script.up(*brokers)
    script.until_led()
    script.expect(script.state.leader == first, f"broker {first} leads, the first in the assignment: {script.state}")
