"""A cluster as one peer: which server is asked, what is asked again, when metadata are renewed, when a call gives up.

    any broker       the last one that answered, then the known ones, then the bootstrap servers, round after round;
                     those that did not answer last time come last
    the controller   the broker that Metadata names; without an answer Metadata again, from another broker
    one broker       where Metadata says that it listens

Everything here is a `Call` (`call.py`): it does no I/O, and a driver runs it. Each ends within its timeout, with the
result, a `KafkaError`, or the last OSError. `leaders.py` and `coordinators.py` build on this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from heirlog.client.call import Ask, Call, Clock, Conversation, Send, To
from heirlog.client.cluster_view import ClusterView
from heirlog.client.errors import Unsupported
from heirlog.client.retry_timer import RetryTimer
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import MetadataRequest, MetadataResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint, endpoint_from_text

R = TypeVar("R")

METADATA_ATTEMPT_SHARE = 1 / 4
"""Of the time of a call, for one Metadata answer: a broker that hangs must not take all of it."""
SHORTEST_METADATA_ATTEMPT_S = 1.0
TOPIC_MAY_COME = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


class Cluster:
    """bootstrap: servers to start from."""

    def __init__(self, bootstrap: Sequence[Endpoint], clock: Clock) -> None:
        self.view = ClusterView()
        self.clock = clock
        self.coordinators: tuple[dict[str, Endpoint], dict[str, Endpoint]] = ({}, {})
        """Of groups, and of transactional ids."""
        """Of groups, where they were last found."""
        self._bootstrap = list(bootstrap)
        self._answered_last: Endpoint | None = None
        self._unanswered: dict[Endpoint, None] = {}
        """Servers whose last request of a call to any broker had no answer, the latest failure last."""

    def retry_timer(self, timeout_s: float) -> RetryTimer:
        return RetryTimer(timeout_s, self.clock)

    # any broker

    def ask_any(self, message: Message, timeout_s: float, attempt_s: float | None = None) -> Call[Any]:
        """The answer of the first broker that gives one. attempt_s: wait no longer for each. Raises OSError when none
        did in time."""
        retry_timer = self.retry_timer(timeout_s)
        failure: OSError | None = None
        while True:
            for endpoint in self._servers():
                if retry_timer.is_expired:
                    break
                try:
                    response = yield Send(endpoint, message, min(retry_timer.remaining_s(), attempt_s or timeout_s))
                except Unsupported:
                    raise
                except OSError as error:
                    self._unanswered.pop(endpoint, None)
                    self._unanswered[endpoint] = None
                    # a try that the deadline cut short says less than what failed before
                    if failure is None or not isinstance(error, TimeoutError):
                        failure = error
                else:
                    self._answered_last = endpoint
                    self._unanswered.pop(endpoint, None)
                    return response
            yield from retry_timer.back_off(failure or TimeoutError("timed out before any server was asked"))

    def metadata(self, topics: Sequence[str] | None, timeout_s: float) -> Call[MetadataResponse]:
        """Brokers, and these topics (None: all); `view` learns it. Creates no topic."""
        response = yield from self._ask_metadata(topics, timeout_s, False)
        self.view.learn(response, of_all=topics is None)
        return response

    def refresh_metadata(
        self, topics: Sequence[str] | None, timeout_s: float, *, create: bool = False
    ) -> Call[dict[str, ErrorCode]]:
        """Renew `view`; the topics that were refused, and why.

        create: a broker with auto.create.topics.enable may create the topics.
        """
        response = yield from self._ask_metadata(topics, timeout_s, create)
        return self.view.learn(response, of_all=topics is None)

    def _ask_metadata(self, topics: Sequence[str] | None, timeout_s: float, create: bool) -> Call[MetadataResponse]:
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        attempt_s = max(timeout_s * METADATA_ATTEMPT_SHARE, SHORTEST_METADATA_ATTEMPT_S)
        response: MetadataResponse = yield from self.ask_any(request, timeout_s, attempt_s)
        return response

    def refresh_metadata_elsewhere(
        self, topics: Sequence[str], timeout_s: float, *, create: bool = False
    ) -> Call[dict[str, ErrorCode]]:
        """`refresh_metadata`, but ask another broker than last time if there is one: that one may be behind."""
        others = [endpoint for endpoint in self._servers() if endpoint != self._answered_last]
        self._answered_last = others[0] if others else self._answered_last
        return (yield from self.refresh_metadata(topics, timeout_s, create=create))

    def find_topics(self, names: Sequence[str], timeout_s: float, *, create: bool = False) -> Call[None]:
        """Renew what `view` knows of these topics. Raises KafkaError for one that does not exist or is refused.

        create: where brokers create topics by themselves they do so now; one that does not exist is waited for.
        """
        retry_timer = self.retry_timer(timeout_s)
        refused = (yield from self.refresh_metadata(names, timeout_s)) if names else {}
        if not create and any(code in TOPIC_MAY_COME for code in refused.values()):
            # a broker that has not yet read of a new topic answers as if it did not exist: one more is asked
            refused = yield from self.refresh_metadata_elsewhere(names, retry_timer.remaining_s())
        while refused:
            name, code = min(refused.items())
            is_missing = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            failure = KafkaError(code, f"topic {name!r} {'does not exist' if is_missing else 'cannot be used'}")
            if not create or code not in TOPIC_MAY_COME:
                raise failure
            yield from retry_timer.back_off(failure)
            with retry_timer.raising_earlier_failure():
                refused = yield from self.refresh_metadata_elsewhere(names, retry_timer.remaining_s(), create=True)

    def _servers(self) -> list[Endpoint]:
        """Without repeats, the most promising first: one that hangs must not be the first of each call."""
        last = [self._answered_last] if self._answered_last is not None else []
        servers = dict.fromkeys([*last, *self.view.brokers.values(), *self._bootstrap])
        self._unanswered = {endpoint: None for endpoint in self._unanswered if endpoint in servers}
        return [endpoint for endpoint in servers if endpoint not in self._unanswered] + list(self._unanswered)

    # one broker

    def ask_broker(self, broker_id: int, message: Message, timeout_s: float) -> Call[Any]:
        """The response of this broker. Raises KafkaError if no such broker runs now, OSError."""
        retry_timer = self.retry_timer(timeout_s)
        yield from self.metadata([], timeout_s)
        endpoint = self.view.brokers.get(broker_id)
        if endpoint is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no live broker {broker_id}")
        return (yield Send(endpoint, message, retry_timer.remaining_s()))

    # conversations

    def converse(self, conversation: Conversation[R], timeout_s: float) -> Call[R]:
        """The result of a conversation such as those of `admin.py`. timeout_s: without any progress.

        Raises KafkaError where the conversation does or when there is no time to ask again, OSError without an answer.
        """
        retry_timer = self.retry_timer(timeout_s)
        try:
            ask = next(conversation)
            while True:
                if ask.failure is not None:
                    yield from retry_timer.back_off(ask.failure)
                answer = yield from self._answer(ask, retry_timer)
                ask = conversation.send(answer)
                if ask.failure is None:
                    retry_timer.reset()
        except StopIteration as end:
            result: R = end.value
            return result

    def _answer(self, ask: Ask, retry_timer: RetryTimer) -> Call[Any]:
        if ask.to is To.CONTROLLER:
            return (yield from self._ask_controller(ask, retry_timer))
        with retry_timer.raising_earlier_failure():
            if ask.failure is not None:
                # another broker may reach whom that one did not
                yield from self.refresh_metadata_elsewhere([], retry_timer.remaining_s())
            return (yield from self.ask_any(ask.message, retry_timer.remaining_s()))

    def _ask_controller(self, ask: Ask, retry_timer: RetryTimer) -> Call[Any]:
        while True:
            if ask.failure is not None or self.view.controller_id not in self.view.brokers:
                yield from self.refresh_metadata_elsewhere([], retry_timer.remaining_s())
            endpoint = self.view.brokers.get(self.view.controller_id)
            if endpoint is None:
                yield from retry_timer.back_off(KafkaError(ErrorCode.NOT_CONTROLLER, "no broker names a controller"))
                continue
            try:
                return (yield Send(endpoint, ask.message, retry_timer.remaining_s()))
            except Unsupported:
                raise
            except OSError as error:
                self.view.controller_id = -1
                yield from retry_timer.back_off(error)


def parse_bootstrap(bootstrap: str | Sequence[str]) -> list[Endpoint]:
    """Raises ValueError naming what is not host:port."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    return [endpoint_from_text(text.strip()) for text in texts]
