"""ApiVersions: what is advertised, features by version, and clients that misname themselves."""

from __future__ import annotations

from typing import Any

import pytest
from apis.described import context, image_with
from apis.guarded import CONTROLLER, Guarded

from heirlog.apis import api_versions
from heirlog.apis.common.api import Role
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.node.router import ROUTES
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ApiVersionsRequest
from heirlog.protocol.records import FeatureLevelRecord


def test_apis_and_features_are_shown(port: Any) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    newest = api_versions.handle(port, request, context(4))
    shown = {key for key, route in ROUTES[Role.BROKER].items() if route.advertised is not None}
    assert {key.api_key for key in newest.api_keys} == shown < set(ROUTES[Role.BROKER])
    produce = next(key for key in newest.api_keys if key.api_key == 0)
    assert (produce.min_version, produce.max_version) == (0, 13), "librdkafka looks at the minimum"
    finalized = {feature.name for feature in newest.finalized_features}
    assert finalized == {"metadata.version", "eligible.leader.replicas.version", "kraft.version"}
    older = api_versions.handle(port, request, context(3))
    assert all(feature.min_version > 0 for feature in older.supported_features), "KAFKA-17011"


@pytest.mark.parametrize("name", ["", "-x", "a b", "x." * 3, "é", "aéb", "²"])
def test_a_client_that_misnames_itself_is_refused(port: Any, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
    assert api_versions.handle(port, request, context(3)).error_code == ErrorCode.INVALID_REQUEST
    assert api_versions.handle(port, request, context(2)).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("listener", "role"), [("PLAINTEXT", Role.BROKER), (CONTROLLER, Role.CONTROLLER)])
@pytest.mark.parametrize("version", range(5))
def test_each_listener_shows_its_own_apis_to_every_client(
    node: Guarded, version: int, listener: str, role: Role
) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answer = node.ask(request, version, listener=listener)
    assert answer.error_code == ErrorCode.NONE
    advertised = {key: route.advertised for key, route in ROUTES[role].items() if route.advertised is not None}
    assert {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys} == advertised
    assert bool(answer.finalized_features) is (version >= 3)


def test_a_feature_whose_range_begins_at_0_is_shown_from_version_4_on(port: Any) -> None:
    """Older Java clients refuse a zero: KAFKA-17011."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")

    def shown(version: int) -> set[str]:
        return {feature.name for feature in api_versions.handle(port, request, context(version)).supported_features}

    assert shown(4) == set(SUPPORTED_FEATURES)
    assert shown(3) == {name for name, levels in SUPPORTED_FEATURES.items() if levels.min_version > 0}


def test_a_feature_that_is_switched_off_is_not_finalized(port: Any) -> None:
    port.image = image_with(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answer = api_versions.handle(port, request, context(4))
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert finalized == {"metadata.version": 27, "kraft.version": 1}
