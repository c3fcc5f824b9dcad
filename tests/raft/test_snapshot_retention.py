"""How much of the log and its snapshots is kept: the rule, and the rule at work on a leader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raft.quorum_world import World, topic
from raft.test_fetch_service import ask_snapshot

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.primitives import records_view
from heirlog.raft.control import encode_controls, voters_record
from heirlog.raft.snapshot import BOOTSTRAP, SnapshotId
from heirlog.raft.snapshot_retention import shorten

NO_LIMIT = -1
MINUTE_MS = 60_000


@dataclass
class FakeLog:
    """Ten bytes for each offset of the log, and a hundred for each snapshot."""

    snapshots: list[SnapshotId]
    end_offset: int = 50
    start_offset: int = 0
    starts: list[int] = field(default_factory=list)

    def size_with_snapshots(self) -> int:
        return 10 * (self.end_offset - self.start_offset) + 100 * len(self.snapshots)

    def last_contained_ms(self, snapshot_id: SnapshotId) -> int:
        return snapshot_id.end_offset * 1_000

    def start_at_snapshot(self, snapshot_id: SnapshotId) -> None:
        self.start_offset = snapshot_id.end_offset
        self.snapshots = self.snapshots[self.snapshots.index(snapshot_id) :]
        self.starts.append(self.start_offset)


def log_with(*end_offsets: int) -> FakeLog:
    return FakeLog([SnapshotId(end, 1) for end in end_offsets])


def test_the_oldest_snapshots_go_until_the_rest_is_small_enough() -> None:
    log = log_with(10, 20, 30, 40)
    assert log.size_with_snapshots() == 900
    shorten(log, 50, 500, NO_LIMIT, 0)
    assert log.starts == [20, 30]
    assert log.size_with_snapshots() == 400


def test_exactly_the_limit_is_not_too_much() -> None:
    log = log_with(10, 20, 30, 40)
    shorten(log, 50, 900, NO_LIMIT, 0)
    assert log.starts == []


def test_the_newest_snapshot_is_kept_whatever_its_size_and_age() -> None:
    log = log_with(10, 20)
    shorten(log, 50, 0, 0, 10**9)
    assert log.snapshots == [SnapshotId(20, 1)]
    shorten(log, 50, 0, 0, 10**9)
    assert log.starts == [20]


def test_snapshots_whose_last_record_is_too_old_go() -> None:
    log = log_with(10, 20, 30)
    shorten(log, 50, NO_LIMIT, 5_000, 25_001)
    assert log.starts == [20, 30]
    other = log_with(10, 20, 30)
    shorten(other, 50, NO_LIMIT, 5_000, 25_000)
    assert other.starts == [20]


def test_the_log_start_never_passes_the_high_watermark() -> None:
    log = log_with(10, 20, 30)
    shorten(log, 29, 0, NO_LIMIT, 0)
    assert log.starts == [20]


def test_without_limits_everything_is_kept() -> None:
    log = log_with(10, 20, 30)
    shorten(log, 50, NO_LIMIT, NO_LIMIT, 10**12)
    assert log.starts == []


# at work


def commit_and_write(world: World, count: int) -> None:
    """`count` snapshots, with a commit before each."""
    quorum = world.leader.quorum
    for _ in range(count):
        offset = world.commit("t")
        world.run_until(lambda end=offset: quorum.applied_offset >= end)  # type: ignore[misc]
        last = world.leader.seen.batches[-1]
        assert quorum.snapshot([topic("t")], last.last_offset, last.epoch)
        world.run_until(lambda end=last.last_offset + 1: quorum.log.snapshots[-1].end_offset == end)  # type: ignore[misc]


def names(world: World, suffix: str) -> list[str]:
    return [name for name in world.leader.disk.list(world.leader.log_directory) if name.endswith(suffix)]


def test_within_its_limits_a_leader_keeps_all_snapshots_and_its_whole_log() -> None:
    world = World()
    world.start_leader()
    commit_and_write(world, 4)
    world.run_for(10 * MINUTE_MS)
    assert len(names(world, ".checkpoint")) == 5, "the bootstrap one included"
    assert world.leader.quorum.log.start_offset == 0


def test_a_leader_over_its_limit_keeps_the_newest_snapshot_and_the_log_from_its_end() -> None:
    world = World(max_retention_bytes=1)
    world.start_leader()
    commit_and_write(world, 3)
    log = world.leader.quorum.log
    assert [snapshot.file_name for snapshot in log.snapshots] == names(world, ".checkpoint")
    assert len(log.snapshots) == 1
    assert log.start_offset == log.snapshots[0].end_offset


def test_old_snapshots_go_though_nothing_is_written_meanwhile() -> None:
    world = World(max_retention_ms=5 * MINUTE_MS)
    world.start_leader()
    commit_and_write(world, 2)
    world.run_for(4 * MINUTE_MS)
    assert world.leader.quorum.log.snapshots[0] == BOOTSTRAP
    world.run_for(3 * MINUTE_MS)
    assert len(names(world, ".checkpoint")) == 1


def test_a_reader_of_a_removed_snapshot_finishes_its_piece_and_its_next_request_is_refused() -> None:
    world = World(max_retention_bytes=1)
    world.start_leader()
    commit_and_write(world, 1)
    old = world.leader.quorum.log.snapshots[-1]
    content = bytes(world.leader.disk.now[f"{world.leader.log_directory}/{old.file_name}"].data)
    piece = ask_snapshot(world, old.end_offset, old.epoch, 0, max_bytes=1 << 20)
    commit_and_write(world, 1)
    assert ask_snapshot(world, old.end_offset, old.epoch, 10).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert names(world, ".deleted") == [
        "00000000000000000000-0000000000.checkpoint.deleted",
        f"{old.file_name}.deleted",
    ]
    assert bytes(records_view(piece.unaligned_records)) == content
    world.run_for(MINUTE_MS)
    assert names(world, ".deleted") == []


def test_pieces_of_two_snapshots_are_served_at_the_same_time() -> None:
    world = World()
    world.start_leader()
    commit_and_write(world, 2)
    _, older, newer = world.leader.quorum.log.snapshots
    files = [world.leader.disk.now[f"{world.leader.log_directory}/{one.file_name}"] for one in (older, newer)]
    pieces = [ask_snapshot(world, one.end_offset, one.epoch, 0, max_bytes=1 << 20) for one in (older, newer)]
    # an answer may wait for others on its connection
    assert [bytes(records_view(piece.unaligned_records)) for piece in pieces] == [bytes(file.data) for file in files]


def test_a_removed_snapshot_that_was_not_unlinked_before_a_stop_is_unlinked_at_the_start() -> None:
    world = World(max_retention_bytes=1)
    world.start_leader()
    commit_and_write(world, 2)
    assert names(world, ".deleted")
    world.leader.kill()
    world.start_leader()
    assert names(world, ".deleted") == []


def test_a_snapshot_below_the_log_start_is_removed_at_the_start() -> None:
    world = World(max_retention_bytes=1, segment_bytes=200)
    world.start_leader()
    commit_and_write(world, 3)
    kept = names(world, ".checkpoint")
    world.leader.kill()
    disk, directory = world.leader.disk, world.leader.log_directory
    disk.now[f"{directory}/{BOOTSTRAP.file_name}"] = disk.now[f"{directory}/{kept[-1]}"]
    world.start_leader()
    assert names(world, ".checkpoint") == kept


def test_voters_of_before_the_log_start_are_forgotten_and_those_in_force_there_are_kept() -> None:
    world = World(max_retention_bytes=1)
    world.start_leader()
    world.commit("a")
    log = world.leader.quorum.log
    (voter,) = log.voters
    for _ in range(2):
        log.append(encode_controls([voters_record([voter])], log.end_offset, log.end.epoch, 0), log.end.epoch)
    history: Any = log._voter_history
    assert len(history._sets) == 4, "the base, the leader's first batch, and two more"
    commit_and_write(world, 2)
    assert len(history._sets) == 1
    assert log.voters == (voter,)
