"""What happens in a run of `durability`.

    failures for FAILURES_MS -> every broker returns -> QUIET_MS without failures -> operator -> as every run: heal,
    +------------------------- measured -----------------------------------+                     audit, judge

With the strategy None, partitions wait for an operator. This one looks when every broker has been back for a while, and
asks for the longest log, as `heirlog recover plan` proposes. Until then the partition is unavailable.
"""

from __future__ import annotations

from heirlog.client.offsets import TopicPartition
from heirlog.sim.clients.admin import LONGEST_LOG_BALANCED, NONE, STRATEGY, Operator
from heirlog.sim.durability.cell import Cell
from heirlog.sim.durability.failures import Failures
from heirlog.sim.durability.meter import Meter
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

FAILURES_MS = 20_000
QUIET_MS = 10_000
ELECTION_LIMIT_MS = 30_000


def play(cell: Cell, simulation: Simulation) -> None:
    failures = Failures(simulation.cluster, cell.mtbf_s * 1000, FAILURES_MS)
    meter = Meter(simulation, failures)
    simulation.cluster.run_for(FAILURES_MS)
    failures.end()
    simulation.cluster.run_for(QUIET_MS)
    meter.end()
    simulation.world.counters["durability.failures"] = failures.count
    _elect_where_operator_decides(simulation)


def _elect_where_operator_decides(simulation: Simulation) -> None:
    cluster, image = simulation.cluster, simulation.checker.committed.image
    topic_id = image.topic_ids[TOPIC]
    waiting: list[TopicPartition] = [
        (TOPIC, index)
        for index, state in sorted(image.partitions[topic_id].items())
        if not (state.has_leader or state.isr or state.elr)
    ]
    if not waiting or simulation.plan.topic_config.get(STRATEGY) != NONE:
        return
    answers: list[int] = []
    operator = cluster.run_client("recoverer", lambda env: Operator(env, "recoverer", cluster.bootstrap, []))
    simulation.checker.oracle.operator_elects = True
    cluster.say(f"an operator elects the longest logs of {waiting}")
    operator.elect(LONGEST_LOG_BALANCED, waiting, answers.append)
    simulation.wait("the operator's elections are answered", lambda: bool(answers), ELECTION_LIMIT_MS)
