"""Snapshot files, and what starts from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from raft.quorum_world import METADATA_DIR, MemoryFile, World, topic
from raft.test_elections import commit, elected

from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import FeatureLevelRecord
from heirlog.protocol.types import BrokerId, Endpoint, Uuid
from heirlog.raft.bootstrap import read_bootstrap_records, write_bootstrap_records
from heirlog.raft.control import Voter, encode_controls, voters_record
from heirlog.raft.snapshot import BOOTSTRAP, InvalidSnapshot, SnapshotId, check, encode, load, parse_name

VOTER = Voter(BrokerId(100), Uuid(b"\x64" * 16), Endpoint("controller", 9093))


def test_names_have_twenty_and_ten_digits() -> None:
    assert SnapshotId(7, 2).file_name == "00000000000000000007-0000000002.checkpoint"
    assert parse_name("00000000000000000007-0000000002.checkpoint") == SnapshotId(7, 2)
    assert parse_name("00000000000000000007-0000000002.checkpoint.part") is None


def test_a_snapshot_is_header_with_voters_then_records_then_footer() -> None:
    data = b"".join(encode([topic("a"), topic("b")], 3, 1_000, [VOTER]))
    batches = [(header.is_control, header.base_offset, header.last_offset) for _, header in walk(data)]
    assert batches == [(True, 0, 2), (False, 3, 4), (True, 5, 5)]
    assert all(header.leader_epoch == 3 for _, header in walk(data))
    read = check(SnapshotId(9, 3), data)
    assert read.last_contained_log_timestamp_ms == 1_000
    assert read.voters == (VOTER,)
    assert list(read.records()) == [topic("a"), topic("b")]


def test_control_records_have_kafkas_keys() -> None:
    data = b"".join(encode([], 0, 0, [VOTER]))
    keys = [record.key for position, _ in walk(data) for record in decode_records(data, position)]
    assert keys == [b"\0\0\0\3", b"\0\0\0\5", b"\0\0\0\6", b"\0\0\0\4"]


def test_a_large_snapshot_has_many_batches() -> None:
    records = [topic(f"t{i}") for i in range(2_500)]
    data = b"".join(encode(records, 1, 0, [VOTER]))
    assert len(list(walk(data))) == 5
    assert list(check(SnapshotId(9, 1), data).records()) == records


def test_anything_torn_or_damaged_is_no_snapshot() -> None:
    data = b"".join(encode([topic("a")], 0, 0, [VOTER]))
    for cut in (0, 1, 60, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(InvalidSnapshot):
            check(BOOTSTRAP, data[:cut])
    footer = [position for position, _ in walk(data)][-1]
    with pytest.raises(InvalidSnapshot, match="no footer"):
        check(BOOTSTRAP, data[:footer])
    epochs = {p + i for p, _ in walk(data) for i in range(12, 16)}
    for position in sorted(set(range(len(data))) - epochs):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        with pytest.raises(InvalidSnapshot):
            check(BOOTSTRAP, bytes(damaged))


def test_format_leaves_the_voters_in_a_snapshot_of_nothing() -> None:
    world = World()
    assert [v.id for v in load(world.leader.disk, world.leader.log_directory, BOOTSTRAP).voters] == [100]
    data = bytes(world.leader.disk.now[f"{world.leader.log_directory}/{BOOTSTRAP.file_name}"].data)
    batches = [(header.is_control, header.base_offset, header.last_offset) for _, header in walk(data)]
    assert batches == [(True, 0, 2), (True, 3, 3)]


def test_format_survives_a_power_cut_once_it_is_done() -> None:
    world = World()
    world.leader.disk.crash()
    assert [v.id for v in load(world.leader.disk, world.leader.log_directory, BOOTSTRAP).voters] == [100]


def test_the_first_features_pass_through_bootstrap_checkpoint() -> None:
    world = World()
    features = [FeatureLevelRecord(name="metadata.version", feature_level=27)]
    done: list[OSError | None] = []
    write_bootstrap_records(world.leader.disk, METADATA_DIR, features, 1_000, done.append)
    world.run_until(lambda: bool(done))
    assert read_bootstrap_records(world.leader.disk, METADATA_DIR) == features
    data = bytes(world.leader.disk.now[f"{METADATA_DIR}/bootstrap.checkpoint"].data)
    assert [(h.is_control, h.base_offset) for _, h in walk(data)] == [(True, 0), (False, 1), (True, 2)]


def write(world: World, *names: str) -> None:
    """A snapshot of the leader's state, which is these topics."""
    batch = world.leader.seen.batches[-1]
    assert world.leader.quorum.snapshot([topic(name) for name in names], batch.last_offset, batch.epoch)
    expected = batch.last_offset + 1
    world.run_until(lambda: world.leader.quorum.log.snapshots[-1].end_offset == expected)


