"""Which configurations a node changes for a client, and who does it.

    this node's loggers                         itself: `broker_loggers.py`
    on a broker, the configuration of another   nobody: clients are expected to send it to that broker, as on Kafka
    everything else                             the active controller

The answers come back in the order of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heirlog.metadata.image import BROKER_RESOURCE
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from heirlog.node.node import Node


def answer_with(
    resources: list[Any],
    local: list[Any],
    request_of: Callable[[list[Any]], Any],
    response_class: Any,
    ask: Callable[[Any], Any],
) -> Any:
    """A response, or `Pending` for one: what `ask` (the controller) answers, with our own answers put between.

    local: per resource our answer, None where it is the controller's to give.
    """
    others = [resource for resource, mine in zip(resources, local, strict=True) if mine is None]
    if not others:
        return response_class(responses=local)
    answer = ask(request_of(others))
    if len(others) == len(resources):
        return answer
    merged: Pending[Any] = Pending()

    def answered(response: Any) -> None:
        answers = iter(response.responses)
        merged.complete(response_class(responses=[mine or next(answers) for mine in local]))

    if isinstance(answer, Pending):
        merged.on_abandon = answer.abandon
        answer.then(answered)
    else:
        answered(answer)
    return merged


def refusal(node: Node, resource: Any, response_class: Any) -> Any:
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
