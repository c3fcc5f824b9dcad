"""What the page's tables say, as text; the same for HTML and Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heirlog.sim.durability.cell import Policy
from heirlog.spark.sweep.statistics import Estimate
from heirlog.spark.sweep.summary import CellSummary

STRATEGIES = {
    Policy.ELR_OFF: "no ELR (before KIP-966)",
    Policy.LAST_KNOWN_LEADER: "ELR, last known leader (Kafka 4)",
    Policy.BALANCED: "ELR, Balanced",
    Policy.AGGRESSIVE: "ELR, Aggressive",
    Policy.NONE: "ELR, None",
}
HEADINGS = (
    "runs",
    "probability of loss",
    "records lost per run",
    "of those reported",
    "unavailable",
    "lossy elections per run",
)


def figures(summary: CellSummary) -> tuple[str, ...]:
    """One per heading, with intervals of 95 %."""
    return (
        str(summary.runs),
        percent(summary.loss),
        number(summary.lost),
        f"{summary.reported_in_all / summary.lost_in_all:.0%}" if summary.lost_in_all else "-",
        percent(summary.unavailable),
        f"{summary.lossy_elections:.2f}",
    )


def rates(group: Sequence[CellSummary]) -> list[int]:
    """Mean seconds between failures, the lowest failure rate first."""
    return sorted({each.cell.mtbf_s for each in group}, reverse=True)


def percent(estimate: Estimate) -> str:
    """Such as `12.0 % (7.0-19.8)`."""
    if math.isnan(estimate.value):
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value * 100:.1f} %"
    return f"{estimate.value * 100:.1f} % ({max(0.0, estimate.low) * 100:.1f}-{min(1.0, estimate.high) * 100:.1f})"


def number(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1f}"
    return f"{estimate.value:.1f} ({estimate.low:.1f}-{estimate.high:.1f})"
