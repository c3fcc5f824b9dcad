"""Administration against servers that page, cut off, put off, and change their controller."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from heirlog.client.admin import (
    ELECTIONS_MAX,
    Elected,
    describe_cluster,
    describe_topic_partitions,
    elect_leaders,
    to_controller,
)
from heirlog.client.call import Ask, Conversation, To
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

R = TypeVar("R")
Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
LIMIT = ErrorCode.REQUEST_LIMIT_REACHED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def run(call: Conversation[R], answer: Any) -> tuple[R, list[Ask]]:
    """Drive a call with a server that is a function of the message."""
    asks: list[Ask] = []
    try:
        ask = next(call)
        while True:
            asks.append(ask)
            assert len(asks) < 100, "it never ends"
            ask = call.send(answer(ask.message))
    except StopIteration as end:
        return end.value, asks


class Paging:
    """A cluster that describes at most `page` partitions at a time."""

    def __init__(self, topics: dict[str, int], page: int) -> None:
        self.topics = topics
        self.page = page

    def __call__(self, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
        names = sorted(topic.name for topic in request.topics) or sorted(self.topics)
        begin = (request.cursor.topic_name, request.cursor.partition_index) if request.cursor else ("", 0)
        places = [(name, n) for name in names for n in range(self.topics[name]) if (name, n) >= begin]
        limit = min(self.page, request.response_partition_limit)
        made: dict[str, list[Partition]] = {}
        for name, index in places[:limit]:
            made.setdefault(name, []).append(Partition(partition_index=index))
        cursor = None
        if places[limit:]:
            name, index = places[limit]
            cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=index)
        return DescribeTopicPartitionsResponse(
            topics=[Topic(name=name, partitions=found) for name, found in made.items()], next_cursor=cursor
        )


@pytest.mark.parametrize("page", [1, 2, 3, 4, 5, 100])
def test_a_description_is_put_together_from_its_pages(page: int) -> None:
    topics = {"a": 3, "b": 1, "c": 4}
    described, _ = run(describe_topic_partitions(), Paging(topics, page))
    assert {topic.name: [p.partition_index for p in topic.partitions] for topic in described} == {
        "a": [0, 1, 2],
        "b": [0],
        "c": [0, 1, 2, 3],
    }
    chosen, asks = run(describe_topic_partitions(["c", "a"]), Paging(topics, page))
    assert [topic.name for topic in chosen] == ["a", "c"]
    assert all(ask.to is To.ANY for ask in asks)


def test_a_topic_that_is_made_again_between_two_pages_has_the_new_ones_partitions() -> None:
    cursor = DescribeTopicPartitionsResponse.Cursor(topic_name="a", partition_index=1)
    pages = iter(
        [
            DescribeTopicPartitionsResponse(
                topics=[Topic(name="a", topic_id=b"1" * 16, partitions=[Partition(partition_index=0)])],
                next_cursor=cursor,
            ),
            DescribeTopicPartitionsResponse(
                topics=[Topic(name="a", topic_id=b"2" * 16, partitions=[Partition(partition_index=1)])]
            ),
        ]
    )
    (topic,), _ = run(describe_topic_partitions(), lambda _: next(pages))
    assert (topic.topic_id, [p.partition_index for p in topic.partitions]) == (b"2" * 16, [1])


def test_a_cursor_that_does_not_go_on_is_refused() -> None:
    cursor = DescribeTopicPartitionsResponse.Cursor(topic_name="a", partition_index=1)
    with pytest.raises(KafkaError, match="does not continue"):
        run(describe_topic_partitions(), lambda _: DescribeTopicPartitionsResponse(next_cursor=cursor))


class Behind:
    """Brokers that are asked in turn; those that come first have not read of what is new."""

    def __init__(self, lagging: int) -> None:
        self.lagging = lagging
        self.asked = 0

    def __call__(self, request: DescribeTopicPartitionsRequest | DescribeClusterRequest) -> Any:
        self.asked += 1
        knows = self.asked > self.lagging
        if isinstance(request, DescribeClusterRequest):
            ids = [1, 2] if knows else [1]
            return DescribeClusterResponse(
                brokers=[DescribeClusterResponse.DescribeClusterBroker(broker_id=broker_id) for broker_id in ids]
            )
        return DescribeTopicPartitionsResponse(
            topics=[
                Topic(name=topic.name, partitions=[Partition()])
                if knows or topic.name == "old"
                else Topic(name=topic.name, error_code=UNKNOWN)
                for topic in request.topics
            ]
        )


@pytest.mark.parametrize(("lagging", "found", "asked"), [(0, True, 1), (1, True, 2), (2, True, 3), (9, False, 3)])
def test_what_one_broker_does_not_know_is_looked_for_at_two_more(lagging: int, found: bool, asked: int) -> None:
    topics, asks = run(describe_topic_partitions(["new", "old"]), Behind(lagging))
    assert [(topic.name, topic.error_code) for topic in topics] == [("new", 0 if found else UNKNOWN), ("old", 0)]
    assert [ask.failure is None for ask in asks] == [True, False, False][:asked]
    assert all([topic.name for topic in ask.message.topics] == ["new"] for ask in asks[1:])  # type: ignore[attr-defined]
    cluster, asks = run(describe_cluster([1, 2]), Behind(lagging))
    assert [broker.broker_id for broker in cluster.brokers] == ([1, 2] if found else [1])
    assert len(asks) == asked


def test_nothing_is_asked_for_no_topics() -> None:
    assert run(describe_topic_partitions([]), None) == ([], [])


def elected(request: ElectLeadersRequest, served: int, code: int = LIMIT) -> ElectLeadersResponse:
    """The first `served` partitions get their leader."""
    places = [(topic.topic, index) for topic in request.topic_partitions or [] for index in topic.partitions]
    results: dict[str, list[Any]] = {}
    for number, (topic, index) in enumerate(places):
        found = ElectLeadersResponse.PartitionResult(partition_id=index, error_code=0 if number < served else code)
        results.setdefault(topic, []).append(found)
    return ElectLeadersResponse(
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=found)
            for topic, found in results.items()
        ]
    )


def test_what_is_over_the_limit_goes_into_the_next_request() -> None:
    wanted = [("t", n) for n in range(ELECTIONS_MAX + 1)]
    results, asks = run(elect_leaders(1, wanted, 5), lambda request: elected(request, 400))
    assert results == dict.fromkeys(wanted, Elected(0, ""))
    assert all(ask.to is To.CONTROLLER and ask.failure is None for ask in asks)
    first = asks[0].message
    assert isinstance(first, ElectLeadersRequest)
    assert sum(len(topic.partitions) for topic in first.topic_partitions or []) == ELECTIONS_MAX


def test_a_request_of_which_nothing_was_served_is_repeated_after_a_pause() -> None:
    served = iter([0, 0, 5])
    results, asks = run(elect_leaders(0, [("t", 0), ("u", 0)], 5), lambda request: elected(request, next(served)))
    assert len(results) == 2
    assert [ask.failure.code if ask.failure else None for ask in asks] == [None, LIMIT, LIMIT]


def test_other_errors_of_a_partition_are_its_result() -> None:
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    results, asks = run(elect_leaders(1, [("t", 0), ("t", 1)], 5), lambda request: elected(request, 1, code))
    assert results == {("t", 0): Elected(0, ""), ("t", 1): Elected(code, "")}
    assert len(asks) == 1


def test_an_election_everywhere_names_no_partition_until_something_is_left_over() -> None:
    def everywhere(request: ElectLeadersRequest) -> ElectLeadersResponse:
        if request.topic_partitions is None:
            three = ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0, 1, 2])
            return elected(ElectLeadersRequest(topic_partitions=[three]), 2)
        return elected(request, 5)

    results, asks = run(elect_leaders(0, None, 5), everywhere)
    assert sorted(results) == [("t", 0), ("t", 1), ("t", 2)]
    assert len(asks) == 2


def test_a_refusal_of_the_whole_is_raised_and_a_passing_one_repeated() -> None:
    with pytest.raises(KafkaError, match="refused"):
        run(elect_leaders(0, None, 5), lambda _: ElectLeadersResponse(error_code=31))
    answers = iter([ElectLeadersResponse(error_code=41), ElectLeadersResponse()])
    _, asks = run(elect_leaders(0, None, 5), lambda _: next(answers))
    assert asks[1].failure is not None


def test_who_is_no_controller_any_more_makes_the_next_one_be_asked() -> None:
    Result = CreateTopicsResponse.CreatableTopicResult
    answers = iter([CreateTopicsResponse(topics=[Result(error_code=code)]) for code in (41, 41, 36)])
    call = to_controller(CreateTopicsRequest(), lambda response: [topic.error_code for topic in response.topics])
    response, asks = run(call, lambda _: next(answers))
    assert response.topics[0].error_code == 36
    assert [(ask.to, ask.failure.code if ask.failure else 0) for ask in asks] == [
        (To.CONTROLLER, 0),
        (To.CONTROLLER, 41),
        (To.CONTROLLER, 41),
    ]


def test_designations_name_a_leader_per_partition_also_where_the_request_is_split() -> None:
    wanted = {("t", index): index % 3 for index in range(ELECTIONS_MAX + 2)}
    found: dict[tuple[str, int], int] = {}

    def answer(request: ElectLeadersRequest) -> ElectLeadersResponse:
        assert (request.election_type, request.skip_wait) == (4, True)
        (topic,) = request.topic_partitions or []
        assert topic.desired_leaders is not None and len(topic.desired_leaders) == len(topic.partitions)
        found.update(zip(((topic.topic, index) for index in topic.partitions), topic.desired_leaders, strict=True))
        results = [ElectLeadersResponse.PartitionResult(partition_id=index) for index in topic.partitions]
        return ElectLeadersResponse(
            replica_election_results=[
                ElectLeadersResponse.ReplicaElectionResult(topic=topic.topic, partition_result=results)
            ]
        )

    results, asks = run(elect_leaders(4, wanted, 1000, desired=wanted, skip_wait=True), answer)
    assert found == wanted and len(asks) == 2 and set(results.values()) == {Elected(0, "")}
