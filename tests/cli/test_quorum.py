"""What `heirlog quorum describe` makes of an answer; on a cluster: test_cluster_commands.py, tests/processes."""

from __future__ import annotations

import pytest

from heirlog.cli import quorum, quorum_voters
from heirlog.cli.errors import CommandError
from heirlog.protocol.messages import DescribeQuorumResponse
from heirlog.protocol.types import Uuid


def replica(node_id: int, end_offset: int, caught_up_ms: int) -> DescribeQuorumResponse.ReplicaState:
    return DescribeQuorumResponse.ReplicaState(
        replica_id=node_id,
        replica_directory_id=bytes([node_id]) * 16,
        log_end_offset=end_offset,
        last_fetch_timestamp=caught_up_ms,
        last_caught_up_timestamp=caught_up_ms,
    )


def test_a_leader_that_commits_its_own_removal_is_described_although_it_is_not_a_voter() -> None:
    partition = DescribeQuorumResponse.PartitionData(
        leader_id=100,
        high_watermark=40,
        current_voters=[replica(101, 42, 9_000), replica(102, 30, 8_500)],
        observers=[replica(1, 41, 9_000)],
    )
    status = quorum._status("cluster", DescribeQuorumResponse(), partition)
    assert (status["leader_id"], status["max_follower_lag"], status["max_follower_lag_time_ms"]) == (100, 12, 500)
    rows = quorum._rows(partition)
    assert [(row["node_id"], row["lag"], row["status"]) for row in rows] == [
        (101, 0, "Follower"),
        (102, 12, "Follower"),
        (1, 1, "Observer"),
    ]


def test_voters_of_the_configuration_are_first_moved_into_the_log() -> None:
    voter = DescribeQuorumResponse.ReplicaState(replica_id=100)
    partition = DescribeQuorumResponse.PartitionData(leader_id=100, current_voters=[voter])
    with pytest.raises(CommandError, match=r"heirlog features upgrade --feature kraft.version=1"):
        quorum_voters._check_may_be_added(partition, 100, Uuid(b"d" * 16), "server.properties")
