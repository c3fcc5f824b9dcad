"""The controller's own registration, which it writes when it becomes active (KIP-919)."""

from __future__ import annotations

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.metadata.image import Image
from heirlog.metadata.state import ListenerState
from heirlog.protocol.records import RegisterControllerRecord
from heirlog.protocol.types import Uuid


def own_registration(image: Image, static: StaticConfig, incarnation_id: Uuid) -> RegisterControllerRecord | None:
    """None if this process is registered already and nothing has changed."""
    listeners = tuple(
        ListenerState(listener.name, listener.endpoint) for listener in static.advertised_controller_listeners
    )
    registered = image.controllers.get(static.node_id)
    if registered is not None and registered.incarnation_id == incarnation_id and registered.listeners == listeners:
        return None
    return RegisterControllerRecord(
        controller_id=static.node_id,
        incarnation_id=incarnation_id,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=listener.name, host=listener.endpoint.host, port=listener.endpoint.port, security_protocol=0
            )
            for listener in listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=name,
                min_supported_version=SUPPORTED_FEATURES[name].min_version,
                max_supported_version=SUPPORTED_FEATURES[name].max_version,
            )
            for name in sorted(SUPPORTED_FEATURES)
        ],
    )
