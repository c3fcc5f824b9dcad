"""Vote (key 52): a node that wants to lead the metadata quorum asks for this voter's vote (KIP-595).

v1 directory ids and the leader's endpoint (KIP-853), v2 pre-votes (KIP-996). The rules are in `raft.epoch_requests`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import VoteRequest, VoteResponse


class HasVote(Protocol):
    def vote(self, request: VoteRequest) -> VoteResponse | Pending[VoteResponse]: ...


def handle(node: OnQuorum[HasVote], request: VoteRequest, context: Context) -> VoteResponse | Pending[VoteResponse]:
    return node.quorum.vote(request)


API = Api(
    key=ApiKey.VOTE,
    controller=Served((0, 2), handle, needs=NODES_ONLY),
)
