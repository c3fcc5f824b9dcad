"""Intervals of 95 % confidence: Wilson's for a probability, Student's for a mean, a bootstrap for a skewed mean.

probability of loss     Wilson: right also when no run, or every run, has lost something
unavailable time        t: many different values between 0 and 1
records lost            percentile bootstrap: most runs lose nothing and a few lose a lot, so the mean has a skewed
                        distribution. If no run lost anything, there is nothing to resample and no interval
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Z = 1.959963984540054
"""Of the normal distribution, for 95 %."""
RESAMPLES = 4000
_SEED = 966


class Estimate(NamedTuple):
    """Without an interval, `low` and `high` are None."""

    value: float
    low: float | None
    high: float | None


def probability(successes: int, runs: int) -> Estimate:
    """Wilson's score interval."""
    if runs == 0:
        return Estimate(math.nan, None, None)
    share = successes / runs
    weight = 1 + Z * Z / runs
    centre = (share + Z * Z / (2 * runs)) / weight
    half = Z / weight * math.sqrt(share * (1 - share) / runs + Z * Z / (4 * runs * runs))
    # rounding must not put the estimate itself out of its interval
    return Estimate(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


def mean(values: Sequence[float]) -> Estimate:
    """The t interval."""
    count = len(values)
    if count == 0:
        return Estimate(math.nan, None, None)
    found = float(np.mean(values))
    if count == 1:
        return Estimate(found, None, None)
    half = t_quantile(count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return Estimate(found, found - half, found + half)


def skewed_mean(values: Sequence[float]) -> Estimate:
    """The percentile bootstrap, with a fixed seed: the same runs give the same interval."""
    distinct, counts = np.unique(np.asarray(values, dtype=float), return_counts=True)
    runs = int(counts.sum())
    if runs == 0:
        return Estimate(math.nan, None, None)
    found = float(distinct @ counts / runs)
    if len(distinct) == 1:
        return Estimate(found, None, None)
    # a resample draws how often each value occurs in it, so its cost does not depend on the number of runs
    means = np.random.default_rng(_SEED).multinomial(runs, counts / runs, size=RESAMPLES) @ distinct / runs
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(found, float(low), float(high))


def t_quantile(freedom: int) -> float:
    """Student's t for 95 %, both sides. Exact for 1 and 2 degrees of freedom; else by the expansion in 1/freedom of
    Abramowitz and Stegun (26.7.5), good to 0.3 % from 3 on.
    """
    if freedom == 1:
        return 12.706204736
    if freedom == 2:
        return 4.302652730
    z = Z
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
