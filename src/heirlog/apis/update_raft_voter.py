"""UpdateRaftVoter (key 82): a voter of the metadata quorum tells the leader its endpoints and versions (KIP-853).

v0 only. The rules are in `raft.voter_requests` and `raft.voter_changes`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import UpdateRaftVoterRequest, UpdateRaftVoterResponse


class UpdatesVoters(Protocol):
    def update_raft_voter(
        self, request: UpdateRaftVoterRequest
    ) -> UpdateRaftVoterResponse | Pending[UpdateRaftVoterResponse]: ...


def handle(
    node: OnQuorum[UpdatesVoters], request: UpdateRaftVoterRequest, context: Context
) -> UpdateRaftVoterResponse | Pending[UpdateRaftVoterResponse]:
    return node.quorum.update_raft_voter(request)


API = Api(
    key=ApiKey.UPDATE_RAFT_VOTER,
    controller=Served((0, 0), handle, needs=NODES_ONLY),
    is_audited=True,
)
