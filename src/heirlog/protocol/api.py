"""The APIs that are spoken here: keys, versions and where their messages live.

Importing this imports no message module: a node that never sees an API never pays for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from heirlog.protocol import messages
from heirlog.protocol._generated.api_table import TABLE
from heirlog.protocol.primitives import Malformed, Message

PRODUCE = 0
FETCH = 1
API_VERSIONS = 18
ELECT_LEADERS = 43
ELECT_LEADERS_OURS = 3
"""The version of KIP-966 that Apache Kafka never shipped."""
OURS_FROM_KEY = 10_000
"""Keys and tagged fields from here on are heirlog's own."""
GET_REPLICA_LOG_INFO = 10093
DESCRIBE_RECOVERY = 10094


class UnknownApi(Malformed):
    """A request with an API key that is not spoken here."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API and the versions that can be decoded; `heirlog.node.router` says which are served and advertised."""

    key: int
    name: str
    min_version: int
    max_version: int
    flexible_version: int
    module: str
    """The name in snake case, as the spec file and the generated module have it."""

    def speaks(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


APIS: dict[int, Api] = {key: Api(key, *row) for key, row in TABLE.items()}


def api(key: int) -> Api:
    """Raises UnknownApi."""
    found = APIS.get(key)
    if found is None:
        raise UnknownApi(f"there is no API with the key {key} here")
    return found


@cache
def request_class(key: int) -> type[Message]:
    """Imports the API's module at its first use. Raises UnknownApi."""
    return _message_class(key, "Request")


@cache
def response_class(key: int) -> type[Message]:
    """Imports the API's module at its first use. Raises UnknownApi."""
    return _message_class(key, "Response")


def _message_class(key: int, suffix: str) -> type[Message]:
    known = api(key)
    found: type[Message] = getattr(messages, known.name + suffix)
    return found
