"""The rules of ControllerRegistration: the newest one of a node counts, and feature levels respect all of them."""

from __future__ import annotations

from controller.cluster import leading
from controller.fakes import Harness
from controller.registering import register_controller

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UpdateFeaturesRequest
from heirlog.protocol.types import Endpoint
from heirlog.testing.conformance.controller_layer import incarnation


def test_a_registration_names_listeners_and_features() -> None:
    harness = leading(brokers=0)
    assert register_controller(harness, 101, host="b").error_code == ErrorCode.NONE
    (known,) = harness.controller.image.controllers.values()
    assert (known.id, known.incarnation_id) == (101, incarnation(101, 0))
    assert [(listener.name, listener.endpoint) for listener in known.listeners] == [("CONTROLLER", Endpoint("b", 9093))]
    assert ("metadata.version", 23, 29) in [
        (feature.name, feature.min_version, feature.max_version) for feature in known.features
    ]


def test_a_new_process_replaces_the_earlier_one_of_its_node() -> None:
    harness = leading(brokers=0)
    register_controller(harness, 101)
    register_controller(harness, 102)
    register_controller(harness, 101, life=1)
    lives = {number: known.incarnation_id for number, known in harness.controller.image.controllers.items()}
    assert lives == {101: incarnation(101, 1), 102: incarnation(102, 0)}


def test_a_repeated_registration_writes_nothing() -> None:
    harness = leading(brokers=0)
    register_controller(harness, 101)
    end = harness.quorum.log_end_offset
    assert register_controller(harness, 101).error_code == ErrorCode.NONE
    assert harness.quorum.log_end_offset == end
    register_controller(harness, 101, host="another")
    assert harness.quorum.log_end_offset == end + 1, "the same process with another address"


def test_a_controller_that_is_not_active_refuses() -> None:
    assert register_controller(Harness(), 101).error_code == ErrorCode.NOT_CONTROLLER


def test_a_registration_survives_a_fail_over() -> None:
    harness = leading(brokers=0)
    register_controller(harness, 101)
    harness.lose()
    harness.lead()
    assert list(harness.controller.image.controllers) == [101]


def test_a_level_that_a_registered_controller_does_not_support_is_refused() -> None:
    harness = leading(brokers=0)
    register_controller(harness, 101)
    register_controller(harness, 102, metadata_version=(23, 28))
    refused = raise_metadata_version(harness, 29)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Controller 102 supports versions 23-28 of it only" in refused.error_message
    register_controller(harness, 102, life=1)
    assert raise_metadata_version(harness, 29).error_code == ErrorCode.NONE


def raise_metadata_version(harness: Harness, level: int):  # type: ignore[no-untyped-def]
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="metadata.version", max_version_level=level, upgrade_type=1)
    return harness.ask("update_features", UpdateFeaturesRequest(feature_updates=[update]), 2)
