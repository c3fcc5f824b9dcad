"""UpdateFeatures as a handler: results by version, dry runs, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import C_DENIED, CLUSTER, Guarded
from controller.cluster import leading
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UpdateFeaturesRequest

EXAMPLE = UpdateFeaturesRequest(validate_only=True), None
UPGRADE, SAFE_DOWNGRADE = 1, 2


def updating(level: int, kind: int = UPGRADE, feature: str = "metadata.version", **more: Any) -> UpdateFeaturesRequest:
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=kind, allow_downgrade=kind > UPGRADE
    )
    return UpdateFeaturesRequest(feature_updates=[update], **more)


@pytest.mark.parametrize("version", range(3))
def test_a_level_goes_up_and_where_it_is_allowed_down(version: int) -> None:
    harness = leading()
    for level, kind, code in (
        (29, UPGRADE, ErrorCode.NONE),
        (23, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        (23, SAFE_DOWNGRADE, ErrorCode.NONE),
    ):
        answer = harness.ask("update_features", updating(level, kind), version)
        codes = {answer.error_code, *(result.error_code for result in answer.results)}
        assert codes - {ErrorCode.NONE} == {code} - {ErrorCode.NONE}
    assert harness.controller.image.metadata_version == 23


def test_a_dry_run_changes_nothing() -> None:
    harness = leading()
    before = dict(harness.controller.image.features)
    assert harness.ask("update_features", updating(29, validate_only=True), 2).error_code == ErrorCode.NONE
    assert harness.controller.image.features == before


def test_an_unknown_feature_is_refused_with_a_message() -> None:
    answer = leading().ask("update_features", updating(1, feature="no.such.version"), 2)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "no.such.version" in answer.error_message


def test_a_controller_that_is_not_active_refuses_as_a_whole_and_by_feature() -> None:
    answer = Harness().ask("update_features", updating(29), 1)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert [result.error_code for result in answer.results] == [ErrorCode.NOT_CONTROLLER]


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    asked = updating(29, validate_only=True)
    assert node.ask(asked).error_code == C_DENIED
    node.allow(AclOperation.ALTER, CLUSTER)
    assert node.ask(asked).error_code == ErrorCode.NONE
