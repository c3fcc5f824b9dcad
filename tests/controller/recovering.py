"""A real controller whose brokers lose their replicas; a test sees whom it asks, and writes the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from controller.cluster import epoch_of, heartbeat, register, state_of, topic_request
from controller.fakes import FakeEnv, Harness

from heirlog.controller.process_probe import CHANNEL as PROBE
from heirlog.controller.recovery.sender import CHANNEL
from heirlog.env import SendFailure
from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DescribeRecoveryRequest,
    ElectLeadersRequest,
    GetReplicaLogInfoResponse,
    UpdateFeaturesRequest,
)

MANAGER = "unclean_recovery_manager_enabled"
STRATEGY = "unclean.recovery.strategy"
FLAG = "unclean.leader.election.enable"


@dataclass
class Question:
    to: Any
    channel: str
    request: Any
    on_result: Any

    @property
    def broker(self) -> int:
        return int(self.request.broker_id)

    @property
    def partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.request.topic_partitions)


class AskingEnv(FakeEnv):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Question] = []

    def send(self, to: Any, channel: str, request: Any, on_result: Any, timeout_ms: int) -> None:
        if channel == PROBE:
            return  # whether a broker can be reached: none answers here
        assert channel == CHANNEL
        self.sent.append(Question(to, channel, request, on_result))


class Cluster:
    """Three brokers, one topic `foo`; what replicas hold is told by `logs`: broker -> (epoch, end)."""

    def __init__(self, manager: bool = True, brokers: int = 3, **config: str) -> None:
        self.harness = Harness(**{MANAGER: str(manager).lower(), "broker_session_timeout_ms": "100000000", **config})
        self.env = AskingEnv()
        self.harness.env = self.env
        self.harness.controller = type(self.harness.controller)(
            self.env, self.harness.static, self.harness.quorum, cluster_id="cluster"
        )
        self.harness.lead()
        self.harness.commit()
        self.lives = dict.fromkeys(range(1, brokers + 1), 0)
        self.logs: dict[int, tuple[int, int]] = {}
        for broker in self.lives:
            self.register(broker)
            self.unfence(broker)

    @property
    def image(self) -> Any:
        return self.harness.controller.image

    def register(self, broker: int, clean: bool = False, **more: Any) -> None:
        previous = epoch_of(self.harness, broker) if clean else -1
        register(
            self.harness,
            broker,
            self.lives[broker],
            previous,
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min_version, max_supported_version=levels.max_version
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host=f"broker-{broker}", port=9092)],
            **more,
        )

    def unfence(self, broker: int) -> None:
        heartbeat(self.harness, broker)

    def fence(self, broker: int) -> None:
        self.harness.controller.expire_session(broker, "test")  # type: ignore[arg-type]
        self.harness.commit()

    def reboot(self, broker: int, clean: bool = False) -> None:
        """Its session ends, and a new process registers; it stays fenced."""
        self.fence(broker)
        self.lives[broker] += 1
        self.register(broker, clean)

    def topic(self, partitions: int = 1, replicas: Sequence[int] = (1, 2, 3), **configs: str) -> None:
        request = topic_request("foo", -1, -1, **configs)
        request.topics[0].assignments = [
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index in range(partitions)
        ]
        (result,) = self.harness.ask("create_topics", request, 7).topics
        assert result.error_code == 0, result

    def lose_everything(self, order: Sequence[int] = (3, 2, 1)) -> None:
        """All replicas stop uncleanly, one after another; nobody is back yet."""
        for broker in order:
            self.fence(broker)
        for broker in order:
            self.lives[broker] += 1
            self.register(broker)

    # answers

    def asked(self) -> list[int]:
        return sorted(question.broker for question in self.env.sent)

    def take(self, broker: int) -> Question:
        found = next(question for question in self.env.sent if question.broker == broker)
        self.env.sent.remove(found)
        return found

    def reply(self, broker: int, last: int = 0, end: int = 10, **more: Any) -> None:
        """Every partition of the broker's question with the same figures."""
        question = self.take(broker)
        epoch = more.pop("broker_epoch", epoch_of(self.harness, broker))
        question.on_result(
            GetReplicaLogInfoResponse(
                broker_epoch=epoch,
                topic_partition_log_info_list=[
                    GetReplicaLogInfoResponse.TopicPartitionLogInfo(
                        topic_id=topic.topic_id,
                        partition_log_info=[self._info(topic.topic_id, p, last, end, more) for p in topic.partitions],
                    )
                    for topic in question.request.topic_partitions
                ],
            )
        )
        self.harness.commit()

    def _info(self, topic_id: bytes, partition: int, last: int, end: int, more: dict[str, Any]) -> Any:
        state = self.image.partition(topic_id, partition)
        values = {
            "partition": partition,
            "last_written_leader_epoch": last,
            "current_leader_epoch": -1 if state is None else state.leader_epoch,
            "log_end_offset": end,
            "error_message": None,
        }
        return GetReplicaLogInfoResponse.PartitionLogInfo(**(values | more))

    def fail(self, broker: int) -> None:
        self.take(broker).on_result(SendFailure("disconnected", "refused"))
        self.harness.commit()

    def advance(self, ms: int) -> None:
        self.env.advance(ms)
        self.harness.commit()

    # operators

    def set(self, **configs: str | None) -> None:
        given = [
            AlterConfigsRequest.AlterableConfig(name=name.replace("_", "."), value=value)
            for name, value in configs.items()
            if value is not None
        ]
        resource = AlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name="foo", configs=given)
        (result,) = self.harness.ask("alter_configs", AlterConfigsRequest(resources=[resource]), 2).responses
        assert result.error_code == 0, result.error_message

    def elect(self, kind: int, *partitions: int, desired: int | None = None, version: int = 3, **more: Any) -> Any:
        indexes = list(partitions or (0,))
        topic = ElectLeadersRequest.TopicPartitions(
            topic="foo", partitions=indexes, desired_leaders=None if desired is None else [desired] * len(indexes)
        )
        request = ElectLeadersRequest(election_type=kind, topic_partitions=[topic], **more)
        return self.harness.ask("elect_leaders", request, version)

    def outcome(self, kind: int, **more: Any) -> tuple[str, str]:
        response = self.elect(kind, **more)
        if response.error_code:
            return ErrorCode(response.error_code).name, ""
        (result,) = response.replica_election_results[0].partition_result
        return ErrorCode(result.error_code).name, result.error_message or ""

    def reassign(self, targets: list[int] | None) -> str:
        """None: back to where it was. The error of the partition."""
        partition = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=targets)
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name="foo", partitions=[partition])
        request = AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=1000)
        (received,) = self.harness.ask("alter_partition_reassignments", request, 0).responses
        return ErrorCode(received.partitions[0].error_code).name

    def switch(self, on: bool, feature: str = "heirlog.recovery.version", **more: Any) -> tuple[str, str]:
        """The recovery manager, or another feature, on or off: error and sentence of the answer."""
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature=feature, max_version_level=int(on), upgrade_type=1 if on else 2
        )
        received = self.harness.ask("update_features", UpdateFeaturesRequest(feature_updates=[update], **more), 2)
        return ErrorCode(received.error_code).name, received.error_message or ""

    def describe(self, **more: Any) -> Any:
        request = DescribeRecoveryRequest(**({"topics": [DescribeRecoveryRequest.TopicRequest(name="foo")]} | more))
        return self.harness.ask("describe_recovery", request, 0)

    def described(self) -> Any:
        (topic,) = self.describe(topics=[DescribeRecoveryRequest.TopicRequest(name="foo", partitions=[0])]).topics
        return topic.partitions[0]

    def leader(self, partition: int = 0) -> int:
        return int(state_of(self.harness, partition=partition).leader)


def lost(brokers: Sequence[int] = (1, 2, 3), partitions: int = 1, **configs: str) -> Cluster:
    """min ISR 3: everybody is on LastKnownELR; nobody is back."""
    cluster = Cluster(brokers=max(brokers))
    cluster.topic(partitions, brokers, min_insync_replicas="3", **configs)
    cluster.lose_everything([broker for broker in (3, 2, 1) if broker in brokers])
    state = state_of(cluster.harness)
    assert (state.leader, state.isr, state.elr) == (-1, (), ()), state
    assert set(state.last_known_elr) <= set(brokers)
    return cluster


def back(cluster: Cluster, *brokers: int) -> Cluster:
    for broker in brokers:
        cluster.unfence(broker)
    return cluster
