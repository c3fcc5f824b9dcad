"""The Controller: answers at commit, undo on losing leadership, sessions, and what it does by itself."""

from __future__ import annotations

import pytest
from controller.cluster import (
    FAR,
    alter,
    assign,
    create,
    directory,
    epoch_of,
    heartbeat,
    leading,
    register,
    registration,
    state_of,
    topic_request,
)
from controller.fakes import Answer, Connection, Harness, voters

from heirlog.controller.controller_result import ControllerResult
from heirlog.metadata.apply import UnsupportedRecord, apply_all, image_of_snapshot
from heirlog.metadata.basis import Basis
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    UnregisterBrokerRequest,
)
from heirlog.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from heirlog.protocol.types import BrokerId


def replayed(harness: Harness) -> Image:
    """What a reader of the committed log sees."""
    image = Image()
    uncommitted = {id(batch) for batch in harness.quorum.uncommitted}
    for batch in harness.quorum.log:
        if id(batch) not in uncommitted:
            apply_all(image, batch.records, batch.base_offset, batch.epoch)
    return image


def test_an_inactive_controller_refuses_everything() -> None:
    harness = Harness()
    assert register(harness, 1).error_code == ErrorCode.NOT_CONTROLLER
    assert create(harness).error_code == ErrorCode.NOT_CONTROLLER


def test_the_first_leader_of_an_empty_log_writes_the_bootstrap_transaction() -> None:
    harness = Harness(min_insync_replicas="2")
    harness.lead()
    records = harness.commit()
    assert isinstance(records[0], BeginTransactionRecord)
    assert isinstance(records[-1], EndTransactionRecord)
    image = harness.controller.image
    assert image.features == {
        "metadata.version": 29,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
        "group.version": 1,
        "share.version": 1,
        "heirlog.recovery.version": 1,
    }
    assert image.config(4, "", "min.insync.replicas") == "2"


def test_a_metadata_transaction_whose_controller_is_gone_is_aborted() -> None:
    harness = leading()
    harness.lose()
    topic = TopicRecord(name="half", topic_id=b"half of a change")
    harness.load([BeginTransactionRecord(name="interrupted"), topic])
    assert harness.controller.image.open_transaction is not None
    harness.lead()
    assert [type(record) for record in harness.commit()][:1] == [AbortTransactionRecord]
    assert harness.controller.image.open_transaction is None
    assert create(harness).error_code == ErrorCode.NONE
    assert harness.controller.image.topic_named("half") is None


@pytest.mark.parametrize("written", [0, 1])
def test_a_bootstrap_transaction_that_was_not_ended_is_aborted_and_written_again(written: int) -> None:
    harness = Harness(min_insync_replicas="2")
    level = FeatureLevelRecord(name="metadata.version", feature_level=25)
    harness.load([BeginTransactionRecord(name="Bootstrap records"), *[level] * written])
    harness.lead()
    records = harness.commit()
    kinds = [type(record) for record in records]
    assert kinds[:2] == [AbortTransactionRecord, BeginTransactionRecord]
    assert kinds[-1] is EndTransactionRecord
    image = harness.controller.image
    assert (image.open_transaction, image.features["metadata.version"]) == (None, 29)
    assert replayed(harness) == image


def test_a_second_leader_does_not_bootstrap_again() -> None:
    harness = leading()
    harness.lose()
    harness.lead()
    assert harness.commit() == []


def test_an_answer_waits_for_the_commit() -> None:
    harness = leading()
    answer = harness.leave("create_topics", topic_request("foo"), 7)
    assert not answer.is_there
    assert harness.controller.image.topic_named("foo") is not None, "the image runs ahead"
    harness.commit()
    assert answer.get().topics[0].error_code == ErrorCode.NONE


