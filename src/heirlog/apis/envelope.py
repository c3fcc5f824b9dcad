"""Envelope (key 58): a client's admin request, sent on by the broker that took it (KIP-590).

v0 only. The request inside is handled as if it had come to this controller; its response travels back sealed.
NOT_CONTROLLER: the sender looks for the active controller and sends it again. INVALID_REQUEST: brokers must not forward
such a request. UNSUPPORTED_VERSION: the envelope is valid and the request inside cannot be read.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.envelopes import context_of, seal
from heirlog.apis.common.ports import Dispatches, OnController
from heirlog.context import Context, Reply, Sentinel
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import decode_request, parse_header
from heirlog.protocol.messages import EnvelopeRequest, EnvelopeResponse
from heirlog.protocol.primitives import Malformed

ADDRESS_BYTES = (4, 16)
"""IPv4, IPv6."""


class Active(Protocol):
    @property
    def is_active(self) -> bool: ...

    @property
    def next_offset(self) -> int: ...


class Node(OnController[Active], Dispatches, Protocol):
    pass


def handle(node: Node, request: EnvelopeRequest, context: Context) -> Reply[EnvelopeResponse]:
    if not node.controller.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    frame = memoryview(request.request_data)
    try:
        header, position = parse_header(frame)
    except Malformed:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    route = node.routes(context.listener).get(header.api_key)
    if route is None or not route.is_forwarded:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not route.min_version <= header.api_version <= route.max_version:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.request_principal is not None and len(request.client_host_address) not in ADDRESS_BYTES:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        client = context_of(header, request, context)
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
    offset = end - 1 if request.wants_metadata_offset and route.is_change and end > first else -1
    if isinstance(answer, Sentinel):
        # what a client's connection would be closed for
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not isinstance(answer, Pending):
        return seal(header, answer, offset)
    sealed: Pending[EnvelopeResponse] = Pending(answer.abandon)
    answer.then(lambda response: sealed.complete(seal(header, response, offset)))
    return sealed


API = Api(
    key=ApiKey.ENVELOPE,
    controller=Served((0, 0), handle, needs=NODES_ONLY),
    remarks="contains the request that a broker forwards",
)
