"""ElectLeaders as a handler: types by version, the limit of version 3, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import C_DENIED, CLUSTER, Guarded
from controller.cluster import create, leading
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ElectLeadersRequest

PREFERRED, UNCLEAN, BALANCED = 0, 1, 2
EXAMPLE = ElectLeadersRequest(topic_partitions=[]), 2


def electing(*partitions: int, topic: str = "foo", **more: Any) -> ElectLeadersRequest:
    asked = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=list(partitions))
    return ElectLeadersRequest(topic_partitions=[asked], **more)


def codes(answer: Any) -> list[int]:
    return [found.error_code for topic in answer.replica_election_results for found in topic.partition_result]


@pytest.fixture
def harness() -> Harness:
    """Brokers 1 to 3, and a topic foo of two partitions that their first replicas lead."""
    harness = leading()
    create(harness, partitions=2)
    return harness


@pytest.mark.parametrize("version", range(4))
def test_a_preferred_leader_that_leads_needs_no_election(harness: Harness, version: int) -> None:
    request = electing(0, 7, election_type=PREFERRED)
    expected = [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes(harness.ask("elect_leaders", request, version)) == expected


@pytest.mark.parametrize(("version", "kind"), [(2, BALANCED), (1, 9), (3, 9)])
def test_a_type_that_the_version_does_not_have_refuses_the_whole_request(
    harness: Harness, version: int, kind: int
) -> None:
    answer = harness.ask("elect_leaders", electing(0, 1, election_type=kind), version)
    assert (answer.error_code, codes(answer)) == (ErrorCode.INVALID_REQUEST, [ErrorCode.INVALID_REQUEST] * 2)


def test_version_3_serves_a_thousand_partitions_and_says_so_of_the_others(harness: Harness) -> None:
    answer = harness.ask("elect_leaders", electing(*range(1001), election_type=BALANCED), 3)
    *served, last = answer.replica_election_results[0].partition_result
    assert ErrorCode.REQUEST_LIMIT_REACHED not in {found.error_code for found in served}
    assert last.error_code == ErrorCode.REQUEST_LIMIT_REACHED
    assert "repeat the request for this one" in last.error_message
    older = harness.ask("elect_leaders", electing(*range(1001), election_type=UNCLEAN), 2)
    assert ErrorCode.REQUEST_LIMIT_REACHED not in codes(older)


def test_every_partition_is_meant_by_null_and_those_without_need_are_left_out(harness: Harness) -> None:
    answer = harness.ask("elect_leaders", ElectLeadersRequest(topic_partitions=None), 2)
    assert [topic.topic for topic in answer.replica_election_results] == ["foo"]
    assert codes(answer) == []


def test_a_controller_that_is_not_active_refuses_each_partition() -> None:
    answer = Harness().ask("elect_leaders", electing(0, 1), 1)
    assert (answer.error_code, codes(answer)) == (ErrorCode.NOT_CONTROLLER, [ErrorCode.NOT_CONTROLLER] * 2)


@pytest.mark.parametrize("operation", [AclOperation.ALTER, AclOperation.CLUSTER_ACTION])
def test_one_of_two_permissions_on_the_cluster_is_enough(node: Guarded, operation: AclOperation) -> None:
    refused = node.ask(electing(0, topic="t"), 2)
    assert (refused.error_code, codes(refused)) == (C_DENIED, [C_DENIED])
    node.allow(operation, CLUSTER)
    assert codes(node.ask(electing(0, topic="t"), 2)) == [ErrorCode.ELECTION_NOT_NEEDED]
