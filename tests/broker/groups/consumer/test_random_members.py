"""Members of both protocols in one group, in any order, and two of them may use the same instance id.

The coordinator moves, the feature is switched off and on, configurations change, and sessions end.
HEIRLOG_GROUP_RUNS=5000 plays more of it.

After each step no partition has two members, and no epoch is ahead of the one that it follows. In the end the next
coordinator knows the same, and two new members share all partitions.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.metadata.state import GROUP_RESOURCE, GROUP_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import Uuid

from ...fakes import answer_of
from .coordinating import Consumer, Coordinating
from .test_conversion import COOPERATIVE, EAGER, Classic

RUNS = int(os.environ.get("HEIRLOG_GROUP_RUNS", "60"))
INSTANCES = (None, None, "i1", "i2")
GONE = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND", "FENCED_INSTANCE_ID")
POLICIES = ("bidirectional", "bidirectional", "upgrade", "downgrade")
EVERYONE_IS_SILENT_MS = 200_000


class Play:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.partitions = self.rng.choice((1, 3, 6, 8))
        self.rig = Coordinating(partitions=self.partitions, group_consumer_migration_policy=self.rng.choice(POLICIES))
        self.epoch = 5
        self.consumers: list[Consumer] = []
        self.classics: list[Classic] = []
        self.names = 0

    @property
    def group(self) -> ConsumerGroup | None:
        """None: there is none, or it is a classic one."""
        shard = self.rig.broker.groups.shard_of("g")
        found = None if isinstance(shard, ErrorCode) else shard.groups.get("g")
        return found if isinstance(found, ConsumerGroup) else None

    def step(self) -> None:
        steps: dict[Callable[[], None], int] = {
            self.consumer_joins: 16,
            self.classic_joins: 12,
            self.consumer_beats: 34 if self.consumers else 0,
            self.classic_beats: 16 if self.classics else 0,
            self.consumer_leaves: 8 if self.consumers else 0,
            self.classic_leaves: 3 if self.classics else 0,
            self.time_passes: 4,
            self.coordinator_moves: 4,
            self.feature_changes: 2,
            self.topic_comes: 1,
            self.config_changes: 2,
        }
        self.rng.choices([*steps], [*steps.values()])[0]()

    def consumer_joins(self) -> None:
        self.names += 1
        subscription = self.rng.choice(({}, {}, {"subscribed_topic_names": None, "subscribed_topic_regex": "fo+"}))
        consumer = Consumer(self.rig, f"c{self.names}", self.rng.choice(INSTANCES), **subscription)
        if not consumer.join().isupper():
            self.consumers.append(consumer)

    def classic_joins(self) -> None:
        classic = Classic(self.rig, "", self.rng.choice((EAGER, COOPERATIVE)), self.rng.choice(INSTANCES))
        classic.join()
        self.rig.env.advance(1)
        classic.joined()
        self.classics.append(classic)

    def consumer_beats(self) -> None:
        consumer = self.rng.choice(self.consumers)
        if consumer.beat(owns=self.rng.random() < 0.7) in GONE:
            self.consumers.remove(consumer)

    def classic_beats(self) -> None:
        classic = self.rng.choice(self.classics)
        if classic.beat() == "REBALANCE_IN_PROGRESS":
            classic.join()
            self.rig.env.advance(1)
            classic.joined()
        if classic.generation >= 0 and not isinstance(self.group, ConsumerGroup):
            return  # a leader of a classic group would have to assign
        classic.sync()

    def consumer_leaves(self) -> None:
        consumer = self.consumers.pop(self.rng.randrange(len(self.consumers)))
        comes_back = consumer.instance is not None and self.rng.random() < 0.3
        answer_of(consumer.send(member_epoch=-2 if comes_back else -1))

    def classic_leaves(self) -> None:
        self.classics.pop(self.rng.randrange(len(self.classics))).leave()

    def time_passes(self) -> None:
        self.rig.env.advance(self.rng.choice((100, 5_000, 46_000, 70_000)))

    def coordinator_moves(self) -> None:
        for leader in (2, 1):
            self.epoch += 1
            self.rig.lead(self.epoch, leader=leader)
        for _ in range(5):
            self.rig.env.advance(5)

    def feature_changes(self) -> None:
        self.set_feature(self.rng.choice((0, 1, 1)))

    def set_feature(self, level: int) -> None:
        self.rig.image.set_feature(GROUP_VERSION, level, self.rig.journal)
        self.rig.publish()

    def topic_comes(self) -> None:
        self.rig.set_topic("bar", self.rng.choice((1, 2)))
        self.rig.publish()

    def config_changes(self) -> None:
        value = self.rng.choice(("45000", "60000", None))
        self.rig.image.set_config(GROUP_RESOURCE, "g", "consumer.session.timeout.ms", value, self.rig.journal)
        self.rig.publish()


def check(state: ConsumerGroupState) -> None:
    assert state.assignment_epoch <= state.epoch
    owners: dict[tuple[Uuid, int], str] = {}
    for member_id, current in state.currents.items():
        assert current.epoch <= state.assignment_epoch
        for held in (current.assigned, current.pending):
            for topic_id, numbers in held.items():
                for number in numbers:
                    other = owners.setdefault((topic_id, number), member_id)
                    assert other == member_id, f"{other} and {member_id} have partition {number}"


def shown(state: ConsumerGroupState) -> Any:
    return state.epoch, state.assignment_epoch, state.members, state.targets, state.currents


@pytest.mark.parametrize("seed", range(RUNS))
def test_whatever_members_do_a_group_stays_of_one_piece(seed: int) -> None:
    play = Play(seed)
    for _ in range(play.rng.randint(10, 60)):
        play.step()
        if play.group is not None:
            check(play.group.state)
    before = None if play.group is None or not play.group.exists else shown(play.group.committed)
    if before is not None:
        play.coordinator_moves()
        assert play.group is not None and shown(play.group.committed) == before
    play.set_feature(1)
    play.rig.env.advance(EVERYONE_IS_SILENT_MS)
    newcomers = [Consumer(play.rig, "z1"), Consumer(play.rig, "z2")]
    for newcomer in newcomers:
        newcomer.join()
    for _ in range(8):
        for newcomer in newcomers:
            assert not newcomer.beat(owns=True).isupper()
        play.rig.env.advance(1000)
    held = [number for newcomer in newcomers for numbers in newcomer.owned.values() for number in numbers]
    assert sorted(held) == list(range(play.partitions))