def test_an_answer_that_read_uncommitted_state_waits_for_it() -> None:
    harness = leading()
    first = harness.leave("create_topics", topic_request("foo"), 7)
    second = harness.leave("create_topics", topic_request("foo"), 7)
    assert not second.is_there
    harness.commit()
    assert first.get().topics[0].error_code == ErrorCode.NONE
    assert second.get().topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_losing_leadership_undoes_what_is_not_committed_and_answers_not_controller() -> None:
    harness = leading()
    create(harness, "kept")
    before = replayed(harness)
    answers = [harness.leave("create_topics", topic_request(name), 7) for name in ("a", "b")]
    harness.lose()
    assert [answer.get().topics[0].error_code for answer in answers] == [ErrorCode.NOT_CONTROLLER] * 2
    assert harness.controller.image == before
    harness.lead()
    assert create(harness, "a").error_code == ErrorCode.NONE


def test_the_image_equals_what_the_log_says() -> None:
    harness = leading()
    create(harness, "foo", 4)
    harness.controller.expire_session(1, "gone")  # type: ignore[arg-type]
    harness.commit()
    assert harness.controller.image == replayed(harness)


def test_a_broker_that_falls_silent_is_fenced_and_its_partitions_get_new_leaders() -> None:
    harness = leading()
    create(harness)
    leader = state_of(harness).leader
    for _ in range(6):
        harness.env.advance(2000)
        for broker in {1, 2, 3} - {leader}:
            heartbeat(harness, broker)
    harness.commit()
    state = state_of(harness)
    assert harness.controller.image.brokers[leader].fenced
    assert state.leader not in (leader, -1) and leader not in state.isr
    assert harness.controller.elections[Basis.ISR] == 1


def test_an_election_counts_once_it_is_committed_and_never_if_another_controller_took_over() -> None:
    harness = leading()
    create(harness)
    harness.controller.expire_session(state_of(harness).leader, "test")
    assert harness.controller.elections[Basis.ISR] == 0, "it is appended and no more"
    harness.lose()
    assert harness.controller.elections[Basis.ISR] == 0
    harness.lead()
    harness.commit()
    before = harness.controller.elections[Basis.ISR]
    harness.controller.expire_session(state_of(harness).leader, "test")
    harness.commit()
    assert harness.controller.elections[Basis.ISR] == before + 1


def test_stale_brokers_are_fenced_one_after_the_other_the_longest_silent_first() -> None:
    harness = leading()
    started_ms = harness.env.now_ms()
    for broker, at_ms in ((3, 50), (2, 100), (1, 5000)):
        harness.env.advance(at_ms - (harness.env.now_ms() - started_ms))
        heartbeat(harness, broker)
    harness.env.advance(9 * harness.controller.sessions.check_interval_ms - 5000)
    fenced = [values["broker"] for event, values in harness.env.events if event == "broker-fenced"]
    assert fenced == [3, 2]
    harness.commit()
    assert not harness.controller.image.brokers[1].fenced  # type: ignore[index]


def test_a_controller_that_was_stopped_forgives_the_silence() -> None:
    harness = leading()
    harness.env.sleep_through(60_000)
    harness.commit()
    assert not any(broker.fenced for broker in harness.controller.image.brokers.values())


def test_a_closed_connection_fences_after_the_grace() -> None:
    harness = leading()
    connection = Connection()
    heartbeat(harness, 2, connection)
    harness.controller.broker_connection_closed(2, epoch_of(harness, 2), connection)  # type: ignore[arg-type]
    harness.env.advance(999)
    assert not harness.controller.image.brokers[2].fenced  # type: ignore[index]
    harness.env.advance(1)
    assert harness.controller.image.brokers[2].fenced  # type: ignore[index]
    harness.commit()
    assert register(harness, 2, life=1).error_code == ErrorCode.NONE, "its session is over"


def test_a_heartbeat_on_a_new_connection_within_the_grace_saves_the_session() -> None:
    harness = leading()
    old, new = Connection(), Connection()
    heartbeat(harness, 2, old)
    harness.controller.broker_connection_closed(2, epoch_of(harness, 2), old)  # type: ignore[arg-type]
    heartbeat(harness, 2, new)
    harness.env.advance(1500)
    assert not harness.controller.image.brokers[2].fenced  # type: ignore[index]


def test_the_close_of_an_older_connection_says_nothing() -> None:
    harness = leading()
    old, new = Connection(), Connection()
    heartbeat(harness, 2, old)
    heartbeat(harness, 2, new)
    harness.controller.broker_connection_closed(2, epoch_of(harness, 2), old)  # type: ignore[arg-type]
    harness.env.advance(1500)
    assert not harness.controller.image.brokers[2].fenced  # type: ignore[index]


