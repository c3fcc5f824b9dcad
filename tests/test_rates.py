"""The two measures of quotas: Kafka's examples, and properties of any sequence of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog import rates
from heirlog.rates import UNUSED_MS, Measures, TokenBucket, WindowedRate


def test_kafka_s_example_of_a_windowed_rate() -> None:
    """KIP-13: 500 per second allowed, ten samples of 400, then 2300 within the next half second."""
    rate = WindowedRate()
    for second in range(10):
        rate.add(400, second * 1000)
        assert rate.throttle_ms(500, second * 1000) == 0
    rate.add(2300, 10_500)
    assert rate.per_second(10_500) == 600.0
    assert rate.throttle_ms(500, 10_500) == 2100


def test_the_first_second_counts_as_if_ten_had_gone_by() -> None:
    rate = WindowedRate()
    rate.add(1000, 5)
    assert rate.per_second(5) == 100.0


def test_a_sample_counts_until_its_last_event_is_eleven_windows_old() -> None:
    rate = WindowedRate()
    rate.add(110, 0)
    rate.add(110, 999)
    assert rate.per_second(11_998) > 0
    assert rate.per_second(11_999) == 0.0


def test_a_rate_of_nothing_is_zero() -> None:
    assert WindowedRate().per_second(0) == 0.0
    assert WindowedRate().throttle_ms(1, 10**9) == 0


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=20), st.integers(50, 1000))
def test_a_client_that_waits_never_gets_twice_the_limit(sizes: list[int], limit: int) -> None:
    rate, now_ms, sent = WindowedRate(), 0, 0
    while now_ms < 60_000:
        size = sizes[sent % len(sizes)]
        rate.add(size, now_ms)
        sent += size
        now_ms += max(10, rate.throttle_ms(limit, now_ms))
    # what is dropped during a wait is forgiven: a client whose requests fill ten windows each gets more than the limit
    assert sent <= 2 * limit * (now_ms / 1000 + 11) + max(sizes)


def test_kafka_s_example_of_a_token_bucket() -> None:
    """KIP-599: 10 per second and 11 windows; 90 and 90 pass, and the third has to wait until the 70 are repaid."""
    bucket = TokenBucket()
    bucket.take(90, 10, 0)
    assert bucket.throttle_ms(10, 0) == 0
    bucket.take(90, 10, 0)
    assert bucket.left(10, 0) == -70
    assert bucket.throttle_ms(10, 0) == 7000
    assert bucket.throttle_ms(10, 7000) == 0


def test_a_bucket_never_holds_more_than_its_windows_refill() -> None:
    bucket = TokenBucket(samples=2)
    bucket.take(20, 10, 0)
    assert bucket.left(10, 1_000_000) == 20
    assert bucket.left(5, 1_000_000) == 10, "a lower limit takes away what was more than it allows"


def test_only_so_many_clients_are_measured_and_the_longest_idle_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MEASURED_MAX", 2)
    measures: Measures[str, WindowedRate] = Measures(WindowedRate)
    first = measures.of("a", 0)
    measures.of("b", 1)
    assert measures.of("a", 2) is first
    measures.of("c", 3)
    assert len(measures) == 2
    assert measures.of("a", 4) is first, "b was idle for longer"


def test_a_client_that_was_idle_for_an_hour_is_forgotten_when_another_one_comes() -> None:
    measures: Measures[str, WindowedRate] = Measures(WindowedRate)
    measures.of("a", 0)
    measures.of("b", UNUSED_MS)
    assert len(measures) == 1


def test_a_limit_that_is_nearly_nothing_makes_a_wait_that_fits_into_an_answer() -> None:
    rate, bucket = WindowedRate(), TokenBucket()
    rate.add(1000, 0)
    bucket.take(1000, 1e-310, 0)
    assert rate.throttle_ms(1e-310, 0) == bucket.throttle_ms(1e-310, 0) == 2**31 - 1
