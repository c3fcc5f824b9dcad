"""Envelope (key 58): a client's admin request, brought by the broker that took it (KIP-590).

The request inside is handled as if it had come here; its response travels back sealed. NOT_CONTROLLER says that the
sender should look for the active controller and send it again; anything that may not be forwarded is INVALID_REQUEST.
UNSUPPORTED_VERSION says that the envelope was fine and the request inside cannot be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import CLOSE, Context
from heirlog.node import forwarding
from heirlog.node.read_your_writes import CHANGES
from heirlog.pending import Pending
from heirlog.protocol.api import DESCRIBE_RECOVERY
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import decode_request, parse_header
from heirlog.protocol.messages import EnvelopeRequest, EnvelopeResponse
from heirlog.protocol.primitives import Malformed

if TYPE_CHECKING:
    from heirlog.node.node import Node

FORWARDABLE = frozenset((19, 20, 30, 31, 33, 37, 43, 44, 45, 46, 55, 57, 64, DESCRIBE_RECOVERY))
"""CreateTopics, DeleteTopics, CreateAcls, DeleteAcls, AlterConfigs, CreatePartitions, ElectLeaders,
IncrementalAlterConfigs, AlterPartitionReassignments, ListPartitionReassignments, DescribeQuorum, UpdateFeatures,
UnregisterBroker, DescribeRecovery."""

ADDRESS_BYTES = (4, 16)
"""IPv4, IPv6."""


def handle(node: Node, request: EnvelopeRequest, context: Context) -> Any:
    if not node.controller.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    frame = memoryview(request.request_data)
    try:
        header, position = parse_header(frame)
    except Malformed:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    route = node.listener(context.listener).routes.get(header.api_key)
    if route is None or header.api_key not in FORWARDABLE:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not route.min_version <= header.api_version <= route.max_version:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.request_principal is not None and len(request.client_host_address) not in ADDRESS_BYTES:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        client = forwarding.context_of(header, request, context)
    except Malformed:
        return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    try:
        inner = decode_request(header, frame, position)
    except Malformed:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    first = node.controller.next_offset
    answer = node.serve(route, inner, client)
    end = node.controller.next_offset
    # what the sender's image must hold before its client gets the answer; -1: nothing was changed
    offset = end - 1 if request.wants_metadata_offset and header.api_key in CHANGES and end > first else -1
    if answer is CLOSE:
        # what a client's connection would be closed for
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not isinstance(answer, Pending):
        return forwarding.seal_envelope(header, answer, offset)
    sealed: Pending[EnvelopeResponse] = Pending()
    answer.then(lambda response: sealed.complete(forwarding.seal_envelope(header, response, offset)))
    sealed.on_abandon = answer.abandon
    return sealed
