"""One partition that a fetcher copies, in one leader epoch: its offset, and what the requests have said about that
offset.

    unsent --a request names it--> sent in number n --the log ends elsewhere, or a pause--> unsent

An answer counts only if its request, or one before it, named the offset at which the log ends now (guard 5). A new
leader epoch has a new `PartitionFetchState`.
"""

from __future__ import annotations

from heirlog.broker.partition import Partition
from heirlog.protocol.types import PartitionKey

FIRST_BACKOFF_MS = 20

_NOT_NAMED = -1


def answers_current_end(named_in: int, number: int) -> bool:
    """Guard 5: a fetch response is applied only to the offset and the leader epoch that it was asked for.

    named_in: the first request that named the offset at which the log ends now, in this epoch. Without the guard an
    answer that was held back while another broker led is appended after other records than those it continues.
    """
    return _NOT_NAMED < named_in <= number


class BackOff:
    """The back-off after the next failure in a row."""

    __slots__ = ("_last_ms",)

    def __init__(self) -> None:
        self._last_ms = 0

    @property
    def is_reset(self) -> bool:
        """Nothing has failed since the last success."""
        return not self._last_ms

    def reset(self) -> None:
        self._last_ms = 0

    def next_ms(self, longest_ms: int) -> int:
        self._last_ms = min(2 * self._last_ms or FIRST_BACKOFF_MS, longest_ms)
        return self._last_ms


class PartitionFetchState:
    __slots__ = (
        "_named_in",
        "back_off",
        "idle_until_ms",
        "initial_offset",
        "key",
        "lag",
        "leader_epoch",
        "partition",
        "sent_log_start_offset",
        "start",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: PartitionKey = partition.key
        self.leader_epoch = partition.leader_epoch
        self.start = partition.fetch_position()
        self._named_in = _NOT_NAMED
        self.sent_log_start_offset = -1
        self.initial_offset = self.start.fetch_offset
        self.back_off = BackOff()
        self.idle_until_ms = 0
        self.lag = 0
        """Offsets below the leader's high watermark that this log lacks, by the leader's last answer."""

    def named_in(self, number: int) -> None:
        """The request with this number names the partition."""
        if self._named_in == _NOT_NAMED:
            self._named_in = number
        self.sent_log_start_offset = self.partition.log.log_start_offset

    def forget_requests(self) -> None:
        """Requests that are still in flight do not count."""
        self._named_in = _NOT_NAMED

    def move(self) -> None:
        """The log has another end now."""
        self.start = self.partition.fetch_position()
        self.forget_requests()

    def is_answered_by(self, number: int) -> bool:
        """Whether the answer to this request is for the log's current end and epoch."""
        return answers_current_end(self._named_in, number)
