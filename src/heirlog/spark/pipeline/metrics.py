"""`heirlog_pipeline_*` for Prometheus, from the journal of a running pipeline.

Everything is read from the journal at each scrape. So nothing is counted twice, and the sums include earlier runs of
the same checkpoint. Only the driver serves metrics; workers do not know pipelines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from heirlog.spark.pipeline.report import Journal, sums_of
from heirlog.spark.pipeline.spec import Pipeline, PipelineError


class PipelineCollector(Collector):
    """Reads the journal at each collection."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def collect(self) -> Iterator[Metric]:
        name = self._pipeline.name
        through, _, batches = Journal(self._pipeline.checkpoint).read()
        sums = sums_of(self._pipeline)
        for metric, text, value in (
            ("batches", "Batches finished.", sums.batches),
            ("rows_in", "Rows read from the source.", sums.rows_in),
            ("rows_out", "Rows written to the sink.", sums.rows_out),
            ("rows_rejected", "Rows that could not be parsed.", sums.rejected),
        ):
            counter = CounterMetricFamily(f"heirlog_pipeline_{metric}", text, labels=["pipeline"])
            counter.add_metric([name], value)
            yield counter
        losses = CounterMetricFamily(
            "heirlog_pipeline_losses", "Lost ranges of records that were found, by cause.", labels=["pipeline", "cause"]
        )
        for cause, count in sorted(sums.lost.items()):
            losses.add_metric([name, cause], count)
        yield losses
        for metric, text, number in (
            ("batch_id", "Number of the last finished batch; -1 before the first.", through),
            ("batch_seconds", "Seconds that the last batch took.", batches[-1].took_ms / 1000 if batches else 0),
            (
                "batch_finished_timestamp_seconds",
                "Time when the last batch finished, in seconds since 1970.",
                (batches[-1].started_ms + batches[-1].took_ms) / 1000 if batches else 0,
            ),
        ):
            gauge = GaugeMetricFamily(f"heirlog_pipeline_{metric}", text, labels=["pipeline"])
            gauge.add_metric([name], number)
            yield gauge


@contextmanager
def served(pipeline: Pipeline, port: int) -> Iterator[int]:
    """Serve `/metrics` on loopback while the block runs; gives the port (a free one for 0)."""
    registry = CollectorRegistry()
    registry.register(PipelineCollector(pipeline))
    try:
        server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise PipelineError(f"cannot serve metrics on port {port}: {error.strerror}; choose another port") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
