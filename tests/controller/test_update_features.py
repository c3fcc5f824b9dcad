"""UpdateFeatures: levels up and down, and what the ELR takes along."""

from __future__ import annotations

from typing import Any

import pytest
from controller.cluster import alter, create, heartbeat, leading, register, state_of
from controller.fakes import Harness

from heirlog.metadata.apply import apply
from heirlog.metadata.image import BROKER_RESOURCE
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import BrokerRegistrationRequest, UpdateFeaturesRequest
from heirlog.protocol.records import ClearElrRecord, ConfigRecord, FeatureLevelRecord, PartitionChangeRecord

ELR = "eligible.leader.replicas.version"
TRANSACTIONS = "transaction.version"


def update(harness: Harness, feature: str, level: int, kind: int = 1, version: int = 2, **more: Any) -> str:
    asked = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=kind, allow_downgrade=kind > 1
    )
    answer = harness.ask("update_features", UpdateFeaturesRequest(feature_updates=[asked], **more), version)
    assert [result.error_code for result in answer.results] == ([] if answer.error_code else [ErrorCode.NONE])
    return ErrorCode(answer.error_code).name


@pytest.mark.parametrize(
    ("feature", "level", "kind"),
    [
        (ELR, 2, 1),
        (ELR, -1, 2),
        (ELR, 0, 1),
        (ELR, 0, 0),
        (TRANSACTIONS, 3, 1),
        (TRANSACTIONS, 1, 1),
        ("metadata.version", 22, 2),
        ("metadata.version", 22, 3),
        ("metadata.version", 26, 1),
        ("metadata.version", 30, 1),
        ("kraft.version", 0, 2),
        ("group.version", 2, 1),
        ("share.version", 2, 1),
    ],
)
def test_levels_that_nobody_can_have_are_refused(feature: str, level: int, kind: int) -> None:
    harness = leading()
    before = dict(harness.controller.image.features)
    assert update(harness, feature, level, kind) == "INVALID_UPDATE_VERSION"
    assert harness.controller.image.features == before


def test_the_metadata_version_goes_up_and_safely_down() -> None:
    harness = leading()
    assert update(harness, "metadata.version", 29) == "NONE"
    assert harness.controller.image.metadata_version == 29
    assert update(harness, "metadata.version", 23, 2) == "NONE"
    assert update(harness, "metadata.version", 24, 1, version=0) == "NONE"
    assert update(harness, "metadata.version", 23, 2, version=0) == "NONE"
    assert harness.controller.image.metadata_version == 23
    assert update(harness, "metadata.version", 28, 2) == "INVALID_UPDATE_VERSION", "a downgrade does not raise it"


def test_kraft_version_is_raised_by_the_quorum_and_answered_at_its_commit() -> None:
    harness = Harness()
    harness.lead()
    harness.commit()
    harness.quorum.kraft_version = 0
    written = harness.quorum.log_end_offset
    assert update(harness, "kraft.version", 1, validate_only=True) == "NONE"
    assert (harness.quorum.log_end_offset, harness.quorum.kraft_version) == (written, 0)
    asked = UpdateFeaturesRequest.FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    answer = harness.leave("update_features", UpdateFeaturesRequest(feature_updates=[asked]), 2)
    assert not answer.is_there
    assert harness.commit() == [], "no record of the image"
    assert answer.get().error_code == ErrorCode.NONE
    assert (harness.quorum.log_end_offset, harness.quorum.kraft_version) == (written + 2, 1)
    assert update(harness, "kraft.version", 1) == "NONE"
    assert harness.quorum.log_end_offset == written + 2
    assert update(harness, "kraft.version", 0, 3) == "INVALID_UPDATE_VERSION"


def test_transaction_version_goes_down_and_up_by_any_step_at_any_metadata_version() -> None:
    harness = leading()
    assert update(harness, "metadata.version", 23, 2) == "NONE"
    for level, kind in ((1, 2), (0, 2), (2, 1), (0, 3), (1, 1), (2, 1)):
        assert update(harness, TRANSACTIONS, level, kind) == "NONE"
        assert harness.controller.image.transaction_version == level


def test_a_broker_without_transaction_version_joins_only_at_level_0() -> None:
    harness = leading()
    older = [_feature("metadata.version", 23, 29), _feature(ELR, 0, 1), *NEWER_GROUPS]
    assert register(harness, 4, features=older).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert update(harness, TRANSACTIONS, 0, 2) == "NONE"
    assert register(harness, 4, features=older).error_code == ErrorCode.NONE
    assert update(harness, TRANSACTIONS, 2) == "INVALID_UPDATE_VERSION"


def test_a_broker_without_group_version_joins_only_at_level_0() -> None:
    harness = leading()
    older = [_feature("metadata.version", 23, 29), _feature(ELR, 0, 1), _feature(TRANSACTIONS, 0, 2), NEWER_GROUPS[1]]
    assert register(harness, 4, features=older).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert update(harness, "group.version", 0, 1) == "INVALID_UPDATE_VERSION"
    assert update(harness, "group.version", 0, 2) == "NONE"
    assert register(harness, 4, features=older).error_code == ErrorCode.NONE
    assert update(harness, "group.version", 1) == "INVALID_UPDATE_VERSION"


