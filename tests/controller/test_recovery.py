"""Unclean recovery on a real controller: whom it asks, which answers count, who is elected, and what ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from heirlog.controller.recovery import manager, sender
from heirlog.controller.recovery.sender import CHANNEL, MAX_BACKOFF_MS, PARTITIONS_MAX, REQUESTS_MAX
from heirlog.env import SendFailure
from heirlog.metadata.basis import Basis
from heirlog.metadata.features import REGISTERED_FEATURES
from heirlog.metadata.survey import at_once
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.alter_configs import AlterConfigsRequest
from heirlog.protocol.messages.alter_partition import AlterPartitionRequest
from heirlog.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from heirlog.protocol.messages.broker_registration import BrokerRegistrationRequest
from heirlog.protocol.messages.create_topics import CreateTopicsRequest
from heirlog.protocol.messages.delete_topics import DeleteTopicsRequest
from heirlog.protocol.messages.describe_recovery import DescribeRecoveryRequest
from heirlog.protocol.messages.elect_leaders import ElectLeadersRequest
from heirlog.protocol.messages.get_replica_log_info import GetReplicaLogInfoResponse
from heirlog.protocol.records import PartitionRecord
from heirlog.protocol.types import BrokerId

from .cluster import alter, epoch_of, heartbeat, register, state_of, topic_request
from .fakes import FakeEnv, Harness

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
                for name, levels in REGISTERED_FEATURES.items()
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
        (told,) = self.harness.ask("alter_partition_reassignments", request, 0).responses
        return ErrorCode(told.partitions[0].error_code).name

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


def test_everybody_lost_is_remembered_in_the_order_of_the_losses() -> None:
    assert state_of(lost().harness).last_known_elr == (3, 2, 1)


def test_balanced_waits_for_its_quorum_says_for_whom_and_elects_the_longest_log() -> None:
    cluster = back(lost(), 1, 2)
    assert cluster.asked() == [] and cluster.leader() == -1
    seen = cluster.described()
    assert (seen.state, seen.strategy, seen.waits_for) == ("WaitingForQuorum", "Balanced", [3])
    assert sorted(seen.quorum) == [1, 2, 3]
    back(cluster, 3)
    assert cluster.asked() == [1, 2, 3]
    cluster.reply(1, 0, 10)
    cluster.reply(3, 0, 30)
    seen = cluster.described()
    assert (seen.state, seen.waits_for) == ("Recovering", [2])
    assert [(r.broker_id, r.is_valid, r.log_end_offset) for r in seen.replicas] == [
        (1, True, 10),
        (2, False, -1),
        (3, True, 30),
    ]
    cluster.reply(2, 0, 20)
    state = state_of(cluster.harness)
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (3, (3,), (), ())
    assert state.leader_recovery_state == 1
    assert cluster.harness.controller.elections[Basis.RECOVERED] == 1
    assert cluster.described().state == "Led"


def test_the_record_of_the_election_says_what_was_known() -> None:
    cluster = back(lost(), 1, 2, 3)
    for broker, end in ((1, 10), (2, 20), (3, 5)):
        cluster.reply(broker, broker, end)
    basis = state_of(cluster.harness).basis
    assert basis is not None
    assert (basis.basis, basis.leader, basis.end_offset) == (Basis.RECOVERED, 3, 5)
    assert basis.leader_epoch == state_of(cluster.harness).leader_epoch
    assert basis.controller_epoch == cluster.harness.controller.epoch
    assert basis.timestamp_ms == cluster.env.wall_ms()
    assert [(a.broker, a.answered, a.last_written_epoch, a.end_offset) for a in basis.replicas] == [
        (1, True, 1, 10),
        (2, True, 2, 20),
        (3, True, 3, 5),
    ]


def test_the_newer_last_written_epoch_beats_the_longer_log_and_of_equal_logs_the_first_replica_wins() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 4, 900)
    cluster.reply(2, 5, 100)
    cluster.reply(3, 5, 100)
    assert cluster.leader() == 2


def test_an_answer_of_an_earlier_life_is_asked_for_again() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000)
    cluster.reply(2)
    cluster.reboot(1)
    assert cluster.described().state == "WaitingForQuorum"
    back(cluster, 1)
    cluster.reply(3)
    assert cluster.leader() == -1 and 1 in cluster.asked()
    cluster.reply(1, 0, 4)
    assert cluster.leader() == 2
    basis = state_of(cluster.harness).basis
    assert basis is not None and basis.all_answered


@pytest.mark.parametrize("epoch", [0, 1_000])
def test_an_answer_of_another_leader_epoch_is_refused(epoch: int) -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000, current_leader_epoch=epoch)
    cluster.reply(2)
    cluster.reply(3, 0, 50)
    assert cluster.leader() == -1
    cluster.advance(MAX_BACKOFF_MS * 2)
    cluster.reply(1, 0, 7)
    assert cluster.leader() == 3


def test_refused_and_failed_questions_are_repeated_ever_more_slowly() -> None:
    cluster = back(lost(), 1, 2, 3)
    gaps = []
    for _ in range(12):
        cluster.reply(1, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        waited = 0
        while 1 not in cluster.asked():
            cluster.advance(1)
            waited += 1
            assert waited < 10_000
        gaps.append(waited)
    assert gaps[0] <= 1 and gaps[1] >= 30
    assert all(gap <= MAX_BACKOFF_MS * 1.3 + 1 for gap in gaps) and gaps[-1] >= MAX_BACKOFF_MS * 0.7 - 1
    seen = cluster.described()
    assert 1 in seen.waits_for and seen.replicas[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_news_of_a_broker_end_its_rest() -> None:
    cluster = back(lost(), 1, 2, 3)
    for _ in range(8):
        cluster.fail(2)
        cluster.advance(MAX_BACKOFF_MS * 2)
    cluster.fail(2)
    assert 2 not in cluster.asked()
    assert cluster.described().replicas[1].error_code == ErrorCode.NETWORK_EXCEPTION
    cluster.fence(2)
    back(cluster, 2)
    assert 2 in cluster.asked()


def test_a_clean_candidate_ends_a_recovery() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2", unclean_recovery_strategy="Aggressive")
    cluster.fence(3)
    cluster.fence(2)
    assert state_of(cluster.harness).elr == (2,)
    cluster.reboot(1)
    back(cluster, 3)
    assert cluster.described().state == "Recovering"
    back(cluster, 2)
    assert cluster.leader() == 2
    assert cluster.harness.controller.elections[Basis.ELR] == 1
    assert cluster.harness.controller.elections[Basis.RECOVERED] == 0
    for broker in cluster.asked():
        cluster.reply(broker, 9, 9000)
    assert cluster.leader() == 2


def test_balanced_waits_for_a_fenced_eligible_replica_and_aggressive_does_not() -> None:
    for strategy, state in (("Balanced", "WaitingForEligible"), ("None", "WaitingForEligible")):
        cluster = eligible_but_fenced(strategy)
        assert cluster.described().state == state and cluster.asked() == []
    cluster = eligible_but_fenced("Aggressive")
    assert cluster.described().state == "Recovering"


def eligible_but_fenced(strategy: str) -> Cluster:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2", unclean_recovery_strategy=strategy)
    cluster.fence(3)
    cluster.fence(2)
    cluster.reboot(1)
    return back(cluster, 1, 3)


def test_aggressive_takes_the_best_of_those_that_answer_within_the_window() -> None:
    cluster = back(lost(unclean_recovery_strategy="Aggressive"), 1, 2)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    assert cluster.leader() == -1 and cluster.described().wait_ends_in_ms > 0
    cluster.advance(5_000)
    assert cluster.leader() == 2


def test_balanced_waits_a_limited_time_for_replicas_outside_its_quorum() -> None:
    cluster = Cluster(unclean_recovery_timeout_ms="60000")
    cluster.topic(min_insync_replicas="2")
    alter(cluster.harness, [1, 2])
    cluster.lose_everything()
    assert state_of(cluster.harness).last_known_elr == (2, 1)
    back(cluster, 1, 2, 3)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    seen = cluster.described()
    assert (seen.waits_for, sorted(seen.quorum)) == ([3], [1, 2]) and 0 < seen.wait_ends_in_ms <= 60_000
    cluster.advance(60_000)
    assert cluster.leader() == 2
    basis = state_of(cluster.harness).basis
    assert basis is not None and not basis.all_answered


def test_an_operator_may_skip_the_wait_for_replicas_outside_the_quorum() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2")
    alter(cluster.harness, [1, 2])
    cluster.lose_everything()
    back(cluster, 1, 2, 3)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    assert cluster.outcome(2)[0] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    assert cluster.outcome(2, skip_wait=True) == ("NONE", "")
    assert cluster.leader() == 2


def test_a_short_list_of_losses_proves_nothing_and_every_replica_must_answer() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2")
    cluster.lose_everything()
    record = PartitionRecord(
        partition_id=0,
        topic_id=cluster.image.topic_ids["foo"],
        replicas=[1, 2, 3],
        isr=[],
        leader=-1,
        leader_epoch=50,
        partition_epoch=50,
        directories=list(state_of(cluster.harness).directories),
        last_known_elr=[1],
    )
    cluster.harness.lose()
    cluster.harness.load([record])
    cluster.harness.lead()
    cluster.harness.commit()
    back(cluster, 1, 2)
    assert cluster.described().state == "WaitingForQuorum"
    assert sorted(cluster.described().quorum) == [1, 2, 3]
    assert "all assigned replicas" in cluster.described().quorum_reason


def test_each_change_of_the_strategy_takes_effect_at_once() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1)
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "None"})
    assert cluster.described().state == "ManualElectionRequired"
    cluster.reply(2)
    cluster.reply(3)
    assert cluster.leader() == -1
    assert at_once(cluster.harness.controller.recovery_counts()) == (0, 1)
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "Aggressive"})
    assert cluster.leader() == -1 or cluster.leader() > 0
    cluster.advance(5_000)
    assert cluster.leader() > 0


@pytest.mark.parametrize(("flag", "strategy"), [("true", "Aggressive"), ("false", "Balanced")])
def test_the_deprecated_flag_speaks_where_no_strategy_is_set(flag: str, strategy: str) -> None:
    cluster = lost()
    cluster.set(**{"min.insync.replicas": "3", FLAG: flag})
    assert cluster.described().strategy == strategy
    cluster.set(**{"min.insync.replicas": "3", FLAG: flag, STRATEGY: "None"})
    assert cluster.described().strategy == "None"


def test_a_topic_that_is_made_anew_under_its_name_has_nothing_to_do_with_the_old_recovery() -> None:
    cluster = back(lost(), 1, 2, 3)
    late = [cluster.take(broker) for broker in (1, 2, 3)]
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="foo")])
    cluster.harness.ask("delete_topics", request, 6)
    cluster.topic()
    before = state_of(cluster.harness)
    for question in late:
        cluster.env.sent.append(question)
        cluster.reply(question.broker, 9, 900)
    assert state_of(cluster.harness) == before
    assert cluster.harness.controller.recovery.recoveries == {}


def test_a_new_controller_begins_anew_and_answers_to_the_old_one_are_nobodys() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000)
    old = [cluster.take(broker) for broker in (2, 3)]
    cluster.harness.lose()
    cluster.harness.lead()
    cluster.harness.commit()
    assert cluster.asked() == [1, 2, 3]
    new, cluster.env.sent = cluster.env.sent, old
    cluster.reply(2, 0, 5)
    cluster.reply(3, 0, 5)
    assert cluster.leader() == -1
    cluster.env.sent = new
    for broker, end in ((1, 1), (2, 2), (3, 3)):
        cluster.reply(broker, 0, end)
    assert cluster.leader() == 3


def test_a_recovery_that_got_lost_is_begun_again_by_a_heartbeat() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.env.sent.clear()
    cluster.harness.controller.recovery.recoveries.clear()
    cluster.harness.controller.recovery.sender.stop()
    cluster.advance(2_000)
    cluster.unfence(1)
    assert cluster.asked() == [1, 2, 3]


def test_many_partitions_cost_one_request_per_thousand_and_broker() -> None:
    count = PARTITIONS_MAX + 1
    cluster = lost(partitions=count)
    back(cluster, 1, 2, 3).advance(1)
    before = len(cluster.harness.quorum.log)
    assert cluster.asked() == [1, 1, 2, 2, 3, 3], "the second request does not wait for the first one's answer"
    while cluster.env.sent:
        question = cluster.env.sent[0]
        assert question.partitions <= PARTITIONS_MAX
        cluster.reply(question.broker, 0, question.broker)
        cluster.advance(1)
    records = [record for batch in cluster.harness.quorum.log[before:] for record in batch.records]
    assert len(records) == count
    assert len(cluster.harness.quorum.log) - before <= 2
    assert {cluster.leader(partition) for partition in range(count)} == {3}


def test_a_broker_has_a_bounded_number_of_questions_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "PARTITIONS_MAX", 1)
    count = REQUESTS_MAX + 2
    cluster = back(lost(partitions=count), 1, 2, 3)
    assert cluster.asked().count(1) == REQUESTS_MAX
    cluster.reply(1)
    assert cluster.asked().count(1) == REQUESTS_MAX
    while 1 in cluster.asked():
        cluster.fail(1)
    cluster.advance(1)
    assert cluster.asked().count(1) == REQUESTS_MAX, "what failed with its connection is asked again"
    while cluster.env.sent:
        cluster.reply(cluster.env.sent[0].broker)
    assert [cluster.leader(partition) for partition in range(count)] == [1] * count


def test_followers_join_again_once_the_elections_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "MANY_ELECTIONS", 2)
    cluster = back(lost(partitions=2), 1, 2, 3)
    for broker in (1, 2, 3):
        cluster.reply(broker)
    leader = BrokerId(cluster.leader())
    state, image = state_of(cluster.harness), cluster.image
    asked = AlterPartitionRequest.PartitionData(
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[
            AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=image.brokers[broker].epoch)
            for broker in (1, 2, 3)
        ],
    )
    topic = AlterPartitionRequest.TopicData(topic_id=image.topic_ids["foo"], partitions=[asked])
    request = AlterPartitionRequest(broker_id=leader, broker_epoch=image.brokers[leader].epoch, topics=[topic])
    answer = cluster.harness.leave("alter_partition", request, 3)
    cluster.advance(manager.MANY_ELECTIONS_MS - 1)
    assert not answer.is_there and state_of(cluster.harness).isr == (leader,)
    cluster.advance(manager.MANY_ELECTIONS_MS)
    assert answer.get().topics[0].partitions[0].error_code == 0
    assert set(state_of(cluster.harness).isr) == {1, 2, 3}


def test_what_a_broker_puts_off_is_asked_again_at_once_and_never_in_a_loop() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, error_code=ErrorCode.REQUEST_LIMIT_REACHED)
    assert 1 not in cluster.asked()
    cluster.advance(1)
    assert 1 in cluster.asked()


def test_designation_elects_the_named_replica_or_says_why_not() -> None:
    cluster = back(lost(), 2)
    assert cluster.outcome(4, desired=9)[0] == "INVALID_REQUEST"
    assert cluster.outcome(4)[0] == "INVALID_REQUEST"
    assert cluster.outcome(4, desired=1)[0] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    assert cluster.leader() == -1
    assert cluster.outcome(4, desired=2) == ("NONE", "")
    state = state_of(cluster.harness)
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
    assert state.basis is not None and state.basis.basis is Basis.DESIGNATED
    assert cluster.outcome(4, desired=2)[0] == "ELECTION_NOT_NEEDED"


def test_the_way_back_from_a_reassignment_elects_nobody_before_logs_are_compared() -> None:
    cluster = Cluster(brokers=4)
    cluster.topic(min_insync_replicas="1", unclean_recovery_strategy="Aggressive")
    cluster.lose_everything()
    assert cluster.reassign([1, 2, 4]) == "NONE"
    back(cluster, 1, 2, 3)
    assert cluster.reassign(None) == "INVALID_REPLICA_ASSIGNMENT"
    assert cluster.leader() == -1
    for broker, end in ((1, 1), (2, 3), (3, 2)):
        cluster.reply(broker, 0, end)
    cluster.advance(5_000)
    assert cluster.leader() == 2
    assert cluster.reassign(None) == "NONE"
    assert state_of(cluster.harness).replicas == (1, 2, 3)


def test_two_leaders_designated_for_one_partition_are_none() -> None:
    cluster = back(lost(partitions=2), 1, 2, 3)
    request = ElectLeadersRequest(
        election_type=4,
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic="foo", partitions=[0, 0, 1, 1], desired_leaders=[1, 2, 3, 3])
        ],
    )
    (topic,) = cluster.harness.ask("elect_leaders", request, 3).replica_election_results
    codes = [(result.partition_id, ErrorCode(result.error_code).name) for result in topic.partition_result]
    assert codes == [(0, "INVALID_REQUEST"), (1, "NONE")]
    assert (cluster.leader(0), cluster.leader(1)) == (-1, 3)


def test_an_operator_can_have_the_longest_log_where_the_strategy_is_none() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 2)
    code, why = cluster.outcome(2)
    assert code == "ELIGIBLE_LEADERS_NOT_AVAILABLE" and "3" in why
    assert cluster.described().is_requested
    assert cluster.outcome(3)[0] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    assert cluster.asked() == [1, 2, 3]
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    cluster.advance(5_000)
    assert cluster.leader() == 2
    assert cluster.outcome(3)[0] == "ELECTION_NOT_NEEDED"


def test_a_strategy_that_is_configured_after_an_operators_wish_is_the_newer_word() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 2)
    assert cluster.outcome(2, skip_wait=True)[0] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "None"})
    assert cluster.described().is_requested, "what is configured already is no news"
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "Aggressive"})
    assert not cluster.described().is_requested
    assert cluster.asked() == [1, 2, 3]
    cluster.reply(1, 0, 10)
    cluster.advance(5_000)
    assert cluster.leader() == 1


def test_the_new_types_need_version_3_and_the_manager() -> None:
    cluster = back(lost(), 1, 2, 3)
    for kind in (2, 3, 4):
        assert cluster.outcome(kind, version=2, desired=1)[0] == "INVALID_REQUEST"
    assert cluster.outcome(5)[0] == "INVALID_REQUEST"
    off = Cluster(manager=False)
    off.topic()
    assert off.outcome(2)[0] == "INVALID_REQUEST"


def test_an_unclean_election_never_starts_a_recovery() -> None:
    cluster = back(lost(), 2, 3)
    assert cluster.outcome(1) == ("NONE", "")
    assert cluster.leader() == 2
    basis = state_of(cluster.harness).basis
    assert basis is not None and basis.basis is Basis.UNCLEAN and not basis.all_answered


def test_a_request_serves_a_thousand_partitions() -> None:
    cluster = back(lost(partitions=PARTITIONS_MAX + 1), 1)
    response = cluster.elect(1, *range(PARTITIONS_MAX + 1))
    codes = [result.error_code for result in response.replica_election_results[0].partition_result]
    assert codes[:-1] == [0] * PARTITIONS_MAX and codes[-1] == ErrorCode.REQUEST_LIMIT_REACHED
    everything = cluster.harness.ask("elect_leaders", ElectLeadersRequest(election_type=1, topic_partitions=None), 3)
    (topic,) = everything.replica_election_results
    assert [result.partition_id for result in topic.partition_result] == [PARTITIONS_MAX]


def test_replicas_can_be_asked_where_nothing_recovers() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 3)
    assert cluster.describe().topics[0].partitions[0].state == "ManualElectionRequired"
    assert cluster.asked() == []
    seen = cluster.describe(ask_replicas=True).topics[0].partitions[0]
    assert cluster.asked() == [1, 2, 3]
    assert [replica.is_being_asked for replica in seen.replicas] == [True, True, True]
    cluster.reply(1, 3, 30)
    cluster.fail(2)
    seen = cluster.describe().topics[0].partitions[0]
    assert [(r.is_valid, r.log_end_offset, r.is_fenced) for r in seen.replicas] == [
        (True, 30, False),
        (False, -1, True),
        (False, -1, False),
    ]
    assert cluster.leader() == -1
    cluster.advance(60_000)
    cluster.fail(3)
    assert 3 not in cluster.asked(), "an operator's question is not repeated for ever"


def test_a_description_comes_in_pages() -> None:
    cluster = lost(partitions=5)
    first = cluster.describe(topics=[], response_partition_limit=3)
    assert [p.partition_index for topic in first.topics for p in topic.partitions] == [0, 1, 2]
    cursor = DescribeRecoveryRequest.Cursor(
        topic_name=first.next_cursor.topic_name, partition_index=first.next_cursor.partition_index
    )
    second = cluster.describe(topics=[], response_partition_limit=3, cursor=cursor)
    assert [p.partition_index for topic in second.topics for p in topic.partitions] == [3, 4]
    assert second.next_cursor is None
    unknown = cluster.describe(topics=[DescribeRecoveryRequest.TopicRequest(name="nope")])
    assert unknown.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_that_does_not_serve_the_api_counts_as_not_answering() -> None:
    cluster = lost()
    cluster.lives[3] += 1
    register(cluster.harness, 3, cluster.lives[3])
    back(cluster, 1, 2, 3)
    assert cluster.asked() == [1, 2]
    seen = cluster.described()
    assert [replica.serves_recovery for replica in seen.replicas] == [True, True, False]
    assert "3 cannot be asked" in seen.quorum_reason and "designate" in seen.quorum_reason


def test_without_the_manager_the_shipped_rules_hold_and_a_longer_list_elects_nobody() -> None:
    cluster = back(lost(), 1)
    records = list(cluster.image.records())
    off = Cluster(manager=False)
    off.harness.lose()
    off.harness.controller.on_snapshot(records, cluster.image.offset, 1)
    off.harness.quorum.log_end_offset = cluster.image.offset + 1
    off.harness.lead()
    off.harness.commit()
    assert state_of(off.harness).last_known_elr == (3, 2, 1)
    for broker in (1, 2, 3):
        heartbeat(off.harness, broker)
    assert off.leader() == -1 and off.asked() == []
    assert off.described().state == "ManualElectionRequired"
    assert off.outcome(1) == ("NONE", "")
    assert off.leader() == 1


def test_with_the_elr_feature_off_the_last_in_sync_replica_is_waited_for() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2")
    image = cluster.image
    cluster.harness.lose()
    records = [
        record for record in image.records() if getattr(record, "name", "") != "eligible.leader.replicas.version"
    ]
    fresh = Harness(cluster.harness.static)
    fresh.env = cluster.env  # type: ignore[assignment]
    fresh.controller = type(fresh.controller)(cluster.env, fresh.static, fresh.quorum, cluster_id="cluster")
    fresh.controller.on_snapshot(records, image.offset, 1)
    fresh.quorum.log_end_offset = image.offset + 1
    cluster.harness = fresh
    fresh.lead()
    fresh.commit()
    for broker in (3, 2, 1):
        cluster.fence(broker)
    assert state_of(fresh).isr == (1,)
    back(cluster, 2, 3)
    assert cluster.described().state == "WaitingForEligible"
    cluster.set(**{"min.insync.replicas": "2", STRATEGY: "Aggressive"})
    cluster.reply(2, 0, 10)
    cluster.reply(3, 0, 20)
    cluster.advance(5_000)
    state = state_of(fresh)
    assert (state.leader, state.isr) == (3, (3,))


def test_who_sets_the_deprecated_flag_is_told_what_replaces_it() -> None:
    cluster = lost()
    cluster.env.events.clear()
    cluster.set(**{"min.insync.replicas": "3", STRATEGY: "Balanced"})
    assert not [event for event, _ in cluster.env.events if event == "configuration-deprecated"]
    cluster.set(**{"min.insync.replicas": "3", FLAG: "true"})
    (values,) = [values for event, values in cluster.env.events if event == "configuration-deprecated"]
    assert (values["name"], values["where"], values["instead"]) == (FLAG, "foo", STRATEGY)
    assert values["meaning"] == "true is Aggressive, false is Balanced; a strategy that is set wins"
    told = Cluster(unclean_leader_election_enable="true").env.events
    assert [values["where"] for event, values in told if event == "configuration-deprecated"] == ["server.properties"]


def test_what_was_lost_before_the_manager_was_switched_on_is_made_up_for_by_asking_everybody() -> None:
    off = Cluster(manager=False)
    off.topic(min_insync_replicas="2")
    off.lose_everything()
    assert len(state_of(off.harness).last_known_elr) == 1
    on = Cluster()
    on.harness.lose()
    on.harness.controller.on_snapshot(list(off.image.records()), off.image.offset, 1)
    on.harness.quorum.log_end_offset = off.image.offset + 1
    on.lives = dict(off.lives)
    on.harness.lead()
    on.harness.commit()
    back(on, 1, 2)
    assert on.leader() == -1 and on.described().state == "WaitingForQuorum"
    back(on, 3)
    for broker, end in ((1, 10), (2, 30), (3, 20)):
        on.reply(broker, 0, end)
    assert on.leader() == 2


def test_lists_that_a_downgrade_left_behind_decide_nothing() -> None:
    cluster = lost()
    state = state_of(cluster.harness)._replace(elr=(2,), last_known_elr=(2,))
    topic_id = cluster.image.topic_ids["foo"]
    back(cluster, 1, 2, 3)
    cluster.image.set_partition(topic_id, 0, state)
    cluster.image.set_feature("eligible.leader.replicas.version", None)
    seen = cluster.described()
    assert (seen.state, sorted(seen.waits_for)) == ("Recovering", [1, 2, 3])


def test_a_member_that_goes_while_the_others_are_asked_is_waited_for_and_its_answer_is_kept() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000)
    cluster.fence(1)
    cluster.reply(2, 0, 20)
    cluster.reply(3, 0, 5)
    assert cluster.leader() == -1 and cluster.described().waits_for == [1]
    assert cluster.described().runs_for_ms >= 0
    back(cluster, 1)
    assert cluster.leader() == 1
