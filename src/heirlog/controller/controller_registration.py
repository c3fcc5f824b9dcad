"""ControllerRegistration: what a controller process tells the cluster about itself.

The registration of a node replaces the earlier one of the same node. It names the listeners, for DescribeCluster, and
the features: a level that one registered controller does not support is refused (`update_features.py`), because each
controller may become active next. A registration stays when its controller leaves the quorum, as on Apache Kafka.

The request repeats until the sender sees its registration in the metadata log, so a repetition writes nothing.

Source: KIP-919.
"""

from __future__ import annotations

from heirlog.controller.controller_result import ControllerResult
from heirlog.metadata.as_records import controller_record
from heirlog.metadata.image import Image
from heirlog.metadata.state import ControllerRegistration, ListenerState, SupportedFeature
from heirlog.protocol.messages import ControllerRegistrationRequest, ControllerRegistrationResponse
from heirlog.protocol.types import BrokerId, Endpoint, Uuid


def register_controller(
    image: Image, request: ControllerRegistrationRequest
) -> ControllerResult[ControllerRegistrationResponse]:
    """The record of one registration; none if the image has it already."""
    registration = ControllerRegistration(
        id=BrokerId(request.controller_id),
        incarnation_id=Uuid(request.incarnation_id),
        listeners=tuple(
            ListenerState(listener.name, Endpoint(listener.host, listener.port), listener.security_protocol)
            for listener in request.listeners
        ),
        features=tuple(
            SupportedFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        ),
    )
    is_known = image.controllers.get(registration.id) == registration
    return ControllerResult(
        lambda base_offset: ControllerRegistrationResponse(), [] if is_known else [controller_record(registration)]
    )
