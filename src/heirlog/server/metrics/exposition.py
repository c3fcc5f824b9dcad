"""Families as text, written by prometheus-client, in pieces of bounded work.

A family of ten thousand partitions is written a hundred samples at a time; prometheus-client puts its two lines of
help and type before each piece, and all but the first lose them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from heirlog.server.metrics.family import Family, Kind

SAMPLES_PER_PIECE = 100
HEADER_LINES = 2


class _One(Collector):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]


def written(families: Iterable[Family | None]) -> Iterator[bytes]:
    """The text of these families; an empty piece wherever nothing is to be written and others may have their turn."""
    for family in families:
        if family is None:
            yield b""
            continue
        samples = iter(family.samples)
        is_first = True
        while True:
            metric = _metric(family)
            for labels, value in islice(samples, SAMPLES_PER_PIECE):
                metric.add_sample(family.name, dict(labels), value)
            if not metric.samples:
                break
            text = generate_latest(_One(metric))
            yield text if is_first else text.split(b"\n", HEADER_LINES)[HEADER_LINES]
            is_first = False


def _metric(family: Family) -> Metric:
    # prometheus-client adds the suffix of a counter on its own
    name = family.name.removesuffix("_total") if family.kind is Kind.COUNTER else family.name
    return Metric(name, family.text, family.kind.value)
