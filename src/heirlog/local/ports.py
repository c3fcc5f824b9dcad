"""Ports that stay ours while the nodes behind them come and go.

The parent binds each port without listening, and the node listens on the same port (SO_REUSEPORT on both). Connections
go to listening sockets only, and no other process can take the port between a node's death and its next start.
"""

from __future__ import annotations

import socket

from heirlog.local.errors import LocalError
from heirlog.local.layout import HOST


class PortReservation:
    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def reserve(self, port: int = 0) -> int:
        """The port; 0 asks for a free one. Raises LocalError if another process has it, or keeps it reserved."""
        if port:
            _refuse_held(port)
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((HOST, port))
        except OSError as error:
            holder.close()
            raise _in_use(port, error) from error
        self._held.append(holder)
        bound: int = holder.getsockname()[1]
        return bound

    def release(self) -> None:
        for holder in self._held:
            holder.close()
        self._held.clear()


def _refuse_held(port: int) -> None:
    """Without SO_REUSEPORT a reservation is in the way too: a copy of this cluster may have it, with the same nodes."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # connections that were closed a minute ago are not
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise _in_use(port, error) from error


def _in_use(port: int, error: OSError) -> LocalError:
    return LocalError(f"port {port} of the cluster is in use by another process ({error.strerror})")
