"""Number of requests, their durations and their errors: counted per API, in plain numbers.

    begun --handler--> handled --Pending--> ready --answers before it--> taken --encoded, written--> sent
          local                 remote           response queue                  response send

The names are those of Kafka's RequestMetrics, where the same times are spent between threads. There is no request queue
here: a request is handled as soon as it is read. A request without an answer (acks=0) is done when its handler is. One
whose connection closes before it was answered counts only as received.

Times are not stored but counted in buckets: exact to 16 µs below 262 µs, to an eighth above. A quantile covers the
requests of the last minutes (`RecentIncrease`), so that an hour without load does not hide a bad minute.

Counting a request may cost a microsecond, and nothing if the node serves no metrics (then there is no
`RequestMetrics`). So every request is counted, but of a frequent API only one in thirty-two is timed. Buckets are found
in a table, and values that are zero for most requests are left out.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from operator import sub
from typing import Any, Final

from heirlog.node.error_counts import ErrorCounts, error_counter
from heirlog.protocol.api import APIS, ApiKey, api

FETCH: Final = int(ApiKey.FETCH)
CONSUMER_FETCH = "FetchConsumer"
FOLLOWER_FETCH = "FetchFollower"
_REPLICA_STATE_VERSION = 15

UNIT_BITS = 14
"""A unit is 2^14 ns: the smallest difference that is seen."""
_DIRECT = 4096
"""Differences below so many units (67 ms) are looked up."""
_BUCKETS = 256
TIMED_ALL = 1000
"""So many requests of an API are all timed; after them one of `TIMED_EVERY`."""
TIMED_EVERY = 32


def _bucket_of(units: int) -> int:
    """0-15 exact, then eight buckets for each doubling."""
    if units < 16:
        return units
    shift = units.bit_length() - 4
    return min(8 * shift + (units >> shift), _BUCKETS - 1)


def _runs(upto: int) -> Iterator[bytes]:
    """`_bucket_of` of every number below, without computing each."""
    yield bytes(range(16))
    for shift in range(1, upto.bit_length() - 4):
        for first in range(8, 16):
            yield bytes([8 * shift + first]) * (1 << shift)


_BUCKET = b"".join(_runs(_DIRECT))


def _middle_ms(bucket: int) -> float:
    shift = 0 if bucket < 16 else (bucket - 8) // 8
    units = (bucket - 8 * shift + 0.5) * (1 << shift)
    return units * (1 << UNIT_BITS) / 1e6


def no_times() -> list[int]:
    """How often each length of time was seen, by bucket."""
    return [0] * _BUCKETS


def quantiles_ms(times: Sequence[int], zeros: int, quantiles: Sequence[float]) -> list[float]:
    """The times below which these shares lie, ascending; `zeros` more were too short to count. 0.0 of nothing."""
    total = zeros + sum(times)
    found = []
    seen, bucket, value = zeros, 0, 0.0
    for quantile in quantiles:
        while seen < quantile * total:
            seen += times[bucket]
            value = _middle_ms(bucket)
            bucket += 1
        found.append(value)
    return found


class ApiRequestMetrics:
    """The requests of one API, or of one kind of Fetch."""

    __slots__ = (
        "count_errors",
        "done",
        "errors",
        "local",
        "name",
        "now_ns",
        "remote",
        "response_queue",
        "response_send",
        "throttle",
        "total",
        "until_timed",
        "versions",
    )

    def __init__(self, api_key: int, name: str, now_ns: Callable[[], int]) -> None:
        self.name = name
        self.now_ns = now_ns
        self.until_timed = 1
        """The how manieth request from here is timed; never 0 for long."""
        self.count_errors = error_counter(api_key)
        self.versions = [0] * (APIS[api_key].max_version + 1)
        """Requests that came, by version."""
        self.errors: ErrorCounts = defaultdict(int)
        """Codes in answers, 0 among them; an answer may hold many."""
        self.done = 0
        """Requests that were answered, or wanted no answer."""
        self.total = no_times()
        """Of those that were timed."""
        self.local = no_times()
        self.remote = no_times()
        """Only of requests that had to wait; so `response_queue`. For the others it is zero."""
        self.response_queue = no_times()
        self.response_send = no_times()
        self.throttle = no_times()
        """Only of requests whose client has to wait for a quota."""

    def is_timed(self) -> bool:
        """Whether the request that has just been handled is one of those."""
        self.until_timed -= 1
        if self.until_timed:
            return False
        self.choose_next()
        return True

    def choose_next(self) -> None:
        """One has been chosen to be timed."""
        self.until_timed = TIMED_EVERY if self.done >= TIMED_ALL else 1

    def answered(self, response: Any) -> None:
        self.done += 1
        self.count_errors(response, self.errors)

    def record_times(self, begun_ns: int, handled_ns: int, ready_ns: int, taken_ns: int) -> None:
        """A request that is timed was answered: the answer has just been handed to the body."""
        sent_ns = self.now_ns()
        units = sent_ns - begun_ns >> UNIT_BITS
        self.total[_BUCKET[units] if units < _DIRECT else _bucket_of(units)] += 1
        units = handled_ns - begun_ns >> UNIT_BITS
        self.local[_BUCKET[units] if units < _DIRECT else _bucket_of(units)] += 1
        units = sent_ns - taken_ns >> UNIT_BITS
        self.response_send[_BUCKET[units] if units < _DIRECT else _bucket_of(units)] += 1
        if ready_ns != handled_ns:
            units = ready_ns - handled_ns >> UNIT_BITS
            self.remote[_BUCKET[units] if units < _DIRECT else _bucket_of(units)] += 1
        if taken_ns != ready_ns:
            units = taken_ns - ready_ns >> UNIT_BITS
            self.response_queue[_BUCKET[units] if units < _DIRECT else _bucket_of(units)] += 1

    def record_throttle(self, throttle_ms: int) -> None:
        """The client of a request that is timed has to wait for a quota."""
        self.throttle[_bucket_of(throttle_ms * 1_000_000 >> UNIT_BITS)] += 1

    def done_without_answer(self, begun_ns: int) -> None:
        self.done += 1
        if not self.is_timed():
            return
        bucket = _bucket_of(self.now_ns() - begun_ns >> UNIT_BITS)
        self.total[bucket] += 1
        self.local[bucket] += 1
        self.response_send[0] += 1


class RequestMetrics:
    """All requests of a node. `now_ns` never goes back."""

    __slots__ = ("_by_key", "_consumers", "_followers", "now_ns")

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        self._by_key: dict[int, ApiRequestMetrics] = {}
        """Without Fetch, which has two."""
        self._consumers = ApiRequestMetrics(FETCH, CONSUMER_FETCH, now_ns)
        self._followers = ApiRequestMetrics(FETCH, FOLLOWER_FETCH, now_ns)

    def received(self, api_key: int, version: int, request: Any) -> ApiRequestMetrics:
        """A request has come; its meter, which wants to hear of its answer."""
        meter = self._by_key.get(api_key)
        if meter is None:
            if api_key == FETCH:
                asking = request.replica_state if version >= _REPLICA_STATE_VERSION else request
                meter = self._consumers if asking.replica_id < 0 else self._followers
            else:
                meter = self._by_key[api_key] = ApiRequestMetrics(api_key, api(api_key).name, self.now_ns)
        meter.versions[version] += 1
        return meter

    def all(self) -> list[ApiRequestMetrics]:
        """Of everything that was asked so far; both kinds of Fetch apart."""
        fetches = [meter for meter in (self._consumers, self._followers) if any(meter.versions)]
        return [*fetches, *self._by_key.values()]


class RecentIncrease:
    """Increases of a list of counts in the last minutes, if it is read from time to time."""

    __slots__ = ("_earlier",)

    STEP_MS = 60_000
    STEPS = 5

    def __init__(self) -> None:
        self._earlier: deque[tuple[int, list[int]]] = deque()

    def since(self, counts: list[int], now_ms: int) -> list[int]:
        """The counts of the last five minutes, or since the first look if that is not so long ago."""
        earlier = self._earlier
        if not earlier:
            earlier.append((now_ms, [0] * len(counts)))
        elif now_ms - earlier[-1][0] >= self.STEP_MS:
            earlier.append((now_ms, list(counts)))
        while len(earlier) > 1 and now_ms - earlier[1][0] >= self.STEPS * self.STEP_MS:
            earlier.popleft()
        return list(map(sub, counts, earlier[0][1]))
