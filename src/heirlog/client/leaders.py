"""Calls to the leaders of partitions: one request to one leader, or one request to each leader at the same time.

    leaders from the view --> requests --> answers --> done
         ^                                   |
         +--- pause, Metadata <--------------+   no answer, or a code in REFRESH_AND_RETRY: those partitions again

What was sent may have been executed although the answer was lost: a Produce without idempotence may append twice, as
with any client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from heirlog.client import offsets
from heirlog.client.call import Call, Send, SendAll
from heirlog.client.cluster import Cluster
from heirlog.client.errors import EpochEnd, Unsupported
from heirlog.client.offsets import Answers, OffsetAt, TopicPartition
from heirlog.client.retriable import REFRESH_AND_RETRY
from heirlog.client.retry_timer import FIRST_PAUSE_S, RetryTimer
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import ZERO_UUID, Endpoint

R = TypeVar("R")
Wanted: TypeAlias = Mapping[TopicPartition, int]
"""The value is what is asked of the partition: a time in ms (`list_offsets`), or a leader epoch (`epoch_ends`)."""

UNKNOWN_END = EpochEnd(-1, -1)


def ask_leader(
    cluster: Cluster,
    topic: str,
    partition: int,
    message: Callable[[bytes], Message],
    timeout_s: float,
    *,
    code_of: Callable[[Any], int] | None = None,
) -> Call[Any]:
    """Returns the leader's response. If none arrives, asks again: the new leader, if there is one.

    Each attempt finds the leader first: that costs one round trip, and never uses a cached leader. message: makes the
    request from the topic's id. code_of: the error code in a response; while it is in `REFRESH_AND_RETRY` the request
    is repeated. After the timeout the last response is returned.
    """
    retry_timer = RetryTimer(timeout_s, cluster.clock, longest_pause_s=FIRST_PAUSE_S)
    response: Any = None
    while True:
        failure: Exception | None = None
        try:
            endpoint, topic_id = yield from _find_leader(cluster, topic, partition, retry_timer)
            if retry_timer.is_expired:
                raise TimeoutError(f"timed out before the request to {endpoint} was sent")
            response = yield Send(endpoint, message(topic_id), retry_timer.remaining_s())
        except Unsupported:
            raise
        except OSError as error:
            failure = error
        except KafkaError as error:
            if error.code not in REFRESH_AND_RETRY:
                raise
            failure = error
        else:
            code = 0 if code_of is None else code_of(response)
            if code not in REFRESH_AND_RETRY:
                return response
            failure = KafkaError(error_code(code), f"{topic}-{partition} refused the request")
        try:
            yield from retry_timer.back_off(failure)
        except (OSError, KafkaError):
            if response is not None:
                return response
            raise


def _find_leader(cluster: Cluster, topic: str, partition: int, retry_timer: RetryTimer) -> Call[tuple[Endpoint, bytes]]:
    with retry_timer.raising_earlier_failure():
        refused = yield from cluster.refresh_metadata([topic], retry_timer.remaining_s())
    if topic in refused:
        raise KafkaError(refused[topic], f"topic {topic!r} cannot be used")
    leader = cluster.view.leader(topic, partition)
    return leader.endpoint, cluster.view.topics[topic].topic_id or ZERO_UUID


def list_offsets(
    cluster: Cluster, wanted: Wanted, timeout_s: float, *, isolation: int = 0
) -> Call[dict[TopicPartition, OffsetAt]]:
    """wanted: for each partition a time in ms (the first record not before it), `LATEST` or `EARLIEST`.

    isolation: 1 (read_committed) makes the latest offset the last stable one.
    """

    def request(some: Wanted) -> Message:
        return offsets.list_offsets(some, cluster.view, isolation, int(timeout_s * 1000))

    return of_leaders(cluster, wanted, request, offsets.listed_offsets, timeout_s, "its offset cannot be listed")


def epoch_ends(cluster: Cluster, wanted: Wanted, timeout_s: float) -> Call[dict[TopicPartition, EpochEnd]]:
    """For each partition where the newest leader epoch that is not above the wanted one ends in its log.

    (-1, -1) where the leader does not know, and from brokers before Kafka 2.1, which cannot say.
    """

    def request(some: Wanted) -> Message:
        return offsets.epoch_ends(some, cluster.view)

    try:
        return (
            yield from of_leaders(
                cluster, wanted, request, offsets.found_epoch_ends, timeout_s, "its epochs cannot be read"
            )
        )
    except Unsupported:
        return dict.fromkeys(wanted, UNKNOWN_END)


def of_leaders(
    cluster: Cluster,
    wanted: Wanted,
    request: Callable[[Wanted], Message],
    read: Callable[[Any], Answers[R]],
    timeout_s: float,
    refusal: str,
) -> Call[dict[TopicPartition, R]]:
    """Ask the leader of each partition, all leaders at once, and ask again where the error is retriable."""
    retry_timer = cluster.retry_timer(timeout_s)
    results: dict[TopicPartition, R] = {}
    if any(topic not in cluster.view.topics for topic, _ in wanted):
        topics = sorted({topic for topic, _ in wanted})
        raise_final((yield from cluster.refresh_metadata(topics, retry_timer.remaining_s())))
    while len(results) < len(wanted):
        left = {key: value for key, value in wanted.items() if key not in results}
        answers, failure = yield from _round(cluster, left, request, read, retry_timer)
        for key, code, result in answers:
            if key not in left:
                continue
            if not code:
                results[key] = result
                continue
            failure = KafkaError(error_code(code), f"{key[0]}-{key[1]}: {refusal}")
            if code not in REFRESH_AND_RETRY:
                raise failure
        if len(results) < len(wanted):
            yield from retry_timer.back_off(failure or TimeoutError("no leader answered"))
            with retry_timer.raising_earlier_failure():
                topics = sorted({topic for topic, _ in left})
                raise_final((yield from cluster.refresh_metadata_elsewhere(topics, retry_timer.remaining_s())))
    return results


def _round(
    cluster: Cluster,
    wanted: Wanted,
    request: Callable[[Wanted], Message],
    read: Callable[[Any], Answers[R]],
    retry_timer: RetryTimer,
) -> Call[tuple[list[tuple[TopicPartition, int, R]], Exception | None]]:
    """The answers of all leaders that answered, and one failure of the others, if any."""
    failure: Exception | None = None
    by_leader: dict[Endpoint, dict[TopicPartition, int]] = {}
    for (topic, partition), value in wanted.items():
        try:
            leader = cluster.view.leader(topic, partition)
        except KafkaError as error:
            failure = error
            continue
        by_leader.setdefault(leader.endpoint, {})[topic, partition] = value
    sends = [Send(endpoint, request(some), retry_timer.attempt_s()) for endpoint, some in by_leader.items()]
    answers: list[tuple[TopicPartition, int, R]] = []
    for response in (yield SendAll(sends)) if sends else ():
        if isinstance(response, Unsupported):
            raise response
        if isinstance(response, OSError):
            failure = response
        else:
            answers.extend(read(response))
    return answers, failure


def raise_final(refused: Mapping[str, ErrorCode]) -> None:
    """Raise for a topic whose error does not go away with a retry."""
    for topic, code in sorted(refused.items()):
        if code not in REFRESH_AND_RETRY:
            raise KafkaError(code, f"topic {topic!r} cannot be used")
