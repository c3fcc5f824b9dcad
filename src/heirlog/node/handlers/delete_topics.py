"""DeleteTopics (key 20): on a controller listener executed, on a broker listener forwarded (KIP-4, KIP-590).

v1-3 by name, v4 flexible, v5 error messages, v6 by name or topic id. The rules are in `controller.topics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node

BY_STATE = 6
"""First version that names topics in `topics` instead of `topic_names`."""


def handle(node: Node, request: DeleteTopicsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.delete_topics(request, context)
    return node.forward(request, context, lambda code: refusal(request, context.api_version, code))


def refusal(request: DeleteTopicsRequest, version: int, code: ErrorCode) -> DeleteTopicsResponse:
    if version < BY_STATE:
        asked = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in request.topic_names]
    else:
        asked = request.topics
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=code,
                error_message="the active controller did not answer in time",
            )
            for topic in asked
        ]
    )
