"""Unclean recovery as scripts: what is lost in which order, and what must happen then.

Each script begins with a topic whose last two ISR members lose, or seem to lose, records (`heirlog.sim.script`). Two
rules are checked at every election of every run (`heirlog.sim.election_checker`): a recovery never elects a replica
with less than another reachable one, and its record never names less than the election gives up. A script adds checks
that only it can make.

    U1   the newest leader epoch wins, not the longest log     U9   a change of strategy takes effect at once
    U2   Balanced waits for every LastKnownELR member          U10  a designation that cannot be is refused
    U3   an answer dies with the incarnation that gave it      U11  the longer log wins over the last leader
    U4   a fenced ELR member: Balanced waits                   U13  answers that come late, twice, out of order;
                                                                   -old-leader: from under a former leader
    U5   the controller dies at every step;                    U14  equals: the order of the assignment
         -fail-over: another one takes over
    U6   a clean candidate ends a recovery                     U15  many partitions at once
    U7   a topic made again is another one                     U16  the loss report says what was given up
    U8   the assignment changes in between                     U18  a damaged clean-shutdown file is none
    replaced-disk   a broker that comes back with an empty disk is neither waited for nor elected

U17 (readers notice what was given up) is checked in every run: ext-poll-skip, `heirlog.sim.history_checks`.

Source: KIP-966, "Unclean recovery"; docs/internals/simulation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from heirlog.sim.plan import RunPlan
from heirlog.sim.recoveries import plans
from heirlog.sim.recoveries.answers import old_leader, u1, u2, u3, u4, u6, u11, u13, u14
from heirlog.sim.recoveries.during_recovery import replaced_disk, u5, u7, u8, u15, u18
from heirlog.sim.recoveries.fail_over import fail_over
from heirlog.sim.recoveries.operators import u9, u10, u16
from heirlog.sim.simulation import Simulation

RECOVERIES: Mapping[str, tuple[Callable[[Random], RunPlan], Callable[[Simulation], None]]] = {
    "U1": (plans.keeps_with_a_tail, u1),
    "U2": (plans.keeps_and_waits_briefly, u2),
    "U3": (plans.keeps_with_a_tail, u3),
    "U4": (plans.either, u4),
    "U5": (plans.keeps, u5),
    "U5-fail-over": (plans.keeps_with_three_controllers, fail_over),
    "U6": (plans.aggressive, u6),
    "U7": (plans.script_recreates_topic, u7),
    "U8": (plans.keeps, u8),
    "U9": (plans.balanced, u9),
    "U10": (plans.none, u10),
    "U11": (plans.keeps, u11),
    "U11-manager-off": (plans.by_kafkas_rule, u11),
    "U13": (plans.either, u13),
    "U13-old-leader": (plans.under_an_old_leader, old_leader),
    "U14": (plans.keeps, u14),
    "U15": (plans.many, u15),
    "U16": (plans.none, u16),
    "U18": (plans.damaged, u18),
    "replaced-disk": (plans.keeps, replaced_disk),
}
