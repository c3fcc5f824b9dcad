"""RemoveRaftVoter (key 81): removes a voter from the metadata quorum (KIP-853); brokers forward it.

v0 only. The rules are in `raft.voter_requests` and `raft.voter_changes`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse


class RemovesVoters(Protocol):
    def remove_raft_voter(
        self, request: RemoveRaftVoterRequest
    ) -> RemoveRaftVoterResponse | Pending[RemoveRaftVoterResponse]: ...


def handle(
    node: OnQuorum[RemovesVoters], request: RemoveRaftVoterRequest, context: Context
) -> RemoveRaftVoterResponse | Pending[RemoveRaftVoterResponse]:
    return node.quorum.remove_raft_voter(request)


API = Api(
    key=ApiKey.REMOVE_RAFT_VOTER,
    broker=Forwarded((0, 0)),
    controller=Served((0, 0), handle, needs=ALTER_CLUSTER),
    is_audited=True,
)
