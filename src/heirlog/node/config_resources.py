"""Which configurations a broker forwards for a client: not those of another broker.

As on Kafka: a broker takes changes of topics, of the cluster-wide default and of itself, because clients are expected
to send a broker's configuration to that broker. The rest of the request is forwarded, and the answers come back in the
order of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heirlog.metadata.image import BROKER_RESOURCE
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from heirlog.node.node import Node


def forward_own(
    node: Node,
    resources: list[Any],
    request_of: Callable[[list[Any]], Any],
    response_class: Any,
    forward: Callable[[Any], Pending[Any]],
) -> Any:
    """A response, or `Pending` for that of the controller with our refusals put between its answers."""
    refusals = [_refusal(node, resource, response_class) for resource in resources]
    own = [resource for resource, refusal in zip(resources, refusals, strict=True) if refusal is None]
    if not own:
        return response_class(responses=refusals)
    answer = forward(request_of(own))
    if len(own) == len(resources):
        return answer
    merged: Pending[Any] = Pending()

    def answered(response: Any) -> None:
        answers = iter(response.responses)
        merged.complete(response_class(responses=[refusal or next(answers) for refusal in refusals]))

    answer.then(answered)
    merged.on_abandon = answer.abandon
    return merged


def _refusal(node: Node, resource: Any, response_class: Any) -> Any:
    kind, name, me = resource.resource_type, resource.resource_name, str(node.config.node_id)
    if kind != BROKER_RESOURCE or name in ("", me):
        return None
    if name.isdecimal():
        reason = f"Unexpected broker id, expected {me}, but received {name}"
    else:
        reason = f"Node id must be an integer, but it is: {name}"
    return response_class.AlterConfigsResourceResponse(
        resource_type=kind, resource_name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=reason
    )
