"""A leader and its observers: order, commit, crashes, restarts."""

from __future__ import annotations

from random import Random

import pytest
from raft.quorum_world import World, topic

from heirlog.protocol.types import BrokerId, Endpoint
from heirlog.raft import commit
from heirlog.raft.control import Voter
from heirlog.raft.leader import MAX_RECORDS_PER_BATCH, BatchTooLarge, NotLeader
from heirlog.raft.quorum_state import QuorumState, decode
from heirlog.raft.values import encode_value


def stored_state(world: World) -> QuorumState:
    return decode(bytes(world.leader.disk.now[f"{world.leader.log_directory}/quorum-state"].data))


def test_one_voter_leads_epoch_1_and_says_so_after_its_first_batch_is_committed() -> None:
    world = World()
    world.start_leader()
    assert world.leader.seen.calls == ["snapshot", "commit", "leader 100 epoch 1 me"]
    assert world.leader.quorum.is_leader
    assert world.leader.quorum.high_watermark == world.leader.quorum.log_end_offset == 3
    assert stored_state(world) == QuorumState(100, 1, 100, world.leader.directory_id)


def test_the_first_batch_names_leader_level_and_voters() -> None:
    world = World()
    world.start_leader()
    assert world.leader.seen.batches[0].records == []
    assert (world.leader.seen.batches[0].base_offset, world.leader.seen.batches[0].last_offset) == (0, 2)
    assert [v.id for v in world.leader.quorum.voters] == [100]


def test_an_append_is_committed_after_its_flush_and_never_inside_the_call() -> None:
    world = World()
    world.start_leader()
    base_offset = world.append("a", "b")
    assert base_offset == 3
    assert world.leader.seen.names == []
    world.run_until(lambda: world.leader.seen.names == ["a", "b"])
    assert world.leader.quorum.flushed_offset == world.leader.quorum.high_watermark == 5


def test_one_flush_serves_the_appends_of_a_turn() -> None:
    world = World()
    world.start_leader()
    flushes = 0
    flush = world.leader.quorum.log.log.flush

    def counted(on_flushed) -> None:
        nonlocal flushes
        flushes += 1
        flush(on_flushed)

    world.leader.quorum.log.log.flush = counted
    for name in "abcdef":
        world.append(name)
    world.run_until(lambda: world.leader.seen.names == list("abcdef"))
    assert flushes == 1


def test_appends_during_a_flush_wait_for_the_next_one() -> None:
    world = World()
    world.start_leader()
    world.append("a")
    world.run_for(1)
    world.append("b")
    world.run_until(lambda: world.leader.seen.names != [])
    assert world.leader.seen.names == ["a"]
    world.run_until(lambda: world.leader.seen.names == ["a", "b"])


def test_only_the_announced_leader_appends() -> None:
    world = World(observers=1)
    world.leader.start()
    with pytest.raises(NotLeader):
        world.append("too early")
    world.leader.kill()
    world.start()
    with pytest.raises(NotLeader):
        world.observers[0].quorum.append([topic("not here")])
    world.leader.quorum.shutdown()
    with pytest.raises(NotLeader):
        world.append("too late")


def test_a_batch_has_its_limits_and_a_refused_one_leaves_nothing() -> None:
    world = World()
    world.start_leader()
    with pytest.raises(BatchTooLarge):
        world.leader.quorum.append([topic("x")] * (MAX_RECORDS_PER_BATCH + 1))
    with pytest.raises(BatchTooLarge):
        world.leader.quorum.append([topic("x" * 10_000)] * 900)
    assert world.leader.quorum.log_end_offset == 3


def test_observers_see_what_the_leader_commits_in_order() -> None:
    world = World(observers=2)
    world.start()
    world.commit("a")
    world.commit("b", "c")
    world.run_until_all_have("a", "b", "c")
    assert world.observers[0].seen.calls[0] == "leader 100 epoch 1"
    assert world.observers[0].quorum.leader_endpoint == Endpoint("controller", 9093)


