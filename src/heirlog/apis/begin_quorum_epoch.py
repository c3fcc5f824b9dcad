"""BeginQuorumEpoch (key 53): the new leader of the metadata quorum announces its epoch (KIP-595).

v1 directory ids and the leader's endpoints (KIP-853). The rules are in `raft.epoch_requests`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse


class FollowsLeaders(Protocol):
    def begin_quorum_epoch(
        self, request: BeginQuorumEpochRequest
    ) -> BeginQuorumEpochResponse | Pending[BeginQuorumEpochResponse]: ...


def handle(
    node: OnQuorum[FollowsLeaders], request: BeginQuorumEpochRequest, context: Context
) -> BeginQuorumEpochResponse | Pending[BeginQuorumEpochResponse]:
    return node.quorum.begin_quorum_epoch(request)


API = Api(
    key=ApiKey.BEGIN_QUORUM_EPOCH,
    controller=Served((0, 1), handle, needs=NODES_ONLY),
)
