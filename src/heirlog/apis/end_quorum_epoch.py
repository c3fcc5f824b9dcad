"""EndQuorumEpoch (key 54): the leader of the metadata quorum resigns, and names its successors (KIP-595).

v1 directory ids and the leader's endpoints (KIP-853). The rules are in `raft.epoch_requests`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import EndQuorumEpochRequest, EndQuorumEpochResponse


class ReplacesLeaders(Protocol):
    def end_quorum_epoch(
        self, request: EndQuorumEpochRequest
    ) -> EndQuorumEpochResponse | Pending[EndQuorumEpochResponse]: ...


def handle(
    node: OnQuorum[ReplacesLeaders], request: EndQuorumEpochRequest, context: Context
) -> EndQuorumEpochResponse | Pending[EndQuorumEpochResponse]:
    return node.quorum.end_quorum_epoch(request)


API = Api(
    key=ApiKey.END_QUORUM_EPOCH,
    controller=Served((0, 1), handle, needs=NODES_ONLY),
)
