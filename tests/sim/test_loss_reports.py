"""Every election that was not clean is reported once, whoever dies between its commit and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from heirlog.metadata.loss_report import read_report
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.types import Uuid
from heirlog.sim.clients.admin import UNCLEAN
from heirlog.sim.recoveries.plans import plan
from heirlog.sim.script import KILL, POWER_CUT, Script
from heirlog.sim.simulation import Simulation
from heirlog.sim.world import World
from heirlog.storage.log import Log

Election = tuple[Uuid, int, int]
"""Topic id, partition, leader epoch."""
LIMIT_MS = 20_000


class Watched:
    """A run, and every election of it that was not clean."""

    def __init__(self, seed: int, strategy: str = "Balanced") -> None:
        self.simulation = Simulation(seed, plan(World(seed).stream("plan"), strategy=strategy))
        self.simulation.begin()
        self.simulation.checker.oracle.operator_elects = True
        self.script = Script(self.simulation, "reports")

    def elections(self) -> set[Election]:
        image = self.simulation.checker.committed.image
        return {
            (topic_id, index, election.leader_epoch)
            for topic_id, partitions in image.partitions.items()
            for index, state in partitions.items()
            if state.basis is not None
            for election in (state.basis, *state.earlier)
        }

    def reported(self) -> Counter[Election]:
        """In the log of the topic's leader; nothing while it has none."""
        image = self.simulation.checker.committed.image
        state = image.partition_named(RECOVERIES_TOPIC, 0)
        node = None if state is None or not state.has_leader else self.simulation.cluster.broker(state.leader).running
        partition = None if node is None else node.broker.replicas.partitions_named(RECOVERIES_TOPIC).get(0)
        return Counter() if partition is None else reports_in(partition.log)

    def until_all_are_reported(self) -> None:
        self.simulation.heal()
        self.script.until("all are reported", lambda: set(self.reported()) >= self.elections(), LIMIT_MS)
        self.simulation.cluster.run_for(3000)
        found = self.reported()
        assert set(found) == self.elections() and set(found.values()) == {1}


def reports_in(log: Log) -> Counter[Election]:
    found: Counter[Election] = Counter()
    at = log.log_start_offset
    while at < log.log_end_offset:
        data = b"".join(region.read() for region in log.read(at, 1 << 30, log.log_end_offset).regions)
        for position, header in walk(data):
            at = header.next_offset
            for record in decode_records(data, position):
                report = read_report(record.value)
                assert report is not None
                found[report.topic_id, report.partition, report.election.leader_epoch] += 1
    return found


def controller(run: Watched) -> None:
    run.simulation.cluster.kill(run.simulation.cluster.controller.name)


def everybody(run: Watched) -> None:
    controller(run)
    run.script.down(run.script.c, POWER_CUT)


@pytest.mark.parametrize("falls", [controller, everybody])
def test_who_dies_between_an_election_and_its_report_takes_nothing_along(falls: Callable[[Watched], None]) -> None:
    run = Watched(seed=3)
    script = run.script
    script.lose(b_by=KILL, a_by=POWER_CUT)
    script.up(script.c)
    script.until_registered(script.c)
    assert script.elect(UNCLEAN) == 0
    assert len(run.elections()) == 1 and not run.reported(), "nobody can have reported it: the topic is not there"
    falls(run)
    run.until_all_are_reported()


def test_a_leader_of_the_reports_that_dies_leaves_the_rest_to_the_next_one() -> None:
    run = Watched(seed=4)
    script = run.script
    script.lose(b_by=KILL, a_by=KILL)
    script.up(script.c)
    script.until_registered(script.c)
    assert script.elect(UNCLEAN) == 0
    script.up(script.a, script.b)
    script.until("there is a report", lambda: bool(run.reported()))
    state = run.simulation.checker.committed.image.partition_named(RECOVERIES_TOPIC, 0)
    assert state is not None
    script.down(state.leader, POWER_CUT)
    run.until_all_are_reported()
