"""How often a node writes down how far its metadata are committed, and what it remembers after which stop."""

from __future__ import annotations

import copy

import pytest

from heirlog.raft.committed_offset import NAME, WRITE_INTERVAL_MS, read_committed_offset, read_flushed_offset

from .quorum_world import MemoryDisk, Node, World, no_op, topic


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each time that a new file took its name."""
    found: list[str] = []
    rename = MemoryDisk.rename

    def noted(disk: MemoryDisk, source: str, target: str) -> None:
        if target.endswith(NAME):
            found.append(target)
        rename(disk, source, target)

    monkeypatch.setattr(MemoryDisk, "rename", noted)
    return found


def following() -> tuple[World, Node]:
    """An observer that has nothing left to write."""
    world = World(observers=1)
    world.start()
    world.commit("first")
    world.run_until_all_have("first")
    world.run_for(WRITE_INTERVAL_MS + 50)
    return world, world.observers[0]


def commit_no_op(world: World) -> None:
    offset = world.leader.quorum.append([no_op()])
    world.run_until(lambda: world.observers[0].quorum.applied_offset >= offset)


def in_file(node: Node) -> int:
    return read_committed_offset(node.disk, node.log_directory)


def test_an_idle_cluster_writes_nothing(writes: list[str]) -> None:
    world, _ = following()
    writes.clear()
    for _ in range(20):
        commit_no_op(world)
        world.run_for(500)
    assert writes == []


def test_a_burst_of_changes_writes_once_a_second(writes: list[str]) -> None:
    world, observer = following()
    writes.clear()
    began_ms = world.now_ms
    for number in range(200):
        world.commit(f"t{number}")
        world.run_for(10)
    world.run_for(WRITE_INTERVAL_MS + 50)
    seconds = (world.now_ms - began_ms) / 1_000
    assert 2 * 2 <= len(writes) <= 2 * (seconds + 1), "by the leader and by its observer"
    assert in_file(observer) == in_file(world.leader) == world.leader.quorum.high_watermark


def test_one_change_after_a_quiet_second_survives_a_power_cut() -> None:
    world, observer = following()
    commit_no_op(world)
    world.commit("a")
    world.run_until_all_have("first", "a")
    world.run_for(50)
    observer.power_cut()
    assert in_file(observer) == world.leader.quorum.high_watermark


def burst(world: World) -> int:
    """Two changes, the second one too soon to be written; the offset that the file says."""
    world.commit("a")
    world.run_until_all_have("first", "a")
    world.run_for(50)
    written = in_file(world.observers[0])
    world.commit("b")
    world.run_until_all_have("first", "a", "b")
    world.run_for(50)
    assert in_file(world.observers[0]) == written < world.leader.quorum.high_watermark
    return written


def test_a_clean_stop_remembers_everything() -> None:
    world, observer = following()
    burst(world)
    stopped: list[None] = []
    observer.quorum.shutdown(lambda: stopped.append(None))
    world.run_until(lambda: bool(stopped))
    assert in_file(observer) == world.leader.quorum.high_watermark


def restore(world: World, kept: MemoryDisk) -> None:
    world.leader.disk.now = kept.now
    world.leader.disk.durable = dict(kept.now)
    world.start_leader()


def copy_of(node: Node) -> MemoryDisk:
    disk = MemoryDisk(node.world)
    disk.now = copy.deepcopy(node.disk.now)
    return disk


def test_a_node_that_refused_older_metadata_refuses_them_at_its_next_start_as_well() -> None:
    world, observer = following()
    world.commit("a")
    world.run_until_all_have("first", "a")
    world.run_for(50)
    kept = copy_of(world.leader)
    world.commit("b")
    world.run_until_all_have("first", "a", "b")
    world.leader.kill()
    restore(world, kept)
    for _ in range(2):
        world.run_until(lambda: observer.stopped_because is not None)
        assert "older than this broker's own copy" in str(observer.stopped_because)
        observer.start()


def test_a_node_that_crashed_within_a_second_of_a_change_follows_a_controller_that_lacks_only_that() -> None:
    world, observer = following()
    world.commit("a")
    world.run_until_all_have("first", "a")
    world.run_for(50)
    kept = copy_of(world.leader)
    world.commit("b")
    world.run_until_all_have("first", "a", "b")
    observer.power_cut()
    world.leader.kill()
    restore(world, kept)
    observer.start()
    world.commit("c")
    world.run_until_all_have("first", "a", "c")
    assert observer.stopped_because is None
    assert any(event == "metadata-log-truncated" for _, _, event, _ in world.logged), "cut, and said so"


@pytest.mark.parametrize("damage", ["flipped bit", "missing end", "committed-offset"])
def test_a_voter_that_lost_what_it_had_flushed_does_not_vote_again(damage: str) -> None:
    world = World(voters=3)
    for node in world.nodes:
        node.start()
    world.run_until(lambda: any(node.quorum.is_leader for node in world.controllers))
    leader = next(node for node in world.controllers if node.quorum.is_leader)
    for name in "abcdef":
        leader.quorum.append([topic(name)])
    end = leader.quorum.log.end_offset
    world.run_until(lambda: leader.quorum.high_watermark >= end)
    world.run_for(2 * WRITE_INTERVAL_MS)
    follower = next(node for node in world.controllers if node is not leader)
    assert 0 < (read_flushed_offset(follower.disk, follower.log_directory) or 0) <= follower.quorum.log.end_offset
    follower.power_cut()
    log = follower.disk.now[f"{follower.log_directory}/{0:020d}.log"].data
    if damage == "committed-offset":
        follower.disk.now[f"{follower.log_directory}/{NAME}"].data[5] ^= 1
    elif damage == "flipped bit":
        log[len(log) // 2] ^= 1
    else:
        del log[len(log) // 2 :]
    follower.start()
    world.run_until(lambda: follower.stopped_because is not None)
    assert "is damaged" in str(follower.stopped_because) and "Replace a dead controller" in str(
        follower.stopped_because
    )


@pytest.mark.parametrize("damage", [b"", b"{", b'{"version":1,"offset":7}', b'{"version":0,"offset":"x"}', b"[]"])
def test_a_damaged_file_says_nothing_of_what_an_observer_knows(damage: bytes) -> None:
    _, observer = following()
    observer.disk.now[f"{observer.log_directory}/{NAME}"].data[:] = damage
    assert in_file(observer) == 0
