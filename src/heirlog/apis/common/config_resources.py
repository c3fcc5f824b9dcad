"""Which configurations a node changes for a client, and who does it.

    this node's loggers                         itself: `broker_loggers.py`
    on a broker, the configuration of another   no node: clients send it to that broker, as on Kafka
    everything else                             the active controller. A broker refuses itself what comes twice or has
                                                no value, and what it could not follow while it runs: the controller
                                                does not know what counts there

The answers come back in the order of the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from heirlog.apis.common.ports import ConfiguresItself, Forwards
from heirlog.controller.alter_configs import check_keys
from heirlog.controller.configs import check_server_values
from heirlog.metadata import dynamic_changes
from heirlog.metadata.image import BROKER_RESOURCE, Image
from heirlog.metadata.state import RESOURCE_TYPES
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError


class ForwardsConfigs(ConfiguresItself, Forwards, Protocol):
    pass


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
    merged: Pending[Any] = Pending(answer.abandon if isinstance(answer, Pending) else None)

    def answered(response: Any) -> None:
        answers = iter(response.responses)
        # a controller has one answer for a resource that comes twice
        found = [mine or next(answers, None) for mine in local]
        merged.complete(response_class(responses=[each for each in found if each is not None]))

    if isinstance(answer, Pending):
        answer.then(answered)
    else:
        answered(answer)
    return merged


def refusals(
    node: ConfiguresItself,
    resources: Sequence[Any],
    changes_of: Callable[[Image, Any], Mapping[str, str | None]],
    response_class: Any,
) -> list[Any]:
    """Of this broker, instead of the controller's answers; None: it has nothing against it."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    return [
        _refusal(
            resource,
            "Each resource must appear at most once."
            if times[resource.resource_type, resource.resource_name] > 1
            else _reason_against(node, resource, changes_of),
            response_class,
        )
        for resource in resources
    ]


def _refusal(resource: Any, reason: str | None, response_class: Any) -> Any:
    if reason is None:
        return None
    return response_class.AlterConfigsResourceResponse(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=reason,
    )


def _reason_against(
    node: ConfiguresItself, resource: Any, changes_of: Callable[[Image, Any], Mapping[str, str | None]]
) -> str | None:
    try:
        check_keys(resource)
    except KafkaError as error:
        return error.message
    if resource.resource_type == BROKER_RESOURCE:
        return _reason_against_broker(node, resource, changes_of)
    known = resource.resource_type in RESOURCE_TYPES
    return None if known else f"Unknown resource type {resource.resource_type}"


def _reason_against_broker(
    node: ConfiguresItself, resource: Any, changes_of: Callable[[Image, Any], Mapping[str, str | None]]
) -> str | None:
    name, me = resource.resource_name, str(node.config.node_id)
    if name not in ("", me):
        if name.isdecimal():
            return f"Unexpected broker id, expected {me}, but received {name}"
        return f"Node id must be an integer, but it is: {name}"
    try:
        changes = changes_of(node.image, resource)
        check_server_values(name, changes)
    except KafkaError as error:
        # of an operation that the value does not have the controller says what is wrong
        return error.message if error.code == ErrorCode.INVALID_REQUEST else None
    reason = dynamic_changes.reason_against(node.image, node.config, name, changes)
    return node.reason_against_stores(changes) if reason is None and name == me else reason
