"""U5 with a quorum of three controllers: another one becomes active at a chosen step of the recovery.

    a, b and c are lost, b and c return, a returns --> the controller asks a --> a answers --> it decides
                                                       --> the others have the record --> it is committed --> brokers
    waiting          the recovery waits for a, which is down
    asked            a has been asked, and has not answered
    decided          the election is appended, and not committed; the other voters may have its record
    decided-alone    as before, and none of the other voters has the record: the next controller decides again
    committed        the election is committed, and the brokers do not know
    elected          the brokers learn of it, and the controller writes its report

The active controller is killed, loses power, stops cleanly, hangs, or is cut off from all other nodes. It returns when
the partition is led. In the end exactly one lossy election is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from heirlog.protocol.messages import GetReplicaLogInfoRequest
from heirlog.protocol.types import BrokerId
from heirlog.sim.script import KILL, POWER_CUT, Script
from heirlog.sim.simulation import Simulation

FAIL_OVER_AT = "fail-over-at-"
"""Beginning of the counters that say at which step."""
HANG, CUT_OFF, STOP = "hang", "cut-off", "stop"
WAYS = (KILL, POWER_CUT, STOP, HANG, CUT_OFF)


class FailOverScript(Script):
    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, "U5-fail-over")
        self.active = ""
        self._links: list[tuple[str, str]] = []
        """That are blocked."""

    def others(self) -> list[str]:
        """The names of the controllers that are not active."""
        return [name for name in self.cluster.controller_names if name != self.active]

    def until_another_is_active(self) -> None:
        def found() -> bool:
            nodes = (self.cluster.machine(name).running for name in self.others())
            return any(node is not None and node.quorum.is_leader for node in nodes)

        self.until("another controller is active", found)

    def has_decided(self) -> bool:
        """The active controller has appended an election of the first partition."""
        node = self.cluster.machine(self.active).running
        key = self.states()[0][0]
        state = None if node is None else node.controller.image.partition(*key)
        return state is not None and state.has_leader

    def block(self, *links: tuple[str, str]) -> None:
        self.cluster.say(f"partition {' '.join(f'{source}>{target}' for source, target in links)}")
        for source, target in links:
            self.cluster.block(source, target)
        self._links += links

    def take_away(self, way: str) -> None:
        """The active controller is not there any more."""
        name = self.active
        if way == STOP:
            self.cluster.stop(name)
        elif way == HANG:
            self.cluster.pause(name)
        elif way == CUT_OFF:
            rest = [machine.name for machine in self.cluster.all_machines if machine.name != name]
            self.block(*((name, other) for other in rest), *((other, name) for other in rest))
        else:
            self.cluster.kill(name, lose_unflushed=way == POWER_CUT)

    def bring_back(self, way: str) -> None:
        for source, target in self._links:
            self.cluster.heal(source, target)
        if way == HANG:
            self.cluster.resume(self.active)
        self.until(f"{self.active} has stopped", lambda: way != STOP or not self.cluster.is_up(self.active))
        self.cluster.start(self.active)


def fail_over(simulation: Simulation) -> None:
    script = FailOverScript(simulation)
    random = script.random
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c, script.b)
    script.until_registered(script.b)
    script.until_registered(script.c)
    script.active = script.cluster.controller.name
    step, way = sorted(STEPS)[random.randrange(0, len(STEPS))], WAYS[random.randrange(0, len(WAYS))]
    STEPS[step](script)
    simulation.world.counters[FAIL_OVER_AT + step] += 1
    script.take_away(way)
    if step == "waiting":
        script.until_another_is_active()
        script.up(script.a)
    script.until_led()
    script.until_another_is_active()
    script.run_for(0, 1000)
    script.bring_back(way)
    script.run_for(500, 2000)
    script.expect(script.lossy_elections == 1, f"one election is lossy; {script.lossy_elections} were")


def _waits(script: FailOverScript) -> None:
    script.run_for(0, 500)


def _asks(script: FailOverScript) -> None:
    script.up(script.a)
    script.until("a is registered", lambda: _is_registered(script, script.a))
    sent = script.cluster.network.sent
    before = sent[GetReplicaLogInfoRequest]
    script.until("a is asked", lambda: sent[GetReplicaLogInfoRequest] > before)


def _decides(script: FailOverScript) -> None:
    _asks(script)
    script.until("the controller decides", script.has_decided)
    script.expect(not script.state.has_leader, "the election is not committed yet")


def _decides_alone(script: FailOverScript) -> None:
    _asks(script)
    script.block(*((script.active, other) for other in script.others()))
    script.until("the controller decides", script.has_decided)
    script.run_for(0, 500)
    script.expect(not script.state.has_leader, "the election is not committed")


def _commits(script: FailOverScript) -> None:
    _asks(script)
    script.until("the election is committed", lambda: script.state.has_leader)


def _elects(script: FailOverScript) -> None:
    _commits(script)
    script.run_for(0, 300)


def _is_registered(script: FailOverScript, broker: BrokerId) -> bool:
    node = script.cluster.broker(broker).running
    known = script.simulation.checker.committed.image.brokers.get(broker)
    return node is not None and known is not None and known.incarnation_id == node.broker.lifecycle.incarnation_id


STEPS: Mapping[str, Callable[[FailOverScript], None]] = {
    "waiting": _waits,
    "asked": _asks,
    "decided": _decides,
    "decided-alone": _decides_alone,
    "committed": _commits,
    "elected": _elects,
}
