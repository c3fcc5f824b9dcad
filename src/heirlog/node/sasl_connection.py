"""A connection on a listener with SASL: who the client is comes first, its requests after it.

    BEGIN      --ApiVersions--> VERSIONS      a refused one (unknown version, bad names) may be sent again
    BEGIN, VERSIONS --SaslHandshake--> TOKENS
    TOKENS     --SaslAuthenticate (after a handshake v0: bare tokens)--> ... --accepted--> COMPLETE
                                                                             --refused--> closed, after a delay
    COMPLETE   every request goes to the `ClientConnection` within, under the principal that was found
    COMPLETE   --SaslHandshake, if the session has an end--> TOKENS again (KIP-368), for the same principal

Anything else closes the connection without an answer. In TOKENS another API gets ILLEGAL_SASL_STATE first.

What is pipelined behind a token waits in the order of the connection: it is judged when the token has been. The answer
to a refused attempt is held back (`connection.failed.authentication.delay.ms`), and nothing is read meanwhile, so that
a connection makes few attempts per second.

A session ends with the credentials or after `connections.max.reauth.ms`, whichever is first. That is checked when a
request arrives: after the end every request but a SaslHandshake closes the connection unanswered. Requests that came
before are answered, in order and under the same principal, also while the client authenticates again.

Traps. ApiVersions is answered here at once, without waiting for ACLs: controllers have to greet each other before they
know any. A broker that has no metadata yet knows no SCRAM users: on its listeners the first frame waits. The version 0
of SaslAuthenticate has no session lifetime: the end counts all the same.

Source: KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, Protocol

from heirlog.context import CLOSE, Context
from heirlog.env import Cancel
from heirlog.metadata.listener_security import ListenerSecurity
from heirlog.node import wire
from heirlog.node.connection import ClientConnection
from heirlog.node.router import ListenerRoutes
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from heirlog.security.exchange import Accepted, Exchange, Refused

REAUTHENTICATION_MS_MIN: Final = 1000
"""Between the beginnings of two authentications of one connection."""
FIRST_KEYS: Final = (int(ApiKey.SASL_HANDSHAKE), int(ApiKey.API_VERSIONS))
"""What is said before tokens."""
FIRST_FRAME_MAX: Final = 4096
"""Bytes of a request that is no token: names of mechanisms and of clients."""


class SaslNode(Protocol):
    """What authentication uses of a node."""

    @property
    def now_ms(self) -> int: ...

    @property
    def wall_ms(self) -> int: ...

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Cancel: ...

    def exchange(self, security: ListenerSecurity, mechanism: str, random_bytes: bytes) -> Exchange: ...

    def answer_api_versions(
        self, listener: ListenerRoutes, request: ApiVersionsRequest, context: Context
    ) -> ApiVersionsResponse: ...

    def serves(self, listener: ListenerRoutes) -> bool:
        """Whether this node has the metadata for requests on this listener."""

    def when_it_serves(self, fn: Callable[[], None]) -> Cancel: ...


class SaslState(Enum):
    BEGIN = auto()
    VERSIONS = auto()
    TOKENS = auto()
    COMPLETE = auto()
    OVER = auto()


class SaslConnection:
    """Made by `Node.connected`; the body's end sees it as the client."""

    def __init__(self, node: SaslNode, security: ListenerSecurity, within: ClientConnection, delay_ms: int) -> None:
        """delay_ms: connection.failed.authentication.delay.ms."""
        self._node = node
        self._security = security
        self._within = within
        self._delay_ms = delay_ms
        self._state = SaslState.BEGIN
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._refusal: Refused | None = None
        """What the client knows already, and the log does not."""
        self._has_bare_tokens = False
        self._session_end_ms: int | None = None
        self._began_ms = 0
        self._authenticated_by = ""
        """The mechanism of the first authentication; empty until then."""
        self._held: memoryview | None = None
        self._cancel_wait: Cancel | None = None
        self._cancel_delay: Cancel | None = None

    # for the body

    @property
    def paused(self) -> bool:
        return self._held is not None or self._state is SaslState.OVER or self._within.paused

    def secured(self, certificate: bytes | None) -> None:
        """A certificate only lets the connection in: the client is who SASL says."""

    def read_failed(self, path: str, error: OSError) -> None:
        self._within.read_failed(path, error)

    def closed(self) -> None:
        self._state = SaslState.OVER
        self._held = None
        for cancel in (self._cancel_wait, self._cancel_delay):
            if cancel is not None:
                cancel()
        if self._refusal is not None:
            # without this, who tries tokens and leaves before it confirms the refusal would be in no log
            self._log_failure(self._refusal)
        self._within.closed()

    def received_frame(self, frame: memoryview) -> None:
        if self._state is SaslState.COMPLETE:
            self._received_authenticated(frame)
        elif not self._node.serves(self._within.listener):
            self._held = frame
            self._cancel_wait = self._node.when_it_serves(self._go_on)
        elif self._state is not SaslState.OVER:
            self._received(frame)

    def _go_on(self) -> None:
        self._cancel_wait = None
        if self._held is None:
            return
        frame, self._held = self._held, None
        self._within.transport.run(lambda: self._received(frame))
        self._within.transport.resume()

    # the states

    def _received_authenticated(self, frame: memoryview) -> None:
        key = int.from_bytes(frame[:2], "big")
        is_over = self._session_end_ms is not None and self._node.now_ms >= self._session_end_ms
        if key == ApiKey.SASL_HANDSHAKE and self._session_end_ms is not None:
            if self._node.now_ms - self._began_ms >= REAUTHENTICATION_MS_MIN:
                self._received(frame)
                return
        elif is_over:
            self._close("its session has ended (connections.max.reauth.ms, or its credentials)")
            return
        self._within.received_frame(frame)

    def _received(self, frame: memoryview) -> None:
        if self._state is SaslState.TOKENS and len(frame) > self._security.value("sasl.server.max.receive.size"):
            # the body's limit for unauthenticated clients does not apply to a client that authenticates again
            self._close(f"a frame of {len(frame)} bytes in place of a token (sasl.server.max.receive.size)")
            return
        if self._state is SaslState.TOKENS and self._has_bare_tokens:
            self._token(None, bytes(frame))
            return
        # before its body is decoded, which costs many times its bytes
        key = int.from_bytes(frame[:2], "big")
        if self._state is not SaslState.TOKENS and key not in FIRST_KEYS:
            self._close(f"API key {key} before it has authenticated")
            return
        if key != ApiKey.SASL_AUTHENTICATE and len(frame) > FIRST_FRAME_MAX:
            self._close(f"a request with API key {key} of {len(frame)} bytes before it has authenticated")
            return
        decoded = wire.decode(self._within.listener, frame)
        if isinstance(decoded, wire.RefusedFrame):
            if decoded.response is None or decoded.header is None or self._state is SaslState.VERSIONS:
                self._close(decoded.reason)
            elif self._state is SaslState.BEGIN:
                self._within.transport.send(decoded.header, decoded.response)
            else:
                self._answer_and_close(decoded.header, ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
            return
        header, request = decoded
        if isinstance(request, ApiVersionsRequest) and self._state is SaslState.BEGIN:
            self._answer_versions(header, request)
        elif isinstance(request, SaslHandshakeRequest) and self._state is not SaslState.TOKENS:
            self._shake_hands(header, request)
        elif self._state is SaslState.TOKENS and isinstance(request, SaslAuthenticateRequest):
            self._token(header, bytes(request.auth_bytes))
        elif self._state is SaslState.TOKENS and self._within.listener.routes[header.api_key].api.can_refuse:
            route = self._within.listener.routes[header.api_key]
            self._answer_and_close(header, route.api.refusal(request, ErrorCode.ILLEGAL_SASL_STATE))
        else:
            self._close(f"API key {header.api_key} before it has authenticated")

    def _answer_versions(self, header: RequestHeader, request: ApiVersionsRequest) -> None:
        within = self._within
        context = Context(
            header.api_version,
            header.client_id or "",
            within.transport.peer_host,
            within.listener.name,
            within,
            within.principal,
        )
        response = self._node.answer_api_versions(within.listener, request, context)
        if not response.error_code:
            self._state = SaslState.VERSIONS
        within.transport.send(header, response)

    def _shake_hands(self, header: RequestHeader, request: SaslHandshakeRequest) -> None:
        offered = list(self._security.mechanisms)
        if request.mechanism not in offered:
            self._within.authentication_failed(request.mechanism, "", "the mechanism is not enabled")
            response = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=offered)
            self._answer_and_close(header, response)
            return
        self._mechanism = request.mechanism
        self._has_bare_tokens = header.api_version == 0
        self._began_ms = self._node.now_ms
        nonce = self._within.transport.random_bytes(32)
        self._exchange = self._node.exchange(self._security, request.mechanism, nonce)
        self._state = SaslState.TOKENS
        self._within.answer_in_order(header, SaslHandshakeResponse(mechanisms=offered))

    def _token(self, header: RequestHeader | None, token: bytes) -> None:
        """header: None for a bare token."""
        assert self._exchange is not None, "made with the handshake"
        try:
            step = self._exchange.respond(token)
            if isinstance(step, Accepted):
                self._check_same(step)
        except Refused as refused:
            self._refuse(header, refused)
            return
        if isinstance(step, Accepted):
            self._accept(header, step)
        else:
            self._refusal = step.refusal
            self._answer_token(header, step.token, 0)

    def _check_same(self, accepted: Accepted) -> None:
        if not self._authenticated_by:
            return
        if self._mechanism != self._authenticated_by:
            raise Refused("Cannot change SASL mechanism during re-authentication", accepted.name)
        if f"User:{accepted.name}" != self._within.principal:
            raise Refused("Cannot change principals during re-authentication", accepted.name)

    def _accept(self, header: RequestHeader | None, accepted: Accepted) -> None:
        is_first = not self._authenticated_by
        self._authenticated_by = self._mechanism
        self._within.principal = f"User:{accepted.name}"
        self._within.by_delegation_token = accepted.by_delegation_token
        lifetime_ms = self._lifetime_ms(accepted)
        self._session_end_ms = None if lifetime_ms is None else self._node.now_ms + lifetime_ms
        self._exchange = None
        self._state = SaslState.COMPLETE
        if is_first:
            self._within.transport.authenticated()
        self._within.authenticated(self._mechanism)
        self._answer_token(header, accepted.token, lifetime_ms or 0)

    def _lifetime_ms(self, accepted: Accepted) -> int | None:
        """Until this session ends; None: never."""
        limits: list[int] = []
        reauth_ms: int = self._security.value("connections.max.reauth.ms", self._mechanism)
        if reauth_ms > 0:
            limits.append(reauth_ms)
        if accepted.ends_at_ms is not None:
            limits.append(max(0, accepted.ends_at_ms - self._node.wall_ms))
        return min(limits) if limits else None

    # answers

    def _answer_token(self, header: RequestHeader | None, token: bytes, lifetime_ms: int) -> None:
        if header is None:
            self._within.transport.send_token(token)
            return
        response = SaslAuthenticateResponse(error_message=None, auth_bytes=token)
        if header.api_version > 0:
            response.session_lifetime_ms = lifetime_ms
        self._within.answer_in_order(header, response)

    def _refuse(self, header: RequestHeader | None, refused: Refused) -> None:
        self._log_failure(refused)
        self._exchange = None
        self._state = SaslState.OVER

        def answer() -> None:
            self._cancel_delay = None
            if header is None:
                self._within.transport.close()
                return
            self._answer_and_close(
                header,
                SaslAuthenticateResponse(
                    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=refused.sentence
                ),
            )

        if self._delay_ms > 0:
            self._cancel_delay = self._node.call_later(self._delay_ms, answer)
        else:
            answer()

    def _log_failure(self, refused: Refused) -> None:
        self._refusal = None
        self._within.authentication_failed(self._mechanism, refused.said_name, refused.why)

    def _answer_and_close(self, header: RequestHeader, response: Any) -> None:
        self._state = SaslState.OVER
        self._within.answer_in_order(header, response)
        self._within.answer_in_order(header, CLOSE)

    def _close(self, why: str) -> None:
        self._state = SaslState.OVER
        if not self._authenticated_by:
            self._within.authentication_failed(self._mechanism, "", why)
        self._within.transport.close()
