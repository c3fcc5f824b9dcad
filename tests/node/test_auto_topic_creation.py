from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from heirlog.metadata.config_def import parse_static
from heirlog.node.auto_topic_creation import (
    ASKED_MAX,
    LOG_AGAIN_MS,
    WAITING_MAX,
    AutoTopicCreationManager,
    missing_topic,
)
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsResponse

STATIC = parse_static(
    {
        "node.id": "1",
        "process.roles": "broker",
        "listeners": "PLAINTEXT://localhost:9092",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "log.dirs": "/data",
    }
)


class Asking:
    """`AutoTopicCreationManager` with a controller that a test plays."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.received: list[tuple[str, str]] = []
        self.timers: list[tuple[int, Any]] = []
        self.asked: list[tuple[Any, Pending[Any]]] = []
        env = SimpleNamespace(
            now_ms=lambda: self.now_ms,
            call_later=lambda delay_ms, fn: self.timers.append((delay_ms, fn)),
            log=lambda level, event, **values: self.received.append((event, values["topic"])),
        )
        self.topics = AutoTopicCreationManager(env, STATIC, SimpleNamespace(forward=self._forward))  # type: ignore[arg-type]

    def _forward(self, request: Any, version: int, refusal: Any, context: Any) -> Pending[Any]:
        self.asked.append((request, Pending()))
        return self.asked[-1][1]

    def answer(self, code: ErrorCode) -> None:
        request, pending = self.asked.pop(0)
        Result = CreateTopicsResponse.CreatableTopicResult
        pending.complete(
            CreateTopicsResponse(topics=[Result(name=topic.name, error_code=code) for topic in request.topics])
        )


def test_a_topic_is_asked_for_once_at_a_time() -> None:
    asking = Asking()
    asking.topics.create(["t"])
    asking.topics.create(["t", "u"])
    assert [[topic.name for topic in request.topics] for request, _ in asking.asked] == [["t"], ["u"]]
    asking.answer(ErrorCode.NONE)
    asking.topics.create(["t"])
    assert len(asking.asked) == 2


def test_all_who_wait_for_a_topic_continue_with_its_answer() -> None:
    asking = Asking()
    asking.topics.create(["t"])
    waiting = [asking.topics.created("t") for _ in range(2)]
    assert len(asking.asked) == 1
    assert not any(each.done for each in waiting)
    asking.answer(ErrorCode.INVALID_REPLICATION_FACTOR)
    assert all(each.done for each in waiting)


def test_who_has_waited_for_long_enough_continues_without_the_answer() -> None:
    asking = Asking()
    received: list[bool] = []
    asking.topics.created("t", 500).then(received.append)
    gone = asking.topics.created("t", 500)
    gone.abandon()
    patient = asking.topics.created("t")
    (_, first), (_, second) = asking.timers
    first()
    second()
    assert received == [False] and not patient.done
    asking.answer(ErrorCode.NONE)
    assert received == [False] and patient.done


def test_requests_that_wait_for_one_topic_are_bounded() -> None:
    asking = Asking()
    waiting = [asking.topics.created("t") for _ in range(WAITING_MAX)]
    assert not any(each.done for each in waiting) and asking.topics.created("t").done


def test_a_request_for_a_topic_that_cannot_even_be_sent_is_answered() -> None:
    asking = Asking()
    asking.topics.create([f"t{number}" for number in range(ASKED_MAX)])
    assert asking.topics.created("one-more").done


def test_why_a_topic_cannot_be_created_is_told_once_a_minute() -> None:
    asking = Asking()
    for now_ms, code in [
        (0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (100, ErrorCode.INVALID_REPLICATION_FACTOR),
        (200, ErrorCode.REQUEST_TIMED_OUT),
        (300, ErrorCode.REQUEST_TIMED_OUT),
        (200 + LOG_AGAIN_MS, ErrorCode.REQUEST_TIMED_OUT),
        (300 + LOG_AGAIN_MS, ErrorCode.TOPIC_ALREADY_EXISTS),
        (400 + LOG_AGAIN_MS, ErrorCode.REQUEST_TIMED_OUT),
    ]:
        asking.now_ms = now_ms
        asking.topics.create(["__consumer_offsets"])
        asking.answer(code)
    assert asking.received == [("topic-not-created", "__consumer_offsets")] * 4


def test_the_topic_of_the_offsets_has_a_configuration_of_its_own() -> None:
    offsets = missing_topic(STATIC, "__consumer_offsets")
    assert (offsets.num_partitions, offsets.replication_factor) == (50, 3)
    assert {config.name: config.value for config in offsets.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    recoveries = missing_topic(STATIC, "__heirlog_recoveries")
    assert (recoveries.num_partitions, recoveries.replication_factor, recoveries.configs) == (1, 3, offsets.configs)
    other = missing_topic(STATIC, "other")
    assert (other.num_partitions, other.replication_factor, other.configs) == (-1, -1, [])
