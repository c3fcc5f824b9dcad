"""Administration as conversations (`call.py`): each yields what to ask, and knows from the answer what to ask next.

    Ask(message, to, failure) --> Cluster --> answer --> ... --> the result

* to=CONTROLLER goes to the broker that Metadata names as controller. With KRaft that may be any (brokers forward), with
  ZooKeeper only the right one answers; a broker that answers NOT_CONTROLLER is not it any more, and the next one is
  asked.
* A description comes page by page: the cursor of one page begins the next. Pages are no snapshot: a topic may come and
  go in between, so one that is described twice counts once.
* What a server refuses by REQUEST_LIMIT_REACHED, because a request holds too much, goes into the next request; there is
  a pause only if a request is refused as a whole.

Source: KIP-966 (cursor, limit), KIP-460 (ElectLeaders), KIP-590 (forwarding).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from heirlog.client.call import Ask, Conversation, To
from heirlog.client.offsets import TopicPartition, by_topic
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from heirlog.protocol.primitives import Message

DescribedTopic: TypeAlias = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic

PAGE_PARTITIONS = 2000
"""Kafka's default of max.request.partition.size.limit: a larger page would be cut down to it."""
ELECTIONS_MAX = 1000
"""KIP-966: what an ElectLeaders request may hold."""
BROKERS_ASKED_MAX = 3
"""At how many brokers a name is looked for that the first one does not know: each may not have read of it yet."""
RETRIABLE = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.REQUEST_LIMIT_REACHED,
    }
)


class Place(Protocol):
    """A cursor: the next partition of a description."""

    topic_name: str
    partition_index: int


class Elected(NamedTuple):
    code: int
    """0: a leader was elected."""
    message: str


def to_controller(message: Message, codes: Callable[[Any], Iterable[int]]) -> Conversation[Any]:
    """The controller's answer. codes: the error codes of an answer; while NOT_CONTROLLER is among them, ask again."""
    failure: KafkaError | None = None
    while True:
        response = yield Ask(message, To.CONTROLLER, failure)
        if ErrorCode.NOT_CONTROLLER not in list(codes(response)):
            return response
        failure = KafkaError(ErrorCode.NOT_CONTROLLER, f"{type(message).__name__} did not find the controller")


def describe_topic_partitions(
    names: Sequence[str] | None = None, page_partitions: int | None = None
) -> Conversation[list[DescribedTopic]]:
    """These topics (None: all), each with all its partitions, by name. Errors of a topic stand at the topic.

    One that is not there is looked for at other brokers too. Raises INVALID_REQUEST if the server's cursor does not go
    forward.
    """
    if names is not None and not names:
        return []
    found = yield from _described(names, page_partitions, None)
    for _ in range(BROKERS_ASKED_MAX - 1):
        missing = sorted(n for n, topic in found.items() if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not missing:
            break
        failure = KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"none of the brokers asked knows topic {missing[0]}"
        )
        found.update((yield from _described(missing, page_partitions, failure)))
    return [found[name] for name in sorted(found)]


def _described(
    names: Sequence[str] | None, page_partitions: int | None, failure: KafkaError | None
) -> Conversation[dict[str, DescribedTopic]]:
    """As one broker knows them; failure: why another one is asked."""
    found: dict[str, DescribedTopic] = {}
    partitions: dict[str, dict[int, Any]] = {}
    cursor: DescribeTopicPartitionsRequest.Cursor | None = None
    while True:
        asked = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in sorted(set(names or []))]
        response: DescribeTopicPartitionsResponse = yield Ask(
            DescribeTopicPartitionsRequest(
                topics=asked, response_partition_limit=page_partitions or PAGE_PARTITIONS, cursor=cursor
            ),
            failure=failure,
        )
        failure = None
        for topic in response.topics:
            name = topic.name or ""
            known = found.get(name)
            if known is None or known.topic_id != topic.topic_id:
                partitions[name] = {}
            found[name] = topic
            partitions[name].update((partition.partition_index, partition) for partition in topic.partitions)
        following = response.next_cursor
        if following is None:
            break
        place = after(cursor, following)
        cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=place[0], partition_index=place[1])
    for name, topic in found.items():
        topic.partitions = [partitions[name][index] for index in sorted(partitions[name])]
    return found


