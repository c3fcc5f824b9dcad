"""Lines of the log about certificates of this node that end soon, or have ended.

Connections that are open stay, so a node whose certificate has ended seems healthy until it, or a peer, connects again.
The node looks at the start, after a SIGHUP and once a day. It warns in the last `WARNING_DAYS`; afterwards it is an
error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from heirlog.env import EventLog
from heirlog.security.validity import not_after

WARNING_DAYS: Final = 14
LOOK_AGAIN_S: Final = 24 * 3600.0


def end_of(certificate: bytes) -> datetime:
    """Raises ValueError, IndexError: it cannot be read."""
    return datetime.strptime(not_after(certificate), "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def has_ended(certificate: bytes, now_s: float) -> bool:
    """certificate: in DER. One whose end cannot be read has ended, since nothing else shows that it is good."""
    try:
        return end_of(certificate).timestamp() < now_s
    except (ValueError, IndexError):
        return True


class CertificateEnds:
    """certificates: by listener, in DER, those that new connections see. wall_s: time since 1970."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        certificates: Callable[[], Mapping[str, bytes]],
        log: EventLog,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._loop = loop
        self._certificates = certificates
        self._log = log
        self._wall_s = wall_s
        self._next: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Now, and then every day."""
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop.call_later(LOOK_AGAIN_S, self.look)
        for listener, certificate in self._certificates().items():
            # what cannot be read in this way serves all the same
            with suppress(ValueError, IndexError):
                self._look_at(listener, certificate)

    def _look_at(self, listener: str, certificate: bytes) -> None:
        end = end_of(certificate)
        left_s = end.timestamp() - self._wall_s()
        if left_s < WARNING_DAYS * 24 * 3600:
            event = "certificate-ends" if left_s > 0 else "certificate-ended"
            self._log(
                "warning" if left_s > 0 else "error",
                event,
                listener=listener,
                end=end.isoformat(),
                days_left=max(0, int(left_s // (24 * 3600))),
                why="replace the files of ssl.keystore and ssl.key, and send SIGHUP (docs/guides/tls-and-sasl.md)",
            )
