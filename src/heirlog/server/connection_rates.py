"""How many connections an address may open per second: the quota `connection_creation_rate` (KIP-612).

A connection above the rate is accepted and not read, is closed once its address would be at the rate again, one window
later at most, and does not count for the rate. So a client that reconnects at once is slowed down, and one that waits
gets in. At most `HELD_MAX` such connections are kept; further ones are closed at once. Listeners between nodes have no
rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heirlog.metadata.address import kafka_host
from heirlog.rates import Measures, WindowedRate

HELD_MAX: Final = 1000


class ConnectionRates:
    """limit_of: connections per second of an address as ACLs write it; None: any number."""

    def __init__(
        self, limit_of: Callable[[str], float | None], now_ms: Callable[[], int], samples: int, window_ms: int
    ) -> None:
        self._limit_of = limit_of
        self._now_ms = now_ms
        self._window_ms = window_ms
        self._rates: Measures[str, WindowedRate] = Measures(lambda: WindowedRate(samples, window_ms))

    def throttle_ms(self, host: str) -> int:
        """Count a new connection of this address; above 0: it is too much, and for so long."""
        address = kafka_host(host)
        limit = self._limit_of(address)
        if limit is None:
            return 0
        now_ms = self._now_ms()
        rate = self._rates.of(address, now_ms)
        rate.add(1, now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms)
        if throttle_ms:
            rate.add(-1, now_ms)
        return min(throttle_ms, self._window_ms)
