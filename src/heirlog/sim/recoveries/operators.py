"""Operators' actions on a partition without a leader: another strategy, a designation."""

from __future__ import annotations

from heirlog.metadata.basis import Basis
from heirlog.protocol.errors import ErrorCode
from heirlog.sim.clients.admin import (
    AGGRESSIVE,
    DESIGNATION,
    NONE,
    STRATEGY,
    topic_config,
)
from heirlog.sim.script import KILL, POWER_CUT, Script
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

NOT_A_BROKER = 77


def u9(simulation: Simulation) -> None:
    script = Script(simulation, "U9")
    script.lose(b_by=KILL, a_by=KILL)
    script.return_lost(script.b, script.a)
    script.stays_leaderless(1000)
    script.ask(topic_config(TOPIC, STRATEGY, NONE))
    script.up(script.b)
    script.until_registered(script.b)
    script.stays_leaderless(3000)
    script.expect(script.recovery().state == "ManualElectionRequired", "None leaves it to an operator")
    script.ask(topic_config(TOPIC, STRATEGY, AGGRESSIVE))
    script.until_led()


def u10(simulation: Simulation) -> None:
    script = Script(simulation, "U10")
    script.lose(b_by=KILL, a_by=KILL)
    script.up(script.c)
    script.until_registered(script.c)
    before = script.state
    for desired, code in (
        (NOT_A_BROKER, ErrorCode.INVALID_REQUEST),
        (int(script.a), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ):
        result = script.elect(DESIGNATION, desired)
        script.expect(result == code, f"designating {desired} is {code.name}, not {result}")
    script.expect(script.state == before, "nothing has changed")
    simulation.checker.oracle.operator_elects = True
    result = script.elect(DESIGNATION, int(script.c))
    script.expect(result == ErrorCode.NONE, f"designating {script.c} works: {result}")
    script.until("c leads", lambda: script.state.leader == script.c)
    script.expect(script.basis is Basis.DESIGNATED, "it was designated")
    result = script.elect(DESIGNATION, int(script.c))
    script.expect(result == ErrorCode.ELECTION_NOT_NEEDED, f"a leader is there: {result}")


def u16(simulation: Simulation) -> None:
    """All replicas answer, and the operator designates the shortest log: the record has the exact loss."""
    script = Script(simulation, "U16")
    script.lose(b_by=KILL, a_by=(KILL, POWER_CUT)[script.random.randrange(0, 2)])
    script.up(script.a, script.b, script.c)
    for broker in (script.a, script.b, script.c):
        script.until_registered(broker)
    script.run_for(500, 1500)
    simulation.checker.oracle.operator_elects = True
    script.until("c is designated", lambda: script.elect(DESIGNATION, int(script.c)) == ErrorCode.NONE)
    # the leader of the report topic writes the report: neither event may prevent that, or cause a second report
    if script.random.randrange(0, 2):
        script.controller_dies_after(script.random.randrange(0, 60))
    if script.random.randrange(0, 2):
        script.run_for(0, 200)
        script.down(script.c, KILL)
        script.run_for(0, 2000)
        script.up(script.c)
    script.run_for(0, 2000)
