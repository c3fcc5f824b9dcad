"""Groups and the state of share groups, as their coordinators on this broker see them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from heirlog.broker.broker import Broker
from heirlog.broker.groups.consumer.values import ConsumerGroupPhase
from heirlog.broker.groups.group import GroupState
from heirlog.broker.groups.share.values import ShareGroupPhase
from heirlog.raft.latency_window import LatencyWindow
from heirlog.server.metrics.family import Family, counter, gauge, gauges
from heirlog.server.metrics.growth import GrowthRate

_MANAGER: Final = "kafka_coordinator_group_groupmetadatamanager_"
_COORDINATOR: Final = "kafka_server_group_coordinator_metrics_"
_SHARES: Final = "kafka_server_share_coordinator_metrics_"


class GroupFamilies:
    """Kafka shows a count and a rate of each of these; the rate here is that between two readings."""

    def __init__(self) -> None:
        self._growth: defaultdict[str, GrowthRate] = defaultdict(GrowthRate)

    def all(self, broker: Broker, now_ms: int) -> Iterator[Family | None]:
        yield from self._states(broker)
        activity = broker.groups.activity
        for name, text, count in (
            (
                "group_completed_rebalance",
                "Generations of classic groups whose members got their assignments",
                activity.completed_rebalances,
            ),
            (
                "consumer_group_rebalance",
                "Times that the epoch of a group of the consumer protocol rose",
                activity.consumer_rebalances,
            ),
            ("share_group_rebalance", "Times that the epoch of a share group rose", activity.share_rebalances),
            ("offset_commit", "Offsets that groups have committed", activity.offset_commits),
            ("offset_deletion", "Offsets that were deleted on request", activity.offset_deletions),
            ("offset_expiration", "Offsets that have expired", activity.offset_expirations),
        ):
            yield gauge(f"{_COORDINATOR}{name}_count", f"{text}.", count)
            yield self._rate(
                f"{_COORDINATOR}{name}_rate", f"{text}, per second since an earlier reading.", now_ms, count
            )
        yield from _times(
            f"{_COORDINATOR}partition_load_time",
            "Time to load a partition of __consumer_offsets",
            activity.load_times,
            now_ms,
        )
        yield None
        states = broker.share_coordinator.activity
        text = "Batches of states of share groups that were written"
        yield counter(f"{_SHARES}write_total", f"{text}.", states.writes)
        yield self._rate(f"{_SHARES}write_rate", f"{text}, per second since an earlier reading.", now_ms, states.writes)
        yield from _times(
            f"{_SHARES}write_latency",
            "Time until a batch of states of share groups was committed",
            states.write_times,
            now_ms,
        )
        yield from _times(
            f"{_SHARES}partition_load_time",
            "Time to load a partition of __share_group_state",
            states.load_times,
            now_ms,
        )

    def _states(self, broker: Broker) -> Iterator[Family | None]:
        counts = yield from broker.groups.counts()
        total = sum(sum(each.values()) for each in (counts.classic, counts.consumer, counts.share))
        yield gauge(_MANAGER + "numgroups", "Groups that this broker coordinates.", total)
        for state in GroupState:
            yield gauge(
                f"{_MANAGER}numgroups{state.value.lower()}",
                f"Classic groups that this broker coordinates in state {state.value}.",
                counts.classic[state],
            )
        yield gauges(
            _COORDINATOR + "consumer_group_count",
            "Groups of the consumer protocol that this broker coordinates, by state.",
            [({"state": phase.value.lower()}, counts.consumer[phase]) for phase in ConsumerGroupPhase],
        )
        yield gauges(
            _COORDINATOR + "share_group_count",
            "Share groups that this broker coordinates, by state.",
            [({"state": phase.value.lower()}, counts.share[phase]) for phase in ShareGroupPhase],
        )
        yield gauge(
            _MANAGER + "numoffsets", "Committed offsets of the groups that this broker coordinates.", counts.offsets
        )

    def _rate(self, name: str, text: str, now_ms: int, count: int) -> Family:
        return gauge(name, text, self._growth[name].per_second(now_ms, count))


def _times(name: str, text: str, times: LatencyWindow, now_ms: int) -> Iterator[Family]:
    average, longest = times.average_and_max_ms(now_ms)
    yield gauge(f"{name}_avg", f"{text}, in milliseconds, in the last half minute: average.", average)
    yield gauge(f"{name}_max", f"{text}, in milliseconds, in the last half minute: longest.", longest)
