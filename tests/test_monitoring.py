"""The files of packaging/monitoring use only metrics that nodes show. Prometheus itself: interop/monitoring.py."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "packaging" / "monitoring"
OF_PROMETHEUS = {"process_open_fds", "process_max_fds", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""prometheus-client shows these by itself, on Linux."""
NAME = re.compile(r"\b(?:kafka|heirlog|process)_[a-z0-9_]+")


def shown() -> set[str]:
    """Every metric of the reference, which is written from the code."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([a-z0-9_]+)` \|", text, re.MULTILINE))


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "grafana-dashboard.json").read_text())["panels"]
    return found


def expressions() -> list[str]:
    rules = re.findall(r"^ +expr: (.*)$", (FOLDER / "alerts.yml").read_text(encoding="utf-8"), re.MULTILINE)
    queries = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    assert len(rules) > 10 and len(queries) > 30
    return rules + queries


def test_rules_and_dashboard_use_metrics_that_nodes_show() -> None:
    used = {name for expression in expressions() for name in NAME.findall(expression)}
    assert not used - shown() - OF_PROMETHEUS


def test_every_alert_of_the_guide_is_a_rule_with_the_same_expression_and_time() -> None:
    guide = (ROOT / "docs" / "guides" / "monitor.md").read_text(encoding="utf-8")
    table = guide.partition("Alert on:")[2].partition("Watch during the day")[0]
    shown = re.findall(r"^\| `(.*?)`(?: for (.*?))? \|", table, re.MULTILINE)
    rules = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
    found = re.findall(r"^ +expr: (.*)\n(?: +for: (\w+)$)?", rules, re.MULTILINE)
    times = {"": "", "1m": "a minute", "5m": "five minutes"}
    # the guide is for a reader with one cluster
    without_job = {re.sub(r'job="heirlog",?', "", expr).replace("{}", ""): times.get(held) for expr, held in found}
    assert len(shown) >= 8
    for expression, held in shown:
        assert without_job.get(expression, "no such rule") == held, expression


def test_each_panel_has_a_place_of_its_own_and_says_what_it_shows() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    places = sorted((p["gridPos"]["y"], p["gridPos"]["x"], p["gridPos"]["w"]) for p in panels())
    for (y, x, width), (other_y, other_x, _) in pairwise(places):
        assert y != other_y or x + width <= other_x
    assert all(x + width <= 24 for _, x, width in places)
    assert all(panel["title"] and panel.get("description") for panel in panels() if panel["type"] != "row")


def test_each_alert_says_what_to_do() -> None:
    text = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
    assert text.count("- alert: ") == text.count("summary: ") == text.count("action: ") == text.count("severity: ")


def test_the_commands_that_alerts_name_exist() -> None:
    actions = re.findall(r'action: "(.*)"', (FOLDER / "alerts.yml").read_text(encoding="utf-8"))
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    named = [words for action in actions for words in re.findall(r"heirlog ([a-z-]+(?: [a-z-]+)?)", action)]
    assert len(named) > 10
    for words in named:
        first = words.split()[0]
        # the second word may be the sentence's next one
        assert f"## `heirlog {words}" in reference or f"## `heirlog {first}`" in reference, words
