"""A picture of a drill: rows of coloured spans over a common time axis, as one SVG file without anything else.

    Group("title")
        Row("label")   |----span----|      |--span--|        ^ mark

A span or mark shows its text when the pointer rests on it. The file needs no script and no font, so a browser, an
editor or a mail shows it. What is drawn is given by the caller (`heirlog.drill.chaos_rows`); this module knows nothing
of Kafka. People with the common forms of colour blindness can tell the colours apart (Okabe and Ito's palette).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

COLOURS = {
    "leader": "#0072B2",
    "isr": "#9ecae9",
    "elr": "#E69F00",
    "last-known": "#CC79A7",
    "out": "#e4e4e4",
    "no-leader": "#D55E00",
    "under-min-isr": "#F0E442",
    "no-answer": "#555555",
    "fault": "#b2182b",
    "long-fault": "#67001f",
    "link-fault": "#8073ac",
    "change": "#009E73",
    "failed-change": "#bbbbbb",
    "active": "#0072B2",
    "mark": "#000000",
    "curve": "#0072B2",
    "moment": "#D55E00",
}
"""By the kind of a span."""
LABEL_WIDTH = 190
ROW_HEIGHT = 14
CURVE_HEIGHT = 44
ROW_GAP = 3
GROUP_GAP = 12
TITLE_HEIGHT = 18
AXIS_HEIGHT = 22
MARGIN = 14
WIDTH_MIN = 1_000
PER_S = (4.0, 200.0)
"""Pixels per second, least and most."""
TICKS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
"""Seconds between two lines of the axis."""
TICK_WIDTH_MIN = 70
LEGEND_COLUMN = 200


@dataclass(frozen=True, slots=True)
class Span:
    """Times in milliseconds. A span without a length is a mark."""

    begin_ms: int
    end_ms: int
    kind: str
    text: str = ""


@dataclass(slots=True)
class Row:
    label: str
    spans: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Curve:
    """A value over time, as (milliseconds, value). Its row goes from 0 to the greatest value."""

    label: str
    points: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    title: str
    rows: Sequence[Row | Curve] = ()


def draw(
    title: str,
    groups: Sequence[Group],
    begin_ms: int,
    end_ms: int,
    legend: Mapping[str, str],
    notes: Sequence[str] = (),
) -> str:
    """The SVG. legend: what each kind means, by kind; notes: sentences below the title."""
    return "\n".join(_Drawing(begin_ms, max(end_ms, begin_ms + 1)).lines(title, groups, legend, notes)) + "\n"


class _Drawing:
    def __init__(self, begin_ms: int, end_ms: int) -> None:
        self._begin_ms = begin_ms
        self._end_ms = end_ms
        seconds = (end_ms - begin_ms) / 1000
        self._per_s = min(max(WIDTH_MIN / seconds, PER_S[0]), PER_S[1])
        self._right = LABEL_WIDTH + seconds * self._per_s
        self._width = max(self._right, WIDTH_MIN) + 2 * MARGIN

    def lines(
        self, title: str, groups: Sequence[Group], legend: Mapping[str, str], notes: Sequence[str]
    ) -> Iterator[str]:
        body: list[str] = []
        y = float(MARGIN + 14)
        body.append(_text(MARGIN, y, title, "t"))
        for note in notes:
            y += 16
            body.append(_text(MARGIN, y, note, "n"))
        y = self._legend(body, legend, y + 10)
        top = y + AXIS_HEIGHT
        y = top
        for group in groups:
            body.append(_text(MARGIN, y + TITLE_HEIGHT - 5, group.title, "g"))
            y += TITLE_HEIGHT
            for row in group.rows:
                if isinstance(row, Curve):
                    self._curve(body, row, y)
                    y += CURVE_HEIGHT + ROW_GAP
                else:
                    self._row(body, row, y)
                    y += ROW_HEIGHT + ROW_GAP
            y += GROUP_GAP
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self._width:.0f}" height="{y + AXIS_HEIGHT:.0f}" '
            f'viewBox="0 0 {self._width:.0f} {y + AXIS_HEIGHT:.0f}" font-family="sans-serif">'
        )
        yield (
            "<style>text{font-size:11px;fill:#222}.t{font-size:15px;font-weight:bold}.g{font-weight:bold}"
            ".n{fill:#555}.l{text-anchor:end}.x{fill:#777;text-anchor:middle}</style>"
        )
        yield f'<rect width="{self._width:.0f}" height="{y + AXIS_HEIGHT:.0f}" fill="#fff"/>'
        yield from self._axis(top, y)
        yield from body
        yield "</svg>"

    def _x(self, at_ms: int) -> float:
        inside = min(max(at_ms, self._begin_ms), self._end_ms)
        return LABEL_WIDTH + (inside - self._begin_ms) / 1000 * self._per_s

    def _axis(self, top: float, bottom: float) -> Iterator[str]:
        step = next((tick for tick in TICKS if tick * self._per_s >= TICK_WIDTH_MIN), TICKS[-1])
        for second in range(0, (self._end_ms - self._begin_ms) // 1000 + 1, step):
            x = LABEL_WIDTH + second * self._per_s
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.0f}" y2="{bottom:.0f}" stroke="#eee"/>'
            for y in (top - 6, bottom + 12):
                yield _text(x, y, f"{second // 60}:{second % 60:02d}", "x")

    def _legend(self, body: list[str], legend: Mapping[str, str], y: float) -> float:
        columns = max(1, int((self._width - 2 * MARGIN) // LEGEND_COLUMN))
        for number, (kind, meaning) in enumerate(legend.items()):
            x = MARGIN + number % columns * LEGEND_COLUMN
            row = y + number // columns * (ROW_HEIGHT + ROW_GAP)
            body.append(f'<rect x="{x}" y="{row:.0f}" width="22" height="10" fill="{COLOURS[kind]}"/>')
            body.append(_text(x + 28, row + 9, meaning, ""))
        return y + -(-len(legend) // columns) * (ROW_HEIGHT + ROW_GAP) + 6

    def _row(self, body: list[str], row: Row, y: float) -> None:
        body.append(_text(LABEL_WIDTH - 8, y + ROW_HEIGHT - 3, row.label, "l"))
        for span in row.spans:
            if span.end_ms < self._begin_ms or span.begin_ms > self._end_ms:
                continue
            left, right = self._x(span.begin_ms), self._x(span.end_ms)
            shown = f"<title>{escape(span.text)}</title>" if span.text else ""
            if span.begin_ms == span.end_ms:
                body.append(
                    f'<path d="M{left:.1f} {y:.0f}l4 {ROW_HEIGHT}h-8z" fill="{COLOURS[span.kind]}">{shown}</path>'
                )
                continue
            # what lasted for less than a pixel must be seen too
            width = max(right - left, 1.0)
            body.append(
                f'<rect x="{left:.1f}" y="{y:.0f}" width="{width:.1f}" height="{ROW_HEIGHT}" '
                f'fill="{COLOURS[span.kind]}">{shown}</rect>'
            )

    def _curve(self, body: list[str], curve: Curve, y: float) -> None:
        """Steps: between two points the value is that of the earlier one."""
        most = max((value for _, value in curve.points), default=0)
        body.append(_text(LABEL_WIDTH - 8, y + ROW_HEIGHT - 3, curve.label, "l"))
        body.append(_text(LABEL_WIDTH - 8, y + 2 * ROW_HEIGHT, f"{most:,}", "l"))
        base = y + CURVE_HEIGHT
        path, last = [], base
        for at_ms, value in curve.points:
            x, level = self._x(at_ms), base - value / max(most, 1) * CURVE_HEIGHT
            path.append(f"{x:.1f},{last:.1f} {x:.1f},{level:.1f}")
            last = level
        path.append(f"{self._right:.1f},{last:.1f}")
        shown = f"<title>{escape(curve.label)}</title>"
        body.append(f'<polyline points="{" ".join(path)}" fill="none" stroke="{COLOURS["curve"]}">{shown}</polyline>')


def _text(x: float, y: float, text: str, style: str) -> str:
    name = f' class="{style}"' if style else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{name}>{escape(text)}</text>'
