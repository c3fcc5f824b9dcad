"""The APIs that are spoken here: keys, versions and where their messages live.

Importing this imports no message module: a node that never sees an API never pays for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from heirlog.protocol import messages
from heirlog.protocol._generated.api_table import TABLE
from heirlog.protocol._generated.api_table import ApiKey as ApiKey
from heirlog.protocol.primitives import Malformed, Message


class UnknownApi(Malformed):
    """A request with an API key that is not spoken here."""


@dataclass(frozen=True, slots=True)
class ApiSchema:
    """One API and the versions that can be decoded; `heirlog.apis` says which are served and advertised."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    kafka_max_version: int
    """The newest version that Apache Kafka has too; lower than `min_version` where the API is ours."""
    flexible_version: int
    module: str
    """The name in snake case, as the spec file and the generated module have it."""

    def speaks(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


APIS: dict[int, ApiSchema] = {key: ApiSchema(key, *row) for key, row in TABLE.items()}


def api(key: int) -> ApiSchema:
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
