"""FetchSnapshot (key 59): a byte range of a metadata snapshot (KIP-630).

v1 the replica's directory id, and the leader's address. The rules are in `raft`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse


class HasSnapshots(Protocol):
    def fetch_snapshot(
        self, request: FetchSnapshotRequest
    ) -> FetchSnapshotResponse | Pending[FetchSnapshotResponse]: ...


def handle(
    node: OnQuorum[HasSnapshots], request: FetchSnapshotRequest, context: Context
) -> FetchSnapshotResponse | Pending[FetchSnapshotResponse]:
    return node.quorum.fetch_snapshot(request)


API = Api(
    key=ApiKey.FETCH_SNAPSHOT,
    controller=Served((0, 1), handle, needs=NODES_ONLY),
    has_large_answer=True,
)