def test_a_start_loads_the_snapshot_and_replays_only_the_rest() -> None:
    world = World()
    world.start_leader()
    world.commit("a")
    world.commit("b")
    write(world, "a", "b")
    world.commit("c")
    world.leader.power_cut()
    world.start_leader()
    assert world.leader.seen.calls[0] == "snapshot"
    assert world.leader.seen.snapshot == (4, [topic("a"), topic("b")])
    assert [record.name for _, record in world.leader.seen.records] == ["c"]
    assert [v.id for v in world.leader.quorum.voters] == [100]


def test_a_damaged_snapshot_is_skipped_for_the_one_before() -> None:
    world = World()
    world.start_leader()
    world.commit("a")
    write(world, "a")
    world.commit("b")
    write(world, "a", "b")
    newest = world.leader.quorum.log.snapshots[-1]
    world.leader.kill()
    world.leader.disk.now[f"{world.leader.log_directory}/{newest.file_name}"].data[100] ^= 1
    world.start_leader()
    assert world.leader.seen.names == ["a", "b"]
    assert any(event == "metadata-snapshot-damaged" for _, _, event, _ in world.logged)


def test_uncommitted_state_is_refused_as_a_snapshot() -> None:
    world = World()
    world.start_leader()
    offset = world.append("a")
    assert not world.leader.quorum.snapshot([topic("a")], offset, 1)


def test_the_log_is_shortened_behind_the_snapshots_and_a_new_observer_downloads_the_state() -> None:
    world = World(observers=1, segment_bytes=2_000, max_retention_bytes=1)
    world.start_leader()
    names: list[str] = []
    for i in range(60):
        names.append(f"t{i}")
        world.commit(names[-1])
        if i % 20 == 19:
            write(world, *names)
    log = world.leader.quorum.log
    assert log.start_offset > 0
    world.observers[0].start()
    world.run_until_all_have(*names)
    assert world.observers[0].seen.calls[0].startswith("leader")
    assert world.observers[0].seen.snapshot is not None
    world.commit("last")
    world.run_until_all_have(*names, "last")
    for stop in (world.observers[0].power_cut, world.leader.power_cut):
        stop()
    world.start()
    world.run_until_all_have(*names, "last")


@pytest.mark.parametrize("seed", range(4))
def test_a_download_survives_lost_messages(seed: int) -> None:
    world = World(observers=1, seed=seed, drop=0.3)
    world.start_leader()
    names = [f"t{i}" for i in range(50)]
    world.commit(*names)
    write(world, *names)
    world.observers[0].start()
    world.run_until_all_have(*names)


def test_a_log_whose_start_no_snapshot_reaches_is_not_used() -> None:
    """Records are missing between the newest snapshot and the log (KAFKA-14240)."""
    world = World(segment_bytes=200, max_retention_bytes=1)
    world.start_leader()
    for name in ("a", "b", "c"):
        world.commit(name)
        write(world, name)
    newest = world.leader.quorum.log.snapshots[-1]
    assert world.leader.quorum.log.start_offset == newest.end_offset
    world.commit("d")
    world.leader.kill()
    del world.leader.disk.now[f"{world.leader.log_directory}/{newest.file_name}"]
    world.leader.start()
    world.run_for(10)
    assert "no readable snapshot reaches that far" in str(world.leader.stopped_because)
    assert world.leader.seen.calls == []


