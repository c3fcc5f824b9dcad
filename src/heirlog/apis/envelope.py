"""Envelope (key 58): a client's admin request, sent on by the broker that took it (KIP-590).

v0 only. The request inside is handled as if it had come to this controller; its response travels back sealed.
NOT_CONTROLLER: the sender looks for the active controller and sends it again. INVALID_REQUEST: brokers must not forward
such a request. UNSUPPORTED_VERSION: the envelope is valid and the request inside cannot be read.
"""

from __future__ import annotations

from typing import Any, Protocol

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

    @property
    def committed_offset(self) -> int: ...

    @property
    def later_parts(self) -> int: ...


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
    controller = node.controller
    first, later_parts = controller.next_offset, controller.later_parts
    answer = node.serve(route, inner, client)
    end, is_divided = controller.next_offset, controller.later_parts > later_parts
    wants_offset = request.wants_metadata_offset and route.is_change

    def sealed_answer(response: Any) -> EnvelopeResponse:
        """With what the sender's image must hold before its client gets the answer; -1: nothing was changed."""
        offset = -1
        if wants_offset and is_divided:
            # its last record was appended later, and is committed by now
            offset = controller.committed_offset
        elif wants_offset and end > first:
            offset = end - 1
        return seal(header, response, offset)

    if isinstance(answer, Sentinel):
        # what a client's connection would be closed for
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not isinstance(answer, Pending):
        return sealed_answer(answer)
    sealed: Pending[EnvelopeResponse] = Pending(answer.abandon)
    answer.then(lambda response: sealed.complete(sealed_answer(response)))
    return sealed


API = Api(
    key=ApiKey.ENVELOPE,
    controller=Served((0, 0), handle, needs=NODES_ONLY),
    remarks="contains the request that a broker forwards",
)
