"""RemoveRaftVoter through a node: the voters that cannot be removed, and clients without permission."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import RemoveRaftVoterRequest


def removing(directory_id: bytes) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(voter_id=1, voter_directory_id=directory_id)


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_the_last_voter_and_an_unknown_one_are_refused(node: Guarded, listener: str) -> None:
    (voter,) = node.node.quorum.voters
    last = node.ask(removing(voter.directory_id), 0, ADMIN, listener=listener)
    assert last.error_code == ErrorCode.VOTER_NOT_FOUND
    assert last.error_message == "controller 1 is the only voter: add another controller first"
    unknown = node.ask(removing(b"another-disk-000"), 0, ADMIN, listener=listener)
    assert unknown.error_code == ErrorCode.VOTER_NOT_FOUND
    assert "is not a voter" in unknown.error_message


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    assert node.ask(removing(b"another-disk-000")).error_code == C_DENIED
    node.allow(AclOperation.ALTER, CLUSTER)
    assert node.ask(removing(b"another-disk-000")).error_code == ErrorCode.VOTER_NOT_FOUND