def test_without_a_grace_only_the_session_timeout_fences() -> None:
    harness = leading(heirlog_broker_disconnect_grace_ms="-1")
    connection = Connection()
    heartbeat(harness, 2, connection)
    harness.controller.broker_connection_closed(2, epoch_of(harness, 2), connection)  # type: ignore[arg-type]
    harness.env.advance(5000)
    assert not harness.controller.image.brokers[2].fenced  # type: ignore[index]


def test_a_new_active_controller_fences_a_broker_that_died_at_the_failover() -> None:
    harness = leading()
    harness.lose()
    harness.lead()
    for _ in range(10):
        harness.env.advance(1000)
        heartbeat(harness, 1)
        heartbeat(harness, 2)
    harness.commit()
    assert [b.id for b in harness.controller.image.brokers.values() if b.fenced] == [3]


def test_a_new_active_controller_holds_the_elections_that_the_one_before_did_not_come_to() -> None:
    harness = leading(1)
    create(harness, factor=1)
    harness.controller.expire_session(1, "gone")  # type: ignore[arg-type]
    harness.commit()
    harness.lose()
    # the first batch of an unfencing that took several: the one with the elections was lost with its controller
    epoch = harness.controller.image.brokers[1].epoch  # type: ignore[index]
    harness.load([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)])
    assert state_of(harness).leader == -1
    harness.lead()
    harness.commit()
    assert state_of(harness).leader == 1


def test_the_only_voter_fences_the_broker_that_an_earlier_process_of_its_node_was() -> None:
    harness = Harness(node_id="3")
    harness.load(record for batch in leading().quorum.log for record in batch.records)
    harness.lead()
    harness.commit()
    assert [b.id for b in harness.controller.image.brokers.values() if b.fenced] == [3]
    assert register(harness, 3, life=1).error_code == ErrorCode.NONE


def test_one_of_several_voters_leaves_the_broker_of_its_own_node_its_session() -> None:
    harness = Harness(node_id="3")
    harness.quorum.voters = voters(1, 2, 3)
    harness.load(record for batch in leading().quorum.log for record in batch.records)
    harness.lead()
    assert not harness.controller.image.brokers[3].fenced  # type: ignore[index]
    assert register(harness, 3, life=1).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_fenced_broker_may_restart_at_once_under_a_new_active_controller() -> None:
    harness = leading()
    harness.controller.expire_session(3, "gone")  # type: ignore[arg-type]
    harness.commit()
    harness.lose()
    harness.lead()
    assert register(harness, 3, life=1).error_code == ErrorCode.NONE


def test_a_clean_stop_waits_until_the_others_know_and_ends_the_session() -> None:
    harness = leading()
    create(harness, "foo", 3)
    leader = int(state_of(harness).leader)
    others = sorted({1, 2, 3} - {leader})
    for broker in others:
        heartbeat(harness, broker, current_metadata_offset=harness.controller.image.offset)
    harness.controller.sessions.clear()
    for broker in others:
        heartbeat(harness, broker, current_metadata_offset=harness.controller.image.offset)
    answer = heartbeat(harness, leader, want_shut_down=True)
    assert not answer.should_shut_down and not answer.is_fenced
    assert not heartbeat(harness, leader, want_shut_down=True).should_shut_down, "nobody has applied it yet"
    for broker in others:
        heartbeat(harness, broker, current_metadata_offset=FAR)
    answer = heartbeat(harness, leader, want_shut_down=True)
    assert answer.should_shut_down and answer.is_fenced
    previous = epoch_of(harness, leader)
    assert register(harness, leader, life=1, previous=previous).error_code == ErrorCode.NONE


def test_heartbeats_of_strangers_are_refused() -> None:
    harness = leading(1)
    unknown = BrokerHeartbeatRequest(broker_id=9, broker_epoch=1)
    assert harness.ask("broker_heartbeat", unknown, 1).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert heartbeat(harness, 1, broker_epoch=77).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_an_idle_heartbeat_is_answered_without_a_record() -> None:
    harness = leading()
    end = harness.quorum.log_end_offset
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch_of(harness, 1), current_metadata_offset=FAR)
    assert harness.leave("broker_heartbeat", request, 1).is_there
    assert harness.quorum.log_end_offset == end


