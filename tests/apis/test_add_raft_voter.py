"""AddRaftVoter through a node: what its versions refuse, that brokers forward it, and clients without permission."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddRaftVoterRequest

LISTENER = AddRaftVoterRequest.Listener(name=CONTROLLER, host="localhost", port=1)


def adding(voter_id: int, listeners: list[AddRaftVoterRequest.Listener]) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(voter_id=voter_id, voter_directory_id=b"another-disk-000", listeners=listeners)


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
@pytest.mark.parametrize("version", [0, 1])
def test_a_voter_with_this_id_is_refused(node: Guarded, version: int, listener: str) -> None:
    refused = node.ask(adding(1, [LISTENER]), version, ADMIN, listener=listener)
    assert refused.error_code == ErrorCode.DUPLICATE_VOTER
    assert "controller 1 is a voter already, with directory id" in refused.error_message


def test_a_voter_without_an_endpoint_is_refused(node: Guarded) -> None:
    refused = node.ask(adding(9, []), principal=ADMIN)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "no endpoint for the listener CONTROLLER" in refused.error_message


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    refused = node.ask(adding(9, []))
    assert refused.error_code == C_DENIED
    assert "an ACL on the cluster must allow this" in refused.error_message
    node.allow(AclOperation.ALTER, CLUSTER)
    assert node.ask(adding(9, [])).error_code == ErrorCode.INVALID_REQUEST
