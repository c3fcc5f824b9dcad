"""BrokerRegistration as a handler: epochs, versions before log directories, and senders without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.cluster import epoch_of, heartbeat, leading, register
from controller.fakes import CLUSTER as CLUSTER_ID
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import BrokerRegistrationRequest
from heirlog.testing.conformance.controller_layer import directory, incarnation


def test_a_broker_enters_fenced_with_a_higher_epoch_than_any_before() -> None:
    harness = leading(brokers=1)
    first = register(harness, 2)
    assert first.error_code == ErrorCode.NONE
    assert harness.controller.image.brokers[2].fenced  # type: ignore[index]
    again = register(harness, 2, life=1)
    assert again.broker_epoch > first.broker_epoch > epoch_of(harness, 1)


@pytest.mark.parametrize("version", [0, 1])
def test_versions_without_log_directories_are_answered_and_refused(version: int) -> None:
    harness = leading(brokers=1)
    levels = BrokerRegistrationRequest.Feature(
        name="metadata.version", min_supported_version=23, max_supported_version=29
    )
    request = BrokerRegistrationRequest(
        broker_id=2, cluster_id=CLUSTER_ID, incarnation_id=incarnation(2, 0), features=[levels]
    )
    answer = harness.ask("broker_registration", request, version)
    assert (answer.error_code, answer.broker_epoch) == (ErrorCode.INVALID_REGISTRATION, -1)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(1, 0)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_a_bad_registration_is_refused_and_the_log_says_why(change: dict[str, Any], code: ErrorCode) -> None:
    harness = leading(brokers=1)
    assert register(harness, 2, **change).error_code == code
    assert 2 not in harness.controller.image.brokers
    assert [values["reason"] for event, values in harness.env.events if event == "request-refused"]


def test_a_second_process_is_refused_while_the_first_is_alive() -> None:
    harness = leading(brokers=2)
    assert register(harness, 2, life=1).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    heartbeat(harness, 2, want_fence=True)
    harness.controller.expire_session(2, "test")  # type: ignore[arg-type]
    harness.commit()
    assert register(harness, 2, life=1).error_code == ErrorCode.NONE


def test_a_controller_that_is_not_active_refuses() -> None:
    assert register(Harness(), 2).error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_may_send_it(node: Guarded) -> None:
    request = BrokerRegistrationRequest(broker_id=77, cluster_id="another")
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
