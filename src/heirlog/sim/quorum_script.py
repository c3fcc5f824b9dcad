"""What scripts of the metadata quorum do with its voters: look at them, cut them off, kill and start them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from heirlog.pending import Pending
from heirlog.protocol.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.quorum import Quorum
from heirlog.sim.cluster import CLUSTER_ID
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.script import Script
from heirlog.sim.simulation import Simulation


def plan_of_voters(config: dict[str, str] | None = None) -> Callable[[Random], RunPlan]:
    """Three voters, and one broker, which shows that the metadata can be used."""

    def plan(random: Random) -> RunPlan:
        return RunPlan(
            brokers=1,
            controllers=3,
            partitions=1,
            min_isr=1,
            idempotent=False,
            leader_acks=False,
            batch_records=random.randrange(5, 20),
            config=config or {},
        )

    return plan


class QuorumScript(Script):
    """Of the scenario `name`, as it is called in a violation."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        super().__init__(simulation, name)
        self.voters = list(self.cluster.controller_names)

    # looking

    def quorum(self, name: str) -> Quorum | None:
        """None while the node does not run."""
        node = self.cluster.machine(name).running
        return None if node is None else node.quorum

    def state_of(self, name: str) -> EpochState | None:
        quorum = self.quorum(name)
        return None if quorum is None else quorum.state

    def epoch_of(self, name: str) -> int:
        state = self.state_of(name)
        return -1 if state is None else state.epoch

    def end_of(self, name: str) -> int:
        quorum = self.quorum(name)
        return -1 if quorum is None else quorum.log_end_offset

    def logs_are_equal(self) -> bool:
        return len({self.end_of(name) for name in self.voters}) == 1

    def committed_to(self, name: str) -> int:
        """What it knows to be committed; -1 while it does not run, or does not know."""
        quorum = self.quorum(name)
        return -1 if quorum is None else quorum.high_watermark

    def is_active(self, name: str) -> bool:
        """It leads, and its controller has everything that was committed before."""
        quorum = self.quorum(name)
        return quorum is not None and quorum.is_leader

    def any_leads(self) -> bool:
        return any(map(self.leads, self.voters))

    def is_in(self, name: str, role: QuorumRole, epoch: int = -1) -> bool:
        """epoch: at least this one."""
        state = self.state_of(name)
        return state is not None and state.role is role and state.epoch >= epoch

    def leads(self, name: str, epoch: int = -1) -> bool:
        return self.is_in(name, QuorumRole.LEADER, epoch)

    # expecting

    def until_within(self, rule: str, what: str, done: Callable[[], bool], limit_ms: int) -> None:
        """rule: of `heirlog.sim.quorum_liveness`; it is broken if this is not true in time."""
        if not self.cluster.run_until(done, limit_ms):
            raise Violation(rule, f"after {limit_ms} ms it is still not true that {what} ({self.name})")

    def expect_rule(self, rule: str, holds: bool, what: str) -> None:
        if not holds:
            raise Violation(rule, f"it is not true that {what} ({self.name})")

    # acting

    def until_active(self) -> str:
        """The name of the active controller, once there is one."""
        self.until("a controller is active", lambda: self._active() is not None)
        active = self._active()
        assert active is not None
        return active

    def _active(self) -> str | None:
        return next(filter(self.is_active, self.voters), None)

    def others_than(self, name: str) -> list[str]:
        """The other voters, in a random order."""
        others = [other for other in self.voters if other != name]
        self.random.shuffle(others)
        return others

    def kill(self, *names: str, lose_unflushed: bool = False) -> None:
        for name in names:
            self.cluster.kill(name, lose_unflushed=lose_unflushed)

    def start(self, *names: str) -> None:
        for name in names:
            self.cluster.start(name)

    def remove_voter(self, name: str, *, at: str) -> list[RemoveRaftVoterResponse]:
        """An operator asks the controller `at` to remove the voter; it is not asked again. The list gets the answer."""
        leader, process = self.quorum(at), self.cluster.machine(at).process
        assert leader is not None and process is not None
        self.cluster.say(f"remove {name} at {at}")
        removed = next(voter for voter in leader.voters if voter.id == self.cluster.machine(name).node_id)
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=removed.id, voter_directory_id=removed.directory_id
        )
        answers: list[RemoveRaftVoterResponse] = []

        def receive() -> None:
            answer = leader.remove_raft_voter(request)
            if isinstance(answer, Pending):
                answer.then(answers.append)
            else:
                answers.append(answer)

        self.simulation.world.schedule(0, process, "RemoveRaftVoter", receive)
        return answers

    def block(self, *links: tuple[str, str]) -> None:
        self.cluster.say(f"partition {' '.join(f'{source}>{target}' for source, target in links)}")
        for source, target in links:
            self.cluster.block(source, target)

    def heal(self, *links: tuple[str, str]) -> None:
        self.cluster.say(f"heal {' '.join(f'{source}>{target}' for source, target in links)}")
        for source, target in links:
            self.cluster.heal(source, target)

    def heal_all(self) -> None:
        """Every connection between machines works again."""
        machines = [machine.name for machine in self.cluster.all_machines]
        self.heal(*((one, other) for one in machines for other in machines if one != other))


def both_ways(one: str, other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one, other), (other, one)
