"""Which configurations a node changes for a client, and who does it.

    this node's loggers                         itself: `broker_loggers.py`
    on a broker, the configuration of another   nobody: clients are expected to send it to that broker, as on Kafka
    everything else                             the active controller. What a running broker could not follow it refuses
                                                itself: the controller does not know what counts there

The answers come back in the order of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from heirlog.metadata import dynamic_changes
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from heirlog.node.node import Node

KNOWN_RESOURCES = (TOPIC_RESOURCE, BROKER_RESOURCE, 8, 16, GROUP_RESOURCE)
"""Loggers and client metrics among them: Apache Kafka knows these types."""


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


def refusal(
    node: Node, resource: Any, changes_of: Callable[[Image, Any], Mapping[str, str | None]], response_class: Any
) -> Any:
    """Of this broker, instead of the controller's answer; None: it has nothing against it."""
    if resource.resource_type not in KNOWN_RESOURCES:
        reason: str | None = f"Unknown resource type {resource.resource_type}"
    elif resource.resource_type == BROKER_RESOURCE:
        reason = _reason_against(node, resource, changes_of)
    else:
        return None
    if reason is None:
        return None
    return response_class.AlterConfigsResourceResponse(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=reason,
    )


def _reason_against(
    node: Node, resource: Any, changes_of: Callable[[Image, Any], Mapping[str, str | None]]
) -> str | None:
    name, me = resource.resource_name, str(node.config.node_id)
    if name not in ("", me):
        if name.isdecimal():
            return f"Unexpected broker id, expected {me}, but received {name}"
        return f"Node id must be an integer, but it is: {name}"
    try:
        changes = changes_of(node.image, resource)
    except KafkaError:
        return None  # the controller says what is wrong with it
    return dynamic_changes.reason_against(node.image, node.config, name, changes)
