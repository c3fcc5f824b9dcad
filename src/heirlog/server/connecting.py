"""Connecting to the first address of an endpoint that answers."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from heirlog.protocol.types import Endpoint


class NothingListens(ConnectionRefusedError):
    """host: the address that said so."""

    def __init__(self, error: ConnectionRefusedError, host: str) -> None:
        super().__init__(*error.args)
        self.host = host


async def connected_socket(loop: asyncio.AbstractEventLoop, endpoint: Endpoint, source: str = "") -> socket.socket:
    """Connect to the first address of the endpoint that answers; raises OSError of one that did not.

    NothingListens: all addresses refused; `host` is the first one.
    """
    failure: OSError | None = None
    for family, address in await addresses(loop, endpoint):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            if source:
                sock.bind((source, 0))
            await loop.sock_connect(sock, address)
        except ConnectionRefusedError as error:
            failure = failure or NothingListens(error, str(address[0]))
            sock.close()
        except OSError as error:
            if failure is None or isinstance(failure, NothingListens):
                failure = error
            sock.close()
        except asyncio.CancelledError:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(f"{endpoint.host} has no address")


async def addresses(loop: asyncio.AbstractEventLoop, endpoint: Endpoint) -> list[tuple[socket.AddressFamily, Any]]:
    """Literal addresses need no resolver, and so no thread."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, endpoint.host)
        except OSError:
            continue
        return [(family, (endpoint.host, endpoint.port))]
    found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]
