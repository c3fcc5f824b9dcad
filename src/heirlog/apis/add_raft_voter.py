"""AddRaftVoter (key 80): adds an observer to the voters of the metadata quorum (KIP-853); brokers forward it.

v1 may be answered before the change is committed (KIP-1186). The rules are in `raft.voter_requests` and
`raft.voter_changes`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import AddRaftVoterRequest, AddRaftVoterResponse


class AddsVoters(Protocol):
    def add_raft_voter(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse | Pending[AddRaftVoterResponse]: ...


def handle(
    node: OnQuorum[AddsVoters], request: AddRaftVoterRequest, context: Context
) -> AddRaftVoterResponse | Pending[AddRaftVoterResponse]:
    return node.quorum.add_raft_voter(request)


API = Api(
    key=ApiKey.ADD_RAFT_VOTER,
    broker=Forwarded((0, 1)),
    controller=Served((0, 1), handle, needs=ALTER_CLUSTER),
    is_audited=True,
)
