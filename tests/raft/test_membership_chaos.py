"""Voters come and go while nodes crash, lose power and are cut off: the rules of the quorum hold all the time.

The rules:

    Q1   one leader per epoch                                  Q5, Q8   nothing committed is lost or changed
    Q6   committed is what a majority of the leader's latest set has flushed
    Q11  two neighbouring sets differ by one voter at most     Q12  no change before the one before is committed
    Q13  a node that is not in its own latest set campaigns only while its removal may not be committed
"""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.records import TopicRecord
from heirlog.raft.epoch_state import QuorumRole
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.voter_history import changed_voters
from heirlog.raft.votes import majority

from .quorum_world import Node, World, add_request, remove_request, topic
from .test_elections import active, commit, elected, started

CONTROLLERS_MAX = 6
HEAL_LIMIT_MS = 20_000
CAMPAIGNING = (QuorumRole.PROSPECTIVE, QuorumRole.CANDIDATE)


class Watcher:
    """Looks at all controllers after each event."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leaders: dict[int, ReplicaKey] = {}
        self._exposed: dict[tuple[int, int], int] = {}
        self._committed_offset = 0
        self._last_voters: dict[int, int] = {}
        self.committed: list[str] = []
        self.sizes: set[int] = set()
        """Of the sets that were in force."""

    def look(self) -> None:
        for node in self._world.controllers:
            state = node.quorum.state if node.incarnation.alive else None
            if state is None:
                continue
            if state.role is QuorumRole.LEADER:
                assert self._leaders.setdefault(state.epoch, node.voter.key) == node.voter.key
                self._look_at_leader(node, state.epoch)
            if state.role in CAMPAIGNING:
                self._check_candidate(node)

    def _check_candidate(self, node: Node) -> None:
        log = node.quorum.log
        removed = None if log is None else log.removed_voter(node.voter.key)
        if removed is None:
            assert node.voter.key in {voter.key for voter in node.quorum.voters}
        else:
            assert removed.offset >= node.quorum.high_watermark, "it knows that its removal is committed"

    def _look_at_leader(self, node: Node, epoch: int) -> None:
        leader: Any = node.quorum._role
        log = node.quorum.log
        if leader is None or log is None:
            return
        if log.voters_offset > self._last_voters.get(epoch, -1):
            is_first = epoch not in self._last_voters
            before = self._last_voters.get(epoch, -1)
            self._last_voters[epoch] = log.voters_offset
            self.sizes.add(len(log.voters))
            assert is_first or before < self._committed_offset, "a change before the one before is committed"
        if leader.high_watermark > self._exposed.get((node.id, epoch), -1):
            self._exposed[node.id, epoch] = leader.high_watermark
            self._committed_offset = max(self._committed_offset, leader.high_watermark)
            self._check_majority(node, leader.high_watermark)

    def _check_majority(self, leader: Node, committed: int) -> None:
        keys = {voter.key for voter in leader.quorum.voters}
        flushed = [n for n in self._world.controllers if n.voter.key in keys and n.quorum.flushed_offset >= committed]
        assert len(flushed) >= majority(len(keys)), f"{committed} is on {[n.id for n in flushed]} of {keys}"

    def compare(self) -> None:
        for node in self._world.controllers:
            if node.incarnation.alive:
                seen = [r.name for _, r in node.seen.records if isinstance(r, TopicRecord)]
                shorter = min(len(seen), len(self.committed))
                assert seen[:shorter] == self.committed[:shorter], "two nodes saw different records"
                self.committed += seen[shorter:]
            log = node.quorum.log
            if log is not None:
                sets = [known.voters for known in log._voter_history._sets]
                assert all(changed_voters(*pair) <= 1 for pair in pairwise(sets) if pair[0])


class Operator:
    """Sends changes to whoever leads, and remembers how they ended. It loses no disk that is still needed."""

    def __init__(self, world: World, random: Random) -> None:
        self._world, self._random = world, random
        self._answers: list[list[Any]] = []

    @property
    def codes(self) -> list[ErrorCode]:
        return [ErrorCode(found[0].error_code) for found in self._answers if found]

    def change(self) -> None:
        leaders = active(self._world)
        if not leaders:
            return
        leader = self._random.choice(leaders)
        lost = self._lost(leader)
        victim = self._random.choice(self._world.controllers)
        keys = {voter.key for voter in leader.quorum.voters}
        if lost:
            id_, directory_id = lost[0]
            request: Any = remove_request(victim, voter_id=id_, voter_directory_id=directory_id)
        elif victim.voter.key in keys:
            request = remove_request(victim)
        else:
            request = add_request(victim, ack_when_committed=self._random.random() < 0.5)
        self._answers.append(self._world.ask(leader, request))

    def replace_disk(self) -> None:
        leaders = active(self._world)
        victim = self._random.choice(self._world.controllers)
        if len(leaders) != 1 or victim in leaders or len(leaders[0].quorum.voters) < 3 or self._lost(leaders[0]):
            return
        leader: Any = leaders[0].quorum._role
        if leader.changes._change is None and leaders[0].quorum.log.voters_offset < leader.high_watermark:
            victim.replace_disk()
            victim.configured = [victim.voter]
            victim.start()

    def _lost(self, leader: Node) -> list[ReplicaKey]:
        intact = {node.voter.key for node in self._world.controllers}
        return [voter.key for voter in leader.quorum.voters if voter.key not in intact]


@pytest.mark.parametrize("seed", range(30))
def test_changes_of_the_voters_lose_nothing_and_split_nothing(seed: int) -> None:
    random = Random(seed)
    world = started(random.choice((1, 2, 3)), seed=seed, drop=random.choice((0.0, 0.03)), observers=1)
    watcher, operator = Watcher(world), Operator(world, random)
    for number in range(80):
        for _ in range(random.randrange(1, 60)):
            if world.has_events():
                world.step()
                watcher.look()
        for node in active(world):
            node.quorum.append([topic(f"t{number}-{node.id}")])
        watcher.compare()
        victim = random.choice(world.controllers)
        match random.randrange(0, 16):
            case 0 if victim.incarnation.alive:
                victim.kill()
            case 1 if victim.incarnation.alive:
                victim.power_cut(random)
            case 2:
                world.isolate(victim)
            case 3:
                world.cut.add((victim.id, random.choice(world.controllers).id))
            case 4 | 5:
                world.heal()
            case 6 if len(world.controllers) < CONTROLLERS_MAX:
                world.join()
            case 7:
                operator.replace_disk()
            case 8 | 9 | 10 | 11 | 12:
                operator.change()
            case _ if not victim.incarnation.alive:
                victim.start()
    world.heal()
    world.drop = 0.0
    for node in world.controllers:
        if not node.incarnation.alive:
            node.start()
    end_ms = world.now_ms + HEAL_LIMIT_MS
    while world.now_ms < end_ms:
        world.step()
        watcher.look()
    leader = elected(world)
    commit(world, leader, "last")
    world.run_until(lambda: all(node.seen.names[-1:] == ["last"] for node in world.nodes), HEAL_LIMIT_MS)
    watcher.compare()
    for node in world.nodes:
        assert node.stopped_because is None
        assert node.seen.names[: len(watcher.committed)] == watcher.committed
        assert node.seen.names == leader.seen.names
        assert node.quorum.voters == leader.quorum.voters or not node.is_voter
    SEEN.update(operator.codes)
    SIZES.update(watcher.sizes)


SEEN: set[ErrorCode] = set()
SIZES: set[int] = set()


def test_the_seeds_changed_something() -> None:
    assert {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT} <= SEEN
    assert len(SIZES) >= 4
