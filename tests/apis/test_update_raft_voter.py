"""UpdateRaftVoter through a controller: epochs and ranges that are refused, and senders that must not."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UpdateRaftVoterRequest


def updating(node: Guarded, epoch_later: int = 0, versions: tuple[int, int] = (0, 1)) -> UpdateRaftVoterRequest:
    """The voter of the node, as it is."""
    quorum = node.node.quorum
    (voter,) = quorum.voters
    nested = UpdateRaftVoterRequest
    return nested(
        current_leader_epoch=quorum.epoch + epoch_later,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        listeners=[nested.Listener(name=voter.listener, host=voter.endpoint.host, port=voter.endpoint.port)],
        k_raft_version_feature=nested.KRaftVersionFeature(
            min_supported_version=versions[0], max_supported_version=versions[1]
        ),
    )


def test_nothing_to_change_is_a_success_that_names_the_leader(node: Guarded) -> None:
    answer = node.ask(updating(node), principal=ADMIN, listener=CONTROLLER)
    leader = answer.current_leader
    assert (answer.error_code, leader.leader_id, leader.leader_epoch) == (0, 1, node.node.quorum.epoch)


@pytest.mark.parametrize(
    ("epoch_later", "error"), [(-1, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_another_epoch_is_refused(node: Guarded, epoch_later: int, error: ErrorCode) -> None:
    refused = node.ask(updating(node, epoch_later), principal=ADMIN, listener=CONTROLLER)
    assert (refused.error_code, refused.current_leader.leader_id) == (error, 1)


@pytest.mark.parametrize("versions", [(1, 0), (-1, 1), (0, 0), (2, 3)])
def test_a_range_without_the_level_of_the_quorum_is_refused(node: Guarded, versions: tuple[int, int]) -> None:
    refused = node.ask(updating(node, versions=versions), principal=ADMIN, listener=CONTROLLER)
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_only_nodes_may_ask(node: Guarded) -> None:
    assert node.ask(updating(node), listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(updating(node), listener=CONTROLLER).error_code == ErrorCode.NONE
