from __future__ import annotations

from heirlog.raft.latency_window import KEPT_MAX, WINDOW_MS, LatencyWindow


def test_the_last_half_minute_counts() -> None:
    latency = LatencyWindow()
    assert latency.average_and_max_ms(0) == (0, 0)
    latency.add(0, 90)
    latency.add(WINDOW_MS, 10)
    latency.add(WINDOW_MS, 20)
    assert latency.average_and_max_ms(WINDOW_MS) == (40, 90)
    assert latency.average_and_max_ms(WINDOW_MS + 1) == (15, 20)
    assert latency.average_and_max_ms(3 * WINDOW_MS) == (0, 0)


def test_a_quantile_is_the_latency_that_so_many_do_not_exceed() -> None:
    latency = LatencyWindow()
    assert latency.quantiles_ms(0, [0.5, 0.999]) == [0, 0]
    for value in range(100, 0, -1):
        latency.add(0, value)
    assert latency.quantiles_ms(0, [0.0, 0.5, 0.95, 0.999, 1.0]) == [1, 50, 95, 100, 100]
    assert latency.quantiles_ms(WINDOW_MS + 1, [0.5]) == [0]


def test_a_clock_that_jumped_makes_no_negative_time_and_what_is_kept_is_bounded() -> None:
    latency = LatencyWindow()
    latency.add(0, -5)
    assert latency.average_and_max_ms(0) == (0, 0)
    for _ in range(2 * KEPT_MAX):
        latency.add(0, 1)
    assert len(latency._seen) == KEPT_MAX
