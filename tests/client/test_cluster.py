"""Which server is asked, and what is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from client.driving import ONE, THREE, TWO, World, described, topics_of

from heirlog.client.admin import to_controller
from heirlog.client.call import Ask, Conversation
from heirlog.client.cluster import parse_bootstrap
from heirlog.client.errors import AuthenticationFailed, Unsupported
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_server_that_answered_last_is_asked_first() -> None:
    def answer(server: Endpoint, _: Message) -> Any:
        return ConnectionError("refused") if server == ONE else DescribeClusterResponse()

    world = World(answer)
    cluster = world.cluster()
    world.run(cluster.ask_any(DescribeClusterRequest(), 10))
    world.run(cluster.ask_any(DescribeClusterRequest(), 10))
    assert world.servers(DescribeClusterRequest) == [ONE, TWO, TWO]
    assert world.pauses == [], "another server needs no pause"


def test_without_any_answer_the_failure_is_raised_within_the_time() -> None:
    world = World(lambda server, _: ConnectionError(f"refused by {server}"))
    with pytest.raises(ConnectionError, match="refused by b3:3"):
        world.run(world.cluster().ask_any(DescribeClusterRequest(), 5))
    assert 3 < world.now <= 5


def test_a_server_that_hangs_takes_no_more_than_its_try() -> None:
    world = World(lambda server, _: TimeoutError("hangs") if server == ONE else DescribeClusterResponse())
    world.run(world.cluster().ask_any(DescribeClusterRequest(), 30, attempt_s=4))
    assert world.now == 4


def test_a_server_that_hangs_is_not_the_first_of_the_next_call() -> None:
    hanging = {ONE}

    def answer(server: Endpoint, _: Message) -> Any:
        return TimeoutError("hangs") if server in hanging else DescribeClusterResponse()

    world = World(answer)
    cluster = world.cluster()
    with pytest.raises(TimeoutError):
        world.run(cluster.ask_any(DescribeClusterRequest(), 5))
    world.run(cluster.ask_any(DescribeClusterRequest(), 5))
    assert world.now == pytest.approx(5, abs=0.1), "the second call lost no time"
    hanging.add(TWO)
    hanging.remove(ONE)
    world.run(cluster.ask_any(DescribeClusterRequest(), 50, attempt_s=1))
    assert world.servers(DescribeClusterRequest)[-2:] == [TWO, THREE]


@pytest.mark.parametrize("failure", [Unsupported("too old"), AuthenticationFailed("who are you")])
def test_what_another_server_would_not_change_is_raised_at_once(failure: Exception) -> None:
    world = World(lambda _, __: failure)
    with pytest.raises(type(failure)):
        world.run(world.cluster().ask_any(DescribeClusterRequest(), 30))
    assert world.servers(DescribeClusterRequest) == [ONE]


def test_brokers_that_metadata_named_are_asked_when_the_bootstrap_servers_are_gone() -> None:
    alive = [ONE]

    def answer(server: Endpoint, message: Message) -> Any:
        return described([1]) if server in alive else ConnectionError("gone")

    world = World(answer)
    cluster = world.cluster(ONE)
    world.run(cluster.refresh_metadata(["t"], 10))
    alive[:] = [THREE]
    world.run(cluster.refresh_metadata(["t"], 10))
    assert world.servers(MetadataRequest)[-1] == THREE


def test_a_topic_that_one_broker_does_not_know_is_looked_for_at_another() -> None:
    world = World(lambda server, _: described(code=UNKNOWN) if server == ONE else described([1]))
    cluster = world.cluster()
    world.run(cluster.find_topics(["t"], 10))
    assert world.servers(MetadataRequest) == [ONE, TWO]
    assert list(cluster.view.topics) == ["t"]


def test_a_topic_that_no_broker_knows_is_refused_and_created_where_that_is_wanted() -> None:
    answers = iter([described(code=UNKNOWN)] * 4 + [described([1])])
    world = World(lambda _, __: next(answers))
    cluster = world.cluster()
    with pytest.raises(KafkaError, match="'t' does not exist"):
        world.run(cluster.find_topics(["t"], 10))
    world.run(cluster.find_topics(["t"], 10, create=True))
    creating = [message.allow_auto_topic_creation for _, message in world.asked]  # type: ignore[attr-defined]
    assert creating == [False, False, False, True, True]
    assert all(topics_of(message) == ["t"] for _, message in world.asked)


def test_one_broker_is_asked_where_metadata_says_that_it_listens() -> None:
    world = World(lambda _, m: described() if isinstance(m, MetadataRequest) else DescribeClusterResponse())
    cluster = world.cluster(ONE)
    world.run(cluster.ask_broker(3, DescribeClusterRequest(), 10))
    assert world.servers(DescribeClusterRequest) == [THREE]
    with pytest.raises(KafkaError, match="no live broker 9"):
        world.run(cluster.ask_broker(9, DescribeClusterRequest(), 10))


def unregistering() -> Conversation[Any]:
    return to_controller(UnregisterBrokerRequest(broker_id=1), lambda answer: [answer.error_code])


def test_the_controller_is_looked_up_again_when_it_has_moved_or_is_gone() -> None:
    controllers = iter([1, 2, 3])

    def answer(server: Endpoint, message: Message) -> Any:
        if isinstance(message, MetadataRequest):
            return described(controller=next(controllers))
        if server == ONE:
            return UnregisterBrokerResponse(error_code=ErrorCode.NOT_CONTROLLER)
        return ConnectionError("gone") if server == TWO else UnregisterBrokerResponse()

    world = World(answer)
    response = world.run(world.cluster().converse(unregistering(), 30))
    assert response.error_code == 0
    assert world.servers(UnregisterBrokerRequest) == [ONE, TWO, THREE]
    assert len(world.pauses) == 2


def test_while_no_broker_names_a_controller_the_time_runs_out_with_that_reason() -> None:
    world = World(lambda _, __: described(controller=-1))
    with pytest.raises(KafkaError, match="no broker names a controller"):
        world.run(world.cluster().converse(unregistering(), 5))
    assert world.now <= 5


def test_the_time_of_a_conversation_starts_again_with_each_progress() -> None:
    def many() -> Conversation[int]:
        for _ in range(10):
            yield Ask(DescribeClusterRequest())
        return 10

    def answer(_: Endpoint, message: Message) -> Any:
        if isinstance(message, MetadataRequest):
            return described()
        world.now += 4
        return DescribeClusterResponse()

    world = World(answer)
    assert world.run(world.cluster().converse(many(), 5)) == 10

    def never() -> Iterator[Ask]:
        while True:
            yield Ask(DescribeClusterRequest(), failure=KafkaError(ErrorCode.REQUEST_LIMIT_REACHED, "too much"))

    with pytest.raises(KafkaError, match="too much"):
        world.run(world.cluster().converse(never(), 5))  # type: ignore[arg-type]


def test_what_is_no_server_is_named() -> None:
    assert parse_bootstrap("a:1, b:2") == parse_bootstrap(["a:1", "b:2"]) == [Endpoint("a", 1), Endpoint("b", 2)]
    with pytest.raises(ValueError, match="nowhere"):
        parse_bootstrap("a:1,nowhere")
