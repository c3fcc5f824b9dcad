"""A controller that was restored from an older copy, or formatted anew, seen by nodes that know more.

What a node knows to be committed is cut, or overwritten, on nobody's word. Records that were never committed are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from heirlog.local.format import Disk
from heirlog.raft.committed_offset import NAME, WRITE_INTERVAL_MS
from heirlog.raft.older_metadata import mark_registered, unregistered_copies

from .quorum_world import Inode, MemoryFile, Node, World

OLDER = "older than this broker's own copy"
REMEMBERED_MS = WRITE_INTERVAL_MS + 50
"""After it a crash forgets nothing of what was known to be committed."""


class Backup(NamedTuple):
    files: dict[str, Inode]


def backup(node: Node) -> Backup:
    return Backup(copy.deepcopy(node.disk.now))


def restore(world: World, kept: Backup) -> None:
    """Stop the leader, put the copy in the place of its folder, start it."""
    world.leader.kill()
    world.run_for(20)
    replace_log(world.leader, kept)
    world.start_leader()


def lead(world: World, controllers: Sequence[Node]) -> None:
    world.run_until(lambda: any(node.quorum.is_leader for node in controllers))
    world.leader = next(node for node in controllers if node.quorum.is_leader)


def replace_log(node: Node, kept: Backup) -> None:
    if node.incarnation.alive:
        node.kill()
    node.disk.now = copy.deepcopy(kept.files)
    node.disk.durable = dict(node.disk.now)
    for inode in node.disk.now.values():
        inode.durable = bytes(inode.data)


def metadata(node: Node) -> dict[str, bytes]:
    return {
        path: bytes(inode.data)
        for path, inode in node.disk.now.items()
        if path.endswith((".log", ".checkpoint", NAME)) or "epoch" in path
    }


def world_with(*names: str) -> World:
    world = World(observers=1)
    world.start()
    for name in names:
        world.commit(name)
    world.run_until_all_have(*names)
    world.run_for(REMEMBERED_MS)
    return world


def assert_refused(observer: Node, world: World, before: dict[str, bytes]) -> None:
    world.run_until(lambda: observer.stopped_because is not None)
    world.run_for(5_000)
    assert observer.stopped_because is not None and OLDER in observer.stopped_because
    assert "recover controller" in observer.stopped_because and "--accept-older-metadata" in observer.stopped_because
    assert metadata(observer) == before, "nothing is cut, and nothing is applied"
    assert any(event == "controller-metadata-older" for _, _, event, _ in world.logged)


def while_running(observer: Node) -> None:
    """It meets the restored controller as it is."""


def after_a_restart(observer: Node) -> None:
    observer.kill()


def after_a_power_cut(observer: Node) -> None:
    observer.power_cut()


meeting = pytest.mark.parametrize("meets", [while_running, after_a_restart, after_a_power_cut])


@meeting
@pytest.mark.parametrize("grows_by", [0, 1, 2, 3, 10])
def test_a_controller_restored_from_an_older_copy_is_refused_however_long_its_log_is_by_then(
    meets: Callable[[Node], None], grows_by: int
) -> None:
    """It opens the epoch that its lost successor had, so neither epochs nor lengths tell the two histories apart."""
    world = World(observers=1)
    world.start()
    observer = world.observers[0]
    world.commit("a")
    kept = backup(world.leader)
    world.leader.kill()
    world.start_leader()
    world.commit("b")
    world.commit("c")
    world.run_until_all_have("a", "b", "c")
    world.run_for(REMEMBERED_MS)
    assert world.leader.quorum.epoch == 2
    before = metadata(observer)
    meets(observer)
    endpoint_is_away = world.drop
    world.drop = 1.0
    restore(world, kept)
    for number in range(grows_by):
        world.commit(f"other-{number}")
    world.drop = endpoint_is_away
    assert world.leader.quorum.epoch == 2
    if not observer.incarnation.alive:
        observer.start()
    assert_refused(observer, world, before)


@pytest.mark.parametrize("led", [False, True], ids=["a follower", "the leader"])
def test_a_controller_refuses_a_majority_that_was_restored_from_older_copies(led: bool) -> None:
    """And advises what keeps the committed metadata that only it has."""
    world = World(voters=3)
    for node in world.nodes:
        node.start()
    lead(world, world.controllers)
    world.commit("a")
    world.run_until_all_have("a")
    world.run_for(REMEMBERED_MS)
    kept = [backup(node) for node in world.controllers]
    world.commit("b")
    world.run_until_all_have("a", "b")
    world.run_for(REMEMBERED_MS)
    newest = next(node for node in world.controllers if (node is world.leader) is led)
    others = [node for node in world.controllers if node is not newest]
    for node, older in zip(world.controllers, kept, strict=True):
        if node is not newest:
            replace_log(node, older)
    newest.kill()
    for node in others:
        node.start()
    lead(world, others)
    world.commit("other")
    newest.start()
    world.run_until(lambda: newest.stopped_because is not None)
    said = str(newest.stopped_because)
    assert "older than this controller's own copy" in said and "--majority-lost" in said
    assert "--accept-older-metadata" not in said, "that is for brokers"


@meeting
def test_a_controller_that_leads_an_older_epoch_is_refused(meets: Callable[[Node], None]) -> None:
    world = world_with("a")
    kept = backup(world.leader)
    for _ in range(3):
        world.leader.kill()
        world.run_for(3_000)
        world.start_leader()
    world.commit("b")
    world.run_until_all_have("a", "b")
    world.run_for(REMEMBERED_MS)
    observer, before = world.observers[0], metadata(world.observers[0])
    meets(observer)
    restore(world, kept)
    assert world.leader.quorum.epoch == 2
    if not observer.incarnation.alive:
        observer.start()
    assert_refused(observer, world, before)


@meeting
@pytest.mark.parametrize("grows_by", [0, 2, 5])
def test_a_controller_that_was_formatted_anew_is_refused(meets: Callable[[Node], None], grows_by: int) -> None:
    world = world_with("a", "b")
    observer, before = world.observers[0], metadata(world.observers[0])
    meets(observer)
    world.leader.kill()
    world.drop = 1.0
    world.run_for(20)
    world.leader.disk.now, world.leader.disk.durable = {}, {}
    world.format()
    world.start_leader()
    for number in range(grows_by):
        world.commit(f"other-{number}")
    world.drop = 0.0
    if not observer.incarnation.alive:
        observer.start()
    assert_refused(observer, world, before)


def snapshot_of(world: World) -> None:
    """The leader, and each observer, write down what was committed."""
    for node in (world.leader, *world.observers):
        quorum = node.quorum
        records = [record for batch in node.seen.batches for record in batch.records]
        assert quorum.log is not None
        epoch = quorum.log.epoch_below(quorum.applied_offset + 1)
        quorum.snapshot(records, quorum.applied_offset, epoch)
    world.run_for(50)


@meeting
def test_a_controller_restored_from_a_snapshot_alone_is_refused_where_it_ends_too_early(
    meets: Callable[[Node], None],
) -> None:
    world = world_with("a", "b")
    snapshot_of(world)
    kept = Backup({path: inode for path, inode in backup(world.leader).files.items() if path.endswith(".checkpoint")})
    world.commit("c")
    world.run_until_all_have("a", "b", "c")
    world.run_for(REMEMBERED_MS)
    observer, before = world.observers[0], metadata(world.observers[0])
    meets(observer)
    restore(world, kept)
    if not observer.incarnation.alive:
        observer.start()
    assert_refused(observer, world, before)


def test_a_snapshot_that_reaches_beyond_what_an_observer_has_is_taken() -> None:
    world = World(observers=1, max_retention_bytes=1)
    world.start()
    world.commit("a")
    world.run_until_all_have("a")
    world.observers[0].kill()
    for number in range(5):
        world.commit(f"later-{number}")
    for _ in range(3):
        world.commit("more")
        quorum = world.leader.quorum
        records = [record for batch in world.leader.seen.batches for record in batch.records]
        quorum.snapshot(records, quorum.applied_offset, quorum.epoch)
        world.run_for(50)
    world.observers[0].start()
    world.run_until(lambda: world.observers[0].quorum.applied_offset == world.leader.quorum.applied_offset)
    assert world.observers[0].stopped_because is None


def test_an_observer_does_not_vouch_for_a_leader_that_it_has_not_compared() -> None:
    world = world_with("a")
    observer = world.observers[0]
    assert observer.quorum.agrees and world.leader.quorum.agrees
    world.leader.kill()
    world.run_until(lambda: not observer.quorum.agrees)
    world.start_leader()
    world.run_until(lambda: observer.quorum.agrees)
    assert observer.stopped_because is None


def test_an_observer_stops_whose_disk_fails_as_it_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with("a")
    observer = world.observers[0]
    world.leader.kill()
    world.run_until(lambda: not observer.quorum.agrees)
    read = MemoryFile.pread

    def pread(file: MemoryFile, size: int, position: int) -> bytes:
        if file.inode is observer.disk.now.get(file.path) and file.path.endswith(".log"):
            raise OSError(5, "input/output error")
        return read(file, size, position)

    monkeypatch.setattr(MemoryFile, "pread", pread)
    world.start_leader()
    world.run_until(lambda: observer.stopped_because is not None)
    assert "could not be read or written" in str(observer.stopped_because)


@pytest.mark.parametrize("damage", ["a record", "a header", "cut"])
def test_an_observer_stops_whose_last_committed_batch_is_damaged(damage: str) -> None:
    world = world_with("a")
    observer = world.observers[0]
    world.leader.kill()
    world.run_until(lambda: not observer.quorum.agrees)
    log = observer.disk.now[f"{observer.log_directory}/{0:020d}.log"].data
    if damage == "a record":
        log[-1] ^= 1
    elif damage == "a header":
        log[:] = bytes(len(log))
    else:
        del log[:]
    world.start_leader()
    world.run_until(lambda: observer.stopped_because is not None)
    assert "the metadata log is damaged" in str(observer.stopped_because)
    assert f"Move {observer.log_directory} away" in str(observer.stopped_because)


def test_a_copy_counts_as_unregistered_until_it_is_marked(tmp_path: Path) -> None:
    """Killed before that, the node must register once more as one that accepted older metadata."""
    with Disk() as disk:
        assert unregistered_copies(disk.files, str(tmp_path / "missing")) == []
        for name in ("__cluster_metadata-0", "__cluster_metadata-0.0a-stray", "orders-0.0b-stray"):
            (tmp_path / name).mkdir()
        path = f"{tmp_path}/__cluster_metadata-0.0a-stray"
        assert unregistered_copies(disk.files, str(tmp_path)) == [path]
        disk.wait(lambda done: mark_registered(disk.files, path, done), "marking")
        assert unregistered_copies(disk.files, str(tmp_path)) == []


@pytest.mark.parametrize("led", [False, True], ids=["a follower", "the leader"])
def test_a_voter_whose_disk_lost_what_was_committed_and_flushed_does_not_vote(led: bool) -> None:
    world = World(voters=3)
    for node in world.nodes:
        node.start()
    lead(world, world.controllers)
    world.commit("a")
    world.run_until_all_have("a")
    world.run_for(REMEMBERED_MS)
    before = backup(world.leader)
    world.commit("b")
    world.run_until_all_have("a", "b")
    world.run_for(REMEMBERED_MS)
    damaged = next(node for node in world.controllers if (node is world.leader) is led)
    damaged.kill()
    for path, inode in damaged.disk.now.items():
        if path.endswith(".log"):
            del inode.data[len(before.files[path].data) :]
    damaged.start()
    world.run_until(lambda: damaged.stopped_because is not None, 5_000)
    assert "committed and flushed" in str(damaged.stopped_because)
