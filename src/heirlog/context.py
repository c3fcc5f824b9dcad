"""Where a request came from, and the two answers that are no message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

ANONYMOUS: Final = "User:ANONYMOUS"
"""Whoever did not say who they are."""


class _Sign:
    """A named value that is only compared by identity."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


NO_ANSWER: Final = _Sign("NO_ANSWER")
"""The request is done and its client expects nothing (Produce with acks=0)."""
CLOSE: Final = _Sign("CLOSE")
"""Close the connection: the only way to tell a client that expects no answer (acks=0) that something failed."""


@dataclass(slots=True)
class Context:
    """`connection` is the identity of the connection: requests of one connection share it.

    Nobody changes a context; it is not frozen because one is made per request and freezing costs a microsecond.
    """

    api_version: int
    client_id: str
    client_host: str
    listener: str
    connection: object
    principal: str = ANONYMOUS
    """Who the client is, as type and name."""
    refuses: Callable[[str], bool] | None = None
    """Whether a topic of this name must not be touched; None where nobody asks (`node.authorization`)."""