def test_a_voter_that_was_away_while_the_log_was_shortened_downloads_it_and_counts_again() -> None:
    world = World(voters=3, segment_bytes=200, max_retention_bytes=1)
    for node in world.controllers:
        node.start()
    leader = elected(world)
    world.run_for(500)
    away, other = (node for node in world.controllers if node is not leader)
    away.kill()
    names: list[str] = []
    for number in range(5):
        names.append(f"t{number}")
        commit(world, leader, names[-1])
        last = leader.seen.batches[-1]
        assert leader.quorum.snapshot([topic(name) for name in names], last.last_offset, last.epoch)
        world.run_for(50)
    assert leader.quorum.log.start_offset > away.quorum.log_end_offset
    away.start()
    world.run_until(lambda: away.seen.names == names, 15_000)
    other.kill()
    commit(world, leader, "b")
    world.run_until(lambda: away.seen.names == [*names, "b"], 15_000)
    other.start()
    world.run_for(1_000)
    leader.kill()
    second = elected(world, epoch_above=leader.quorum.epoch)
    commit(world, second, "c")
    world.run_until(lambda: away.seen.names == [*names, "b", "c"], 15_000)


def test_a_snapshot_that_exists_or_is_older_than_the_newest_is_not_written_again() -> None:
    world = World(segment_bytes=200, max_retention_bytes=1)
    world.start_leader()
    first = world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    world.commit("b")
    world.run_until(lambda: world.leader.seen.names == ["a", "b"])
    write(world, "a", "b")
    newest = world.leader.quorum.log.snapshots[-1]
    world.run_for(1_000)
    files = dict(world.leader.disk.now)
    for offset in (first, newest.end_offset - 1, 0):
        assert not world.leader.quorum.snapshot([topic("c")], offset, 1)
    world.run_for(1_000)
    assert world.leader.disk.now == files


def test_a_snapshot_of_the_wrong_epoch_is_refused() -> None:
    world = World()
    world.start_leader()
    offset = world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    with pytest.raises(ValueError, match="not of epoch 9"):
        world.leader.quorum.snapshot([topic("a")], offset, 9)


@pytest.mark.parametrize("crash_after", range(1, 60, 2))
def test_a_power_cut_at_any_event_of_a_download_leaves_an_observer_that_recovers(crash_after: int) -> None:
    world = World(observers=1)
    world.start()
    observer = world.observers[0]
    world.commit("a")
    world.run_until_all_have("a")
    # an uncommitted tail that reaches beyond the snapshot to come
    world.leader.quorum.log.log.flush = lambda on_flushed: None
    for i in range(6):
        world.append(f"lost{i}")
    world.run_until(lambda: observer.quorum.log_end_offset == world.leader.quorum.log_end_offset)
    world.run_for(50)
    observer.kill()
    world.leader.power_cut()
    world.leader.config = type(world.leader.config)(segment_bytes=200, max_retention_bytes=1)
    world.start_leader()
    names = ["a"]
    for i in range(4):
        names.append(f"t{i}")
        world.commit(names[-1])
    for _ in range(2):
        names.append(f"u{len(names)}")
        world.commit(names[-1])
        write(world, *names)
    assert world.leader.quorum.log.start_offset > 4
    observer.disk.events, observer.disk.crash_after = 0, crash_after
    try:
        observer.start()
        world.run_for(3_000)
    except BaseException as cut:
        assert type(cut).__name__ == "PowerCut"
        observer.power_cut()
    observer.power_cut()
    observer.start()
    world.run_until_all_have(*names)
    assert observer.stopped_because is None


def test_a_downloaded_snapshot_wins_over_the_log_of_a_lost_leader_that_reaches_beyond_it() -> None:
    """The crash came after the snapshot was durable and before the log that it replaces was cut."""
    world = World(observers=1)
    world.start()
    observer = world.observers[0]
    world.leader.quorum.log.log.flush = lambda on_flushed: None
    for i in range(9):
        world.append(f"lost{i}")
    world.run_until(lambda: observer.quorum.flushed_offset == world.leader.quorum.log_end_offset)
    observer.kill()
    world.leader.power_cut()
    world.start_leader()
    world.commit("a")
    write(world, "a")
    world.commit("b")
    snapshot = world.leader.quorum.log.snapshots[-1]
    assert snapshot.epoch == 2 and snapshot.end_offset < observer.quorum.log_end_offset
    path = f"{observer.log_directory}/{snapshot.file_name}"
    observer.disk.now[path] = world.leader.disk.now[path]
    observer.start()
    assert any(event == "metadata-log-replaced" for _, _, event, _ in world.logged)
    world.run_until_all_have("a", "b")
    assert observer.stopped_because is None


def test_a_snapshot_that_ends_inside_a_batch_is_refused() -> None:
    world = World()
    world.start_leader()
    offset = world.commit("a", "b")
    world.run_until(lambda: world.leader.seen.names == ["a", "b"])
    with pytest.raises(ValueError, match=f"no batch of the metadata log ends at offset {offset + 1}"):
        world.leader.quorum.snapshot([topic("a")], offset, 1)


