"""Traffic of a broker's partitions, counted per topic: Kafka's BrokerTopicMetrics, as plain numbers.

Every partition of a topic shares one `BrokerTopicMetrics` and adds to it when records pass. The sum over all topics is
computed on request. A topic that is no longer on this broker leaves its counts in `BrokerTopicStats.gone`, so that sums
never decrease.

Produce and fetch requests are counted per partition that they name, as on Apache Kafka; partitions of a fetch session
count only when they are looked at. Bytes are those of whole batches as they are in the log. Batches that a follower
copies count for the broker and not for a topic.
"""

from __future__ import annotations

from heirlog.protocol.errors import ErrorCode


class BrokerTopicMetrics:
    """Counts since the topic came to this broker. `messages` and `bytes` are those of producers and consumers."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "corrupt",
        "fetches",
        "fetches_failed",
        "messages_in",
        "produces",
        "produces_failed",
        "share_acknowledges",
        "share_acknowledges_failed",
        "share_fetches",
        "share_fetches_failed",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        """Bytes of batches that are larger than max.message.bytes."""
        self.corrupt = 0
        """Partitions of produce requests that were refused as corrupt."""
        self.produces = 0
        self.produces_failed = 0
        """Failed produce requests per partition, without errors of normal operation (`_EXPECTED`); the same for
        fetches.
        """
        self.fetches = 0
        self.fetches_failed = 0
        self.share_fetches = 0
        self.share_fetches_failed = 0
        self.share_acknowledges = 0
        self.share_acknowledges_failed = 0

    def produce_failed(self, code: ErrorCode, size: int) -> None:
        """A partition's batches of `size` bytes were refused."""
        if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            self.bytes_rejected += size
        self.corrupt += code is ErrorCode.CORRUPT_MESSAGE
        if code not in _EXPECTED:
            self.produces_failed += 1

    def fetch_failed(self, code: ErrorCode) -> None:
        if code not in _EXPECTED:
            self.fetches_failed += 1

    def share_fetch_failed(self, code: ErrorCode) -> None:
        if code not in _EXPECTED:
            self.share_fetches_failed += 1

    def share_acknowledge_failed(self, code: ErrorCode) -> None:
        """Also called with NONE."""
        if code is not ErrorCode.NONE and code not in _EXPECTED:
            self.share_acknowledges_failed += 1

    def add(self, other: BrokerTopicMetrics) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class BrokerTopicStats:
    """The metrics of one broker."""

    def __init__(self) -> None:
        self.topics: dict[str, BrokerTopicMetrics] = {}
        self.gone = BrokerTopicMetrics()
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.isr_expands = 0
        self.isr_shrinks = 0
        self.failed_isr_updates = 0
        """This and the two before: counts of partitions that are no longer on this broker."""

    def of(self, topic: str) -> BrokerTopicMetrics:
        return self.topics.setdefault(topic, BrokerTopicMetrics())

    def retire(self, topic: str) -> None:
        """The last partition of this topic has left this broker."""
        left = self.topics.pop(topic, None)
        if left is not None:
            self.gone.add(left)
