"""DescribeQuorum through a node: voters and observers by version, other topics, and clients without permission."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeQuorumRequest
from heirlog.protocol.types import METADATA_TOPIC


def asking(topic: str = METADATA_TOPIC, partition: int = 0) -> DescribeQuorumRequest:
    asked = DescribeQuorumRequest.PartitionData(partition_index=partition)
    return DescribeQuorumRequest(topics=[DescribeQuorumRequest.TopicData(topic_name=topic, partitions=[asked])])


EXAMPLE = asking(), None


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
@pytest.mark.parametrize("version", range(3))
def test_the_leader_describes_its_voters(node: Guarded, version: int, listener: str) -> None:
    answer = node.ask(asking(), version, ADMIN, listener=listener)
    (partition,) = answer.topics[0].partitions
    assert (answer.error_code, partition.error_code, partition.leader_id) == (0, ErrorCode.NONE, 1)
    assert partition.high_watermark > 0
    (voter,) = partition.current_voters
    assert voter.replica_id == 1
    assert (voter.last_caught_up_timestamp > 0) is (version >= 1)
    assert (voter.replica_directory_id != bytes(16)) is (version >= 2)
    assert [found.node_id for found in answer.nodes] == ([1] if version >= 2 else [])


@pytest.mark.parametrize(("topic", "partition"), [("t", 0), (METADATA_TOPIC, 1)])
def test_another_partition_has_no_quorum(node: Guarded, topic: str, partition: int) -> None:
    (found,) = node.ask(asking(topic, partition), principal=ADMIN).topics[0].partitions
    assert (found.error_code, found.current_voters) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert "only partition 0 of __cluster_metadata has a quorum" in found.error_message


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    refused = node.ask(asking())
    assert (refused.error_code, refused.topics) == (C_DENIED, [])
    assert "an ACL on the cluster must allow this" in refused.error_message
    node.allow(AclOperation.DESCRIBE, CLUSTER)
    assert node.ask(asking()).error_code == ErrorCode.NONE