def test_no_op_records_keep_the_log_moving() -> None:
    harness = leading(1)
    harness.env.advance(1600)
    assert [type(record) for record in harness.commit()] == [NoOpRecord] * 3


def test_producer_ids_come_in_blocks_and_never_twice() -> None:
    harness = leading(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch_of(harness, 1))
    blocks = [harness.ask("allocate_producer_ids", request, 0) for _ in range(2)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [(0, 1000), (1000, 1000)]
    stale = AllocateProducerIdsRequest(broker_id=1, broker_epoch=99)
    assert harness.ask("allocate_producer_ids", stale, 0).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_alter_partition_names_the_offset_at_which_it_is_committed() -> None:
    harness = leading()
    create(harness)
    leader = int(state_of(harness).leader)
    answered = alter(harness, [leader])
    assert answered.committed_offset == harness.quorum.log_end_offset - 1
    assert alter(harness, [leader]).committed_offset == harness.quorum.log_end_offset - 1, "nothing to write"


def test_a_controller_starts_from_a_snapshot() -> None:
    harness = leading()
    create(harness)
    other = Harness()
    image = harness.controller.image
    other.controller.follow(image_of_snapshot(list(image.records()), image.offset, image.epoch))
    assert other.controller.image == image


def test_the_balancer_gives_leadership_back() -> None:
    harness = leading(leader_imbalance_check_interval_seconds="1", broker_session_timeout_ms="100000")
    create(harness)
    first = int(state_of(harness).leader)
    harness.controller.expire_session(first, "gone")  # type: ignore[arg-type]
    harness.commit()
    heartbeat(harness, first)
    alter(harness, [int(state_of(harness).leader), first])
    assert state_of(harness).leader != first
    harness.env.advance(1000)
    harness.commit()
    assert state_of(harness).leader == first


def with_many_partitions() -> Harness:
    """15,000 on both of two brokers."""
    harness = leading(2, broker_session_timeout_ms="100000")
    for name in ("a", "b", "c"):
        assert create(harness, name, 5000, 2).error_code == ErrorCode.NONE
    return harness


def test_more_than_ten_thousand_records_are_several_batches() -> None:
    harness = leading(1)
    count = len(harness.quorum.log)
    harness.controller.submit(lambda: ControllerResult(lambda _: None, [NoOpRecord()] * 15_001), lambda code: None)
    assert [len(batch.records) for batch in harness.quorum.log[count:]] == [10_000, 5001]


def test_a_broker_with_many_partitions_is_fenced_over_several_turns() -> None:
    harness = with_many_partitions()
    count = len(harness.quorum.log)
    harness.controller.expire_session(1, "gone")  # type: ignore[arg-type]
    assert [len(batch.records) for batch in harness.quorum.log[count:]] == [2_000]
    assert not harness.controller.image.brokers[1].fenced  # type: ignore[index]
    harness.env.advance(1)
    assert [len(batch.records) for batch in harness.quorum.log[count:]] == [2_000] * 7 + [1_001]
    harness.commit()
    image = harness.controller.image
    assert image.brokers[1].fenced  # type: ignore[index]
    assert not image.in_isr.any(BrokerId(1)) and not image.leaders.any(BrokerId(1))
    assert image == replayed(harness)


def test_a_heartbeat_that_fences_many_partitions_is_answered_after_the_last_turn() -> None:
    harness = with_many_partitions()
    request = BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=epoch_of(harness, 1),
        current_metadata_offset=FAR,
        want_fence=True,
    )
    answer = harness.leave("broker_heartbeat", request)
    harness.commit()
    assert not answer.is_there
    harness.env.advance(1)
    assert not answer.is_there, "appended, and not committed"
    harness.commit()
    assert answer.get().is_fenced