def test_the_leader_and_its_observers_know_how_large_the_last_record_of_a_batch_is() -> None:
    world = World(observers=1)
    world.start()
    names = ("a", "a name of some length"), ("x" * 300,)
    for each in names:
        world.commit(*each)
    world.run_until_all_have(*names[0], *names[1])
    sizes = [
        {batch.base_offset: batch.last_record_bytes for batch in node.seen.batches if batch.records}
        for node in (world.leader, world.observers[0])
    ]
    assert sizes[0] == sizes[1]
    assert list(sizes[0].values())[-2:] == [len(encode_value(topic(each[-1]))) for each in names]


def test_a_commit_reaches_a_waiting_observer_without_the_next_record() -> None:
    world = World(observers=1)
    world.start()
    world.run_for(2_000)
    world.commit("a")
    started_ms = world.now_ms
    world.run_until_all_have("a")
    assert world.now_ms - started_ms < 100, "KIP-1166: not half a second, as a long poll would take"


@pytest.mark.parametrize("seed", range(8))
def test_lossy_delivery_only_delays_observers(seed: int) -> None:
    world = World(observers=2, seed=seed, drop=0.25)
    world.start()
    names = [f"t{i}" for i in range(30)]
    for name in names:
        world.commit(name)
        world.run_for(world.random.randrange(0, 120))
    world.run_until_all_have(*names)


def test_a_restarted_leader_opens_a_new_epoch_and_observers_follow() -> None:
    world = World(observers=2)
    world.start()
    world.commit("a")
    world.run_until_all_have("a")
    world.leader.kill()
    world.run_for(3_000)
    world.start_leader()
    assert world.leader.quorum.epoch == 2
    assert world.leader.seen.names == ["a"]
    assert world.leader.seen.calls[-1] == "leader 100 epoch 2 me"
    world.commit("b")
    world.run_until_all_have("a", "b")
    assert "leader 100 epoch 2" in world.observers[0].seen.calls


def test_voters_are_written_again_only_when_the_leader_listens_elsewhere() -> None:
    world = World()
    world.start_leader()
    world.leader.kill()
    world.start_leader()
    assert world.leader.quorum.log_end_offset == 4, "LeaderChange alone"
    world.leader.kill()
    moved = Voter(BrokerId(100), world.leader.directory_id, Endpoint("controller", 9999))
    world.leader.configured = [moved]
    world.start_leader()
    assert world.leader.quorum.log_end_offset == 7
    assert world.leader.quorum.voters == (moved,)
    assert world.leader.quorum.leader_endpoint == moved.endpoint


def test_the_uncommitted_tail_of_a_leader_is_cut_from_an_observer_that_has_it() -> None:
    world = World(observers=1)
    world.start()
    world.commit("a")
    world.run_until_all_have("a")
    observer = world.observers[0]
    world.append("never flushed")
    end = world.leader.quorum.log_end_offset
    world.leader.disk.flush_makes_durable = False
    world.leader.quorum.log.log.flush = lambda on_flushed: None
    world.run_until(lambda: observer.quorum.log_end_offset == end)
    assert observer.seen.names == ["a"], "it is in its log, but not committed"
    world.leader.disk.flush_makes_durable = True
    world.leader.power_cut()
    world.start_leader()
    world.commit("b")
    world.run_until_all_have("a", "b")
    assert any(event == "metadata-log-truncated" for _, _, event, _ in world.logged)


def test_an_observer_that_restarts_applies_everything_again_once() -> None:
    world = World(observers=1)
    world.start()
    world.commit("a")
    world.commit("b")
    world.run_until_all_have("a", "b")
    for stop in (world.observers[0].kill, world.observers[0].power_cut):
        stop()
        world.observers[0].start()
        world.run_until_all_have("a", "b")


