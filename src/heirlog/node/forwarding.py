"""Admin requests that a broker takes and the active controller executes (KIP-590).

    client --CreateTopics--> broker --Envelope{CreateTopics}--> controller
    client <--response------ broker <--Envelope{response}-------

The client's request travels as bytes, header included, so the controller sees the version that the client spoke and
the answer needs no translation. While no controller answers, the envelope is sent again with a capped back-off until
the time limit of the wait; then the client gets the API's own refusal with REQUEST_TIMED_OUT. A request that may have
been executed before the connection broke is sent again: every forwarded API answers a repeat with an error of its own
(TOPIC_ALREADY_EXISTS, ELECTION_NOT_NEEDED, INVALID_PARTITIONS) or does nothing the second time (configurations), as on
Apache Kafka.

What is under way is bounded in number and in bytes; one more is refused as if its time were up. A client that went away
while its request waited for a controller takes it along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.context import Context
from heirlog.env import Buffer, Cancel, Env, Region, SendFailure
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.frames import (
    RequestHeader,
    decode_response,
    encode_request,
    encode_response,
)
from heirlog.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from heirlog.protocol.types import Endpoint

FIRST_BACKOFF_MS = 20
MAX_BACKOFF_MS = 500
LENGTH_PREFIX_BYTES = 4
UNNAMED_HOST = b"\x00\x00\x00\x00"
FORWARDED_CLIENT = "heirlog-forwarder"
UNDER_WAY_MAX = 1000
UNDER_WAY_BYTES_MAX = 64 * 1024 * 1024
"""One request alone may be larger."""


class Forwarder:
    """Sends envelopes to the controller that is active now.

    controller: where that is, or None while nobody knows.
    """

    def __init__(self, env: Env, controller: Callable[[], Endpoint | None], time_limit_ms: int) -> None:
        self._env = env
        self._controller = controller
        self._time_limit_ms = time_limit_ms
        self._under_way: dict[_Forwarding, None] = {}
        self._under_way_bytes = 0

    def forward(self, request: Any, api_version: int, refusal: Callable[[ErrorCode], Any]) -> Pending[Any]:
        """The controller's response to `request`; `refusal(code)` makes the API's answer when there is none in time."""
        header = RequestHeader(request.API_KEY, api_version, 0, FORWARDED_CLIENT)
        envelope = EnvelopeRequest(
            request_data=flat(encode_request(header, request))[LENGTH_PREFIX_BYTES:],
            request_principal=None,
            client_host_address=UNNAMED_HOST,
        )
        wait = _Forwarding(self._env, self._controller, header, envelope, refusal, self._over)
        if not self._has_room_for(wait):
            wait.pending.complete(refusal(ErrorCode.REQUEST_TIMED_OUT))
            return wait.pending
        self._under_way[wait] = None
        self._under_way_bytes += wait.size_bytes
        wait.deadline_ms = self._env.now_ms() + self._time_limit_ms
        wait.attempt()
        return wait.pending

    def _has_room_for(self, wait: _Forwarding) -> bool:
        if not self._under_way:
            return True
        return len(self._under_way) < UNDER_WAY_MAX and self._under_way_bytes + wait.size_bytes <= UNDER_WAY_BYTES_MAX

    def _over(self, wait: _Forwarding) -> None:
        del self._under_way[wait]
        self._under_way_bytes -= wait.size_bytes


class _Forwarding:
    def __init__(
        self,
        env: Env,
        controller: Callable[[], Endpoint | None],
        header: RequestHeader,
        envelope: EnvelopeRequest,
        refusal: Callable[[ErrorCode], Any],
        on_over: Callable[[_Forwarding], None],
    ) -> None:
        """on_over: called once, when nothing of the request is kept any more."""
        self._env = env
        self._controller = controller
        self._on_over = on_over
        self._cancel_retry: Cancel | None = None
        self.size_bytes = len(envelope.request_data)
        self._header = header
        self._envelope = envelope
        self._refusal = refusal
        self._backoff_ms = FIRST_BACKOFF_MS
        self.deadline_ms = 0
        self.pending: Pending[Any] = Pending()
        self.pending.on_abandon = self._abandoned

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
        """Nobody listens any more. A request that was sent is kept until its answer."""
        if self._cancel_retry is not None:
            self._cancel_retry()
            self._on_over(self)

    def _complete(self, response: Any) -> None:
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
            self._complete(self._refusal(error_code(answer.error_code)))
        else:
            _, response = decode_response(
                self._header.api_key, self._header.api_version, memoryview(answer.response_data)
            )
            self._complete(response)


def flat(parts: list[Buffer | Region] | list[Buffer]) -> bytes:
    """One bytes object of encoded parts (admin messages hold no regions of more than a few bytes)."""
    return b"".join(part.read() if isinstance(part, Region) else part for part in parts)


def seal_envelope(header: RequestHeader, response: Any) -> EnvelopeResponse:
    parts = encode_response(header.api_key, header.api_version, header.correlation_id, response)
    return EnvelopeResponse(response_data=flat(parts)[LENGTH_PREFIX_BYTES:])


def context_of(header: RequestHeader, carrier: Context) -> Context:
    """The context of an enveloped request: its own version and client, on the carrier's connection."""
    return Context(
        header.api_version, header.client_id or "", carrier.client_host, carrier.listener, carrier.connection
    )