def describe_cluster(expected: Collection[int] = ()) -> Conversation[DescribeClusterResponse]:
    """The brokers that run. While one that is expected is missing, other brokers are asked too."""
    failure: KafkaError | None = None
    for _ in range(BROKERS_ASKED_MAX):
        response: DescribeClusterResponse = yield Ask(DescribeClusterRequest(), failure=failure)
        missing = sorted(set(expected) - {broker.broker_id for broker in response.brokers})
        if not missing:
            break
        failure = KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"none of the brokers asked sees broker {missing[0]} run")
    return response


def after(cursor: Place | None, following: Place) -> tuple[str, int]:
    """Where the next page begins. Raises KafkaError INVALID_REQUEST if that is not behind where this one began."""
    place = (following.topic_name, following.partition_index)
    if cursor is not None and place <= (cursor.topic_name, cursor.partition_index):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"the description does not continue: after {cursor} the server points to {place}"
        )
    return place


def elect_leaders(
    election_type: int,
    partitions: Iterable[TopicPartition] | None,
    timeout_ms: int,
    *,
    desired: Mapping[TopicPartition, int] | None = None,
    skip_wait: bool = False,
) -> Conversation[dict[TopicPartition, Elected]]:
    """What became of each partition; None: of those where there was something to elect.

    election_type: 0 the preferred leader, 1 any live replica of a leaderless one; of a heirlog cluster also 2 and 3 the
    longest log, balanced or aggressive, 4 the replica in `desired`, which names every partition. skip_wait: balanced
    waits for its quorum only. Raises KafkaError if refused.
    """
    results: dict[TopicPartition, Elected] = {}
    # None stays None: the controller chooses, and what it leaves for later it names
    waiting: list[TopicPartition] | None = None if partitions is None else list(dict.fromkeys(partitions))
    failure: KafkaError | None = None
    while waiting is None or waiting:
        now = None if waiting is None else waiting[:ELECTIONS_MAX]
        request = _election(election_type, now, timeout_ms)
        request.skip_wait = skip_wait
        if desired is not None:
            for topic in request.topic_partitions or ():
                topic.desired_leaders = [desired[topic.topic, index] for index in topic.partitions]
        response: ElectLeadersResponse = yield Ask(request, To.CONTROLLER, failure)
        code = error_code(response.error_code)
        if code in RETRIABLE:
            failure = KafkaError(code, "the election was postponed")
            continue
        if code is not ErrorCode.NONE:
            raise KafkaError(code, "the election was refused")
        answered = {
            (result.topic, found.partition_id): Elected(found.error_code, found.error_message or "")
            for result in response.replica_election_results
            for found in result.partition_result
        }
        later = [partition for partition, result in answered.items() if result.code in RETRIABLE]
        results.update((partition, result) for partition, result in answered.items() if result.code not in RETRIABLE)
        failure = _no_progress(answered, later)
        unnamed = [partition for partition in now or [] if partition not in answered]
        results.update((partition, Elected(ErrorCode.UNKNOWN_SERVER_ERROR, "no answer")) for partition in unnamed)
        waiting = [*later, *(waiting or [])[len(now or []) :]]
    return results


def _no_progress(answered: Mapping[TopicPartition, Elected], later: Sequence[TopicPartition]) -> KafkaError | None:
    """Why to pause before the next request: nothing of this one was done."""
    if not later or len(later) < len(answered):
        return None
    topic, partition = later[0]
    result = answered[later[0]]
    return KafkaError(error_code(result.code), f"no leader is elected for {topic}-{partition}: {result.message}")


def _election(election_type: int, partitions: Sequence[TopicPartition] | None, timeout_ms: int) -> ElectLeadersRequest:
    wanted = None
    if partitions is not None:
        wanted = [
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    return ElectLeadersRequest(election_type=election_type, topic_partitions=wanted, timeout_ms=timeout_ms)
