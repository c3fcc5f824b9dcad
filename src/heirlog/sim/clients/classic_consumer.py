"""A member of the classic protocol in a group that may have members of the consumer protocol too (KIP-848).

It speaks Kafka's formats, so that a coordinator can take it over when the group is upgraded. It gives up everything
before it joins again ("eager"), and each answer that assigns partitions begins new terms (`consumer_group_history.py`).
Now and then it leaves and comes back, or falls silent for longer than its session and continues to commit: that must be
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from heirlog.client import assignment
from heirlog.client.assignment import AssignmentStrategy
from heirlog.client.groups import GroupMember
from heirlog.protocol.consumer_protocol import CONSUMER, OwnedPartitions, assigned_partitions
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.member import REBALANCE_MS, SESSION_MS, Member
from heirlog.sim.consumer_group_history import ConsumerGroupHistory, Term
from heirlog.sim.env import SimEnv

STRATEGIES = [AssignmentStrategy.RANGE]


class ClassicConsumer(Member):
    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topic: str,
        group_history: ConsumerGroupHistory,
        now_ms: Callable[[], int],
        also: Sequence[str] = (),
    ) -> None:
        """also: topics that it subscribes to and leaves alone."""
        self._subscribed = [topic, *also]
        super().__init__(env, name, bootstrap, topic, group_history, now_ms)
        self._consumer_history = group_history
        self._terms: dict[int, Term] = {}
        self._settled = False

    def _new_membership(self) -> GroupMember:
        return GroupMember(
            self.group_history.group,
            protocol_type=CONSUMER,
            protocols=lambda: assignment.member_metadata(STRATEGIES, self._subscribed, OwnedPartitions()),
            assign=self._assign_partitions,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )

    @property
    def epoch(self) -> int:
        """In a group of the consumer protocol its generation is its epoch."""
        return self.generation

    @property
    def has(self) -> list[int]:
        return sorted(self._terms)

    def settle_down(self) -> None:
        """Stay in the group from now on."""
        self._settled = True

    def _assign_partitions(self, strategy: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        counts = {topic: len(known.partitions) for topic, known in self.cluster.view.topics.items()}
        return assignment.assign(strategy, members, counts)

    def _assigned(self) -> tuple[int, ...]:
        membership, tick = self._membership, self.group_history.tick()
        mine = assigned_partitions(membership.assignment).get(self.topic, [])
        self._terms = {index: Term(index, membership.member_id, tick, self._now_ms()) for index in mine}
        return tuple(mine)

    def _committing(self, index: int, token: str) -> None:
        self._consumer_history.term_of[token] = self._terms[index]

    def _membership_ended(self) -> None:
        super()._membership_ended()
        self._terms = {}

    def _leave(self) -> None:
        if self._settled:
            return
        if self.env.random.randrange(0, 3):
            super()._leave()
        else:
            self._fall_silent()
