"""Vote through a controller: who gets the vote of the only voter, and that it leads again afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import VoteRequest
from heirlog.protocol.types import METADATA_TOPIC


def asking(epoch: int, last_offset: int = 1 << 40, last_epoch: int = 1, pre_vote: bool = False) -> VoteRequest:
    """A node 9, which is no voter, asks: its own voter set may be newer."""
    partition = VoteRequest.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=9,
        last_offset_epoch=last_epoch,
        last_offset=last_offset,
        pre_vote=pre_vote,
    )
    return VoteRequest(topics=[VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])])


def result(answer: Any) -> Any:
    (partition,) = answer.topics[0].partitions
    return partition


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_leader_votes_for_no_other_node_in_its_epoch(node: Guarded, version: int) -> None:
    epoch = node.node.quorum.epoch
    refused = result(node.ask(asking(epoch, last_epoch=0), version, ADMIN, listener=CONTROLLER))
    assert (refused.error_code, refused.vote_granted) == (ErrorCode.NONE, False)
    assert (refused.leader_id, refused.leader_epoch) == (1, epoch)


def test_an_older_epoch_is_refused_and_the_answer_says_where_the_leader_is(node: Guarded) -> None:
    asked = asking(node.node.quorum.epoch - 1, last_epoch=0, pre_vote=True)
    answer = node.ask(asked, principal=ADMIN, listener=CONTROLLER)
    assert result(answer).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert [known.node_id for known in answer.node_endpoints] == [1]


def test_a_pre_vote_never_deposes_a_leader_of_its_epoch(node: Guarded) -> None:
    epoch = node.node.quorum.epoch
    refused = result(node.ask(asking(epoch, pre_vote=True), principal=ADMIN, listener=CONTROLLER))
    assert not refused.vote_granted
    assert (node.node.quorum.is_leader, node.node.quorum.epoch) == (True, epoch)


def test_a_vote_for_a_newer_epoch_ends_the_leadership_and_the_only_voter_leads_again(node: Guarded) -> None:
    epoch = node.node.quorum.epoch
    granted = result(node.ask(asking(epoch + 5), principal=ADMIN, listener=CONTROLLER))
    assert (granted.vote_granted, granted.leader_epoch) == (True, epoch + 5)
    assert not node.node.quorum.is_leader
    node.wait(lambda: node.node.quorum.is_leader)
    assert node.node.quorum.epoch > epoch + 5
    node.create_topics("after")


def test_only_nodes_may_ask(node: Guarded) -> None:
    request = asking(node.node.quorum.epoch - 1, last_epoch=0)
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.NONE
