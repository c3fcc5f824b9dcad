"""ControllerRegistration requests of controllers that exist in a test only."""

from __future__ import annotations

from typing import Any

from controller.fakes import Harness

from heirlog.protocol.messages import ControllerRegistrationRequest
from heirlog.testing.conformance.controller_layer import incarnation

RANGES = {
    "metadata.version": (23, 29),
    "eligible.leader.replicas.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "share.version": (0, 1),
    "heirlog.recovery.version": (0, 1),
}


def registration(
    controller: int, life: int = 0, host: str = "h", **ranges: tuple[int, int]
) -> ControllerRegistrationRequest:
    """ranges: other levels of features, with _ instead of each dot."""
    levels = RANGES | {name.replace("_", "."): levels for name, levels in ranges.items()}
    return ControllerRegistrationRequest(
        controller_id=controller,
        incarnation_id=incarnation(controller, life),
        listeners=[ControllerRegistrationRequest.Listener(name="CONTROLLER", host=host, port=9093)],
        features=[
            ControllerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in levels.items()
        ],
    )


def register_controller(harness: Harness, controller: int, life: int = 0, **more: Any) -> Any:
    return harness.ask("controller_registration", registration(controller, life, **more), 0)
