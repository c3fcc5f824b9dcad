"""Clients that change topics: create them once, delete and create one again and again, change its configuration; and
an operator, who does what a script says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heirlog.controller.update_features import SAFE_DOWNGRADE, UPGRADE
from heirlog.env import Env, SendFailure
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import REQUEST_TIMEOUT_MS, RETRY_MS, Client

TOPIC_RESOURCE = 2
PREFERRED = 0
UNCLEAN = 1
LONGEST_LOG_BALANCED = 2
LONGEST_LOG_AGGRESSIVE = 3
DESIGNATION = 4
STRATEGY = "unclean.recovery.strategy"
BALANCED, AGGRESSIVE, NONE = "Balanced", "Aggressive", "None"
STRATEGIES = (BALANCED, AGGRESSIVE, NONE)
_NO_CONTROLLER = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR)


def topic_of(name: str, partitions: list[list[int]], configs: Mapping[str, str]) -> CreateTopicsRequest.CreatableTopic:
    """partitions: the replicas of each."""
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(partitions)
        ],
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


class TopicMaker(Client):
    """Creates topics, until the cluster says that they exist."""

    def __init__(
        self,
        env: Env,
        name: str,
        bootstrap: Sequence[Endpoint],
        assignments: dict[str, list[list[int]]],
        configs: Mapping[str, Mapping[str, str]],
    ) -> None:
        """`assignments`: per topic, the replicas of each of its partitions. `configs`: per topic."""
        super().__init__(env, name, bootstrap, list(assignments))
        self._assignments = assignments
        self._configs = configs
        self.done = False

    def start(self) -> None:
        topics = [
            topic_of(name, partitions, self._configs.get(name, {})) for name, partitions in self._assignments.items()
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=1000)
        self.env.send(self.any_endpoint(), "admin", request, self._created, REQUEST_TIMEOUT_MS)

    def _created(self, response: Any) -> None:
        fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        if not isinstance(response, SendFailure) and all(topic.error_code in fine for topic in response.topics):
            self.done = True
            return
        self.env.call_later(RETRY_MS, self.start)


class TopicChurn(Client):
    """Deletes a topic and makes it again under the same name, until it is stopped; then it stays."""

    def __init__(
        self, env: Env, name: str, bootstrap: Sequence[Endpoint], topic: str, partitions: list[list[int]]
    ) -> None:
        """partitions: the replicas of each."""
        super().__init__(env, name, bootstrap, [topic])
        self.topic = topic
        self._partitions = partitions
        self.made = 0
        self.settled = False
        """Stopped, and the topic was there when it was asked for, which nobody deletes any more."""

    def start(self) -> None:
        self._pause()

    def _pause(self) -> None:
        self.env.call_later(self.env.random.randrange(1500, 6000), self._delete)

    def _delete(self) -> None:
        if self.stopped:
            # a request of ours that had no answer may still be on its way
            self.env.call_later(2 * REQUEST_TIMEOUT_MS, self._create)
            return
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=self.topic)], timeout_ms=1000)
        self.env.send(self.any_endpoint(), "admin", request, lambda _: self._soon(), REQUEST_TIMEOUT_MS)

    def _soon(self) -> None:
        """A moment without the topic, or none."""
        self.env.call_later(self.env.random.randrange(0, 400), self._create)

    def _create(self) -> None:
        request = CreateTopicsRequest(topics=[topic_of(self.topic, self._partitions, {})], timeout_ms=1000)
        self.env.send(self.any_endpoint(), "admin", request, self._created, REQUEST_TIMEOUT_MS)

    def _created(self, response: Any) -> None:
        code = None if isinstance(response, SendFailure) else response.topics[0].error_code
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self.env.call_later(RETRY_MS, self._create)
            return
        self.made += code == ErrorCode.NONE
        if self.stopped:
            self.settled = code == ErrorCode.TOPIC_ALREADY_EXISTS
            self.env.call_later(RETRY_MS, lambda: None if self.settled else self._create())
        else:
            self._pause()


class TopicSower(Client):
    """Creates a topic now and then, whose replicas the controller places."""

    def start(self) -> None:
        self._number = 0
        self._pause()

    def _pause(self) -> None:
        self.env.call_later(self.env.random.randrange(1000, 6000), self._create)

    def _create(self) -> None:
        if self.stopped:
            return
        self._number += 1
        topic = CreateTopicsRequest.CreatableTopic(
            name=f"sown-{self._number}",
            num_partitions=self.env.random.randrange(1, 5),
            replication_factor=self.env.random.randrange(2, 4),
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        self.env.send(self.any_endpoint(), "admin", request, lambda _: self._pause(), REQUEST_TIMEOUT_MS)


class MinIsrChanger(Client):
    """Sets min.insync.replicas of a topic to something else, again and again."""

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(1000, 5000), self._change)

    def _change(self) -> None:
        if self.stopped:
            return
        value = str(self.env.random.randrange(1, 4))
        request = topic_config(self.topics[0], "min.insync.replicas", value)
        self.env.send(self.any_endpoint(), "admin", request, lambda _: self.start(), REQUEST_TIMEOUT_MS)


class StrategyChanger(Client):
    """Sets unclean.recovery.strategy of a topic to something else, again and again, and in the end to Balanced."""

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(1000, 6000), self._change)

    def _change(self) -> None:
        if not self.stopped:
            self._set(STRATEGIES[self.env.random.randrange(0, len(STRATEGIES))], self.start)

    def stop(self) -> None:
        super().stop()
        # a request of ours that had no answer may still be on its way
        self.env.call_later(2 * REQUEST_TIMEOUT_MS, lambda: self._set(BALANCED, lambda: None))

    def _set(self, value: str, then: Callable[[], None]) -> None:
        def answered(response: Any) -> None:
            if isinstance(response, SendFailure) or response.responses[0].error_code != ErrorCode.NONE:
                self.env.call_later(RETRY_MS, lambda: self._set(value, then))
            else:
                then()

        request = topic_config(self.topics[0], STRATEGY, value)
        self.env.send(self.any_endpoint(), "admin", request, answered, REQUEST_TIMEOUT_MS)


class FeatureChanger(Client):
    """Switches features off and on, again and again; leaves those of `ends_on` on."""

    def __init__(
        self,
        env: Env,
        name: str,
        bootstrap: Sequence[Endpoint],
        features: Sequence[str],
        *,
        ends_on: Sequence[str] = (),
    ) -> None:
        super().__init__(env, name, bootstrap, [])
        self._features = list(features)
        self._ends_on = list(ends_on)

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(1000, 5000), self._change)

    def _change(self) -> None:
        if self.stopped:
            return
        random = self.env.random
        level = random.randrange(0, 2)
        feature = self._features[random.randrange(0, len(self._features))] if self._features[1:] else self._features[0]
        request = feature_level(feature, level)
        self.env.send(self.any_endpoint(), "admin", request, lambda _: self.start(), REQUEST_TIMEOUT_MS)

    def stop(self) -> None:
        super().stop()
        for feature in self._ends_on:
            # a request of ours that had no answer may still be on its way
            self.env.call_later(2 * REQUEST_TIMEOUT_MS, lambda feature=feature: self._set_on(feature))  # type: ignore[misc]

    def _set_on(self, feature: str) -> None:
        def answered(response: Any) -> None:
            if isinstance(response, SendFailure) or response.error_code != ErrorCode.NONE:
                self.env.call_later(RETRY_MS, lambda: self._set_on(feature))

        self.env.send(self.any_endpoint(), "admin", feature_level(feature, 1), answered, REQUEST_TIMEOUT_MS)


def feature_level(feature: str, level: int) -> UpdateFeaturesRequest:
    """Level 0 by a safe downgrade."""
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=UPGRADE if level else SAFE_DOWNGRADE
    )
    return UpdateFeaturesRequest(feature_updates=[update], timeout_ms=1000)


class Operator(Client):
    """Asks for what the caller thinks fit."""

    def start(self) -> None:
        """Nothing to do until somebody calls."""

    def ask(self, request: Any, told: Callable[[Any], None]) -> None:
        """Of any broker; once more where none answered, or the controller could not be reached."""

        def answered(response: Any) -> None:
            if isinstance(response, SendFailure) or getattr(response, "error_code", 0) in _NO_CONTROLLER:
                self.env.call_later(RETRY_MS, lambda: self.ask(request, told))
            else:
                told(response)

        self.env.send(self.any_endpoint(), "admin", request, answered, REQUEST_TIMEOUT_MS)

    def elect(self, partitions: Mapping[str, Sequence[int]]) -> None:
        """Leaders at any price, per topic. One attempt; whatever is answered."""
        self.env.send(self.any_endpoint(), "admin", election(UNCLEAN, partitions), lambda _: None, REQUEST_TIMEOUT_MS)


def election(
    kind: int, partitions: Mapping[str, Sequence[int]], desired: Sequence[int] | None = None
) -> ElectLeadersRequest:
    """kind: UNCLEAN, ...; desired: one leader per partition, for DESIGNATION."""
    topics = [
        ElectLeadersRequest.TopicPartitions(
            topic=topic, partitions=list(indexes), desired_leaders=None if desired is None else list(desired)
        )
        for topic, indexes in partitions.items()
    ]
    return ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=1000)


def topic_config(topic: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    """Sets one configuration."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=value)],
    )
    return IncrementalAlterConfigsRequest(resources=[resource])
