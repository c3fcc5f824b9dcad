"""What a leader knows about each of its followers: the offsets of their fetches, and when they were last caught up.

A fetch at offset N means that the follower has all records below N. Whether it is caught up is judged over time,
because a follower is always a round trip behind a busy leader:

    fetch offset >= the leader's end now                     caught up now
    fetch offset >= the leader's end at the previous fetch   caught up at the time of the previous fetch
    otherwise                                                unchanged

Traps. What was known in one leader epoch is not valid in the next, because the follower may have truncated since: a new
epoch forgets offsets and broker epochs. The broker epoch of a fetch matters too: a follower that restarted with an
empty log must not be judged by the fetches of its former incarnation (KIP-903). A fetch with a broker epoch older than
the registered one is from before the restart and is refused.

A fetch session does not touch partitions without events, yet each of its fetches counts for them as well. While a
follower is at the leader's end and nothing happens, it is caught up at the time of the session's last fetch
(`FetchClock`):

    fetched --at the end, no event--> keeps up with a clock --event: settle--> its own times again --> fetched ...
"""

from __future__ import annotations

from collections.abc import Mapping

from heirlog.metadata.state import UNASSIGNED_DIRECTORY, BrokerRegistration
from heirlog.protocol.types import BrokerEpoch, BrokerId, Uuid

UNKNOWN_OFFSET = -1
NEVER_MS = -(1 << 60)
"""Earlier than any monotonic time: with a clock that starts at zero, no follower must look caught up."""


class RegisteredBrokers:
    """What partitions know about brokers: this broker's id, and the registrations. One per broker, kept current."""

    __slots__ = ("broker_epoch", "broker_id", "brokers")

    def __init__(self, broker_id: BrokerId, brokers: Mapping[BrokerId, BrokerRegistration]) -> None:
        self.broker_id = broker_id
        self.broker_epoch = BrokerEpoch(-1)
        self.brokers = brokers

    def may_join_isr(self, follower: Follower) -> bool:
        """Whether the follower's broker is registered, unfenced, not shutting down, and the incarnation that fetched.

        See KIP-903. The replica's log directory must be online too; otherwise the high watermark would wait for a
        replica that cannot fetch (KIP-112).

        A follower that has not fetched in this leader epoch has no broker epoch and may not join; -1 means a follower
        that uses a Fetch version without broker epochs.
        """
        known = self.brokers.get(follower.broker_id)
        if known is None or not known.is_active or follower.broker_epoch is None:
            return False
        if not known.has_online(follower.directory):
            return False
        return follower.broker_epoch == -1 or follower.broker_epoch == known.epoch

    def is_from_before_its_registration(self, broker_id: BrokerId, broker_epoch: int) -> bool:
        """Whether an incarnation older than the registered one sent the fetch."""
        known = self.brokers.get(broker_id)
        return broker_epoch != -1 and known is not None and broker_epoch < known.epoch


class FetchClock:
    """When a fetch session of a follower was last used."""

    __slots__ = ("fetched_ms",)

    def __init__(self) -> None:
        self.fetched_ms = NEVER_MS


class Follower:
    """One remote replica, as seen by the leader in one leader epoch."""

    __slots__ = (
        "_clock",
        "broker_epoch",
        "broker_id",
        "directory",
        "last_caught_up_ms",
        "last_fetch_ms",
        "leader_end_at_last_fetch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        self.directory: Uuid = UNASSIGNED_DIRECTORY
        """Log directory of the replica in the newest image."""
        self.forget(NEVER_MS)

    def forget(self, caught_up_ms: int) -> None:
        """A new leader epoch began. `caught_up_ms`: now for a member of the ISR, `NEVER_MS` for others."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.leader_end_at_last_fetch = UNKNOWN_OFFSET
        self.last_fetch_ms = NEVER_MS
        self.last_caught_up_ms = caught_up_ms
        self.broker_epoch: int | None = None
        self._clock: FetchClock | None = None

    def keeps_up(self, clock: FetchClock) -> None:
        """It is at the leader's end, and every later fetch on this clock confirms that, until `settle`."""
        self._clock = clock

    def settle(self) -> None:
        """The partition has changed: from now on only fetches that name it count."""
        clock = self._clock
        if clock is not None:
            self._clock = None
            self.last_fetch_ms = max(self.last_fetch_ms, clock.fetched_ms)
            self.last_caught_up_ms = max(self.last_caught_up_ms, clock.fetched_ms)

    def fetched(
        self, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: int
    ) -> None:
        self.settle()
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif self.leader_end_at_last_fetch != UNKNOWN_OFFSET and fetch_offset >= self.leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.leader_end_at_last_fetch = leader_end_offset
        self.last_fetch_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, lag_limit_ms: int) -> bool:
        """Whether it is at the leader's end now, or was at `lag_limit_ms` or later.

        lag_limit_ms: `replica.lag.time.max.ms` before now.
        """
        if self.log_end_offset == leader_end_offset:
            return True
        caught_up_ms = self.last_caught_up_ms
        if self._clock is not None:
            caught_up_ms = max(caught_up_ms, self._clock.fetched_ms)
        return caught_up_ms >= lag_limit_ms
