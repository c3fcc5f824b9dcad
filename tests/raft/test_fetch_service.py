"""Fetch on the metadata partition, as a stranger's replica sends it."""

from __future__ import annotations

from typing import Any

import pytest
from raft.quorum_world import CLUSTER_ID, World, topic

from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
)
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import METADATA_TOPIC, METADATA_TOPIC_ID
from heirlog.raft.metadata_log import MetadataLog

NOT_SENT = 2**63 - 1


@pytest.fixture
def world() -> World:
    world = World()
    world.start_leader()
    return world


def fetch(
    world: World,
    offset: int,
    last_epoch: int,
    *,
    epoch: int = 1,
    high_watermark: int = NOT_SENT,
    max_wait_ms: int = 500,
    replica_id: int = 7,
    **more: Any,
) -> FetchResponse | Pending[FetchResponse]:
    asked = FetchRequest.FetchPartition(
        partition=more.pop("partition", 0),
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1 << 20,
        high_watermark=high_watermark,
        replica_directory_id=b"\7" * 16,
    )
    topic_id = more.pop("topic_id", METADATA_TOPIC_ID)
    return world.leader.quorum.fetch(
        FetchRequest(
            cluster_id=more.pop("cluster_id", CLUSTER_ID),
            replica_state=FetchRequest.ReplicaState(replica_id=replica_id),
            max_wait_ms=max_wait_ms,
            topics=[FetchRequest.FetchTopic(topic_id=topic_id, partitions=[asked])],
            **more,
        )
    )


def partition(answer: Any) -> FetchResponse.PartitionData:
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == 0
    return answer.responses[0].partitions[0]


def test_records_come_up_to_the_log_end_with_the_high_watermark_that_says_what_is_committed(world: World) -> None:
    world.append("not committed yet")
    data = partition(fetch(world, 0, 0))
    assert data.high_watermark == 3
    assert b"not committed yet" in bytes(records_view(data.records))
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (100, 1)


def test_another_cluster_is_refused(world: World) -> None:
    answer = fetch(world, 0, 0, cluster_id="another")
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("more", [{"topic_id": b"\1" * 16}, {"partition": 1}])
def test_another_partition_is_an_invalid_request(world: World, more: dict[str, Any]) -> None:
    assert fetch(world, 0, 0, **more).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("offset", "last_epoch", "more"),
    [
        (-1, 0, {}),
        (0, -1, {}),
        (0, 0, {"epoch": -1}),
        (0, 0, {"max_wait_ms": -1}),
        (1, 2, {}),
        (0, 0, {"replica_id": 100}),
    ],
    ids=["offset", "last epoch", "epoch", "wait", "last epoch above the epoch", "the leader itself"],
)
def test_numbers_that_cannot_be_are_refused_and_the_leader_is_named(
    world: World, offset: int, last_epoch: int, more: dict[str, Any]
) -> None:
    refused = partition(fetch(world, offset, last_epoch, **more))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (100, 1)


def test_an_older_epoch_is_fenced_and_told_the_leader_and_its_endpoint(world: World) -> None:
    answer = fetch(world, 0, 0, epoch=0)
    data = partition(answer)
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (100, 1)
    assert [(e.node_id, e.host, e.port) for e in answer.node_endpoints] == [(100, "controller", 9093)]


