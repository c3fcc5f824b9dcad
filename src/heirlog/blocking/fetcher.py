"""Drives a `PartitionFetch`: finds the leader, keeps one Fetch on its way while the caller works, survives brokers.

    look up the leader, borrow a connection --> Fetch --> answer --> next Fetch at once --> the part goes to the caller
        ^                                                    |
        +---- no answer, or an error that newer metadata may cure: pause, look again

What the caller gets lies in one buffer, which the next answer overwrites. A caller that stops early leaves an answer
behind, so its connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.blocking.connection import Connection, ReceiveBuffer
from heirlog.blocking.peers import Peers
from heirlog.client.cluster_view import Leader
from heirlog.client.errors import TopicRecreated, Unsupported
from heirlog.client.fetching import NEWEST_BY_NAME, Fetched, PartitionFetch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FetchRequest

REQUEST_TIMEOUT_S = 30.0
"""Without an answer for so long, a broker is taken for dead."""
FIRST_BYTE_TIMEOUT_S = 10.0
"""Without the beginning of an answer for so long, a leader hangs: by then there may be another."""
SHORTEST_WAIT_S = 2.0
"""An answer is waited for longer than the broker waits for data (MAX_WAIT_MS), also when patience ends."""
LOOKS_AT_STRANGER = 3
"""So often another topic must have the name before that is believed: a broker may be behind."""


class Fetcher:
    """topic_id: of the topic that is meant; None: of the one that is found first.

    stall_timeout_s: without any progress for so long, reading fails.
    """

    def __init__(self, peers: Peers, fetch: PartitionFetch, topic_id: bytes | None, stall_timeout_s: float) -> None:
        self._peers = peers
        self._fetch = fetch
        self._topic_id = topic_id
        self._patience = peers.cluster.patience(stall_timeout_s)
        self._buffer = ReceiveBuffer()
        self._connection: Connection | None = None
        self._leader: Leader | None = None
        self._found_id: bytes | None = None
        self._view_is_old = False
        self._strangers = 0

    def parts(self) -> Iterator[Fetched]:
        """Raises the errors of `PartitionFetch.answered`, TopicRecreated, AuthenticationFailed, OSError."""
        try:
            while not self._fetch.done:
                part = self._next()
                if part is not None:
                    self._patience.progress()
                    if not self._fetch.done:
                        self._ask_ahead()
                    yield part
                    self._patience.progress()  # the caller's time is not the cluster's
        finally:
            self._leave()

    def _next(self) -> Fetched | None:
        """The next part; None: nothing came, or what came is of no use."""
        try:
            if self._connection is None:
                self._connect()
            connection = self._connection
            assert connection is not None
            if not connection.in_flight:
                self._submit(connection)
            wait_s = min(FIRST_BYTE_TIMEOUT_S, max(self._patience.left_s(), SHORTEST_WAIT_S))
            if not connection.readable(wait_s):
                raise TimeoutError(f"{connection.address} did not answer within {wait_s:.0f} s")
            response = connection.take(into=self._buffer, timeout_s=REQUEST_TIMEOUT_S)
        except Unsupported:
            raise
        except OSError as error:
            self._lost(error)
            return None
        except KafkaError as error:
            if self._is_final(error):
                raise
            self._lost(error)
            return None
        outcome = self._fetch.answered(response)
        if isinstance(outcome, ErrorCode):
            where = f"{self._fetch.topic}-{self._fetch.partition} at offset {self._fetch.position}"
            self._lost(KafkaError(outcome, f"{where} could not be fetched from {connection.address}"))
            return None
        if outcome is None and not self._fetch.done and self._patience.over:
            raise self._nothing_came()
        return outcome

    def _connect(self) -> None:
        fetch = self._fetch
        if self._view_is_old or fetch.topic not in self._peers.cluster.view.topics:
            self._look()
        self._leader = self._peers.cluster.view.leader(fetch.topic, fetch.partition)
        self._found_id = self._peers.cluster.view.topics[fetch.topic].topic_id
        self._topic_id = self._topic_id or self._found_id
        if self._topic_id is not None and self._found_id not in (None, self._topic_id):
            raise TopicRecreated(fetch.topic, self._topic_id, self._found_id)
        self._connection = self._peers.borrow(self._leader.endpoint, min(REQUEST_TIMEOUT_S, self._patience.left_s()))

    def _look(self) -> None:
        topic = self._fetch.topic
        refused = self._peers.run(self._peers.cluster.look_elsewhere([topic], self._patience.left_s()))
        self._view_is_old = False
        if topic in refused:
            raise KafkaError(refused[topic], f"topic {topic} cannot be read")

    def _submit(self, connection: Connection) -> None:
        assert self._leader is not None
        version = connection.version_of(FetchRequest)
        if self._found_id is None:
            version = min(version, NEWEST_BY_NAME)
        message = self._fetch.request(self._found_id, self._leader.epoch)
        connection.submit(message, version=version, timeout_s=REQUEST_TIMEOUT_S)

    def _ask_ahead(self) -> None:
        """The next request is on its way while the caller works. What fails here is met again at the next part."""
        connection = self._connection
        assert connection is not None
        try:
            if connection.stale():
                raise ConnectionError(f"{connection.address}: closed, or its session ends")
            self._submit(connection)
        except (OSError, KafkaError):
            self._drop()

    def _is_final(self, error: KafkaError) -> bool:
        if isinstance(error, TopicRecreated):
            self._strangers += 1
            return self._strangers >= LOOKS_AT_STRANGER
        return error.code not in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.LEADER_NOT_AVAILABLE,
        )

    def _drop(self) -> None:
        self._view_is_old = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lost(self, failure: Exception) -> None:
        """Pause before the leader is looked up again. Raises `failure` if there was no progress for too long."""
        self._drop()
        self._peers.run(self._patience.again(failure))

    def _leave(self) -> None:
        if self._connection is not None and self._leader is not None:
            self._peers.give_back(self._leader.endpoint, self._connection)
            self._connection = None

    def _nothing_came(self) -> TimeoutError:
        fetch = self._fetch
        return TimeoutError(
            f"{fetch.topic}-{fetch.partition}: nothing came at offset {fetch.position} within "
            f"{self._patience.timeout_s:g} s, but offset {fetch.stop} was to be reached; the high watermark is "
            f"{fetch.high_watermark}, the last stable offset {fetch.last_stable_offset}"
        )
