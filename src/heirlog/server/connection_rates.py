"""How many connections may be opened per second (KIP-612).

By an address, the quota `connection_creation_rate`: a connection above the rate is accepted and not read, is closed
once its address would be at the rate again, one window later at most, and does not count for the rate. So a client that
reconnects at once is slowed down, and one that waits gets in. At most `HELD_MAX` such connections are kept; further
ones are closed at once. Listeners between nodes have no such quota.

At the node or at one listener, `max.connection.creation.rate`: a connection above the rate is served, and the next one
of its listener is accepted once the rate is down again, one window later at most. Until then it waits in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heirlog.metadata.address import kafka_host
from heirlog.rates import Measures, WindowedRate
from heirlog.server.connection_limits import NONE

HELD_MAX: Final = 1000
NODE: Final = ""


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


class AcceptRates:
    """Of the node, and of each of its listeners."""

    def __init__(self, now_ms: Callable[[], int], samples: int, window_ms: int) -> None:
        self._now_ms = now_ms
        self._samples = samples
        self._window_ms = window_ms
        self._rates: dict[str, WindowedRate] = {}

    def wait_ms(self, limits: Mapping[str, int]) -> int:
        """Count a new connection; for how long its listener accepts no other one.

        limits: per second, of what the connection counts for; `NODE` is the node.
        """
        now_ms, wait_ms = self._now_ms(), 0
        for name, limit in limits.items():
            if limit >= NONE:
                self._rates.pop(name, None)
                continue
            rate = self._rates.get(name)
            if rate is None:
                rate = self._rates[name] = WindowedRate(self._samples, self._window_ms)
            rate.add(1, now_ms)
            # zero, which only a file can say, would divide by nothing
            wait_ms = max(wait_ms, rate.throttle_ms(max(limit, 1), now_ms))
        return min(wait_ms, self._window_ms)
