"""Plots as SVG: for each failure rate one dot per strategy, with its interval.

Inside an HTML page an SVG needs no namespace; a file of its own does (`standalone`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from heirlog.sim.durability.cell import Policy
from heirlog.spark.sweep.statistics import Estimate
from heirlog.spark.sweep.summary import CellSummary
from heirlog.spark.sweep.tables import STRATEGIES, rates

WIDTH, HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 34, 92
# distinguishable for colour-blind readers too (Okabe and Ito); the shapes differ as well
_COLOURS = {
    Policy.ELR_OFF: "#d55e00",
    Policy.LAST_KNOWN_LEADER: "#e69f00",
    Policy.BALANCED: "#0072b2",
    Policy.AGGRESSIVE: "#cc79a7",
    Policy.NONE: "#009e73",
}
_TICKS = 4


def plot(title: str, group: Sequence[CellSummary], figure: Callable[[CellSummary], Estimate]) -> str:
    """figure: a share between 0 and 1 of each cell."""
    policies = [policy for policy in Policy if any(each.cell.policy is policy for each in group)]
    seconds = rates(group)
    top = _rounded_up(max((_high(figure(each)) for each in group), default=0.0))
    parts = [*_axes(title, top), *_legend(policies)]
    width = (WIDTH - _LEFT - _RIGHT) / max(1, len(seconds))
    for place, mtbf_s in enumerate(seconds):
        begin = _LEFT + place * width
        parts.append(_text(begin + width / 2, HEIGHT - _BOTTOM + 18, f"a broker fails every {mtbf_s} s", "middle"))
        for each in group:
            if each.cell.mtbf_s == mtbf_s:
                x = begin + width * (policies.index(each.cell.policy) + 1) / (len(policies) + 1)
                parts += _dot(x, figure(each), top, each)
    body = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">\n{body}\n</svg>'


def standalone(svg: str) -> str:
    """As a file of its own."""
    return svg.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" ', 1) + "\n"


def _axes(title: str, top: float) -> list[str]:
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(_LEFT, 18, title, "start", bold=True),
    ]
    for tick in range(_TICKS + 1):
        share = top * tick / _TICKS
        y = _y(share, top)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#d8d8d8"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{share * 100:g} %", "end"))
    return parts


def _legend(policies: Sequence[Policy]) -> list[str]:
    parts = []
    for place, policy in enumerate(policies):
        x, y = _LEFT + 208 * (place % 3), HEIGHT - 42 + 20 * (place // 3)
        parts.append(f'<circle cx="{x + 5}" cy="{y - 4}" r="5" fill="{_COLOURS[policy]}"/>')
        parts.append(_text(x + 15, y, STRATEGIES[policy], "start"))
    return parts


def _dot(x: float, estimate: Estimate, top: float, summary: CellSummary) -> list[str]:
    if math.isnan(estimate.value):
        return []
    colour = _COLOURS[summary.cell.policy]
    low = estimate.value if estimate.low is None else estimate.low
    y = _y(estimate.value, top)
    interval = f'y1="{_y(low, top):.1f}" x2="{x:.1f}" y2="{_y(_high(estimate), top):.1f}"'
    said = f"{STRATEGIES[summary.cell.policy]}: {estimate.value:.1%} of {summary.runs} runs"
    return [
        f'<line x1="{x:.1f}" {interval} stroke="{colour}" stroke-width="2"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"><title>{escape(said)}</title></circle>',
    ]


def _high(estimate: Estimate) -> float:
    high = estimate.value if estimate.high is None else estimate.high
    return 0.0 if math.isnan(high) else min(1.0, high)


def _rounded_up(share: float) -> float:
    return next(limit for limit in (0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if share <= limit)


def _y(share: float, top: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - min(1.0, max(0.0, share / top)))


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-family="sans-serif" font-size="12"{weight} '
        f'fill="#222222">{escape(text)}</text>'
    )