def test_applied_metadata_is_a_prefix_of_the_committed_log() -> None:
    """T7."""
    world = World(observers=2, drop=0.2)
    world.start()
    for i in range(20):
        world.append(f"t{i}")
        for _ in range(world.random.randrange(1, 60)):
            world.step()
            for node in (world.leader, *world.observers):
                assert node.seen.next_offset <= max(world.leader.quorum.high_watermark, 0)
                assert node.seen.names == [f"t{j}" for j in range(len(node.seen.names))]


def acknowledged_and_found(crash_after: int, seed: int) -> tuple[list[str], list[str]]:
    """Append until the power goes after so many disk events; what was committed before, and what is there after."""
    world = World(seed=seed)
    world.start_leader()
    world.leader.disk.events = 0
    world.leader.disk.crash_after = crash_after
    acknowledged: list[str] = []
    for i in range(20):
        if not world.leader.incarnation.alive:
            break
        try:
            world.append(f"t{i}")
        except BaseException as cut:
            assert type(cut).__name__ == "PowerCut"
            world.leader.power_cut(Random(seed))
            break
        for _ in range(world.random.randrange(1, 8)):
            if world._events:
                world.step()
        acknowledged = list(world.leader.seen.names)
    if world.leader.incarnation.alive:
        world.leader.power_cut(Random(seed))
    world.start_leader()
    return acknowledged, world.leader.seen.names


@pytest.mark.parametrize("seed", [1, 2])
def test_a_power_cut_at_any_event_loses_nothing_that_was_acknowledged(seed: int) -> None:
    some_acknowledged = 0
    for crash_after in range(1, 40):
        acknowledged, found = acknowledged_and_found(crash_after, seed)
        assert found[: len(acknowledged)] == acknowledged
        some_acknowledged += bool(acknowledged)
    assert some_acknowledged > 10


def test_without_guard_14_a_power_cut_loses_what_was_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "flush_reached", lambda *_: True)
    outcomes = [acknowledged_and_found(crash_after, 1) for crash_after in range(1, 40)]
    assert any(found[: len(acknowledged)] != acknowledged for acknowledged, found in outcomes)


def test_a_flush_that_does_not_flush_loses_what_was_acknowledged() -> None:
    world = World()
    world.start_leader()
    world.leader.disk.flush_makes_durable = False
    world.commit("a")
    world.leader.power_cut()
    world.leader.disk.flush_makes_durable = True
    world.start_leader()
    assert world.leader.seen.names == []


def test_a_torn_tail_is_cut_at_the_next_start() -> None:
    world = World()
    world.start_leader()
    world.commit("a")
    world.append("torn")
    world.leader.kill()
    log_file = next(path for path in world.leader.disk.now if path.endswith("00000.log"))
    del world.leader.disk.now[log_file].data[-5:]
    world.start_leader()
    assert world.leader.seen.names == ["a"]


def test_a_failed_flush_ends_the_node() -> None:
    world = World()
    world.start_leader()
    world.leader.disk.flush = lambda file, on_flushed: world.later(
        1, lambda: on_flushed(OSError(5, "Input/output error")), world.leader.disk.owner
    )
    world.append("a")
    world.run_until(lambda: world.leader.stopped_because is not None)
    assert "Input/output error" in world.leader.stopped_because
    assert world.leader.seen.names == []


def test_a_controller_whose_log_names_other_voters_does_not_lead() -> None:
    world = World()
    world.leader.disk.now.clear()
    world.leader.start()
    world.run_for(10)
    assert "controller.quorum.bootstrap.servers" in world.leader.stopped_because


def test_a_clean_shutdown_keeps_everything_and_answers_waiting_fetches() -> None:
    world = World(observers=1)
    world.start()
    world.run_for(1_000)
    done: list[bool] = []
    world.leader.quorum.shutdown(lambda: done.append(True))
    world.run_until(lambda: bool(done))
    assert not world.leader.quorum.is_leader
