"""Admin requests that a broker receives and the active controller executes (KIP-590).

    client --CreateTopics--> broker --Envelope{CreateTopics}--> controller
    client <--response------ broker <--Envelope{response}-------

The client's request travels as bytes, header included (`apis.common.envelopes`), so the controller sees the version
that the client spoke and the answer needs no translation. While no controller answers, the envelope is sent again with
a capped back-off until the time limit of the wait; then the client gets the API's own refusal with REQUEST_TIMED_OUT. A
request that may have been executed before the connection broke is sent again: every forwarded API answers a repeat with
an error of its own (TOPIC_ALREADY_EXISTS, ELECTION_NOT_NEEDED, INVALID_PARTITIONS) or does nothing the second time
(configurations), as on Apache Kafka. For CreateDelegationToken, which would create a second token, the broker chooses
the id of the token, and sends the same one again.

The answer to a change names the offset of its last record: it reaches the client once this broker's own image holds
that (`read_your_writes`).

Requests in progress are limited in number and in bytes; one more is refused as if it had timed out. If a client
disconnects while its request waits for a controller, the request is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

from heirlog.apis.common.envelopes import envelope_of
from heirlog.context import Context
from heirlog.controller.delegation_tokens import new_token_id
from heirlog.env import Cancel, Env, SendFailure
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.frames import RequestHeader, decode_response
from heirlog.protocol.messages import EnvelopeRequest, EnvelopeResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint
from heirlog.rate_limited_log import RateLimitedLog

FIRST_BACKOFF_MS = 20
MAX_BACKOFF_MS = 500
FORWARDED_CLIENT = "heirlog-forwarder"
R = TypeVar("R")
WhenApplied: TypeAlias = Callable[[int, Callable[[], None]], None]
UNDER_WAY_MAX = 1000
UNDER_WAY_BYTES_MAX = 64 * 1024 * 1024
"""Limit in bytes; a single request may be larger."""


class Forwarder:
    """Sends envelopes to the controller that is active now.

    controller: its endpoint, or None while it is unknown.
    when_applied: calls a function once this node's image holds the record at an offset (`LocalImageWaits`); by default
        at once.
    """

    def __init__(
        self,
        env: Env,
        controller: Callable[[], Endpoint | None],
        time_limit_ms: int,
        when_applied: WhenApplied = lambda offset, fn: fn(),
    ) -> None:
        self._when_applied = when_applied
        self._env = env
        self._controller = controller
        self._time_limit_ms = time_limit_ms
        self._log_limited = RateLimitedLog(env.log, env.now_ms)
        self._under_way: dict[_Forwarding[Any], None] = {}
        self._under_way_bytes = 0

    def forward(
        self,
        request: Message,
        api_version: int,
        refusal: Callable[[ErrorCode], R],
        context: Context | None = None,
        time_limit_ms: int | None = None,
    ) -> Pending[R]:
        """The controller's response to `request`; `refusal(code)` makes the API's answer when there is none in time.

        context: that of the client whose permissions count; None: this broker sends the request.
        time_limit_ms: a shorter timeout than the usual one.
        """
        # quotas of client ids count on the controller too
        client_id = FORWARDED_CLIENT if context is None else context.client_id
        header = RequestHeader(request.API_KEY, api_version, 0, client_id)
        creates_token = request.API_KEY == ApiKey.CREATE_DELEGATION_TOKEN
        token_id = new_token_id(self._env.random) if creates_token else None
        envelope = envelope_of(header, request, context, token_id)
        wait = _Forwarding(
            self._env, self._controller, header, envelope, refusal, self._over, self._client_code, self._when_applied
        )
        if not self._has_room_for(wait):
            wait.pending.complete(refusal(ErrorCode.REQUEST_TIMED_OUT))
            return wait.pending
        self._under_way[wait] = None
        self._under_way_bytes += wait.size_bytes
        wait.deadline_ms = self._env.now_ms() + min(self._time_limit_ms, time_limit_ms or self._time_limit_ms)
        wait.attempt()
        return wait.pending

    def waiting(self, api_key: int) -> int:
        """How many requests of this API are in progress."""
        return sum(wait.api_key == api_key for wait in self._under_way)

    def _has_room_for(self, wait: _Forwarding[Any]) -> bool:
        if not self._under_way:
            return True
        return len(self._under_way) < UNDER_WAY_MAX and self._under_way_bytes + wait.size_bytes <= UNDER_WAY_BYTES_MAX

    def _client_code(self, code: ErrorCode) -> ErrorCode:
        """An envelope that is denied to this broker says nothing about what the client may do."""
        if code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return code
        self._log_limited(
            "error", "forwarding-denied", why="make this broker's principal one of the controller's super.users"
        )
        return ErrorCode.UNKNOWN_SERVER_ERROR

    def _over(self, wait: _Forwarding[Any]) -> None:
        del self._under_way[wait]
        self._under_way_bytes -= wait.size_bytes


class _Forwarding(Generic[R]):
    def __init__(
        self,
        env: Env,
        controller: Callable[[], Endpoint | None],
        header: RequestHeader,
        envelope: EnvelopeRequest,
        refusal: Callable[[ErrorCode], R],
        on_over: Callable[[_Forwarding[R]], None],
        client_code: Callable[[ErrorCode], ErrorCode],
        when_applied: WhenApplied,
    ) -> None:
        """on_over: called once, when nothing of the request is kept any more.

        client_code: the error for the client if the controller refused the envelope itself.
        """
        self._client_code = client_code
        self._when_applied = when_applied
        self._env = env
        self._controller = controller
        self._on_over = on_over
        self._cancel_retry: Cancel | None = None
        self.size_bytes = len(envelope.request_data)
        self.api_key = header.api_key
        self._header = header
        self._envelope = envelope
        self._refusal = refusal
        self._backoff_ms = FIRST_BACKOFF_MS
        self.deadline_ms = 0
        self.pending: Pending[R] = Pending(self._abandoned)

    def attempt(self) -> None:
        self._cancel_retry = None
        left_ms = self.deadline_ms - self._env.now_ms()
        if left_ms <= 0:
            self._complete(self._refusal(ErrorCode.REQUEST_TIMED_OUT))
            return
        controller = self._controller()
        if controller is None:
            self._again()
        else:
            self._env.send(controller, "forward", self._envelope, self._answered, left_ms)

    def _abandoned(self) -> None:
        """The client is gone. A request that was sent is kept until its answer."""
        if self._cancel_retry is not None:
            self._cancel_retry()
            self._on_over(self)

    def _complete(self, response: R) -> None:
        self._on_over(self)
        self.pending.complete(response)

    def _again(self) -> None:
        if self.pending.done:
            self._on_over(self)
            return
        self._cancel_retry = self._env.call_later(self._backoff_ms, self.attempt)
        self._backoff_ms = min(2 * self._backoff_ms, MAX_BACKOFF_MS)

    def _answered(self, answer: EnvelopeResponse | SendFailure) -> None:
        if isinstance(answer, SendFailure) or answer.error_code == ErrorCode.NOT_CONTROLLER:
            self._again()
        elif answer.error_code or answer.response_data is None:
            self._complete(self._refusal(self._client_code(error_code(answer.error_code))))
        else:
            _, response = decode_response(
                self._header.api_key, self._header.api_version, memoryview(answer.response_data)
            )
            self._when_applied(answer.metadata_offset, partial(self._complete, cast(R, response)))