def test_a_controller_that_is_deposed_between_two_turns_of_a_fence_appends_nothing_more() -> None:
    harness = with_many_partitions()
    count = len(harness.quorum.log)
    harness.controller.expire_session(1, "gone")  # type: ignore[arg-type]
    harness.lose()
    harness.env.advance(1)
    assert len(harness.quorum.log) <= count + 1
    assert not harness.controller.image.brokers[1].fenced  # type: ignore[index]


def test_a_broker_that_registers_again_between_two_turns_of_its_fence_is_not_fenced_for_it() -> None:
    harness = with_many_partitions()
    harness.controller.expire_session(1, "gone")  # type: ignore[arg-type]
    register(harness, 1, life=1)
    heartbeat(harness, 1)
    harness.env.advance(1)
    harness.commit()
    assert not harness.controller.image.brokers[1].fenced  # type: ignore[index]
    assert harness.controller.image == replayed(harness)


def stopping(harness: Harness, broker: int = 1) -> Answer:
    request = BrokerHeartbeatRequest(
        broker_id=broker,
        broker_epoch=epoch_of(harness, broker),
        current_metadata_offset=FAR,
        want_shut_down=True,
    )
    return harness.leave("broker_heartbeat", request)


def turns(harness: Harness, since: int) -> list[int]:
    """How many records each batch has; the requests of later turns are run before."""
    harness.env.advance(1)
    return [len(batch.records) for batch in harness.quorum.log[since:]]


def test_a_broker_with_many_partitions_stops_cleanly_over_several_turns() -> None:
    harness = with_many_partitions()
    count = len(harness.quorum.log)
    answer = stopping(harness)
    harness.commit()
    assert not answer.is_there
    assert turns(harness, count) == [2_001] + [2_000] * 6 + [1_000]
    assert not stopping(harness).is_there, "everything is appended, and not committed"
    harness.commit()
    assert not answer.get().should_shut_down
    assert not harness.controller.image.in_isr.any(BrokerId(1))
    moved_at = harness.quorum.log_end_offset - 1
    for offset, may_stop in ((moved_at - 1, False), (moved_at, True)):
        heartbeat(harness, 2, current_metadata_offset=offset)
        asked = stopping(harness)
        harness.commit()
        assert asked.get().should_shut_down is may_stop
    assert harness.controller.image == replayed(harness)


def test_a_clean_stop_between_two_turns_ends_if_the_broker_is_fenced() -> None:
    harness = with_many_partitions()
    answer = stopping(harness)
    register_again = register(harness, 1, life=1)
    assert register_again.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    harness.controller.sessions.end(BrokerId(1))
    register(harness, 1, life=1)
    heartbeat(harness, 1)
    alter(harness, [2, 1], "a", 0)
    harness.env.advance(1)
    harness.commit()
    assert answer.is_there
    assert not harness.controller.image.brokers[BrokerId(1)].in_controlled_shutdown
    assert state_of(harness, "a", 0).isr == (2, 1)
    assert harness.controller.image == replayed(harness)


def test_a_broker_that_returns_is_elected_for_many_partitions_over_several_turns() -> None:
    harness = with_many_partitions()
    for broker in (2, 1):
        harness.controller.expire_session(BrokerId(broker), "gone")
        harness.env.advance(1)
        harness.commit()
    assert len(harness.controller.image.leaderless()) == 15_000
    count = len(harness.quorum.log)
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch_of(harness, 1), current_metadata_offset=FAR)
    answer = harness.leave("broker_heartbeat", request)
    assert turns(harness, count) == [2_001] + [2_000] * 6 + [1_000]
    harness.commit()
    assert not answer.get().is_fenced
    assert not harness.controller.image.leaderless()
    assert harness.controller.image == replayed(harness)


def test_a_broker_that_is_fenced_between_two_turns_of_its_return_is_not_elected() -> None:
    harness = with_many_partitions()
    for broker in (2, 1):
        harness.controller.expire_session(BrokerId(broker), "gone")
        harness.env.advance(1)
        harness.commit()
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch_of(harness, 1), current_metadata_offset=FAR)
    harness.leave("broker_heartbeat", request)
    harness.controller.expire_session(BrokerId(1), "gone again")
    harness.env.advance(1)
    harness.commit()
    assert len(harness.controller.image.leaderless()) == 15_000
    assert harness.controller.image == replayed(harness)


