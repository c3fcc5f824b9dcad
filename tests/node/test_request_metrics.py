from __future__ import annotations

import random

import pytest

from heirlog.node.request_metrics import (
    _BUCKET,
    _DIRECT,
    TIMED_ALL,
    TIMED_EVERY,
    RecentIncrease,
    RequestMetrics,
    _bucket_of,
    no_times,
    quantiles_ms,
)
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import FetchRequest, HeartbeatRequest, HeartbeatResponse

HEARTBEAT = 12
SHARES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class Clock:
    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def meter(clock: Clock) -> RequestMetrics:
    return RequestMetrics(clock)


def serve(meter: RequestMetrics, clock: Clock, microseconds: float) -> None:
    api = meter.received(HEARTBEAT, 4, HeartbeatRequest())
    clock.ns = int(microseconds * 1000)
    api.answered(HeartbeatResponse())
    if api.is_timed():
        api.record_times(0, clock.ns, clock.ns, clock.ns)
    clock.ns = 0


@pytest.mark.parametrize("longest_us", [100, 10_000, 60_000_000])
def test_quantiles_are_those_of_the_times_to_an_eighth(meter: RequestMetrics, clock: Clock, longest_us: int) -> None:
    chance = random.Random(longest_us)
    times = [chance.uniform(0, longest_us) for _ in range(2000)]
    for time in times:
        serve(meter, clock, time)
    (api,) = meter.all()
    assert api.done == len(times)
    assert sum(api.total) == TIMED_ALL + (len(times) - TIMED_ALL) // TIMED_EVERY
    times = times[:TIMED_ALL] + times[TIMED_ALL + TIMED_EVERY - 1 :: TIMED_EVERY]
    times.sort()
    found = quantiles_ms(api.total, 0, SHARES)
    for share, value in zip(SHARES, found, strict=True):
        exact_ms = times[int(share * len(times)) - 1] / 1000
        assert value == pytest.approx(exact_ms, rel=1 / 8, abs=0.017)


def test_a_day_is_the_longest_time_and_breaks_nothing(meter: RequestMetrics, clock: Clock) -> None:
    serve(meter, clock, 86_400_000_000)
    serve(meter, clock, 1e15)
    (api,) = meter.all()
    assert sum(api.total) == 2
    assert quantiles_ms(api.total, 0, (0.5,))[0] >= 60_000_000


def test_what_did_not_have_to_wait_counts_as_zero() -> None:
    times = no_times()
    times[100] = 1
    assert quantiles_ms(times, 99, (0.5, 0.99, 0.999)) == [0.0, 0.0, pytest.approx(419.4, rel=0.01)]


def test_of_nothing_every_quantile_is_zero() -> None:
    assert quantiles_ms(no_times(), 0, SHARES) == [0.0] * len(SHARES)


def test_the_parts_of_a_request_s_time_are_told_apart(meter: RequestMetrics, clock: Clock) -> None:
    api = meter.received(HEARTBEAT, 4, HeartbeatRequest())
    clock.ns = 31_000_000
    api.answered(HeartbeatResponse(error_code=27))
    api.record_times(0, 1_000_000, 3_000_000, 15_000_000)
    parts = (api.local, api.remote, api.response_queue, api.response_send, api.total)
    found = [quantiles_ms(part, 0, (0.5,))[0] for part in parts]
    assert found == [pytest.approx(ms, rel=0.125) for ms in (1, 2, 12, 16, 31)]
    assert dict(api.errors) == {27: 1}
    assert api.versions[4] == 1


def test_fetches_of_consumers_and_of_followers_are_two_kinds(meter: RequestMetrics) -> None:
    meter.received(ApiKey.FETCH, 17, FetchRequest())
    meter.received(
        ApiKey.FETCH, 17, FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=5))
    )
    meter.received(ApiKey.FETCH, 12, FetchRequest(replica_id=2))
    found = {api.name: {version: n for version, n in enumerate(api.versions) if n} for api in meter.all()}
    assert found == {"FetchConsumer": {17: 1}, "FetchFollower": {12: 1, 17: 1}}


def test_only_the_last_minutes_count_where_somebody_looks_every_minute() -> None:
    recent = RecentIncrease()
    counts = [0, 0]
    seen = []
    for minute in range(12):
        counts[minute % 2] += 10
        seen.append(sum(recent.since(counts, minute * 60_000)))
    assert seen[:3] == [10, 20, 30]
    assert seen[-3:] == [50, 50, 50]
    assert recent.since(counts, 12 * 60_000 + 1) == [20, 20]
    assert recent.since(counts, 100 * 60_000) == [0, 0], "the look before this one is long ago"


def test_the_table_of_buckets_is_the_rule_written_out() -> None:
    assert list(_BUCKET) == [_bucket_of(units) for units in range(_DIRECT)]
