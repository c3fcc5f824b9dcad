"""Controller mutation quotas: how many partitions a client may create and delete per second (KIP-599).

    strict       the version of the request has THROTTLING_QUOTA_EXCEEDED: a topic is refused with it while the bucket
                 is below zero, and others of the request may pass; only a refused request has to wait
    permissive   an older version: everything is done, and the client has to wait afterwards

One topic may take more than is left: the next one waits. A request that only validates counts as if it did its work.
The broker that the client is connected to passes the time on, and mutes the connection (`node.client_quotas`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.metadata.client_quotas import CONTROLLER_MUTATION_RATE, Bucket, ClientQuotas
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.rates import Measures, TokenBucket


def no_quota(partitions: int) -> None:
    """For requests of clients without a quota."""


class MutationQuotas:
    """On the active controller. It starts with full buckets, so after a fail-over each client has a burst again."""

    def __init__(
        self, quotas: Callable[[], ClientQuotas], now_ms: Callable[[], int], samples: int, window_ms: int
    ) -> None:
        self._quotas = quotas
        self._now_ms = now_ms
        self._buckets: Measures[Bucket, TokenBucket] = Measures(lambda: TokenBucket(samples, window_ms))
        self.throttled = 0
        """Answers with a time to wait."""

    def of(self, principal: str, client_id: str, strict: bool) -> MutationQuota | None:
        """None: this client has no limit."""
        limit = self._quotas().limit(CONTROLLER_MUTATION_RATE, principal.partition(":")[2], client_id)
        if limit is None:
            return None
        return MutationQuota(self, self._buckets.of(limit.bucket, self._now_ms()), limit.rate, self._now_ms, strict)


class MutationQuota:
    """Of one request."""

    __slots__ = ("_bucket", "_has_refused", "_now_ms", "_quotas", "_rate", "_strict")

    def __init__(
        self, quotas: MutationQuotas, bucket: TokenBucket, rate: float, now_ms: Callable[[], int], strict: bool
    ) -> None:
        self._quotas = quotas
        self._bucket = bucket
        self._rate = rate
        self._now_ms = now_ms
        self._strict = strict
        self._has_refused = False

    def take(self, partitions: int) -> None:
        """Raises KafkaError THROTTLING_QUOTA_EXCEEDED."""
        now_ms = self._now_ms()
        if self._strict and self._bucket.throttle_ms(self._rate, now_ms):
            self._has_refused = True
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                "The throttling quota has been exceeded: wait for the throttle time of this answer, and try again.",
            )
        self._bucket.take(partitions, self._rate, now_ms)

    def put_into(self, response: Any) -> None:
        """Put the time to wait, as it is now, into the answer."""
        if self._strict and not self._has_refused:
            return
        response.throttle_time_ms = self._bucket.throttle_ms(self._rate, self._now_ms())
        self._quotas.throttled += response.throttle_time_ms > 0
