"""Where a request came from, and what a handler may answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from heirlog.pending import Pending

R = TypeVar("R")

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of clients that did not authenticate."""


class Sentinel:
    """An answer that is not a message. Compared by identity."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


NO_ANSWER: Final = Sentinel("NO_ANSWER")
"""The request is done and its client expects nothing (Produce with acks=0)."""
CLOSE: Final = Sentinel("CLOSE")
"""Close the connection: the only way to tell a client that expects no answer (acks=0) that something failed."""
Reply: TypeAlias = R | Sentinel | Pending[R]
"""What a handler returns: the response, a sign that there is none, or a `Pending` for the response."""


@dataclass(slots=True)
class Context:
    """`connection` is the identity of the connection: requests of one connection share it.

    A context is never changed. It is not frozen because one is made per request and freezing costs a microsecond.
    """

    api_version: int
    client_id: str
    client_host: str
    listener: str
    connection: object
    principal: str = ANONYMOUS
    """Who the client is, as type and name."""
    by_delegation_token: bool = False
    """It has logged in with one: then it gets no other."""
    new_token_id: str | None = None
    """Chosen by the broker that forwards the request, for the delegation token that it creates."""
    refuses: Callable[[str], bool] | None = None
    """Whether the client has no access to a topic of this name; None without such a check (`apis.common.call`)."""
