"""InitProducerId: a unique id for an idempotent producer (KIP-98).

    the block has free ids      answer at once with its next id, epoch 0
    it is used up               ask the controller for a block (AllocateProducerIds); requests wait for it meanwhile

Ids come in blocks of 1,000, so that one metadata record serves many producers. The rest of a block is lost when the
process stops; so an id is unique without being stored.

A producer that names its current id and epoch (v3, KIP-360) gets a new id as well, as on Apache Kafka: an idempotent
producer raises its epoch on its own, and a broker cannot know whether another one already has the raised epoch.
An id without an epoch, or the reverse, is INVALID_REQUEST. The transaction coordinator gives the ids of transactional
producers, and takes them from here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from heirlog.broker.followers import RegisteredBrokers
from heirlog.env import Env, SendFailure
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from heirlog.protocol.types import Endpoint

CHANNEL = "forward"
RETRY_BACKOFF_MS = 50
NONE = -1
"""No producer id, no epoch."""
WAITING_MAX = 1000
"""Limit of waiting producers. Beyond it new ones get an error that they retry."""


class ProducerIdManager:
    def __init__(
        self,
        env: Env,
        controller_endpoint: Callable[[], Endpoint | None],
        registered_brokers: RegisteredBrokers,
        timeout_ms: int,
    ) -> None:
        self._env = env
        self._controller_endpoint = controller_endpoint
        self._registered_brokers = registered_brokers
        self._timeout_ms = timeout_ms
        self._next_id = 0
        self._end_id = 0
        self._asking = False
        self._is_wanted = False
        """A coordinator wants an id, and does not wait for it."""
        self._waiting: deque[Pending[Any]] = deque()

    def init_producer_id(self, request: InitProducerIdRequest) -> Any:
        """Returns a response, or `Pending` until the controller has given a block. Without a transactional id."""
        if (request.producer_id == NONE) != (request.producer_epoch == NONE):
            return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
        if self._next_id < self._end_id:
            return _given(self._take())
        if len(self._waiting) >= WAITING_MAX:
            return _retry_later()

        def forget() -> None:
            cancel()
            self._waiting.remove(pending)

        pending: Pending[Any] = Pending(forget)
        self._waiting.append(pending)
        cancel = self._env.call_later(self._timeout_ms, lambda: self._give_up(pending))
        self._ask()
        return pending

    def next_id(self) -> int | None:
        """A producer id that is not in use; None while none is at hand: then the next block is on its way."""
        if self._next_id < self._end_id:
            return self._take()
        self._is_wanted = True
        self._ask()
        return None

    def _take(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _give_up(self, pending: Pending[Any]) -> None:
        if not pending.done:
            self._waiting.remove(pending)
            pending.complete(_retry_later())

    def _ask(self) -> None:
        if self._asking or not (self._waiting or self._is_wanted):
            return
        self._asking = True
        controller = self._controller_endpoint()
        if controller is None:
            self._env.call_later(RETRY_BACKOFF_MS, self._ask_again)
            return
        request = AllocateProducerIdsRequest(
            broker_id=self._registered_brokers.broker_id, broker_epoch=self._registered_brokers.broker_epoch
        )
        self._env.send(controller, CHANNEL, request, self._answered, self._timeout_ms)

    def _ask_again(self) -> None:
        self._asking = False
        self._ask()

    def _answered(self, result: AllocateProducerIdsResponse | SendFailure) -> None:
        if isinstance(result, SendFailure) or result.error_code != ErrorCode.NONE:
            error = result.kind if isinstance(result, SendFailure) else error_code(result.error_code).name
            self._env.log("info", "producer-ids-not-allocated", error=error)
            self._env.call_later(RETRY_BACKOFF_MS, self._ask_again)
            return
        self._asking = self._is_wanted = False
        self._next_id = result.producer_id_start
        self._end_id = result.producer_id_start + result.producer_id_len
        while self._waiting and self._next_id < self._end_id:
            self._waiting.popleft().complete(_given(self._take()))
        self._ask()


def _given(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _retry_later() -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=-1)