def test_a_newer_epoch_is_unknown(world: World) -> None:
    assert partition(fetch(world, 0, 0, epoch=2)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_diverging_log_is_told_where_its_epoch_ends(world: World) -> None:
    data = partition(fetch(world, 9, 1))
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (1, 3)
    assert not records_view(data.records)


def test_nothing_new_waits_for_an_append(world: World) -> None:
    answer = fetch(world, 3, 1)
    assert isinstance(answer, Pending)
    assert not answer.done
    world.append("a")
    assert not answer.done, "never inside the call"
    world.run_until(lambda: answer.done)
    assert world.leader.quorum.high_watermark == 3, "released by the append, before its commit"


def test_a_wait_ends_with_an_empty_answer(world: World) -> None:
    answer = fetch(world, 3, 1, max_wait_ms=200)
    world.run_for(201)
    answers: list[FetchResponse] = []
    answer.then(answers.append)
    assert not records_view(partition(answers[0]).records)


def test_a_stale_high_watermark_of_v18_is_answered_at_once(world: World) -> None:
    assert partition(fetch(world, 3, 1, high_watermark=2)).high_watermark == 3
    assert isinstance(fetch(world, 3, 1, high_watermark=3), Pending)


def test_a_newer_fetch_of_the_same_replica_ends_the_older_one(world: World) -> None:
    older = fetch(world, 3, 1)
    newer = fetch(world, 3, 1)
    assert older.done
    assert not newer.done


def test_an_abandoned_wait_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch(world, 3, 1).abandon()
    reads: list[int] = []
    monkeypatch.setattr(MetadataLog, "read", lambda log, offset, *_: reads.append(offset) or [])
    world.append("a")
    world.run_for(600)
    assert not reads


def test_a_leader_that_stops_ends_all_waits_and_names_nobody(world: World) -> None:
    answers: list[FetchResponse] = []
    fetch(world, 3, 1).then(answers.append)
    world.leader.quorum.shutdown()
    assert partition(answers[0]).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition(answers[0]).current_leader.leader_id == -1
    assert partition(fetch(world, 3, 1)).current_leader.leader_id == -1


def test_a_node_that_does_not_lead_names_the_leader() -> None:
    world = World(observers=1)
    world.start()
    world.run_for(100)
    leader, world.leader = world.leader, world.observers[0]
    data = partition(fetch(world, 0, 0))
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data.current_leader.leader_id == leader.id


def describe(world: World, name: str = METADATA_TOPIC) -> DescribeQuorumResponse:
    nested = DescribeQuorumRequest
    partitions = [nested.PartitionData(partition_index=0)]
    return world.leader.quorum.describe_quorum(
        nested(topics=[nested.TopicData(topic_name=name, partitions=partitions)])
    )


def test_describe_lists_the_leader_among_the_voters_with_its_end_and_observers_with_theirs(world: World) -> None:
    fetch(world, 3, 1)
    answer = describe(world)
    data = answer.topics[0].partitions[0]
    assert (data.leader_id, data.leader_epoch, data.high_watermark) == (100, 1, 3)
    (leader,) = data.current_voters
    assert (leader.replica_id, leader.log_end_offset) == (100, 3)
    assert leader.last_caught_up_timestamp == leader.last_fetch_timestamp > 0
    assert [(o.replica_id, o.log_end_offset) for o in data.observers] == [(7, 3)]
    assert data.observers[0].last_caught_up_timestamp == data.observers[0].last_fetch_timestamp > 0
    assert [(n.node_id, n.listeners[0].port) for n in answer.nodes] == [(100, 9093)]


def test_a_silent_observer_is_no_longer_listed(world: World) -> None:
    fetch(world, 3, 1)
    world.run_for(300_001)
    assert describe(world).topics[0].partitions[0].observers == []


def test_describe_of_anything_else_is_refused(world: World) -> None:
    answer = describe(world, "a-topic")
    assert answer.error_code == ErrorCode.NONE
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def ask_snapshot(world: World, end_offset: int, epoch: int, position: int, max_bytes: int = 100) -> Any:
    nested = FetchSnapshotRequest
    asked = nested.PartitionSnapshot(
        partition=0,
        current_leader_epoch=1,
        snapshot_id=nested.SnapshotId(end_offset=end_offset, epoch=epoch),
        position=position,
    )
    request = nested(
        cluster_id=CLUSTER_ID,
        max_bytes=max_bytes,
        topics=[nested.TopicSnapshot(name=METADATA_TOPIC, partitions=[asked])],
    )
    return world.leader.quorum.fetch_snapshot(request).topics[0].partitions[0]


def test_a_snapshot_is_served_in_pieces_by_position(world: World) -> None:
    offset = world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    assert world.leader.quorum.snapshot([topic("a")], offset, 1)
    world.run_until(lambda: world.leader.quorum.log.snapshots[-1].end_offset == offset + 1)
    needed = partition(fetch(world, 0, 0)).snapshot_id
    assert (needed.end_offset, needed.epoch) == (offset + 1, 1)
    data = bytearray()
    while True:
        piece = ask_snapshot(world, needed.end_offset, needed.epoch, len(data))
        assert piece.position == len(data)
        data += records_view(piece.unaligned_records)
        if len(data) == piece.size:
            break
    name = f"{offset + 1:020d}-0000000001.checkpoint"
    assert data == world.leader.disk.now[f"{world.leader.log_directory}/{name}"].data
    past_the_end = ask_snapshot(world, needed.end_offset, needed.epoch, len(data))
    assert past_the_end.error_code == ErrorCode.POSITION_OUT_OF_RANGE
    assert ask_snapshot(world, 99, 1, 0).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert ask_snapshot(world, 0, 0, 0).error_code == ErrorCode.SNAPSHOT_NOT_FOUND, "the bootstrap one is never served"


def test_a_snapshot_of_another_partition_is_unknown_and_of_several_an_invalid_request(world: World) -> None:
    nested = FetchSnapshotRequest

    def asked(*indexes: int, name: str = METADATA_TOPIC) -> Any:
        wanted = nested.SnapshotId(end_offset=3, epoch=1)
        partitions = [
            nested.PartitionSnapshot(partition=index, current_leader_epoch=1, snapshot_id=wanted, position=0)
            for index in indexes
        ]
        request = nested(max_bytes=1, topics=[nested.TopicSnapshot(name=name, partitions=partitions)])
        return world.leader.quorum.fetch_snapshot(request)

    for answer in (asked(1), asked(0, name="orders")):
        assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert asked(0, 1).error_code == ErrorCode.INVALID_REQUEST
    assert asked().error_code == ErrorCode.INVALID_REQUEST
    wrong_cluster = nested(cluster_id="another", max_bytes=1, topics=[])
    assert world.leader.quorum.fetch_snapshot(wrong_cluster).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_part_of_a_snapshot_is_refused_by_epoch_before_it_is_looked_for(world: World) -> None:
    nested = FetchSnapshotRequest

    def asked(epoch: int) -> Any:
        part = nested.PartitionSnapshot(
            partition=0,
            current_leader_epoch=epoch,
            snapshot_id=nested.SnapshotId(end_offset=99, epoch=1),
            position=-1,
        )
        topics = [nested.TopicSnapshot(name=METADATA_TOPIC, partitions=[part])]
        return world.leader.quorum.fetch_snapshot(nested(max_bytes=1, topics=topics)).topics[0].partitions[0]

    assert asked(0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert asked(2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert asked(1).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert asked(1).current_leader.leader_id == 100