def test_a_broker_with_many_partitions_is_unregistered_over_several_turns() -> None:
    harness = with_many_partitions()
    count = len(harness.quorum.log)
    answer = harness.leave("unregister_broker", UnregisterBrokerRequest(broker_id=1))
    assert BrokerId(1) in harness.controller.image.brokers
    assert turns(harness, count) == [2_000] * 7 + [1_001]
    harness.commit()
    assert answer.get().error_code == ErrorCode.NONE
    assert BrokerId(1) not in harness.controller.image.brokers
    assert not harness.controller.image.in_isr.any(BrokerId(1))
    assert harness.controller.image == replayed(harness)


def test_a_broker_with_many_partitions_registers_again_over_several_turns() -> None:
    harness = with_many_partitions()
    harness.controller.sessions.end(BrokerId(1))
    count = len(harness.quorum.log)
    answers = [harness.leave("broker_registration", registration(1, life=1)) for _ in range(2)]
    assert turns(harness, count)[-2:] == [1_001, 1], "the repeated request changes nothing more"
    harness.commit()
    first, second = (answer.get() for answer in answers)
    image = harness.controller.image
    assert first.broker_epoch == second.broker_epoch == epoch_of(harness, 1)
    (made,) = [batch for batch in harness.quorum.log[count:] if isinstance(batch.records[-1], RegisterBrokerRecord)][:1]
    assert made.last_offset == first.broker_epoch
    assert not image.in_isr.any(BrokerId(1)) and not image.in_elr.any(BrokerId(1))
    assert state_of(harness, "a", 0).last_known_elr in ((), (1,))
    assert image == replayed(harness)


@pytest.mark.parametrize("remaining", [0, 1])
def test_the_partitions_of_a_failed_directory_change_over_several_turns(remaining: int) -> None:
    harness = leading(2, broker_session_timeout_ms="100000")
    directories = [directory(1, number) for number in range(1 + remaining)]
    harness.controller.sessions.end(BrokerId(1))
    register(harness, 1, life=1, log_dirs=directories)
    heartbeat(harness, 1)
    create(harness, "a", 5000, 2)
    assign(harness, 1, directories[0], *range(5000), topic="a")
    count = len(harness.quorum.log)
    heartbeat(harness, 1, offline_log_dirs=directories[:1])
    assert [len(batch.records) for batch in harness.quorum.log[count:]] == [2_000, 2_000, 1_001]
    image = harness.controller.image
    broker = image.brokers[BrokerId(1)]
    assert (broker.fenced, len(broker.directories)) == (not remaining, 1)
    assert not image.in_isr.any(BrokerId(1)) and not image.in_elr.any(BrokerId(1))
    assert image == replayed(harness)


THROTTLED = "leader.replication.throttled.replicas"


