"""Whether the recovery manager begins switched on: alone, among controllers of heirlog, and beside Apache Kafka's."""

from __future__ import annotations

from typing import Any

import pytest
from controller.fakes import CONTROLLER_ID, Harness, voters
from controller.registering import register_controller, registration

from heirlog.controller.bootstrap import bootstrap_records, format_records
from heirlog.controller.first_recovery_level import VOTERS_WAIT_MS
from heirlog.metadata.state import RECOVERY_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import UpdateFeaturesRequest

OTHERS = (3001, 3002)
LEVELS_OF_KAFKA = {
    "metadata.version": 29,
    "eligible.leader.replicas.version": 1,
    "transaction.version": 2,
    "group.version": 1,
    "share.version": 1,
}


def leader(**config: str) -> Harness:
    """The first active controller of three voters."""
    harness = Harness(**config)
    harness.quorum.voters = voters(CONTROLLER_ID, *OTHERS)
    harness.lead()
    commit_all(harness)
    return harness


def commit_all(harness: Harness) -> None:
    """With what the controller appends because of the commit."""
    harness.env.advance(0)
    while harness.quorum.uncommitted:
        harness.commit()
        harness.env.advance(0)


def level(harness: Harness) -> int | None:
    commit_all(harness)
    return harness.controller.image.features.get(RECOVERY_VERSION)


def register_kafka(harness: Harness, controller: int) -> None:
    """Apache Kafka's controllers do not name a feature that they do not know."""
    request = registration(controller)
    request.features = [feature for feature in request.features if feature.name != RECOVERY_VERSION]
    assert harness.ask("controller_registration", request, 0).error_code == ErrorCode.NONE


def raised(harness: Harness) -> Any:
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=RECOVERY_VERSION, max_version_level=1, upgrade_type=1)
    return harness.ask("update_features", UpdateFeaturesRequest(feature_updates=[update]), 2)


def test_among_several_voters_the_manager_begins_once_all_of_them_have_registered() -> None:
    harness = leader()
    for controller in (CONTROLLER_ID, *OTHERS):
        assert level(harness) is None and not harness.controller.recovery.enabled
        register_controller(harness, controller)
    assert level(harness) == 1
    assert harness.controller.recovery.enabled


def test_beside_a_controller_of_apache_kafka_it_begins_off_and_the_log_says_why() -> None:
    harness = leader()
    register_controller(harness, CONTROLLER_ID)
    register_kafka(harness, OTHERS[0])
    assert level(harness) == 0
    logged = [more for event, more in harness.env.events if event == "recovery-manager-begins-off"]
    assert logged == [{"controllers_without_it": [OTHERS[0]]}]
    register_controller(harness, OTHERS[1])
    assert level(harness) == 0


def test_it_is_not_raised_before_each_controller_of_apache_kafka_was_replaced() -> None:
    harness = leader()
    for controller in OTHERS:
        register_kafka(harness, controller)
    assert level(harness) == 0
    for controller in OTHERS:
        refused = raised(harness)
        assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert f"Controller {controller} supports versions 0-0 of it only." in refused.error_message
        assert "Start a controller of heirlog with this node id in its place first" in refused.error_message
        register_controller(harness, controller, life=1)
    assert raised(harness).error_code == ErrorCode.NONE
    assert level(harness) == 1


def test_a_log_that_apache_kafka_began_gets_level_0() -> None:
    harness = Harness()
    harness.quorum.voters = voters(CONTROLLER_ID, *OTHERS)
    harness.load(format_records(LEVELS_OF_KAFKA))
    harness.lead()
    assert level(harness) is None
    register_kafka(harness, OTHERS[1])
    assert level(harness) == 0


def test_a_voter_that_does_not_come_within_a_minute_is_not_waited_for() -> None:
    harness = leader()
    register_controller(harness, CONTROLLER_ID)
    register_controller(harness, OTHERS[0])
    harness.env.advance(VOTERS_WAIT_MS - 1)
    assert level(harness) is None
    harness.env.advance(1)
    assert level(harness) == 1


def test_a_controller_that_takes_over_before_the_level_is_known_decides_it() -> None:
    harness = leader()
    register_controller(harness, OTHERS[0])
    harness.lose()
    harness.lead()
    assert level(harness) is None
    for controller in (CONTROLLER_ID, OTHERS[1]):
        register_controller(harness, controller)
    assert level(harness) == 1


def test_a_level_that_an_operator_has_set_meanwhile_stays() -> None:
    harness = leader()
    assert raised(harness).error_code == ErrorCode.NONE
    register_kafka(harness, OTHERS[0])
    harness.env.advance(2 * VOTERS_WAIT_MS)
    assert level(harness) == 1


def test_a_manager_that_is_switched_off_needs_nobody_and_neither_does_the_only_voter() -> None:
    assert level(leader(unclean_recovery_manager_enabled="false")) == 0
    alone = Harness()
    alone.lead()
    assert level(alone) == 1


@pytest.mark.parametrize("given", [0, 1])
def test_a_formatted_level_counts_for_more_than_the_configuration(given: int) -> None:
    harness = Harness(unclean_recovery_manager_enabled=str(not given).lower())
    formatted = format_records({"metadata.version": 27, RECOVERY_VERSION: given})
    held_back = bootstrap_records(harness.static, formatted, is_only_voter=False)
    names = [getattr(record, "name", "") for record in held_back]
    assert (RECOVERY_VERSION in names) is (given == 0)
    harness.controller._bootstrap = tuple(formatted)
    harness.quorum.voters = voters(CONTROLLER_ID, OTHERS[0])
    harness.lead()
    for controller in (CONTROLLER_ID, OTHERS[0]):
        commit_all(harness)
        register_controller(harness, controller)
    assert level(harness) == given
