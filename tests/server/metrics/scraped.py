"""What a node would show, read as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from heirlog.node.node import Node
from heirlog.server.metrics.exposition import written
from heirlog.server.metrics.families import NodeFamilies

STORED = Path(__file__).parent / "apache-kafka-4.2.0.txt"
"""What one Apache Kafka 4.2 (broker and controller) showed through version 1.0.1 of the JMX exporter with its usual
rules: name, type, and the label names that it comes with (`-` for none). `make interop` compares it."""

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Scrape:
    def __init__(self, text: str) -> None:
        self.text = text
        self.values: Values = {}
        self.labels: dict[str, set[str]] = {}
        self.types = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE "))
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.values, f"{sample.name} {sample.labels} stands there twice"
                self.values[key] = sample.value
                self.labels.setdefault(sample.name, set()).add(",".join(sorted(sample.labels)) or "-")

    def __call__(self, name: str, **labels: str) -> float:
        return self.values[(name, frozenset(labels.items()))]

    def of(self, name: str, label: str) -> dict[str, float]:
        """The values of a name by one label."""
        return {
            dict(labels)[label]: value for (known, labels), value in self.values.items() if known == name and labels
        }


def scrape(node: Node, connections: Mapping[str, int] | None = None) -> Scrape:
    return watch(node, connections)()


def watch(node: Node, connections: Mapping[str, int] | None = None) -> Any:
    """As `scrape`, again and again, with the same memory of earlier readings."""
    families = NodeFamilies(node, lambda: connections or {"PLAINTEXT": 1})
    return lambda: Scrape(b"".join(written(families.all())).decode())


def stored() -> dict[str, tuple[str, set[str]]]:
    """Name: type and label names of what Apache Kafka shows."""
    lines = [line.split() for line in STORED.read_text(encoding="utf-8").splitlines()]
    return {name: (kind, set(labels)) for name, kind, *labels in lines}
