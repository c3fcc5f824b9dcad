"""Three and five voters: elections, fail-overs, partitions and power cuts; the rules of the quorum are checked."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from raft.quorum_world import MemoryFile, Node, World, topic

from heirlog.protocol.records import TopicRecord
from heirlog.raft.epoch_state import QuorumRole
from heirlog.raft.leader import NotLeader
from heirlog.raft.quorum_config import QuorumConfig

FAIL_OVER_LIMIT_MS = 15_000


def started(voters: int, seed: int = 1, drop: float = 0.0, observers: int = 0, **config: int) -> World:
    """config: of `QuorumConfig`."""
    world = World(observers=observers, seed=seed, drop=drop, voters=voters)
    for node in world.nodes:
        node.quorum_config = QuorumConfig(**config)
        node.start()
    return world


def active(world: World) -> list[Node]:
    """The nodes that may append: they lead, and their listeners have everything committed before."""
    return [node for node in world.controllers if node.incarnation.alive and node.quorum.is_leader]


def elected(world: World, epoch_above: int = -1) -> Node:
    def found() -> bool:
        return any(node.quorum.epoch > epoch_above for node in active(world))

    world.run_until(found, FAIL_OVER_LIMIT_MS)
    return max(active(world), key=lambda node: node.quorum.epoch)


def commit(world: World, leader: Node, name: str) -> None:
    offset = leader.quorum.append([topic(name)])
    world.run_until(lambda: leader.quorum.high_watermark > offset)


def roles(world: World) -> dict[int, QuorumRole]:
    return {node.id: node.quorum.state.role for node in world.controllers if node.quorum.state is not None}


@pytest.mark.parametrize("voters", [2, 3, 4, 5])
def test_voters_elect_one_leader_and_commit(voters: int) -> None:
    world = started(voters)
    leader = elected(world)
    commit(world, leader, "a")
    world.run_for(5_000)
    assert active(world) == [leader]
    assert leader.quorum.epoch == 1, "nothing disturbed it"
    assert all(node.seen.names == ["a"] for node in world.controllers)


def test_a_leader_without_new_records_flushes_nothing() -> None:
    world = started(3, observers=2)
    leader = elected(world)
    commit(world, leader, "a")
    world.run_for(5_000)
    flushed: list[str] = []
    flush = leader.disk.flush

    def counted(file: MemoryFile, on_flushed: Callable[[OSError | None], None]) -> None:
        flushed.append(file.path)
        flush(file, on_flushed)

    leader.disk.flush = counted  # type: ignore[method-assign]
    world.run_for(5_000)
    assert [path for path in flushed if path.endswith(".log")] == []
    commit(world, leader, "b")
    assert [path for path in flushed if path.endswith(".log")] != []


@pytest.mark.parametrize(("voters", "most_ms"), [(3, 2_200), (5, 2_300)])
@pytest.mark.parametrize("behind", [None, 0, 1])
def test_a_silent_leader_is_replaced_in_one_round_of_votes(voters: int, most_ms: int, behind: int | None) -> None:
    """The fetches of the followers end together, and one of them may lack the last record.

    Split votes took an election timeout more. It took more than 5 s when a voter was refused, and then refused the
    other one, whose log is shorter: both waited for an election timeout and a fetch timeout.
    """
    for seed in range(8):
        world = started(voters, seed)
        leader = elected(world)
        followers = [node for node in world.controllers if node is not leader]
        world.run_for(300 + 83 * seed)
        if behind is not None:
            world.cut.add((leader.id, followers[behind].id))
        leader.quorum.append([topic("last")])
        world.run_for(100 if behind == 1 else 20 + seed)
        world.isolate(leader)
        silent_from_ms = world.now_ms
        successor = elected(world, epoch_above=1)
        assert world.now_ms - silent_from_ms <= most_ms, seed
        assert successor.quorum.epoch == 2, "no votes were split"


def test_the_first_batch_names_who_voted() -> None:
    world = started(3)
    leader = elected(world)
    state = leader.quorum.state
    assert state is not None and state.voted == leader.voter.key
    assert len(leader.quorum.voters) == 3


@pytest.mark.parametrize("how", ["kill", "power cut", "partition"])
def test_a_lost_leader_is_replaced_and_what_was_committed_stays(how: str) -> None:
    world = started(3, observers=1)
    first = elected(world)
    commit(world, first, "a")
    epoch = first.quorum.epoch
    if how == "kill":
        first.kill()
    elif how == "power cut":
        first.power_cut()
    else:
        world.isolate(first)
    second = elected(world, epoch_above=epoch)
    assert second is not first
    commit(world, second, "b")
    if how == "partition":
        world.heal()
    else:
        first.start()
    world.run_until(lambda: all(node.seen.names == ["a", "b"] for node in world.nodes), FAIL_OVER_LIMIT_MS)
    assert active(world) == [second], "a leader that returns deposes nobody"


def test_a_killed_leader_is_replaced_without_its_timeouts() -> None:
    """Its port refuses connections: the others do not wait for the fetch timeout."""
    world = started(3)
    first = elected(world)
    commit(world, first, "a")
    world.run_for(3_000)
    killed_ms = world.now_ms
    first.kill()
    elected(world, epoch_above=first.quorum.epoch)
    assert world.now_ms - killed_ms < 500


@pytest.mark.parametrize("voters", [3, 5])
def test_voters_that_find_their_leader_gone_do_not_split_their_votes(voters: int) -> None:
    for seed in range(20):
        world = started(voters, seed=seed)
        first = elected(world)
        commit(world, first, "a")
        epoch, killed_ms = first.quorum.epoch, world.now_ms
        first.kill()
        second = elected(world, epoch_above=epoch)
        assert second.quorum.epoch == epoch + 1
        assert world.now_ms - killed_ms < 250


def test_a_leader_without_a_majority_resigns() -> None:
    world = started(3)
    first = elected(world)
    world.isolate(first)
    offset = first.quorum.append([topic("lost")])
    cut_ms = world.now_ms
    world.run_until(lambda: roles(world)[first.id] is QuorumRole.RESIGNED, 5_000)
    assert world.now_ms - cut_ms <= 3_000 + 600
    assert first.quorum.high_watermark <= offset
    with pytest.raises(NotLeader):
        first.quorum.append([topic("more")])
    second = elected(world, epoch_above=first.quorum.epoch)
    commit(world, second, "kept")
    world.heal()
    world.run_until(lambda: all(node.seen.names == ["kept"] for node in world.controllers), FAIL_OVER_LIMIT_MS)


def test_a_voter_that_was_cut_off_raises_no_epoch_when_it_returns() -> None:
    world = started(3)
    leader = elected(world)
    other = next(node for node in world.controllers if node is not leader)
    world.isolate(other)
    world.run_for(20_000)
    assert other.quorum.epoch == leader.quorum.epoch, "pre-votes raise no epoch"
    world.heal()
    world.run_for(5_000)
    assert active(world) == [leader]
    assert leader.quorum.epoch == 1


def test_a_voter_that_hears_nothing_and_is_heard_deposes_nobody() -> None:
    """A partition of one direction: its requests arrive, and their answers do not."""
    world = started(3)
    leader = elected(world)
    deaf = next(node for node in world.controllers if node is not leader)
    for node in world.controllers:
        world.cut.add((node.id, deaf.id))
    world.run_for(20_000)
    assert active(world) == [leader]
    assert leader.quorum.epoch == 1


def test_a_voter_with_a_shorter_log_is_not_elected() -> None:
    world = started(3)
    first = elected(world)
    behind = next(node for node in world.controllers if node is not first)
    world.isolate(behind)
    commit(world, first, "a")
    first.kill()
    world.heal()
    second = elected(world, epoch_above=first.quorum.epoch)
    assert second not in (first, behind)


def test_without_a_majority_nothing_is_elected_or_committed() -> None:
    world = started(3)
    first = elected(world)
    for node in world.controllers[:2]:
        node.kill()
    world.run_for(30_000)
    assert active(world) == []
    assert world.controllers[2].quorum.epoch <= first.quorum.epoch + 1


def test_all_voters_lose_power_and_return() -> None:
    world = started(3)
    commit(world, elected(world), "a")
    for node in world.controllers:
        node.power_cut()
    for node in world.controllers:
        node.start()
    commit(world, elected(world, epoch_above=1), "b")
    world.run_until(lambda: all(node.seen.names == ["a", "b"] for node in world.controllers), FAIL_OVER_LIMIT_MS)


@pytest.mark.parametrize("seed", range(30))
def test_chaos_loses_nothing_committed_and_no_epoch_has_two_leaders(seed: int) -> None:
    """Kills, power cuts, partitions of both kinds and lost messages; then everything heals, and all agree."""
    random = Random(seed)
    world = started(random.choice((3, 5)), seed=seed, drop=random.choice((0.0, 0.05)), observers=1)
    leaders: dict[int, int] = {}
    committed: list[str] = []
    appended: list[tuple[int, int, str]] = []

    def look() -> None:
        for node in world.controllers:
            state = node.quorum.state if node.incarnation.alive else None
            if state is not None and state.role is QuorumRole.LEADER:
                assert leaders.setdefault(state.epoch, node.id) == node.id

    for number in range(60):
        for _ in range(random.randrange(1, 40)):
            if world.has_events():
                world.step()
                look()
        for node in active(world):
            name = f"t{number}-{node.id}"
            offset = node.quorum.append([topic(name)])
            appended.append((node.id, offset, name))
        for node in world.controllers:
            if node.incarnation.alive:
                seen = [r.name for _, r in node.seen.records if isinstance(r, TopicRecord)]
                shorter = min(len(seen), len(committed))
                assert seen[:shorter] == committed[:shorter], "two nodes saw different records"
                committed += seen[shorter:]
        victim = random.choice(world.controllers)
        match random.randrange(0, 8):
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
            case _ if not victim.incarnation.alive:
                victim.start()
    world.heal()
    world.drop = 0.0
    for node in world.controllers:
        if not node.incarnation.alive:
            node.start()
    world.run_for(FAIL_OVER_LIMIT_MS)
    leader = elected(world)
    commit(world, leader, "last")
    world.run_until(lambda: all(node.seen.names[-1:] == ["last"] for node in world.nodes), FAIL_OVER_LIMIT_MS)
    for node in world.nodes:
        assert node.stopped_because is None
        assert node.seen.names[: len(committed)] == committed
        assert node.seen.names == leader.seen.names
