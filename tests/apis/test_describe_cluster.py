"""DescribeCluster: brokers on their listeners, controllers on theirs, and operations on the cluster."""

from __future__ import annotations

from typing import Any

import pytest
from apis.described import context, image_with
from apis.guarded import C_DENIED, CLUSTER, CONTROLLER, Guarded

from heirlog.apis import describe_cluster
from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeClusterRequest
from heirlog.protocol.records import BrokerRegistrationChangeRecord

EXAMPLE = DescribeClusterRequest(), None
REFUSES_NOTHING = "every client sees the brokers"


def test_fenced_brokers_are_shown_on_request_only(port: Any) -> None:
    def ids(**more: Any) -> list[int]:
        return [b.broker_id for b in describe_cluster.handle(port, DescribeClusterRequest(**more), context(2)).brokers]

    assert ids() == [1, 2]
    assert ids(include_fenced_brokers=True) == [1, 2, 3]
    refused = describe_cluster.handle(port, DescribeClusterRequest(endpoint_type=2), context(2))
    assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    unknown = describe_cluster.handle(port, DescribeClusterRequest(endpoint_type=3), context(1))
    assert unknown.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    without_types = describe_cluster.handle(port, DescribeClusterRequest(endpoint_type=2), context(0))
    assert without_types.error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_that_is_fenced_like_all_others_shows_itself(port: Any) -> None:
    changes = [BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number, fenced=1) for number in (1, 2)]
    port.image = image_with(*changes)
    answer = describe_cluster.handle(port, DescribeClusterRequest(), context(2))
    assert [(found.broker_id, found.is_fenced) for found in answer.brokers] == [(1, True)]
    assert answer.controller_id == 1


def test_a_controller_describes_controllers_to_operators(node: Guarded) -> None:
    asked = DescribeClusterRequest(endpoint_type=describe_cluster.CONTROLLERS)
    assert node.ask(asked, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.ALTER, CLUSTER)
    answer = node.ask(asked, listener=CONTROLLER)
    assert (answer.error_code, answer.endpoint_type, answer.controller_id) == (0, describe_cluster.CONTROLLERS, 1)
    assert [found.broker_id for found in answer.brokers] == [1]
    brokers = node.ask(DescribeClusterRequest(), listener=CONTROLLER)
    assert (brokers.error_code, brokers.brokers) == (ErrorCode.MISMATCHED_ENDPOINT_TYPE, [])
    assert "this is a listener of controllers" in brokers.error_message


@pytest.mark.parametrize("version", range(3))
def test_authorized_operations_are_shown_on_request_to_clients_that_may_describe_the_cluster(
    node: Guarded, version: int
) -> None:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert node.ask(asked, version).cluster_authorized_operations == 0
    node.allow(AclOperation.ALTER, CLUSTER)
    expected = 1 << AclOperation.ALTER | 1 << AclOperation.DESCRIBE
    assert node.ask(asked, version).cluster_authorized_operations == expected
    assert node.ask(DescribeClusterRequest(), version).cluster_authorized_operations == -(2**31)


def test_a_controller_shows_the_operations_that_are_allowed_too(node: Guarded) -> None:
    node.allow(AclOperation.ALTER, CLUSTER)
    asked = DescribeClusterRequest(
        endpoint_type=describe_cluster.CONTROLLERS, include_cluster_authorized_operations=True
    )
    expected = 1 << AclOperation.ALTER | 1 << AclOperation.DESCRIBE
    assert node.ask(asked, listener=CONTROLLER).cluster_authorized_operations == expected
