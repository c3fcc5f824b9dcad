"""Share groups as the leaders of their partitions see them: ShareSessionCache, ShareGroupMetrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heirlog.broker.broker import Broker
from heirlog.broker.share_partitions.share_partition import AcknowledgeType
from heirlog.server.metrics.family import Family, counter, counters, gauge, gauges
from heirlog.server.metrics.requests import QUANTILES

_SESSIONS: Final = "kafka_server_sharesessioncache_"
_GROUPS: Final = "kafka_server_sharegroupmetrics_"


def families(broker: Broker, now_ms: int) -> Iterator[Family]:
    sessions, manager = broker.shares.sessions, broker.shares.partitions
    yield gauge(_SESSIONS + "sharesessionscount", "Share sessions.", len(sessions))
    yield gauge(_SESSIONS + "sharepartitionscount", "Partitions in share sessions.", sessions.partition_count)
    yield counter(
        _SESSIONS + "sharesessionevictions_total",
        "Share sessions that ended because the connection of their client did.",
        sessions.evictions,
    )
    yield counters(
        _GROUPS + "recordacknowledgements_total",
        "Records that members of share groups have acknowledged, by the type of acknowledgement.",
        [({"ackType": kind.name.lower()}, manager.acknowledged[kind]) for kind in AcknowledgeType],
    )
    shares = [float(label) for label in QUANTILES.values()]
    values = manager.load_times.quantiles_ms(now_ms, shares)
    yield gauges(
        _GROUPS + "partitionloadtimems",
        "Time from the first use of a share partition until its state was loaded, in milliseconds, in the last half "
        "minute.",
        [({"quantile": label}, value) for label, value in zip(QUANTILES.values(), values, strict=True)],
    )
    yield counter(_GROUPS + "partitionloadtimems_count_total", "Share partitions that were loaded.", manager.loads)
    yield gauge(
        "heirlog_share_partitions",
        "Share partitions whose state is loaded, or being loaded, on this broker.",
        len(manager),
    )
    yield counter(
        "heirlog_share_expired_locks_total",
        "Records whose acquisition lock ended before they were acknowledged.",
        manager.expired_locks,
    )
    yield counter(
        "heirlog_share_acquired_records_total",
        "Records that members of share groups have acquired, each counted once per delivery.",
        manager.acquired_records,
    )