def long_list(size: int) -> str:
    return ",".join(["0" * 1000 + ":1"] * max(1, size // 1003))


def throttling(topic: str, size: int) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
    """A change of one value of about `size` bytes."""
    value = IncrementalAlterConfigsRequest.AlterableConfig(name=THROTTLED, value=long_list(size))
    return IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[value])


def test_large_configurations_are_several_batches() -> None:
    harness = leading(1)
    names = [f"t{number}" for number in range(20)]
    for name in names:
        create(harness, name, 1, 1)
    count = len(harness.quorum.log)
    request = IncrementalAlterConfigsRequest(resources=[throttling(name, 1 << 20) for name in names])
    response = harness.ask("incremental_alter_configs", request)
    assert {answer.error_code for answer in response.responses} == {ErrorCode.NONE}
    assert len(harness.quorum.log) - count > 2
    assert all(harness.controller.image.config(2, name, THROTTLED) for name in names)
    assert harness.controller.image == replayed(harness)


def test_records_that_cannot_be_applied_end_the_node_before_they_reach_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = leading(1)
    create(harness, "kept", 1, 1)
    stopped: list[tuple[int, str]] = []
    monkeypatch.setattr(harness.env, "stop", lambda code, reason: stopped.append((code, reason)))
    before, end = list(harness.quorum.log), harness.quorum.log_end_offset
    unknown = TopicRecord(name="kept", topic_id=bytes(16))
    with pytest.raises(UnsupportedRecord):
        harness.controller.submit(lambda: ControllerResult(lambda _: None, [NoOpRecord(), unknown]), lambda code: None)
    assert (harness.quorum.log, harness.quorum.log_end_offset) == (before, end)
    ((code, reason),) = stopped
    assert code == 1
    assert f"TopicRecord that it made for offset {end + 1}" in reason


def test_records_that_cannot_be_encoded_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = leading(1)
    before = replayed(harness)

    def refuse(records: object) -> int:
        raise ValueError("a number that does not fit its field")

    with monkeypatch.context() as patch:
        patch.setattr(harness.quorum, "append", refuse)
        with pytest.raises(ValueError, match="does not fit"):
            harness.leave("create_topics", topic_request("refused", 1, 1), 7)
    assert harness.controller.image == before
    assert create(harness, "refused", 1, 1).error_code == ErrorCode.NONE
    assert harness.controller.image == replayed(harness)


def test_a_value_that_no_batch_can_hold_is_refused_alone_and_the_controller_continues() -> None:
    harness = leading(1)
    for name in ("large", "small"):
        create(harness, name, 1, 1)
    request = IncrementalAlterConfigsRequest(resources=[throttling("large", 9 << 20), throttling("small", 100)])
    large, small = harness.ask("incremental_alter_configs", request).responses
    assert large.error_code == ErrorCode.RECORD_LIST_TOO_LARGE and "8388608 bytes" in large.error_message
    assert small.error_code == ErrorCode.NONE
    assert harness.controller.image.config(2, "large", THROTTLED) is None
    assert create(harness, "more", 1, 1).error_code == ErrorCode.NONE


def test_a_registration_that_no_batch_can_hold_is_refused_and_the_controller_continues() -> None:
    harness = leading(1)
    assert register(harness, 2, rack="r" * (9 << 20)).error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert register(harness, 2, rack="r").error_code == ErrorCode.NONE


def test_topics_with_large_configurations_are_created_whole_or_not_at_all() -> None:
    harness = leading(1)
    config = CreateTopicsRequest.CreatableTopicConfig(name=THROTTLED, value=long_list(3 << 20))
    topics = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=[config])
        for name in ("a", "b", "c", "d")
    ]
    answer = harness.leave("create_topics", CreateTopicsRequest(topics=topics))
    first, *rest = harness.quorum.uncommitted
    assert rest, "twelve megabytes are more than one batch"
    # the controller dies between the batches
    harness.quorum.uncommitted = [first]
    harness.controller.on_commit([first])
    for batch in rest:
        harness.quorum.log.remove(batch)
    harness.quorum.uncommitted.clear()
    harness.quorum.log_end_offset = rest[0].base_offset
    harness.controller.on_leader_change(-1, harness.quorum.epoch + 1, False)
    assert {topic.error_code for topic in answer.get().topics} == {ErrorCode.NOT_CONTROLLER}
    harness.lead()
    harness.commit()
    assert not harness.controller.image.topics
    assert harness.controller.image == replayed(harness)
    again = harness.ask("create_topics", CreateTopicsRequest(topics=topics))
    assert {topic.error_code for topic in again.topics} == {ErrorCode.NONE}
    assert [len(partitions) for partitions in harness.controller.image.partitions.values()] == [2] * 4
    assert harness.controller.image == replayed(harness)


def test_electing_everything_reports_only_what_was_elected() -> None:
    harness = leading()
    create(harness, "foo", 3)
    response = harness.ask("elect_leaders", ElectLeadersRequest(election_type=0, topic_partitions=None), 2)
    assert response.error_code == ErrorCode.NONE
    # the topic is named, as by Apache Kafka
    assert [(topic.topic, topic.partition_result) for topic in response.replica_election_results] == [("foo", [])]
    response = harness.ask("elect_leaders", ElectLeadersRequest(election_type=4, topic_partitions=None), 2)
    assert response.error_code == ErrorCode.INVALID_REQUEST
