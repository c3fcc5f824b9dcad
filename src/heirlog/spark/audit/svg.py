"""Bars over an axis as SVG, for a page that needs no other file: rows with a name each, and bars in them.

    row  |####----###|      bars of kinds, each with a colour, a place of its own in the row, and a tooltip
    row  |   ######  |

A bar that would be too short to see is drawn one pixel wide: a second without a leader is what a reader looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH = 960
_LEFT = 150
_RIGHT = 16
_ROW_HEIGHT = 20
_TOP = 34
_BOTTOM = 24
_TICKS = 5


class Bar(NamedTuple):
    start: float
    end: float
    kind: str
    title: str


class PlotRow(NamedTuple):
    name: str
    bars: Sequence[Bar]


class Style(NamedTuple):
    """How bars of one kind look. Colours of Okabe and Ito, which colour-blind readers can tell apart."""

    label: str
    colour: str
    height: float = 14
    pattern: bool = False
    """Hatched: in addition to what is below."""


def rows_plot(
    title: str,
    drawn: Sequence[PlotRow],
    styles: Mapping[str, Style],
    first: float,
    last: float,
    tick: Callable[[float], str],
) -> str:
    """One SVG element. first, last: the ends of the axis. tick: the text for a place on it."""
    last = max(last, first + 1)
    height = _TOP + _ROW_HEIGHT * len(drawn) + _BOTTOM
    used = [kind for kind in styles if any(bar.kind == kind for row in drawn for bar in row.bars)]
    parts = [_text(0, 14, title, "start", bold=True), *_legend([styles[kind] for kind in used])]
    for number in range(_TICKS + 1):
        value = first + (last - first) * number / _TICKS
        x = _x(value, first, last)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{height - _BOTTOM}" class="grid"/>')
        anchor = "start" if number == 0 else "end" if number == _TICKS else "middle"
        parts.append(_text(x, height - 8, tick(value), anchor))
    for place, row in enumerate(drawn):
        y = _TOP + _ROW_HEIGHT * place
        parts.append(_text(_LEFT - 8, y + 14, row.name, "end"))
        parts += [_bar(bar, styles[bar.kind], y, first, last) for bar in row.bars]
    body = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">\n{body}\n</svg>'


def _x(value: float, first: float, last: float) -> float:
    share = min(max((value - first) / (last - first), 0), 1)
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * share


def _bar(bar: Bar, style: Style, y: float, first: float, last: float) -> str:
    x, end = _x(bar.start, first, last), _x(bar.end, first, last)
    fill = "url(#hatch)" if style.pattern else style.colour
    place = f'x="{x:.1f}" y="{y + 3 + (14 - style.height) / 2:.1f}" width="{max(end - x, 1):.1f}"'
    stroke = f' stroke="{style.colour}"' if style.pattern else ""
    title = escape(bar.title)
    return f'<rect {place} height="{style.height}" fill="{fill}"{stroke}><title>{title}</title></rect>'


def _legend(styles: Sequence[Style]) -> list[str]:
    parts, x = [], float(_LEFT)
    for style in styles:
        fill = "url(#hatch)" if style.pattern else style.colour
        parts.append(f'<rect x="{x}" y="20" width="10" height="10" fill="{fill}" stroke="{style.colour}"/>')
        parts.append(_text(x + 14, 29, style.label, "start"))
        x += 30 + 6.5 * len(style.label)
    return parts


def _text(x: float, y: float, text: str, anchor: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


HATCH = (
    '<svg width="0" height="0" style="position:absolute"><defs><pattern id="hatch" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" fill="#d55e00"/></pattern>'
    "</defs></svg>"
)
"""The pattern that hatched bars refer to: once in a page."""