def test_the_header_says_when_the_last_contained_record_was_appended() -> None:
    world = World()
    world.start_leader()
    world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    appended_ms = world.leader.seen.batches[-1].append_time_ms
    world.run_for(5_000)
    write(world, "a")
    read = load(world.leader.disk, world.leader.log_directory, world.leader.quorum.log.snapshots[-1])
    assert read.last_contained_log_timestamp_ms == appended_ms


def test_a_snapshot_never_has_voters_that_may_still_be_truncated() -> None:
    world = World()
    world.start_leader()
    world.commit("a")
    log = world.leader.quorum.log
    joined = Voter(BrokerId(101), Uuid(b"\x65" * 16), Endpoint("second", 9093))
    log.append(encode_controls([voters_record([VOTER, joined])], log.end_offset, log.end.epoch, 0), log.end.epoch)
    assert log.voters == (VOTER, joined), "in force once it is in the log"
    write(world, "a")
    assert load(world.leader.disk, world.leader.log_directory, log.snapshots[-1]).voters == (VOTER,)
    log.truncate_to(log.end_offset - 1)
    assert log.voters == (VOTER,)


def test_a_large_snapshot_is_written_over_several_turns() -> None:
    world = World()
    world.start_leader()
    offset = world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    names = [f"t{i}" for i in range(3_500)]
    read: list[str] = []

    def records() -> Iterator[Message]:
        for name in names:
            read.append(name)
            yield topic(name)

    assert world.leader.quorum.snapshot(records(), offset, 1)
    most = 0
    while len(read) < len(names):
        before = len(read)
        world.step()
        most = max(most, len(read) - before)
    # one more is read to see that a batch is full
    assert most <= 1_001
    assert not world.leader.quorum.snapshot([topic("b")], offset, 1), "one at a time"
    log = world.leader.quorum.log
    world.run_until(lambda: log.snapshots[-1].end_offset == offset + 1)
    loaded = load(world.leader.disk, world.leader.log_directory, log.snapshots[-1])
    assert [record.name for record in loaded.records()] == names


def test_a_snapshot_that_is_being_written_at_a_stop_leaves_no_file() -> None:
    world = World()
    world.start_leader()
    offset = world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    assert world.leader.quorum.snapshot((topic(f"t{i}") for i in range(2_500)), offset, 1)
    world.step()
    stopped: list[bool] = []
    world.leader.quorum.shutdown(lambda: stopped.append(True))
    world.run_until(lambda: bool(stopped))
    assert not [name for name in world.leader.disk.list(world.leader.log_directory) if name.endswith(".part")]


def downloading() -> tuple[World, str]:
    """An observer is about to fetch the leader's snapshot; its path."""
    world = World(observers=1)
    world.start_leader()
    world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    write(world, "a")
    world.observers[0].start()
    return world, f"{world.leader.log_directory}/{world.leader.quorum.log.snapshots[-1].file_name}"


@pytest.mark.parametrize("suffix", [".part", ""])
def test_a_download_that_is_complete_after_the_end_of_its_role_does_not_replace_the_log(suffix: str) -> None:
    world, path = downloading()
    observer = world.observers[0]
    world.run_until(lambda: path + suffix in observer.disk.now and bool(observer.disk.now[path + suffix].data))
    observer.quorum._role.close()
    world.run_for(1_000)
    assert path + ".part" not in observer.disk.now
    assert observer.quorum.log.start_offset == 0
    assert observer.seen.calls.count("snapshot") == 0
    observer.kill()
    observer.start()
    world.run_until_all_have("a")


@pytest.mark.parametrize("call", ["open", "pread"])
def test_a_disk_that_fails_in_a_download_ends_the_node(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = downloading()
    observer = world.observers[0]
    owner = observer.disk if call == "open" else MemoryFile
    working = getattr(owner, call)

    def failing(*arguments: Any, **named: Any) -> Any:
        path = arguments[0] if call == "open" else arguments[0].path
        if path.endswith(".part"):
            raise OSError(5, "input/output error", path)
        return working(*arguments, **named)

    monkeypatch.setattr(owner, call, failing)
    world.run_until(lambda: observer.stopped_because is not None)
    assert "could not be read or written" in observer.stopped_because
