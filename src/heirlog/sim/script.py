"""What scripts of unclean recovery do with one topic: lose its brokers in an order, start them again, and check.

A script names brokers by role: *a* leads in the end, *b* is the other last member of the ISR, *c* left before. `lose`
plays the common beginning:

    c stops cleanly                ISR a,b   ELR -
    b stops, dies or loses power   ISR a     ELR b
    a dies or loses power          ISR -     ELR a,b    no leader
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.metadata.basis import Basis
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.messages import DescribeRecoveryRequest, DescribeRecoveryResponse
from heirlog.protocol.types import BrokerId
from heirlog.sim.clients.admin import Operator
from heirlog.sim.oracle import Key, Violation
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

STEP_LIMIT_MS = 30_000
STOP, KILL, POWER_CUT = "stop", "kill", "power-cut"


class Script:
    """Of the scenario `name`, as it is called in a violation."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        self.simulation = simulation
        self.name = name
        self.random = simulation.random
        self.cluster = simulation.cluster
        bootstrap = simulation.cluster.bootstrap
        self.operator = simulation.cluster.run_client("script", lambda env: Operator(env, "script", bootstrap, []))
        self.c, self.b, self.a = BrokerId(-1), BrokerId(-1), BrokerId(-1)

    # looking

    def states(self) -> list[tuple[Key, PartitionRegistration]]:
        """Of the topic, as the controllers committed them."""
        image = self.simulation.checker.committed.image
        topic_id = image.topic_ids.get(TOPIC)
        if topic_id is None:
            return []
        return [((topic_id, index), state) for index, state in sorted(image.partitions[topic_id].items())]

    @property
    def state(self) -> PartitionRegistration:
        """Of its first partition."""
        return self.states()[0][1]

    @property
    def lossy_elections(self) -> int:
        return self.simulation.world.counters["lossy_election"]

    @property
    def basis(self) -> Basis | None:
        """Of its newest election, if that was a lossy one."""
        state = self.state
        return None if state.basis is None else state.basis.basis

    def recovery(self, index: int = 0) -> DescribeRecoveryResponse.RecoveryPartition:
        """What the controller says of a partition's recovery."""
        topic = DescribeRecoveryRequest.TopicRequest(name=TOPIC, partitions=[index])
        response = self.ask(DescribeRecoveryRequest(topics=[topic], ask_replicas=False))
        self.expect(response.error_code == 0 and response.topics, f"DescribeRecovery answers: {response!r}")
        found: DescribeRecoveryResponse.RecoveryPartition = response.topics[0].partitions[0]
        return found

    # asking

    def ask(self, request: Any) -> Any:
        """What any broker answers."""
        answers: list[Any] = []
        self.operator.ask(request, answers.append)
        self.until(f"{type(request).__name__} is answered", lambda: bool(answers))
        return answers[0]

    def elect(self, kind: int, desired: int | None = None) -> int:
        """The error code of the first partition."""
        codes: list[int] = []
        self.operator.elect(kind, [(TOPIC, 0)], codes.append, desired)
        self.until("the election is answered", lambda: bool(codes))
        return codes[0]

    # acting

    def run_for(self, low_ms: int, high_ms: int) -> None:
        self.cluster.run_for(self.random.randrange(low_ms, high_ms))

    def down(self, broker: BrokerId, way: str) -> None:
        """Returns once it does not run any more."""
        name = f"broker-{broker}"
        if way == STOP:
            self.cluster.stop(name)
            self.until(f"{name} has stopped", lambda: not self.cluster.is_up(name))
        else:
            self.cluster.kill(name, lose_unflushed=way == POWER_CUT)

    def up(self, *brokers: BrokerId) -> None:
        for broker in brokers:
            self.cluster.start(f"broker-{broker}")

    def until_registered(self, broker: BrokerId) -> None:
        """The incarnation that runs is registered and unfenced."""
        self.until(f"broker {broker} is unfenced", lambda: self.is_unfenced(broker))

    def is_unfenced(self, broker: BrokerId) -> bool:
        """That the incarnation that runs is registered and unfenced."""
        node = self.cluster.broker(broker).running
        known = self.simulation.checker.committed.image.brokers.get(broker)
        return (
            node is not None
            and known is not None
            and known.incarnation_id == node.broker.lifecycle.incarnation_id
            and not known.fenced
        )

    def lose(self, *, b_by: str, a_by: str, tail_ms: tuple[int, int] = (200, 1500)) -> None:
        """The common beginning; what acks=1 writes while `a` is alone is written for so long."""
        self.run_for(800, 2500)
        self.roles()
        self.down(self.c, STOP)
        self.until("c left the ISR", lambda: all(self.c not in s.isr for _, s in self.states()))
        self.run_for(300, 1500)
        self.down(self.b, b_by)
        self.until("a is alone", lambda: all(s.isr == (self.a,) for _, s in self.states()))
        self.run_for(*tail_ms)
        self.down(self.a, a_by)
        self.until("no replica leads", lambda: all(not s.has_leader for _, s in self.states()))

    def return_lost(self, first: BrokerId, second: BrokerId) -> None:
        """c and `first` return, `first` uncleanly; `first` stops again before `second` returns, so Balanced has to wait
        for it.
        """
        self.up(self.c, first)
        self.until_registered(self.c)
        self.until_registered(first)
        self.down(first, KILL)
        self.up(second)
        self.until_registered(second)

    def controller_dies_after(self, events: int) -> None:
        """The controller is killed after so many events of its own, and comes back."""
        controller = self.cluster.controller.name
        left, world = events, self.simulation.world
        before = world.events_run
        while left > 0 and world.events_run - before < 20 * events + 2000:
            if not world.step(world.now_us + 5_000_000):
                break
            left -= world.last_node == controller
        self.cluster.kill(controller, lose_unflushed=bool(self.random.randrange(0, 2)))
        self.run_for(0, 800)
        self.cluster.start(controller)

    def roles(self) -> None:
        """`a` leads the first partition now; b and c are assigned at random."""
        self.until("a replica leads", lambda: self.state.has_leader)
        self.a = self.state.leader
        others = [replica for replica in self.state.replicas if replica != self.a]
        self.random.shuffle(others)
        self.b, self.c = others[0], others[1]

    # expecting

    def until(self, what: str, done: Callable[[], bool], limit_ms: int = STEP_LIMIT_MS) -> None:
        self.simulation.wait(f"{what} ({self.name})", done, limit_ms)

    def until_led(self) -> None:
        self.until("every partition is led", lambda: all(state.has_leader for _, state in self.states()))

    def stays_leaderless(self, duration_ms: int) -> None:
        self.expect(
            not self.cluster.run_until(lambda: self.state.has_leader, duration_ms),
            f"no replica leads for {duration_ms} ms; {self.state} does",
        )

    def expect(self, holds: object, what: str) -> None:
        if not holds:
            raise Violation(self.name, f"the script expects that {what}")
