"""Reading one partition through changes of its leader: where the next Fetch goes, and what is done without an answer.

    next_send --> Fetch --> driver --answered--> a part for the caller, or None
        ^                     |
        +-- pause, Metadata <-+--failed, or a code that newer metadata may cure

`PartitionFetch` knows what to ask and what an answer means. A driver may send the next request (`ahead`) while the
caller works with a part, so that its answer is there when the caller is back.
"""

from __future__ import annotations

from heirlog.client.call import Call, Send
from heirlog.client.cluster import TOPIC_MAY_COME, Cluster
from heirlog.client.cluster_view import Leader
from heirlog.client.errors import LogTruncated, OffsetOutOfRange, TopicRecreated, Unsupported
from heirlog.client.fetching import NEWEST_BY_NAME, Fetched, PartitionFetch
from heirlog.client.leaders import UNKNOWN_END, list_offsets
from heirlog.client.offsets import EARLIEST, LATEST
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FetchResponse

FIRST_BYTE_TIMEOUT_S = 10.0
"""Without the beginning of an answer for so long, a leader hangs: by then there may be another."""
SHORTEST_WAIT_S = 2.0
"""An answer is waited for longer than the broker waits for data, also when the time is nearly over."""
RECREATED_ANSWERS_MAX = 3
"""So often another topic must have the name before that is believed: a broker may be behind."""


class PartitionReader:
    """topic_id: of the topic that is meant; None: of the one that is found first.

    stall_timeout_s: without any progress for so long, reading fails.
    """

    def __init__(self, cluster: Cluster, fetch: PartitionFetch, topic_id: bytes | None, stall_timeout_s: float) -> None:
        self._cluster = cluster
        self._fetch = fetch
        self._topic_id = topic_id
        self._stall_timeout_s = stall_timeout_s
        self._retry_timer = cluster.retry_timer(stall_timeout_s)
        self._leader: Leader | None = None
        self._found_id: bytes | None = None
        self._failure: Exception | None = None
        """Why the last request has no result: a pause comes before the next one."""
        self._metadata_is_stale = False
        self._recreated_answers = 0

    @property
    def done(self) -> bool:
        return self._fetch.done

    def reset_stall_timer(self) -> None:
        """The stall time starts again: the caller's time is not the cluster's."""
        self._retry_timer.reset()

    def wait_s(self) -> float:
        """How long to wait from now for the beginning of an answer."""
        return min(FIRST_BYTE_TIMEOUT_S, max(self._retry_timer.remaining_s(), SHORTEST_WAIT_S))

    # requests

    def next_send(self) -> Call[Send]:
        """The next Fetch, after a pause and with newer metadata where the last one failed.

        Raises what failed when there was no progress for too long, TopicRecreated, KafkaError, OSError.
        """
        while True:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                yield from self._retry_timer.back_off(failure)
            try:
                if self._leader is None:
                    yield from self._find_leader()
                return self._send()
            except Unsupported:
                raise
            except OSError as error:
                self.failed(error)
            except KafkaError as error:
                if self._is_final(error):
                    raise
                self.failed(error)

    def ahead(self) -> Send | None:
        """The request after the last part, while the caller works; None where the leader must be looked up first."""
        return None if self.done or self._leader is None or self._failure is not None else self._send()

    def _send(self) -> Send:
        assert self._leader is not None, "found before"
        newest = NEWEST_BY_NAME if self._found_id is None else None
        message = self._fetch.request(self._found_id, self._leader.epoch)
        return Send(self._leader.endpoint, message, self.wait_s(), newest)

    def _find_leader(self) -> Call[None]:
        topic, view = self._fetch.topic, self._cluster.view
        if self._metadata_is_stale or topic not in view.topics:
            refused = yield from self._cluster.refresh_metadata_elsewhere([topic], self._retry_timer.remaining_s())
            self._metadata_is_stale = False
            if topic in refused:
                raise KafkaError(refused[topic], f"topic {topic} cannot be read")
        leader = view.leader(topic, self._fetch.partition)
        self._found_id = view.topics[topic].topic_id
        self._topic_id = self._topic_id or self._found_id
        if self._topic_id is not None and self._found_id not in (None, self._topic_id):
            raise TopicRecreated(topic, self._topic_id, self._found_id)
        self._leader = leader

    def _is_final(self, error: KafkaError) -> bool:
        if isinstance(error, TopicRecreated):
            self._recreated_answers += 1
            return self._recreated_answers >= RECREATED_ANSWERS_MAX
        return error.code not in TOPIC_MAY_COME

    # answers

    def answered(self, response: FetchResponse) -> Fetched | None:
        """The next part; None: nothing came, or what came is of no use.

        Raises the errors of `PartitionFetch.answered`, and TimeoutError when nothing has come for too long.
        """
        outcome = self._fetch.answered(response)
        if isinstance(outcome, ErrorCode):
            asked = f" from {self._leader.endpoint}" if self._leader is not None else ""
            where = f"{self._fetch.topic}-{self._fetch.partition} at offset {self._fetch.position}"
            self.failed(KafkaError(outcome, f"{where} could not be fetched{asked}"))
            return None
        if outcome is not None:
            self.reset_stall_timer()
        elif not self.done and self._retry_timer.is_expired:
            raise self._nothing_came()
        return outcome

    def failed(self, failure: Exception) -> None:
        """A request has no answer, or one that asks for newer metadata."""
        self._failure = failure
        self._metadata_is_stale = True
        self._leader = None

    def explained(self, error: OffsetOutOfRange, timeout_s: float) -> Call[KafkaError]:
        """What a refused offset means, with the offsets that exist. Raises KafkaError, OSError.

        A leader refuses an offset without saying what it has, and also where it has the offset but knows nothing of the
        epoch of the record before it: that is a truncation too.
        """
        place, last_epoch = (self._fetch.topic, self._fetch.partition), self._fetch.last_epoch
        first = (yield from list_offsets(self._cluster, {place: EARLIEST}, timeout_s))[place].offset
        last = (yield from list_offsets(self._cluster, {place: LATEST}, timeout_s))[place].offset
        if last_epoch >= 0 and first <= error.offset <= last:
            return LogTruncated(*place, error.offset, last_epoch, UNKNOWN_END)
        return OffsetOutOfRange(*place, error.offset, first, last)

    def _nothing_came(self) -> TimeoutError:
        fetch = self._fetch
        return TimeoutError(
            f"{fetch.topic}-{fetch.partition}: nothing came at offset {fetch.position} within "
            f"{self._stall_timeout_s:g} s, but offset {fetch.stop} was to be reached; the high watermark is "
            f"{fetch.high_watermark}, the last stable offset {fetch.last_stable_offset}"
        )
