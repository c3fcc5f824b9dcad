"""Intervals against figures from elsewhere, and how often they hold what they should."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heirlog.spark.sweep.statistics import mean, probability, skewed_mean, t_quantile


@pytest.mark.parametrize(
    ("successes", "runs", "low", "high"),
    # Newcombe 1998, table I, method 3 (Wilson's score without continuity correction)
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_the_literature(successes: int, runs: int, low: float, high: float) -> None:
    found = probability(successes, runs)
    assert found.value == successes / runs
    assert (found.low, found.high) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


def test_wilsons_interval_is_not_empty_where_nothing_or_everything_was_lost() -> None:
    nothing, everything = probability(0, 50), probability(50, 50)
    assert nothing.low == 0.0 and nothing.high is not None and 0.05 < nothing.high < 0.08
    assert everything.high == 1.0 and everything.low is not None and 0.92 < everything.low < 0.95


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)]
)
def test_students_t_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, rel=0.003)


def test_the_mean_has_students_interval() -> None:
    found = mean([1.0, 2.0, 3.0, 4.0])
    half = 3.182 * math.sqrt(5 / 3) / 2
    assert found.value == 2.5
    assert (found.low, found.high) == (pytest.approx(2.5 - half, rel=0.01), pytest.approx(2.5 + half, rel=0.01))


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    assert mean([0.5]) == (0.5, None, None)
    assert skewed_mean([7, 7, 7]) == (7.0, None, None)
    assert all(
        math.isnan(found.value) and found.low is None for found in (mean([]), skewed_mean([]), probability(0, 0))
    )


def test_the_bootstrap_is_the_same_every_time_and_holds_the_mean_nearly_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        # one run in five loses something, and then 50 records on average
        values = np.where(generator.random(150) < 0.2, generator.exponential(50, 150).round(), 0).tolist()
        found = skewed_mean(values)
        assert found == skewed_mean(values)
        assert found.low is not None and found.high is not None
        held += found.low <= 10 <= found.high
    assert 0.88 <= held / 200 <= 0.99
