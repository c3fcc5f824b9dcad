"""Where a request came from: what a handler may know beside the message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """`connection` is an opaque identity: requests of one connection share it, and `closed` names it."""

    api_version: int
    client_id: str
    client_host: str
    listener: str
    connection: object
    principal: str = "User:ANONYMOUS"
