"""The picture of a drill, as the XML that a browser reads."""

from __future__ import annotations

from xml.etree import ElementTree

from heirlog.drill.timeline import COLOURS, CURVE_HEIGHT, LABEL_WIDTH, WIDTH_MIN, Curve, Group, Row, Span, draw

SVG = "{http://www.w3.org/2000/svg}"
LEGEND = {"leader": "leader", "isr": "in the ISR"}


LEGEND_HEIGHT = "10"


def drawn(groups: list[Group], begin_ms: int = 0, end_ms: int = 10_000) -> ElementTree.Element:
    return ElementTree.fromstring(draw("a title", groups, begin_ms, end_ms, LEGEND, ["a note"]))


def rectangles(svg: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    """(x, width) of the spans of this kind, without the legend."""
    found = [one for one in svg.iter(f"{SVG}rect") if one.get("fill") == COLOURS[kind]]
    return [(float(one.get("x", 0)), float(one.get("width", 0))) for one in found if one.get("height") != LEGEND_HEIGHT]


def texts(svg: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in svg.iter(f"{SVG}text")]


def test_a_span_stands_where_its_time_is() -> None:
    svg = drawn([Group("t-0", [Row("broker 1", [Span(2_000, 5_000, "leader", "leader 1")])])])
    ((x, width),) = rectangles(svg, "leader")
    per_s = width / 3
    assert x == LABEL_WIDTH + 2 * per_s
    assert {"a title", "a note", "t-0", "broker 1", "in the ISR", "0:00"} <= set(texts(svg))
    (shown,) = [one.text for one in svg.iter(f"{SVG}title")]
    assert shown == "leader 1"


def test_what_is_outside_of_the_drill_is_cut_off_and_what_is_short_is_still_seen() -> None:
    row = Row("broker 1", [Span(-5_000, 500, "isr"), Span(20_000, 30_000, "isr"), Span(7_000, 7_001, "leader")])
    svg = drawn([Group("t-0", [row])])
    assert [x for x, _ in rectangles(svg, "isr")] == [LABEL_WIDTH]
    assert [width for _, width in rectangles(svg, "leader")] == [1.0]


def test_a_moment_is_a_mark() -> None:
    svg = drawn([Group("t-0", [Row("availability", [Span(1_000, 1_000, "mark", "lossy election")])])])
    assert len(list(svg.iter(f"{SVG}path"))) == 1


def test_every_lane_has_a_place_of_its_own_inside_of_the_picture() -> None:
    groups = [Group(f"t-{index}", [Row("one"), Row("two")]) for index in range(30)]
    svg = drawn(groups)
    places = [float(one.get("y", 0)) for one in svg.iter(f"{SVG}text") if one.text in ("one", "two")]
    assert len(set(places)) == 60 and max(places) < float(svg.get("height", 0))


def test_a_curve_goes_in_steps_from_nothing_to_its_greatest_value() -> None:
    svg = drawn([Group("Clients", [Curve("read", [(0, 0), (5_000, 1_000), (10_000, 500)])])])
    (line,) = svg.iter(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in str(line.get("points")).split()]
    heights = [round(points[0][1] - y) for _, y in points]
    assert heights == [0, 0, 0, CURVE_HEIGHT, CURVE_HEIGHT, CURVE_HEIGHT // 2, CURVE_HEIGHT // 2]
    assert points[0][0] == LABEL_WIDTH and points[-1][0] == points[-2][0]
    assert "1,000" in texts(svg)


def test_a_curve_without_points_or_of_zeros_can_be_drawn() -> None:
    assert len(list(drawn([Group("g", [Curve("none"), Curve("zero", [(0, 0)])])]).iter(f"{SVG}polyline"))) == 2


def test_text_of_nodes_cannot_break_the_picture() -> None:
    svg = drawn([Group("<t>", [Row("a & b", [Span(0, 1_000, "leader", "<script>")])])])
    assert "<t>" in texts(svg) and [one.text for one in svg.iter(f"{SVG}title")] == ["<script>"]


def test_an_hour_is_wide_enough_to_see_a_second() -> None:
    short, long = drawn([], 0, 10_000), drawn([], 0, 3_600_000)
    assert float(short.get("width", 0)) >= WIDTH_MIN and float(long.get("width", 0)) > 4 * 3_600
