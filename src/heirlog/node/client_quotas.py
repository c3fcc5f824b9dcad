"""Client quotas on one node: what a client uses is counted when its answer leaves, and a client above a limit waits.

    producer_byte_rate    bytes of Produce requests
    consumer_byte_rate    bytes of answers to consumers' Fetch and ShareFetch requests
    request_percentage    time in handlers and in sending answers; 100 is all that the node's one thread has

    request --handler--> answer --counted--> sent, with the time to wait in it --> the connection is muted for that time

Nothing is read from a muted connection, so the time counts also for clients that ignore it (KIP-219). A client with
several connections, or one that connects again, uses the same bucket. The first two have no upper bound; the wait for
time is at most one window for each answer, as in Kafka. Kafka reads one request of a connection at a time. Here several
may be under way, and then the waits for their time add up: otherwise a client that sends many at once would wait one
window for all of them (`Charge.adds_up`). Bytes are counted when an answer leaves, so the last of them has the whole
wait.

What nodes send each other is never counted: a default quota must not slow down replication or fence a broker. With an
authorizer, only who has the permission of a node (CLUSTER_ACTION) can be one: a client that has not, and sends what
nodes send or names a replica, is refused by the API and counted here. Where no quota is configured,
`Node.client_quotas` is None and nothing here runs.

A Fetch that exceeds the byte rate is answered without partitions, its bytes are taken off the count again, and the next
one comes when they fit: so that many connections of one user cannot take a whole window each. An answer is first cut to
what the whole window allows (`fetch_max_bytes`).

Deviations. The first answer of a window is sent whatever its size: in Kafka a batch larger than the window allows is
never answered, and its consumer stands still. A Fetch above the quota of time alone is answered with its records: the
time has been used. So is a ShareFetch above any quota: its records are locked for the member, and Kafka's empty answer
leaves them locked, and their delivery counted, without anyone who has them.

Source: KIP-13, KIP-55, KIP-124, KIP-219; Kafka's ClientQuotaManager and ClientRequestQuotaManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from heirlog.apis.common.call import without
from heirlog.env import Region
from heirlog.metadata.client_quotas import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Bucket,
    ClientQuotas,
    QuotaLimit,
)
from heirlog.protocol.api import ApiKey
from heirlog.protocol.frames import RequestHeader, encode_response
from heirlog.protocol.messages import FetchResponse
from heirlog.rates import Measures, WindowedRate

CONNECTION_QUOTAS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)
_PERCENT_PER_NS: Final = 100 / 1e9
_CONSUMING: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
_REPLICA_STATE_VERSION: Final = 15
_VERIFYING_VERSION: Final = 4


class ClientQuotaManager:
    """quotas: those of the image, asked for at each request. now_ns: a clock finer than `now_ms`.

    not_sent: see `FetchSessionCache.not_sent`. may_be_node: whether a principal at a host may do what nodes do.
    """

    def __init__(
        self,
        quotas: Callable[[], ClientQuotas],
        now_ms: Callable[[], int],
        now_ns: Callable[[], int],
        samples: int,
        window_ms: int,
        not_sent: Callable[[FetchResponse, bool], None],
        may_be_node: Callable[[str, str], bool],
    ) -> None:
        self._quotas = quotas
        self._now_ms = now_ms
        self.not_sent = not_sent
        self._may_be_node = may_be_node
        self.now_ns = now_ns
        self._samples = samples
        self._window_ms = window_ms
        self._measures: dict[str, Measures[Bucket, WindowedRate]] = {
            quota: Measures(lambda: WindowedRate(samples, window_ms)) for quota in CONNECTION_QUOTAS
        }
        self.throttled: dict[str, int] = dict.fromkeys(CONNECTION_QUOTAS, 0)
        """Answers with a time to wait, by quota."""

    def charge(
        self, principal: str, host: str, header: RequestHeader, request: Any, size: int, is_of_nodes: bool
    ) -> Charge | None:
        """What to count for a request that has just come; None: nothing.

        size: of its frame in bytes. is_of_nodes: only nodes send it (`Api.has_no_quota`).
        """
        looks_like_node = is_of_nodes or is_of_replica(header, request) or is_of_broker(header)
        if looks_like_node and self._may_be_node(principal, host):
            return None
        user = principal.partition(":")[2]
        return Charge(self, user, header, size)

    def fetch_max_bytes(self, user: str, client_id: str) -> int | None:
        """The most bytes that one answer may have and still come to an end of its wait; None: no limit."""
        limit = self._quotas().limit(CONSUMER_BYTE_RATE, user, client_id)
        return None if limit is None else max(1, int(limit.rate * (self._samples - 1) * self._window_ms / 1000))

    def has(self, quota: str) -> bool:
        return self._quotas().has(quota)

    def count(self, quota: str, user: str, client_id: str, value: float) -> int:
        """Count what a client has used; how many milliseconds it now has to wait."""
        limit = self._quotas().limit(quota, user, client_id)
        if limit is None:
            return 0
        now_ms = self._now_ms()
        rate = self._rate(quota, limit, now_ms)
        rate.add(value, now_ms)
        throttle_ms = rate.throttle_ms(limit.rate, now_ms)
        if quota == REQUEST_PERCENTAGE:
            throttle_ms = min(throttle_ms, self._window_ms)
        if throttle_ms:
            self.throttled[quota] += 1
        return throttle_ms

    def take_back(self, user: str, client_id: str, fetched: int) -> bool:
        """Take bytes off the count of a consumer; not where there are no others, so that it gets them some time."""
        limit = self._quotas().limit(CONSUMER_BYTE_RATE, user, client_id)
        if limit is None:
            return False
        now_ms = self._now_ms()
        rate = self._rate(CONSUMER_BYTE_RATE, limit, now_ms)
        is_first = rate.total(now_ms) <= fetched
        if not is_first:
            rate.add(-fetched, now_ms)
        return not is_first

    def add_time(self, user: str, client_id: str, elapsed_ns: int) -> None:
        """Time that is only known once the answer has left: it counts for the next request."""
        limit = self._quotas().limit(REQUEST_PERCENTAGE, user, client_id)
        if limit is not None:
            now_ms = self._now_ms()
            self._rate(REQUEST_PERCENTAGE, limit, now_ms).add(elapsed_ns * _PERCENT_PER_NS, now_ms)

    def _rate(self, quota: str, limit: QuotaLimit, now_ms: int) -> WindowedRate:
        return self._measures[quota].of(limit.bucket, now_ms)


def is_of_replica(header: RequestHeader, request: Any) -> bool:
    """Whether a follower asks: Fetch, ListOffsets and OffsetForLeaderEpoch say so themselves."""
    if header.api_key == ApiKey.FETCH and header.api_version >= _REPLICA_STATE_VERSION:
        return bool(request.replica_state.replica_id >= 0)
    return bool(getattr(request, "replica_id", -1) >= 0)


def is_of_broker(header: RequestHeader) -> bool:
    """Whether the request may be a broker's: each of their connections begins with ApiVersions, and from version 4 on
    AddPartitionsToTxn verifies what clients do (KIP-890)."""
    if header.api_key == ApiKey.ADD_PARTITIONS_TO_TXN:
        return header.api_version >= _VERIFYING_VERSION
    return header.api_key == ApiKey.API_VERSIONS


class Charge:
    """One request until its answer has left."""

    __slots__ = ("_begun_ns", "_handled_ns", "_header", "_is_full", "_manager", "_request_bytes", "_user", "adds_up")

    def __init__(self, manager: ClientQuotaManager, user: str, header: RequestHeader, request_bytes: int) -> None:
        self._manager = manager
        self._user = user
        self._header = header
        self._request_bytes = request_bytes
        self._is_full = True
        self.adds_up = False
        """Whether its wait begins after those of earlier answers of the connection."""
        self._begun_ns = self._handled_ns = manager.now_ns()

    def cut(self, request: Any) -> Any:
        """The request, or a twin that asks for less, so that its answer cannot exceed what the window allows."""
        if self._header.api_key not in _CONSUMING:
            return request
        if self._header.api_key == ApiKey.FETCH:
            self._is_full = request.session_epoch <= 0
        most = self._manager.fetch_max_bytes(self._user, self._client_id)
        if most is None or request.max_bytes <= most:
            return request
        return without(request, max_bytes=most, min_bytes=min(request.min_bytes, most))

    def handled(self) -> None:
        """Its handler has returned."""
        self._handled_ns = self._manager.now_ns()

    def settle(self, response: Any | None) -> tuple[Any, int]:
        """Its answer is about to leave: the answer with the time to wait in it, and that time in milliseconds.

        response: None where the client expects none. A time that the answer brings along (the controller's) counts too.
        """
        manager, user, client_id = self._manager, self._user, self._client_id
        earlier_ms = getattr(response, "throttle_time_ms", 0)
        throttle_ms = earlier_ms
        if self._header.api_key == ApiKey.PRODUCE and manager.has(PRODUCER_BYTE_RATE):
            throttle_ms = max(throttle_ms, manager.count(PRODUCER_BYTE_RATE, user, client_id, self._request_bytes))
        if self._header.api_key in _CONSUMING and manager.has(CONSUMER_BYTE_RATE) and response is not None:
            size = encoded_bytes(self._header, response)
            fetch_ms = manager.count(CONSUMER_BYTE_RATE, user, client_id, size)
            may_be_emptied = self._header.api_key == ApiKey.FETCH and not response.error_code
            if fetch_ms and may_be_emptied and manager.take_back(user, client_id, size):
                response = self._emptied(response)
            throttle_ms = max(throttle_ms, fetch_ms)
        if response is not None and manager.has(REQUEST_PERCENTAGE):
            percent = (self._handled_ns - self._begun_ns) * _PERCENT_PER_NS
            time_ms = manager.count(REQUEST_PERCENTAGE, user, client_id, percent)
            self.adds_up = time_ms >= throttle_ms
            throttle_ms = max(throttle_ms, time_ms)
        if response is not None and throttle_ms != earlier_ms and "throttle_time_ms" in response.FIELDS:
            response = without(response, throttle_time_ms=throttle_ms)
        self._handled_ns = manager.now_ns()
        return response, throttle_ms

    def _emptied(self, response: FetchResponse) -> FetchResponse:
        """As Kafka: a full request gets no session, an incremental one has used its epoch."""
        self._manager.not_sent(response, self._is_full)
        return FetchResponse(session_id=0 if self._is_full else response.session_id)

    def sent(self) -> None:
        if self._manager.has(REQUEST_PERCENTAGE):
            self._manager.add_time(self._user, self._client_id, self._manager.now_ns() - self._handled_ns)

    @property
    def _client_id(self) -> str:
        return self._header.client_id or ""


def encoded_bytes(header: RequestHeader, response: Any) -> int:
    parts = encode_response(header.api_key, header.api_version, header.correlation_id, response)
    return sum(part.size if isinstance(part, Region) else len(part) for part in parts)