def test_a_level_that_a_registered_broker_lacks_is_refused() -> None:
    harness = leading()
    assert update(harness, "metadata.version", 27, 2) == "NONE"
    register(
        harness,
        4,
        features=[
            _feature("metadata.version", 23, 27),
            _feature(ELR, 0, 1),
            _feature(TRANSACTIONS, 0, 2),
            *NEWER_GROUPS,
        ],
    )
    assert update(harness, "metadata.version", 28) == "INVALID_UPDATE_VERSION"


def _feature(name: str, low: int, high: int) -> Any:
    return BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)


NEWER_GROUPS = _feature("group.version", 0, 1), _feature("share.version", 0, 1)


def test_a_dry_run_writes_nothing_and_a_level_that_is_there_only_itself() -> None:
    harness = leading()
    written = harness.quorum.log_end_offset
    assert update(harness, ELR, 0, 2, validate_only=True) == "NONE"
    assert update(harness, "metadata.version", harness.controller.image.metadata_version) == "NONE"
    assert harness.quorum.log_end_offset == written
    assert update(harness, ELR, 1) == "NONE"
    assert harness.quorum.log_end_offset == written + 1


def test_enabling_the_elr_leaves_one_min_isr_for_all() -> None:
    harness = leading(min_insync_replicas="2")
    update(harness, ELR, 0, 2)
    image = harness.controller.image
    image.set_config(BROKER_RESOURCE, "", "min.insync.replicas", None)
    image.set_config(BROKER_RESOURCE, "1", "min.insync.replicas", "3")
    assert update(harness, ELR, 1) == "NONE"
    records = harness.quorum.log[-1].records
    assert [type(record) for record in records] == [ConfigRecord, ConfigRecord, FeatureLevelRecord]
    assert [(record.resource_name, record.value) for record in records[:2]] == [("", "2"), ("1", None)]


def lonely(**config: str) -> Harness:
    """Every broker of foo-0 has stopped; 3 was the last, 2 is eligible."""
    harness = leading(brokers=3, **config)
    create(harness, min_insync_replicas="2")
    for broker in (1, 2, 3):
        heartbeat(harness, broker, want_fence=True)
    return harness


def test_a_downgrade_makes_the_eligible_replicas_the_isr_and_empties_the_lists() -> None:
    harness = lonely()
    assert state_of(harness).elr == (2, 3)
    assert update(harness, ELR, 0, 2) == "NONE"
    records = harness.quorum.log[-1].records
    assert [type(record) for record in records] == [PartitionChangeRecord, FeatureLevelRecord, ClearElrRecord]
    state = state_of(harness)
    assert (state.isr, state.elr, state.last_known_elr, state.leader) == ((2, 3), (), (), -1)


def test_after_a_downgrade_a_former_eligible_replica_returns_and_leads() -> None:
    harness = lonely()
    update(harness, ELR, 0, 2)
    heartbeat(harness, 1)
    assert state_of(harness).leader == -1
    heartbeat(harness, 2)
    assert (state_of(harness).leader, state_of(harness).leader_recovery_state) == (2, 0)


def test_who_lost_data_while_the_feature_was_off_is_not_eligible_after_the_upgrade() -> None:
    harness = leading(brokers=3)
    create(harness, min_insync_replicas="2")
    leader = state_of(harness).leader
    alter(harness, [leader])
    lost = state_of(harness).elr[0]
    update(harness, ELR, 0, 2)
    heartbeat(harness, lost, want_fence=True)
    register(harness, lost, life=1)
    update(harness, ELR, 1)
    heartbeat(harness, leader, want_fence=True)
    heartbeat(harness, lost)
    state = state_of(harness)
    assert state.leader == -1 and lost not in state.elr


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({}, "The replica with the best log leads once every replica has answered: foo-0."),
        (
            {"unclean.recovery.strategy": "Aggressive"},
            "The replica with the best log among those that answer within seconds leads",
        ),
        ({"unclean.recovery.strategy": "None"}, "An operator has to decide (heirlog recover plan): foo-0."),
        ({"unclean.recovery.manager.enabled": "false"}, "An operator has to decide (an unclean election): foo-0."),
        (
            {"unclean.recovery.manager.enabled": "false", "unclean.leader.election.enable": "true"},
            "The first replica that returns leads, whatever its log holds: foo-0.",
        ),
    ],
)
def test_partitions_without_a_complete_replica_are_named_with_who_decides_there(
    config: dict[str, str], what: str
) -> None:
    harness = lonely(**config)
    image = harness.controller.image
    topic_id = image.topic_ids["foo"]
    nobody = PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=[], eligible_leader_replicas=[], leader=-1)
    for record in (nobody, ClearElrRecord(topic_name="")):
        apply(image, record, image.offset, image.epoch)
    asked = UpdateFeaturesRequest.FeatureUpdateKey(feature=ELR, max_version_level=0, upgrade_type=2)
    for dry in (True, False):
        request = UpdateFeaturesRequest(feature_updates=[asked], validate_only=dry)
        answer = harness.ask("update_features", request, 2)
        assert answer.error_code == 0 and what in answer.error_message
