"""Three controllers as whole nodes: each registers, and each describes all of them."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.protocol.messages import DescribeClusterRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim.cluster import CONTROLLER_PORT, Machine, SimCluster
from heirlog.sim.world import World

LIMIT_MS = 20_000
CONTROLLERS = 2
"""The endpoint type of DescribeCluster."""


class Cluster:
    def __init__(self, combined: bool) -> None:
        self.cluster = SimCluster(World(5), brokers=3, controllers=3, combined=combined)
        self.cluster.format()
        self.cluster.start_all()
        self.wait_until_registered()

    def wait_until_registered(self) -> None:
        """All three run, and the image of each names the three processes."""
        self.wait(
            lambda: (
                len(self.controllers) == 3
                and all(self.registered(machine) == self.running for machine in self.controllers)
            )
        )

    @property
    def controllers(self) -> list[Machine]:
        """Those that run."""
        machines = self.cluster.all_machines
        return [one for one in machines if one.config.is_controller and one.running is not None]

    @property
    def running(self) -> dict[int, Any]:
        """The process of each controller, by its own knowledge."""
        return {one.node_id: one.running._registration.incarnation_id for one in self.controllers}  # type: ignore[union-attr]

    def registered(self, machine: Machine) -> dict[int, Any]:
        """The processes in the image of one controller."""
        assert machine.running is not None
        return {number: known.incarnation_id for number, known in machine.running.image.controllers.items()}

    def wait(self, done: Any) -> None:
        assert self.cluster.run_until(done, LIMIT_MS)

    def described_by(self, machine: Machine) -> tuple[int, list[int]]:
        """The active controller and all controllers, in an answer on this controller's listener."""
        answers: list[Any] = []
        env = self.cluster.machines.boot("client")
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        env.send(Endpoint(machine.name, CONTROLLER_PORT), "admin", request, answers.append, 5_000)
        self.wait(lambda: bool(answers))
        self.cluster.machines.kill("client")
        (answer,) = answers
        assert [(broker.host, broker.port) for broker in answer.brokers] == [
            (other.name, CONTROLLER_PORT) for other in self.cluster.all_machines if other.config.is_controller
        ]
        return answer.controller_id, [broker.broker_id for broker in answer.brokers]


@pytest.mark.parametrize("combined", [False, True], ids=["dedicated", "combined"])
def test_all_are_registered_after_the_start_and_after_a_fail_over(combined: bool) -> None:
    cluster = Cluster(combined)
    ids = sorted(machine.node_id for machine in cluster.controllers)
    first = cluster.cluster.controller
    for machine in cluster.controllers:
        assert cluster.described_by(machine) == (first.node_id, ids)

    cluster.cluster.kill(first.name)
    cluster.wait(lambda: cluster.cluster.controller is not first and bool(cluster.cluster.controller.running))
    second = cluster.cluster.controller
    for machine in cluster.controllers:
        cluster.wait(lambda machine=machine: machine.running.quorum.leader_id == second.node_id)
        assert cluster.described_by(machine) == (second.node_id, ids), "a registration outlives its process"

    cluster.cluster.start(first.name)
    cluster.wait_until_registered()


def test_only_the_active_controller_has_an_image_of_its_own() -> None:
    cluster = Cluster(combined=False)
    active = cluster.cluster.controller
    for machine in cluster.controllers:
        node = machine.running
        assert node is not None
        assert node.controller.is_active is (machine is active)
        assert (node.controller.image is node.image) is (machine is not active)
    node = active.running
    assert node is not None
    node.on_leader_change(-1, node.controller.epoch + 1, False)
    assert not node.controller.is_active and node.controller.image is node.image
    assert node.image.controllers.keys() == {machine.node_id for machine in cluster.controllers}
