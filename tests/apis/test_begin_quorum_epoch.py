"""BeginQuorumEpoch through a controller: a node that says it leads, and senders that must not."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import BeginQuorumEpochRequest
from heirlog.protocol.types import METADATA_TOPIC


def claiming(epoch: int, leader_id: int = 9) -> BeginQuorumEpochRequest:
    nested = BeginQuorumEpochRequest
    partition = nested.PartitionData(partition_index=0, leader_id=leader_id, leader_epoch=epoch)
    endpoint = nested.LeaderEndpoint(name="CONTROLLER", host="nowhere", port=1)
    return nested(
        topics=[nested.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])], leader_endpoints=[endpoint]
    )


def result(answer: Any) -> Any:
    (partition,) = answer.topics[0].partitions
    return partition


@pytest.mark.parametrize("version", [0, 1])
def test_an_older_epoch_is_refused(node: Guarded, version: int) -> None:
    refused = result(node.ask(claiming(node.node.quorum.epoch - 1), version, ADMIN, listener=CONTROLLER))
    assert (refused.error_code, refused.leader_id) == (ErrorCode.FENCED_LEADER_EPOCH, 1)


def test_a_second_leader_of_the_epoch_is_refused(node: Guarded) -> None:
    refused = result(node.ask(claiming(node.node.quorum.epoch), principal=ADMIN, listener=CONTROLLER))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert node.node.quorum.is_leader


def test_this_node_cannot_be_named_as_the_leader_by_another_one(node: Guarded) -> None:
    refused = result(node.ask(claiming(node.node.quorum.epoch + 1, 1), principal=ADMIN, listener=CONTROLLER))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert node.node.quorum.is_leader


def test_a_newer_epoch_is_followed_and_without_its_leader_the_only_voter_leads_again(node: Guarded) -> None:
    epoch = node.node.quorum.epoch
    accepted = result(node.ask(claiming(epoch + 3), principal=ADMIN, listener=CONTROLLER))
    assert (accepted.error_code, accepted.leader_id, accepted.leader_epoch) == (ErrorCode.NONE, 9, epoch + 3)
    assert not node.node.quorum.is_leader
    node.wait(lambda: node.node.quorum.is_leader)
    assert node.node.quorum.epoch > epoch + 3
    node.create_topics("after")


def test_only_nodes_may_ask(node: Guarded) -> None:
    request = claiming(node.node.quorum.epoch - 1)
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.NONE
