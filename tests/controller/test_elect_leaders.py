"""Elections that an operator asks for: designation and the longest log (ElectLeaders 3)."""

from __future__ import annotations

from controller.cluster import state_of
from controller.recovering import STRATEGY, Cluster, back, lost

from heirlog.controller.recovery.sender import PARTITIONS_MAX
from heirlog.metadata.basis import Basis
from heirlog.metadata.loss_report import Certainty
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ElectLeadersRequest


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


def test_versions_that_clients_of_apache_kafka_know_serve_as_many_as_they_name() -> None:
    for version in (0, 1, 2):
        # version 0 knows preferred elections only
        kind = min(version, 1)
        cluster = back(lost(partitions=PARTITIONS_MAX + 1), 1)
        response = cluster.elect(kind, *range(PARTITIONS_MAX + 1), version=version)
        codes = {result.error_code for result in response.replica_election_results[0].partition_result}
        assert codes == {ErrorCode.NONE if kind else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
        everything = ElectLeadersRequest(election_type=kind, topic_partitions=None)
        results = cluster.harness.ask("elect_leaders", everything, version).replica_election_results
        assert [len(topic.partition_result) for topic in results] == [0 if kind else PARTITIONS_MAX + 1]


def test_what_did_lose_records_is_counted_apart_from_what_may_have() -> None:
    cluster = back(lost(), 1, 2, 3)
    for broker, end in ((1, 10), (2, 30), (3, 20)):
        cluster.reply(broker, 0, end)
    assert cluster.harness.controller.losses == {Certainty.NONE: 1, Certainty.POSSIBLE: 0, Certainty.CERTAIN: 0}
    cluster = back(lost(unclean_recovery_strategy="Aggressive"), 1)
    cluster.reply(1, 0, 10)
    cluster.advance(5_000)
    assert cluster.harness.controller.losses == {Certainty.NONE: 0, Certainty.POSSIBLE: 1, Certainty.CERTAIN: 0}
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 2, 3)
    cluster.describe(ask_replicas=True)
    for broker, end in ((1, 10), (2, 30), (3, 20)):
        cluster.reply(broker, 0, end)
    assert cluster.outcome(4, desired=1) == ("NONE", "")
    assert cluster.harness.controller.losses == {Certainty.NONE: 0, Certainty.POSSIBLE: 0, Certainty.CERTAIN: 1}


def test_what_an_election_lost_is_counted_once_it_is_committed() -> None:
    for commits in (True, False):
        cluster = back(lost(unclean_recovery_strategy="None"), 1)
        topic = ElectLeadersRequest.TopicPartitions(topic="foo", partitions=[0])
        harness = cluster.harness
        harness.leave("elect_leaders", ElectLeadersRequest(election_type=1, topic_partitions=[topic]), 2)
        assert state_of(harness).leader == 1, "appended"
        assert sum(harness.controller.losses.values()) == 0
        if commits:
            harness.commit()
        else:
            harness.lose()
        assert sum(harness.controller.losses.values()) == commits
