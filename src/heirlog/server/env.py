"""`heirlog.env.Env` on a running asyncio loop: the clock, chance, timers, the log line and the end of the node."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from heirlog.env import Cancel, EventLog, OnResult
from heirlog.protocol.types import Endpoint
from heirlog.server.client_pool import ClientPool
from heirlog.server.files import OsFiles


class ServerEnv:
    """One node's world; made on the loop's thread.

    on_stop: called once with the exit code and the reason; has to end the loop and to keep files and connections from
    telling the node anything more. Timers and answers of peers are silent from `stop` on.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: OsFiles,
        pool: ClientPool,
        log: EventLog,
        on_stop: Callable[[int, str], None],
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._on_stop = on_stop
        self._stopped = False
        self.random = random.Random()
        self.files = files
        self.log = log

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def send(self, to: Endpoint, channel: str, request: Any, on_result: OnResult, timeout_ms: int) -> None:
        self._pool.send(to, channel, request, partial(self._answered, on_result), timeout_ms)

    def disconnect(self, to: Endpoint) -> None:
        self._pool.disconnect(to)

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Cancel:
        if not delay_ms:
            return self._loop.call_soon(self._run, fn).cancel
        return self._loop.call_later(delay_ms / 1000, self._run, fn).cancel

    def stop(self, exit_code: int, reason: str) -> None:
        if self._stopped:
            return
        self._stopped = True
        self._on_stop(exit_code, reason)

    def _run(self, fn: Callable[[], None]) -> None:
        if not self._stopped:
            fn()

    def _answered(self, on_result: OnResult, result: Any) -> None:
        if not self._stopped:
            on_result(result)
