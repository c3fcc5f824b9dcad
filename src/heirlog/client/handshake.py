"""The first exchange on a connection: which versions the peer speaks.

    ApiVersions v4 --> ranges                              done
                   --> error 35 in a v0 body with ranges   ask once more, in the newest version that it names

An older peer cannot know the answer format of the version that was asked, so it answers in v0 (KIP-511). The error
code stands at the same place in every version: behind the correlation id, since ApiVersions keeps response header v0.
"""

from __future__ import annotations

from collections.abc import Mapping

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from heirlog.protocol.primitives import Message

SOFTWARE_NAME = "heirlog"
SOFTWARE_VERSION = "0.1.0"
ERROR_CODE_AT = 4
UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


class Refused(Exception):
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
        """The peer's (oldest, newest) version by API key, or None: send `request()` again. Raises Refused."""
        ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        if not response.error_code:
            return ranges
        version = common_version(ApiVersionsRequest, ranges)
        if response.error_code != ErrorCode.UNSUPPORTED_VERSION or self._asked_again or version is None:
            raise Refused(f"the peer answered ApiVersions with error {response.error_code}")
        self._asked_again = True
        self._version = version
        return None


def common_version(request: type[Message], ranges: Mapping[int, tuple[int, int]]) -> int | None:
    """The newest version of this request that we and the peer speak, if there is one."""
    theirs = ranges.get(request.API_KEY)
    if theirs is None:
        return None
    version = min(theirs[1], request.MAX_VERSION)
    return version if version >= max(theirs[0], request.MIN_VERSION) else None
