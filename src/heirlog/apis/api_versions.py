"""ApiVersions (key 18): what this listener serves, and the cluster's features.

v1 throttle time, v2 nothing new, v3 flexible with the client's name and features, v4 lets a feature's minimum be 0 (in
v3 such a feature is left out, since older Java clients refuse a zero). The response header is always version 0.
An unknown version is answered before a handler is chosen (`node.wire`).
Source: KIP-35, KIP-511, KIP-584; KAFKA-17011 for the zero minimum.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Served
from heirlog.apis.common.ports import HasImage, Listens, OnQuorum
from heirlog.context import Context
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.metadata.image import KRAFT_VERSION
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ApiVersionsRequest, ApiVersionsResponse


class HasKRaftVersion(Protocol):
    @property
    def kraft_version(self) -> int:
        """Level of the quorum's own protocol, as this node's copy of the metadata log has it."""


class Node(HasImage, Listens, OnQuorum[HasKRaftVersion], Protocol):
    pass


def handle(node: Node, request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    if context.api_version >= 3 and not _valid_software(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    image = node.image
    # the quorum's own level is no metadata record; tools look for it among the others
    finalized = {**image.features, KRAFT_VERSION: node.quorum.kraft_version}
    return ApiVersionsResponse(
        api_keys=node.api_keys(context.listener),
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(
                name=name, min_version=levels.min_version, max_version=levels.max_version
            )
            for name, levels in sorted(SUPPORTED_FEATURES.items())
            if levels.min_version > 0 or context.api_version >= 4
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(finalized.items())
            if level > 0
        ],
    )


def _valid_software(request: ApiVersionsRequest) -> bool:
    """KIP-511: both names match [a-zA-Z0-9](?:[a-zA-Z0-9\\-.]*[a-zA-Z0-9])?"""
    return all(
        text.isascii()
        and text.replace("-", "a").replace(".", "a").isalnum()
        and text[0].isalnum()
        and text[-1].isalnum()
        for text in (request.client_software_name, request.client_software_version)
    )


API = Api(
    key=ApiKey.API_VERSIONS,
    broker=Served((0, 4), handle),
    controller=Served((0, 4), handle),
    remarks="an unknown version is answered in version 0 with UNSUPPORTED_VERSION",
)
