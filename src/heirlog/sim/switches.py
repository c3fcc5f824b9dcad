"""Scripts in which the rule by which leaders are recovered changes while losses are open.

manager-switch     b loses its disk's tail and comes back, a dies with everything: LastKnownELR names b alone. The
                   recovery manager is switched off, by the feature or (which must have no effect) in the
                   controller's file; a comes back; b may not lead by itself. Switched on again, a recovery finds a
"""

from __future__ import annotations

from random import Random

from heirlog.metadata.image import RECOVERY_VERSION
from heirlog.sim.clients.admin import feature_level
from heirlog.sim.cluster import RECOVERY_MANAGER
from heirlog.sim.plan import RunPlan
from heirlog.sim.recoveries import plans
from heirlog.sim.script import KILL, POWER_CUT, STOP, Script
from heirlog.sim.simulation import Simulation


def manager_switch_plan(random: Random) -> RunPlan:
    return plans.keeps(random)


def manager_switch(simulation: Simulation) -> None:
    script = Script(simulation, "manager-switch")
    cluster, random = simulation.cluster, simulation.random
    script.run_for(800, 2500)
    script.roles()
    a, b = f"broker-{script.a}", f"broker-{script.b}"
    script.down(script.c, STOP)
    script.until("c left the ISR", lambda: script.c not in script.state.isr)
    script.run_for(300, 1500)
    script.down(script.b, POWER_CUT)
    script.until("a is alone", lambda: script.state.isr == (script.a,))
    cluster.say(f"partition {b}>{a}")
    cluster.block(b, a)
    script.up(script.b)
    script.until_registered(script.b)
    script.down(script.a, KILL)
    script.until("no replica leads", lambda: not script.state.has_leader)
    cluster.heal(b, a)
    switch = (_switch, _switch_in_the_file)[random.randrange(0, 2)]
    switch(script, on=False)
    script.up(script.a)
    script.until_registered(script.a)
    if random.randrange(0, 2):
        script.up(script.c)
    cluster.run_until(lambda: script.state.has_leader, 4000)
    script.expect(script.state.leader != script.b, f"broker {script.b}, which has lost its tail, does not lead")
    switch(script, on=True)
    script.up(script.c)
    script.until_led()


def _switch(script: Script, *, on: bool) -> None:
    response = script.ask(feature_level(RECOVERY_VERSION, int(on)))
    script.expect(response.error_code == 0, f"the recovery manager can be switched: {response!r}")
    script.until(
        "the switch is committed", lambda: script.simulation.checker.committed.image.recovery_manager_enabled is on
    )


def _switch_in_the_file(script: Script, *, on: bool) -> None:
    """Like an operator who edits the controller's configuration and restarts it."""
    controller = script.cluster.controller.name
    script.cluster.stop(controller)
    script.until("the controller has stopped", lambda: not script.cluster.is_up(controller))
    script.cluster.configure(controller, {RECOVERY_MANAGER: str(on).lower()})
    script.cluster.start(controller)
