"""The first exchanges on a connection: which versions the peer speaks, and who we are.

    ApiVersions v4 --> ranges                              then SASL, if there is a mechanism
                   --> error 35 in a v0 body with ranges   ask once more, in the newest version that it names
    SaslHandshake  --> it knows the mechanism
    SaslAuthenticate --> challenge --> SaslAuthenticate ... until the mechanism has no more to say

An older peer cannot know the answer format of the version that was asked, so it answers in v0 (KIP-511). The error
code stands at the same place in every version: behind the correlation id, since ApiVersions keeps response header v0.

A peer that limits sessions (KIP-368) says how long this one lasts. An open connection is not authenticated again here:
its owner opens another one in time.
"""

from __future__ import annotations

from collections.abc import Mapping

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.sasl import Mechanism
from heirlog.metadata.state import RECOVERY_VERSION
from heirlog.protocol.api import APIS
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.software import SOFTWARE_NAME, SOFTWARE_VERSION

ERROR_CODE_AT = 4
UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
SASL_IN_FRAMES = 1
"""The SaslHandshake version from which tokens travel in SaslAuthenticate (KIP-152); before, they were bare bytes."""


class HandshakeRefused(Exception):
    """The peer will not tell which versions it speaks; says why."""


class Handshake:
    """One per connection: `request`, then `answered` for each answer until it returns ranges."""

    def __init__(self) -> None:
        self._version = ApiVersionsRequest.MAX_VERSION
        self._asked_again = False

    def request(self) -> tuple[int, ApiVersionsRequest]:
        """The version and the message to send next."""
        return self._version, ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )

    def answer_version(self, frame: memoryview) -> int:
        """In which version the answer in `frame` (without its length) has to be read."""
        return 0 if frame[ERROR_CODE_AT : ERROR_CODE_AT + 2] == UNSUPPORTED else self._version

    def answered(self, response: ApiVersionsResponse) -> dict[int, tuple[int, int]] | None:
        """The peer's (oldest, newest) version by API key, or None: send `request()` again. Raises HandshakeRefused."""
        ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        ranges |= _unadvertised(response, ranges)
        if not response.error_code:
            return ranges
        version = common_version(ApiVersionsRequest, ranges)
        if response.error_code != ErrorCode.UNSUPPORTED_VERSION or self._asked_again or version is None:
            raise HandshakeRefused(f"the peer answered ApiVersions with error {response.error_code}")
        self._asked_again = True
        self._version = version
        return None


def _unadvertised(response: ApiVersionsResponse, ranges: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """What a heirlog node takes part in unclean recovery with: no range of Kafka's may show it."""
    if all(feature.name != RECOVERY_VERSION or feature.max_version < 1 for feature in response.supported_features):
        return {}
    found = {}
    for key, api in APIS.items():
        if api.kafka_max_version < api.min_version:
            found[key] = api.min_version, api.max_version
        elif api.kafka_max_version < api.max_version and key in ranges:
            found[key] = ranges[key][0], api.max_version
    return found


class Authentication:
    """One per connection with SASL: `first`, then `answered` for each answer until it returns None."""

    def __init__(self, name: str, mechanism: Mechanism, ranges: Mapping[int, tuple[int, int]]) -> None:
        self._name = name
        self._mechanism = mechanism
        self._ranges = ranges
        self.session_lifetime_ms = 0
        """From the last answer on; 0: as long as the connection."""

    def first(self) -> Message:
        """Raises AuthenticationFailed for a peer without SASL, or one too old for its present form."""
        newest = self._ranges.get(SaslHandshakeRequest.API_KEY, (0, -1))[1]
        if newest < SASL_IN_FRAMES or SaslAuthenticateRequest.API_KEY not in self._ranges:
            raise AuthenticationFailed(
                "the broker does not support SASL (as in Kafka 1.0 and later) on this port",
                ErrorCode.ILLEGAL_SASL_STATE,
            )
        return SaslHandshakeRequest(mechanism=self._name)

    def answered(self, response: Message) -> Message | None:
        """What to send next; None: both sides are content. Raises AuthenticationFailed."""
        if isinstance(response, SaslHandshakeResponse):
            return SaslAuthenticateRequest(auth_bytes=self._opening(response))
        assert isinstance(response, SaslAuthenticateResponse), response
        if response.error_code:
            code = error_code(response.error_code)
            raise AuthenticationFailed(f"{self._name}: {response.error_message or code.name}", code)
        self.session_lifetime_ms = response.session_lifetime_ms
        said = self._mechanism.answer(bytes(response.auth_bytes))
        return None if said is None else SaslAuthenticateRequest(auth_bytes=said)

    def _opening(self, response: SaslHandshakeResponse) -> bytes:
        if response.error_code:
            offered = ", ".join(sorted(response.mechanisms)) or "none"
            raise AuthenticationFailed(
                f"the broker does not accept {self._name} on this port; it offers {offered}",
                error_code(response.error_code),
            )
        return self._mechanism.first()


def common_version(request: type[Message], ranges: Mapping[int, tuple[int, int]]) -> int | None:
    """The newest version of this request that we and the peer speak, if there is one."""
    theirs = ranges.get(request.API_KEY)
    if theirs is None:
        return None
    version = min(theirs[1], request.MAX_VERSION)
    return version if version >= max(theirs[0], request.MIN_VERSION) else None
