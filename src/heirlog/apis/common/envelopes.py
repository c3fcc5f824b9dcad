"""What an Envelope carries: a client's request and its response as bytes, and who the client is (KIP-590).

The client's principal and address travel with the request: the controller checks what *the client* may do, and of the
broker only that it may act for others (CLUSTER_ACTION). A request of the broker itself carries neither and counts as
the broker's own.
"""

from __future__ import annotations

from typing import Final

from heirlog.context import Context
from heirlog.env import Buffer, Region
from heirlog.metadata.address import UNNAMED_HOST, host_bytes, host_text
from heirlog.protocol.frames import RequestHeader, encode_request, encode_response
from heirlog.protocol.messages import EnvelopeRequest, EnvelopeResponse
from heirlog.protocol.primitives import Malformed, Message, compact_string, read_compact_string

LENGTH_PREFIX_BYTES: Final = 4
PRINCIPAL_VERSION: Final = b"\0\0"
NO_TAGS: Final = 0


def envelope_of(
    header: RequestHeader, request: Message, context: Context | None, new_token_id: str | None = None
) -> EnvelopeRequest:
    """context: of the client that sent the request; None: this broker sends it.

    new_token_id: for a request that creates a delegation token. A repeat of it creates no second one.
    """
    return EnvelopeRequest(
        request_data=_flat(encode_request(header, request))[LENGTH_PREFIX_BYTES:],
        request_principal=None if context is None else principal_bytes(context.principal, context.by_delegation_token),
        client_host_address=UNNAMED_HOST if context is None else host_bytes(context.client_host),
        wants_metadata_offset=True,
        new_token_id=new_token_id,
    )


def seal(header: RequestHeader, response: Message, metadata_offset: int = -1) -> EnvelopeResponse:
    """metadata_offset: of the last record that the request has made; -1: none."""
    parts = encode_response(header.api_key, header.api_version, header.correlation_id, response)
    return EnvelopeResponse(response_data=_flat(parts)[LENGTH_PREFIX_BYTES:], metadata_offset=metadata_offset)


def context_of(header: RequestHeader, envelope: EnvelopeRequest, carrier: Context) -> Context:
    """The context of an enveloped request: its own version and client, on the carrier's connection.

    Without a principal it is the carrier's own. Raises Malformed.
    """
    own = envelope.request_principal is None
    principal, by_token = carrier.principal, carrier.by_delegation_token
    if not own:
        principal, by_token = principal_text(envelope.request_principal or b"")
    return Context(
        header.api_version,
        header.client_id or "",
        carrier.client_host if own else host_text(envelope.client_host_address),
        carrier.listener,
        carrier.connection,
        principal,
        by_token,
        envelope.new_token_id,
    )


def principal_bytes(principal: str, by_delegation_token: bool = False) -> bytes:
    """Kafka's DefaultPrincipalData, version 0, after its version: type, name, and whether it logged in with a token."""
    kind, _, name = principal.partition(":")
    return PRINCIPAL_VERSION + compact_string(kind) + compact_string(name) + bytes((by_delegation_token, NO_TAGS))


def principal_text(raw: Buffer) -> tuple[str, bool]:
    """The principal, and whether it logged in with a delegation token. Raises Malformed."""
    data = memoryview(raw)
    try:
        if bytes(data[:2]) != PRINCIPAL_VERSION:
            raise Malformed("a forwarded principal is of an unknown version")
        kind, position = read_compact_string(data, 2)
        name, position = read_compact_string(data, position)
    except (IndexError, UnicodeDecodeError) as error:
        raise Malformed("a forwarded principal is cut short") from error
    if position >= len(data):
        raise Malformed("a forwarded principal is cut short")
    return f"{kind}:{name}", bool(data[position])


def _flat(parts: list[Buffer | Region] | list[Buffer]) -> bytes:
    """One bytes object of encoded parts (admin messages hold no regions of more than a few bytes)."""
    return b"".join(part.read() if isinstance(part, Region) else part for part in parts)
