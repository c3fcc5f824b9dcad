"""ControllerRegistration as a handler: what is stored, and senders without permission."""

from __future__ import annotations

from apis.guarded import C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.registering import registration

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import Endpoint
from heirlog.testing.conformance.controller_layer import incarnation


def test_a_node_registers_itself_where_it_is_the_only_controller(node: Guarded) -> None:
    controllers = node.node.image.controllers
    node.wait(lambda: 1 in controllers)
    listeners = [(listener.name, listener.endpoint) for listener in controllers[1].listeners]
    assert listeners == [("CONTROLLER", Endpoint("broker-1", 9093))]


def test_only_nodes_may_send_it(node: Guarded) -> None:
    request = registration(77)
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    assert 77 not in node.node.image.controllers
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.NONE
    node.wait(lambda: 77 in node.node.image.controllers)
    assert node.node.image.controllers[77].incarnation_id == incarnation(77, 0)


def test_brokers_do_not_serve_it(node: Guarded) -> None:
    assert node.ask(registration(77)) is None
