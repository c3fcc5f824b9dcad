"""UpdateFeatures (key 57): the active controller executes it, brokers forward it (KIP-584, KIP-590).

v0 one flag for downgrades, v1 upgrade types and dry run (KIP-778), v2 one result for all (KIP-1022). The rules are in
`controller.update_features`.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController, OnQuorum
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.controller.update_features import KRaftVersionPort, update_features
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse


def refused(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    """Also per feature: versions 0 and 1 have a result for each."""
    return UpdateFeaturesResponse(
        error_code=code,
        error_message=sentence(code),
        results=[
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature, error_code=code, error_message=sentence(code)
            )
            for update in request.feature_updates
        ],
    )


class Node(OnController[ChangesMetadata], OnQuorum[KRaftVersionPort], Protocol):
    pass


def handle(node: Node, request: UpdateFeaturesRequest, context: Context) -> Reply[UpdateFeaturesResponse]:
    controller = node.controller
    return controller.submit(
        lambda: update_features(controller.image, controller.static, node.quorum, request, context.api_version),
        partial(refused, request),
    )


API = Api(
    key=ApiKey.UPDATE_FEATURES,
    broker=Forwarded((0, 2)),
    controller=Served((0, 2), handle, needs=ALTER_CLUSTER),
    refused=refused,
    is_change=True,
    remarks=(
        "`metadata.version` 23 to 29, `eligible.leader.replicas.version` 0 and 1, `kraft.version` 0 and 1, "
        "`transaction.version` 0 to 2, `heirlog.recovery.version` 0 and 1"
    ),
)
