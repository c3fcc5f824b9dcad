"""Clients that change topics and features, and an operator that a script controls.

They use the product's client. As in its commands, each request is made by a new client, which knows only the bootstrap
servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from heirlog.client.admin import Elected, elect_leaders, to_controller
from heirlog.client.call import Call, Conversation
from heirlog.client.cluster import Cluster
from heirlog.client.offsets import TopicPartition
from heirlog.controller.update_features import SAFE_DOWNGRADE, UPGRADE
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.metadata.state import METADATA_VERSION, TRANSACTION_VERSION
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import REQUEST_TIMEOUT_MS, REQUEST_TIMEOUT_S, RETRY_MS, Client
from heirlog.sim.clients.driver import Driver
from heirlog.sim.env import SimEnv

R = TypeVar("R")

TOPIC_RESOURCE = 2
GROUP_RESOURCE = 32
PREFERRED = 0
UNCLEAN = 1
LONGEST_LOG_BALANCED = 2
LONGEST_LOG_AGGRESSIVE = 3
DESIGNATION = 4
ELECTION_MS = 1000
STRATEGY = "unclean.recovery.strategy"
BALANCED, AGGRESSIVE, NONE = "Balanced", "Aggressive", "None"
STRATEGIES = (BALANCED, AGGRESSIVE, NONE)
_ASKED_AGAIN = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR)


class Admin(Client):
    """Each request is a command: a new client makes it, within `REQUEST_TIMEOUT_S` including retries."""

    def __init__(self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str]) -> None:
        super().__init__(env, name, bootstrap, topics)
        self._bootstrap = list(bootstrap)

    def command(
        self, call: Callable[[Cluster], Call[R]], done: Callable[[R], None], failed: Callable[[Exception], None]
    ) -> None:
        driver = Driver(self.env, self._bootstrap)
        driver.run(call(driver.cluster), done, failed)

    def ask_any(self, request: Message, done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        self.command(lambda cluster: cluster.ask_any(request, REQUEST_TIMEOUT_S), done, failed)

    def converse(
        self, conversation: Conversation[R], done: Callable[[R], None], failed: Callable[[Exception], None]
    ) -> None:
        self.command(lambda cluster: cluster.converse(conversation, REQUEST_TIMEOUT_S), done, failed)

    def once(self, call: Conversation[Any] | Message, then: Callable[[], None]) -> None:
        """Send the request and ignore the result."""
        if isinstance(call, Message):
            self.ask_any(call, lambda _: then(), lambda _: then())
        else:
            self.converse(call, lambda _: then(), lambda _: then())


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


class TopicCreator(Admin):
    """Creates topics, until the cluster says that they exist."""

    def __init__(
        self,
        env: SimEnv,
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
        self.ask_any(request, self._created, lambda _: self._later(self.start))

    def _created(self, response: Any) -> None:
        fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        self.done = all(topic.error_code in fine for topic in response.topics)
        if not self.done:
            self._later(self.start)


class TopicRecreator(Admin):
    """Deletes a topic and creates it again under the same name, until it is stopped; then the topic stays."""

    def __init__(
        self, env: SimEnv, name: str, bootstrap: Sequence[Endpoint], topic: str, partitions: list[list[int]]
    ) -> None:
        """partitions: the replicas of each."""
        super().__init__(env, name, bootstrap, [topic])
        self.topic = topic
        self._partitions = partitions
        self.made = 0
        self.settled = False
        """This client is stopped, and the topic existed when it last asked: no client deletes it any more."""

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
        self.once(request, self._soon)

    def _soon(self) -> None:
        """Wait for a moment without the topic, or not at all."""
        self.env.call_later(self.env.random.randrange(0, 400), self._create)

    def _create(self) -> None:
        request = CreateTopicsRequest(topics=[topic_of(self.topic, self._partitions, {})], timeout_ms=1000)
        self.ask_any(request, self._created, lambda _: self._later(self._create))

    def _created(self, response: Any) -> None:
        code = response.topics[0].error_code
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self._later(self._create)
            return
        self.made += code == ErrorCode.NONE
        if self.stopped:
            self.settled = code == ErrorCode.TOPIC_ALREADY_EXISTS
            self.env.call_later(RETRY_MS, lambda: None if self.settled else self._create())
        else:
            self._pause()


class RandomTopicCreator(Admin):
    """Creates a topic now and then, whose replicas the controller places. One that needs more brokers is refused."""

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
            replication_factor=self.env.random.randrange(2, 6),
        )
        self.once(CreateTopicsRequest(topics=[topic], timeout_ms=1000), self._pause)


class MinIsrChanger(Admin):
    """Sets min.insync.replicas of a topic to something else, again and again."""

    def start(self) -> None:
        self.env.call_later(self.env.random.randrange(1000, 5000), self._change)

    def _change(self) -> None:
        if self.stopped:
            return
        value = str(self.env.random.randrange(1, 4))
        self.once(topic_config(self.topics[0], "min.insync.replicas", value), self.start)


class StrategyChanger(Admin):
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
        def again() -> None:
            self._later(lambda: self._set(value, then))

        def answered(response: Any) -> None:
            if response.responses[0].error_code == ErrorCode.NONE:
                then()
            else:
                again()

        self.ask_any(topic_config(self.topics[0], STRATEGY, value), answered, lambda _: again())


class FeatureChanger(Admin):
    """Switches features off and on, again and again; leaves those of `ends_on` on. metadata.version and
    transaction.version get any level that this release supports, older nodes in the cluster or not.
    """

    def __init__(
        self,
        env: SimEnv,
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
        if feature in (METADATA_VERSION, TRANSACTION_VERSION):
            levels = SUPPORTED_FEATURES[feature]
            level = random.randrange(levels.min_version, levels.max_version + 1)
            self.once(_at_controller(feature_level(feature, level, raises=bool(random.randrange(0, 2)))), self.start)
        else:
            self.once(_at_controller(feature_level(feature, level)), self.start)

    def stop(self) -> None:
        super().stop()
        for feature in self._ends_on:
            # a request of ours that had no answer may still be on its way
            self.env.call_later(2 * REQUEST_TIMEOUT_MS, lambda feature=feature: self._set_on(feature))  # type: ignore[misc]

    def _set_on(self, feature: str) -> None:
        def again() -> None:
            self._later(lambda: self._set_on(feature))

        def answered(response: Any) -> None:
            if response.error_code != ErrorCode.NONE:
                again()

        self.converse(_at_controller(feature_level(feature, 1)), answered, lambda _: again())


def _at_controller(request: Message) -> Conversation[Any]:
    return to_controller(request, lambda response: [response.error_code])


def feature_level(feature: str, level: int, *, raises: bool | None = None) -> UpdateFeaturesRequest:
    """raises: by an upgrade, or by a safe downgrade; None: level 0 by a safe downgrade."""
    if raises is None:
        raises = level > 0
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=UPGRADE if raises else SAFE_DOWNGRADE
    )
    return UpdateFeaturesRequest(feature_updates=[update], timeout_ms=1000)


class Operator(Admin):
    """Asks for what the caller thinks fit."""

    def start(self) -> None:
        """Does nothing until a method is called."""

    def ask(self, request: Message, on_answer: Callable[[Any], None]) -> None:
        """Send it to any broker; again if no broker answered or the controller could not be reached."""

        def again() -> None:
            self._later(lambda: self.ask(request, on_answer))

        def answered(response: Any) -> None:
            if getattr(response, "error_code", 0) in _ASKED_AGAIN:
                again()
            else:
                on_answer(response)

        self.ask_any(request, answered, lambda _: again())

    def elect(
        self,
        kind: int,
        partitions: Iterable[TopicPartition],
        on_answer: Callable[[int], None],
        desired: int | None = None,
    ) -> None:
        """on_answer: gets the error code of the request or of its first partition. Retried until a controller answers.

        kind: UNCLEAN, ...; desired: the leader of every partition, for DESIGNATION.
        """
        wanted = list(partitions)

        def answered(elected: Mapping[TopicPartition, Elected]) -> None:
            on_answer(elected[wanted[0]].code)

        def failed(error: Exception) -> None:
            if isinstance(error, KafkaError) and error.code not in _ASKED_AGAIN:
                on_answer(error.code)
            else:
                self._later(lambda: self.elect(kind, wanted, on_answer, desired))

        self.converse(election(kind, wanted, desired), answered, failed)

    def elect_once(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect leaders even if records are lost. One command; the answer is ignored."""
        self.once(election(UNCLEAN, partitions), lambda: None)


def election(
    kind: int, partitions: Iterable[TopicPartition], desired: int | None = None
) -> Conversation[dict[TopicPartition, Elected]]:
    wanted = list(partitions)
    leaders = None if desired is None else dict.fromkeys(wanted, desired)
    return elect_leaders(kind, wanted, ELECTION_MS, desired=leaders)


def reassignment(topic: str, index: int, replicas: Sequence[int] | None) -> AlterPartitionReassignmentsRequest:
    """replicas: None cancels the running reassignment."""
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=index, replicas=None if replicas is None else list(replicas)
    )
    moved = AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[partition])
    return AlterPartitionReassignmentsRequest(topics=[moved], timeout_ms=1000)


def topic_config(topic: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    """Sets one configuration."""
    return _config(TOPIC_RESOURCE, topic, name, value)


def group_config(group: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    """The same of a group."""
    return _config(GROUP_RESOURCE, group, name, value)


def _config(resource_type: int, resource: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    changed = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=resource,
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=value)],
    )
    return IncrementalAlterConfigsRequest(resources=[changed])
