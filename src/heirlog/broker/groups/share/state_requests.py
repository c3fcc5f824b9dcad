"""What a group coordinator asks share coordinators: to initialize, summarize and delete the state of share partitions.

    asked --> one request per coordinator --> answered: the results of all of them together
                 ^                  |
                 '----- later ------'  the coordinator moved, is loading, or did not answer

What is left after `ATTEMPTS` attempts has the error COORDINATOR_NOT_AVAILABLE. `__share_group_state` is created by the
first request that needs it.

Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from heirlog.broker.share_coordinator.location import share_coordinator_of
from heirlog.broker.share_coordinator.state import SharePartitionKey
from heirlog.env import Env, SendFailure
from heirlog.metadata.image import Image
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
)
from heirlog.protocol.types import BrokerId, Endpoint, Uuid

CHANNEL = "share-group-state"
ATTEMPTS: Final = 6
BACKOFF_MS: Final = 100
"""Pause before the second attempt; it doubles with each further one."""
_PASSING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class StateResult(NamedTuple):
    code: ErrorCode
    start_offset: int = -1
    leader_epoch: int = 0
    delivery_complete_count: int = -1


Results: TypeAlias = dict[SharePartitionKey, StateResult]


class _Work(NamedTuple):
    request: Callable[[list[SharePartitionKey]], Any]
    """The request for share partitions of one coordinator."""
    results: Results
    on_done: Callable[[Results], None]
    is_wanted: Callable[[SharePartitionKey], bool]
    """False: do not ask for it any more, it counts as done."""


class StateRequests:
    def __init__(
        self,
        env: Env,
        image: Callable[[], Image],
        endpoint_of: Callable[[BrokerId], Endpoint | None],
        create_topics: Callable[[list[str]], None],
        timeout_ms: int,
    ) -> None:
        """endpoint_of: of a broker's listener for other brokers."""
        self._env = env
        self._image = image
        self._endpoint_of = endpoint_of
        self._create_topics = create_topics
        self._timeout_ms = timeout_ms

    def initialize(
        self,
        state_epoch: int,
        start_offsets: Mapping[SharePartitionKey, int],
        on_done: Callable[[Results], None],
        is_wanted: Callable[[SharePartitionKey], bool] = lambda _: True,
    ) -> None:
        """`on_done` is called once, never within this call. is_wanted: whether to try (again)."""
        R = InitializeShareGroupStateRequest

        def request(keys: list[SharePartitionKey]) -> InitializeShareGroupStateRequest:
            return R(
                group_id=keys[0].group,
                topics=[
                    R.InitializeStateData(
                        topic_id=topic_id,
                        partitions=[
                            R.PartitionData(
                                partition=key.partition, state_epoch=state_epoch, start_offset=start_offsets[key]
                            )
                            for key in those
                        ],
                    )
                    for topic_id, those in _by_topic(keys).items()
                ],
            )

        self._begin(start_offsets, request, on_done, is_wanted)

    def delete(
        self,
        keys: Iterable[SharePartitionKey],
        on_done: Callable[[Results], None],
        is_wanted: Callable[[SharePartitionKey], bool],
    ) -> None:
        """`on_done` is called once, never within this call. is_wanted: whether to try (again): a late deletion would
        take the state that a group has initialized since."""
        R = DeleteShareGroupStateRequest

        def request(keys: list[SharePartitionKey]) -> DeleteShareGroupStateRequest:
            return R(
                group_id=keys[0].group,
                topics=[
                    R.DeleteStateData(
                        topic_id=topic_id, partitions=[R.PartitionData(partition=key.partition) for key in those]
                    )
                    for topic_id, those in _by_topic(keys).items()
                ],
            )

        self._begin(keys, request, on_done, is_wanted)

    def summarize(self, keys: Iterable[SharePartitionKey], on_done: Callable[[Results], None]) -> None:
        """`on_done` is called once, never within this call."""
        R = ReadShareGroupStateSummaryRequest

        def request(keys: list[SharePartitionKey]) -> ReadShareGroupStateSummaryRequest:
            return R(
                group_id=keys[0].group,
                topics=[
                    R.ReadStateSummaryData(
                        topic_id=topic_id,
                        partitions=[R.PartitionData(partition=key.partition, leader_epoch=-1) for key in those],
                    )
                    for topic_id, those in _by_topic(keys).items()
                ],
            )

        self._begin(keys, request, on_done)

    def _begin(
        self,
        keys: Iterable[SharePartitionKey],
        request: Callable[[list[SharePartitionKey]], Any],
        on_done: Callable[[Results], None],
        is_wanted: Callable[[SharePartitionKey], bool] = lambda _: True,
    ) -> None:
        work = _Work(request, {}, on_done, is_wanted)
        self._env.call_later(0, partial(self._attempt, work, list(keys), 1))

    def _attempt(self, work: _Work, keys: list[SharePartitionKey], number: int) -> None:
        image = self._image()
        work.results.update({key: StateResult(ErrorCode.NONE) for key in keys if not work.is_wanted(key)})
        keys = [key for key in keys if key not in work.results]
        if keys and image.topic_named(SHARE_STATE_TOPIC) is None:
            self._create_topics([SHARE_STATE_TOPIC])
        by_broker: dict[BrokerId, list[SharePartitionKey]] = {}
        for key in keys:
            by_broker.setdefault(share_coordinator_of(image, key), []).append(key)
        again: list[SharePartitionKey] = []
        waiting = len(by_broker)

        def settled(asked: list[SharePartitionKey], result: Any) -> None:
            nonlocal waiting
            waiting -= 1
            answers = _answers(result)
            for key in asked:
                found = answers.get((key.topic_id, key.partition))
                if found is None or found.code in _PASSING:
                    again.append(key)
                else:
                    work.results[key] = found
            if not waiting:
                self._next(work, again, number)

        if not by_broker:
            work.on_done(work.results)
        for broker, asked in by_broker.items():
            endpoint = self._endpoint_of(broker)
            if endpoint is None:
                settled(asked, None)
            else:
                self._env.send(endpoint, CHANNEL, work.request(asked), partial(settled, asked), self._timeout_ms)

    def _next(self, work: _Work, left: list[SharePartitionKey], number: int) -> None:
        if left and number < ATTEMPTS:
            self._env.call_later(BACKOFF_MS << (number - 1), partial(self._attempt, work, left, number + 1))
            return
        work.results.update(dict.fromkeys(left, StateResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
        work.on_done(work.results)


def _by_topic(keys: Iterable[SharePartitionKey]) -> dict[Uuid, list[SharePartitionKey]]:
    found: dict[Uuid, list[SharePartitionKey]] = {}
    for key in keys:
        found.setdefault(key.topic_id, []).append(key)
    return found


def _answers(result: Any) -> dict[tuple[Uuid, int], StateResult]:
    """Nothing for a request without an answer."""
    if result is None or isinstance(result, SendFailure):
        return {}
    return {
        (Uuid(bytes(topic.topic_id)), each.partition): StateResult(
            error_code(each.error_code),
            getattr(each, "start_offset", -1),
            getattr(each, "leader_epoch", 0),
            getattr(each, "delivery_complete_count", -1),
        )
        for topic in result.results
        for each in topic.partitions
    }


def first_error(results: Results) -> ErrorCode:
    """NONE if all of them succeeded."""
    return next((result.code for result in results.values() if result.code is not ErrorCode.NONE), ErrorCode.NONE)
