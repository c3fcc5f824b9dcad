"""kafka.network:type=RequestMetrics: requests, errors, and where their time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heirlog.node.request_metrics import (
    CONSUMER_FETCH,
    FOLLOWER_FETCH,
    ApiRequestMetrics,
    RecentIncrease,
    no_times,
    quantiles_ms,
)
from heirlog.protocol.errors import error_code
from heirlog.server.metrics.family import Family, Kind, Labels, Sample, counters, gauges

PREFIX = "kafka_network_requestmetrics_"
QUANTILES = {0.5: "0.50", 0.75: "0.75", 0.95: "0.95", 0.98: "0.98", 0.99: "0.99", 0.999: "0.999"}
"""As the exporter writes them."""
PARTS = {
    "totaltimems": "From the request's arrival until its answer was handed to the kernel or queued for it",
    "requestqueuetimems": "Wait before handling (always 0: a request is handled as soon as it is read)",
    "localtimems": "Decoding and handling",
    "remotetimems": "Wait for followers, for records, or for the controller",
    "responsequeuetimems": "Wait of the answer for the answers to earlier requests of its connection",
    "responsesendtimems": "Encoding and writing",
    "throttletimems": "How long the client had to wait afterwards because of a quota",
}


@dataclass(slots=True)
class _Api:
    """One label value: an API, a kind of Fetch, or both kinds together."""

    name: str
    versions: Sequence[int]
    errors: Counter[int]
    times: dict[str, list[int]]
    """By part; one that is not there was zero for every request."""
    done: int
    timed: int


def families(
    meters: Sequence[ApiRequestMetrics], recent: dict[str, RecentIncrease], now_ms: int
) -> Iterator[Family | None]:
    """recent: kept from one reading to the next, by API and part."""
    apis = [*map(_api, meters)]
    fetches = [api for api in apis if api.name in (CONSUMER_FETCH, FOLLOWER_FETCH)]
    if fetches:
        apis.append(_together("Fetch", fetches))
    apis.sort(key=lambda api: api.name)
    yield counters(PREFIX + "requests_total", "Requests received.", _requests(apis))
    yield counters(PREFIX + "errors_total", "Error codes in answers, including NONE.", _errors(apis))
    for part, text in PARTS.items():
        yield gauges(
            PREFIX + part, f"{text}, in milliseconds, over the last five minutes.", _times(apis, part, recent, now_ms)
        )
        done = [(_labels(api), api.done) for api in apis]
        yield counters(f"{PREFIX}{part}_count_total", "Requests answered.", done)
        yield Family(
            f"{PREFIX}{part}_count",
            Kind.UNTYPED,
            "Requests answered, under the name that the Prometheus JMX exporter used before version 1.0.",
            done,
        )
        yield None


def _api(meter: ApiRequestMetrics) -> _Api:
    return _Api(
        meter.name,
        meter.versions,
        Counter(meter.errors),
        {
            "totaltimems": meter.total,
            "localtimems": meter.local,
            "remotetimems": meter.remote,
            "responsequeuetimems": meter.response_queue,
            "responsesendtimems": meter.response_send,
            "throttletimems": meter.throttle,
        },
        meter.done,
        sum(meter.total),
    )


def _together(name: str, apis: Sequence[_Api]) -> _Api:
    versions = [sum(counts) for counts in zip(*(api.versions for api in apis), strict=True)]
    times = {
        part: [sum(counts) for counts in zip(*(api.times[part] for api in apis), strict=True)] for part in apis[0].times
    }
    errors = sum((api.errors for api in apis), Counter[int]())
    return _Api(name, versions, errors, times, sum(api.done for api in apis), sum(api.timed for api in apis))


def _labels(api: _Api) -> dict[str, str]:
    return {"request": api.name}


def _requests(apis: Sequence[_Api]) -> Iterator[Sample]:
    for api in apis:
        for version, count in enumerate(api.versions):
            if count:
                yield {**_labels(api), "version": str(version)}, count


def _errors(apis: Sequence[_Api]) -> Iterator[Sample]:
    for api in apis:
        for code, count in sorted(api.errors.items()):
            yield {**_labels(api), "error": _error_name(code)}, count


def _error_name(code: int) -> str:
    known = error_code(code)
    return known.name if known == code else str(code)


def _times(apis: Sequence[_Api], part: str, recent: dict[str, RecentIncrease], now_ms: int) -> Iterator[Sample]:
    for api in apis:
        times = api.times.get(part, no_times())
        lately = recent.setdefault(f"{api.name} {part}", RecentIncrease()).since([*times, api.timed], now_ms)
        timed = lately.pop()
        values = quantiles_ms(lately, timed - sum(lately), [*QUANTILES])
        for label, value in zip(QUANTILES.values(), values, strict=True):
            labels: Labels = {**_labels(api), "quantile": label}
            yield labels, value
