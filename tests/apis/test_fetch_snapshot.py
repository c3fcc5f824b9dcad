"""FetchSnapshot through a controller: pieces of a snapshot, and what does not exist."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchSnapshotRequest
from heirlog.protocol.types import METADATA_TOPIC
from heirlog.raft.snapshot import SnapshotId, parse_name


@pytest.fixture(scope="module")
def one() -> Guarded:
    """A node that writes snapshots often."""
    guarded = Guarded(metadata_log_max_record_bytes_between_snapshots="1")
    guarded.create_topics("t")
    # between two NoOp records, when the newest snapshot is whole
    guarded.world.run_for(2250)
    return guarded


def newest_snapshot(node: Guarded) -> SnapshotId:
    directory = f"{node.node.config.metadata_log_dir}/__cluster_metadata-0"
    names = map(parse_name, node.node.env.files.list(directory))
    return max(name for name in names if name is not None and name.end_offset > 0)


def asking(
    node: Guarded, wanted: SnapshotId, position: int = 0, max_bytes: int = 1 << 20, topic: str = METADATA_TOPIC
) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        partition=0,
        current_leader_epoch=node.node.quorum.epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch),
        position=position,
    )
    asked = FetchSnapshotRequest.TopicSnapshot(name=topic, partitions=[partition])
    return FetchSnapshotRequest(replica_id=9, max_bytes=max_bytes, topics=[asked])


def piece(answer: Any) -> Any:
    (partition,) = answer.topics[0].partitions
    return partition


@pytest.mark.parametrize("version", [0, 1])
def test_pieces_put_together_are_the_snapshot(node: Guarded, version: int) -> None:
    wanted = newest_snapshot(node)
    whole = piece(node.ask(asking(node, wanted), version, ADMIN, listener=CONTROLLER))
    assert (whole.error_code, whole.position, len(whole.unaligned_records)) == (ErrorCode.NONE, 0, whole.size)
    head = piece(node.ask(asking(node, wanted, max_bytes=100), version, ADMIN, listener=CONTROLLER))
    assert (len(head.unaligned_records), head.size) == (100, whole.size)
    rest = piece(node.ask(asking(node, wanted, position=100), version, ADMIN, listener=CONTROLLER))
    assert bytes(head.unaligned_records) + bytes(rest.unaligned_records) == bytes(whole.unaligned_records)


def test_what_does_not_exist_is_refused(node: Guarded) -> None:
    wanted = newest_snapshot(node)
    whole = piece(node.ask(asking(node, wanted), principal=ADMIN, listener=CONTROLLER))
    for request, code in (
        (asking(node, SnapshotId(wanted.end_offset + 1, wanted.epoch)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (asking(node, wanted, position=whole.size), ErrorCode.POSITION_OUT_OF_RANGE),
        (asking(node, wanted, position=-1), ErrorCode.POSITION_OUT_OF_RANGE),
    ):
        assert piece(node.ask(request, principal=ADMIN, listener=CONTROLLER)).error_code == code


def test_only_nodes_may_ask(node: Guarded) -> None:
    request = asking(node, newest_snapshot(node))
    refused = node.ask(request, listener=CONTROLLER)
    assert (refused.error_code, refused.topics) == (C_DENIED, [])
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert piece(node.ask(request, listener=CONTROLLER)).error_code == ErrorCode.NONE
