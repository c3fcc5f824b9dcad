"""ShareFetch through a node: versions, sessions, waiting, errors and permissions.

`tests/broker/share_partitions` has the rules of a share partition.
"""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, ALICE, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded, produce
from apis.share_members import (
    ACCEPT,
    RELEASE,
    RENEW,
    Member,
    ack_code,
    acquired_in,
    partition_of,
    share_topic,
    values_in,
)
from apis.shares import NO_TOPIC

from heirlog.broker.share_coordinator.state import SharePartitionKey
from heirlog.broker.share_partitions.share_session import UNREADABLE_MAX
from heirlog.metadata.acls import AclOperation, AclPermissionType
from heirlog.metadata.state import SHARE_VERSION
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterClientQuotasRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    ShareFetchRequest,
    UpdateFeaturesRequest,
)
from heirlog.protocol.types import Uuid

EXAMPLE = ShareFetchRequest(group_id="g", member_id="m", max_records=1, batch_size=1), None
LOCK_MS = 15_000
"""The shortest lock that the broker's configuration allows."""


def configure(node: Guarded, group: str, **configs: str) -> None:
    R = IncrementalAlterConfigsRequest
    changes = [R.AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    resource = R.AlterConfigsResource(resource_type=32, resource_name=group, configs=changes)
    (answer,) = node.ask(R(resources=[resource]), principal=ADMIN).responses
    assert answer.error_code == ErrorCode.NONE, answer.error_message


def test_records_are_delivered_once_accepted_and_not_again(node: Guarded) -> None:
    member = Member(node, "basic", share_topic(node, "basic", "basic"))
    node.write("basic", b"a", b"b", b"c")
    first = member.fetch()
    assert (acquired_in(first), values_in(first)) == ([(0, 2, 1)], [b"a", b"b", b"c"])
    assert first.acquisition_lock_timeout_ms == 30_000
    leader = first.responses[0].partitions[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (0, 0), "nobody asked the wrong broker"
    second = member.fetch((0, 2, [ACCEPT]))
    assert (ack_code(second), acquired_in(second)) == (ErrorCode.NONE, [])
    node.write("basic", b"d")
    assert values_in(member.fetch()) == [b"d"]


def test_what_a_request_releases_is_delivered_in_its_answer(node: Guarded) -> None:
    member = Member(node, "release", share_topic(node, "release", "release"))
    node.write("release", b"a", b"b")
    member.fetch()
    assert acquired_in(member.fetch((0, 1, [ACCEPT, RELEASE]))) == [(1, 1, 2)]


def test_two_members_never_hold_the_same_record(node: Guarded) -> None:
    topic = share_topic(node, "two", "two")
    a, b = Member(node, "two", topic, "a"), Member(node, "two", topic, "b")
    for value in (b"1", b"2", b"3"):
        node.write("two", value)
    assert acquired_in(a.fetch(max_records=2)) == [(0, 1, 1)]
    assert acquired_in(b.fetch()) == [(2, 2, 1)]
    assert ack_code(b.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.INVALID_RECORD_STATE


def test_version_2_may_acquire_exactly_as_many_as_it_asks_for(node: Guarded) -> None:
    topic = share_topic(node, "exact", "exact")
    node.write("exact", b"a", b"b", b"c", b"d")
    member = Member(node, "exact", topic)
    assert acquired_in(member.fetch(max_records=3, share_acquire_mode=1)) == [(0, 2, 1)]
    old = Member(node, "exact", topic, "old", version=1)
    node.write("exact", b"e", b"f")
    assert acquired_in(old.fetch(max_records=1)) == [(3, 3, 1)]
    assert acquired_in(old.fetch(max_records=1)) == [(4, 5, 1)], "without the mode whole batches are acquired"


def test_version_2_renews_locks(node: Guarded) -> None:
    topic = share_topic(node, "renew", "renew")
    configure(node, "renew", share_record_lock_duration_ms=str(LOCK_MS))
    node.write("renew", b"a")
    member = Member(node, "renew", topic)
    assert member.fetch().acquisition_lock_timeout_ms == LOCK_MS
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}
    node.world.run_for(LOCK_MS // 2)
    assert ack_code(member.fetch((0, 0, [RENEW]), **nothing)) == ErrorCode.NONE
    node.world.run_for(LOCK_MS * 3 // 4)
    assert ack_code(member.fetch((0, 0, [ACCEPT]))) == ErrorCode.NONE
    assert member.fetch((0, 0, [ACCEPT]), is_renew_ack=True).error_code == ErrorCode.INVALID_REQUEST
    assert ack_code(member.fetch((1, 1, [RENEW]))) == ErrorCode.INVALID_REQUEST


def test_an_ended_lock_makes_records_available_to_others(node: Guarded) -> None:
    topic = share_topic(node, "lock", "lock")
    configure(node, "lock", share_record_lock_duration_ms=str(LOCK_MS))
    node.write("lock", b"a")
    a, b = Member(node, "lock", topic, "a"), Member(node, "lock", topic, "b")
    a.fetch()
    b.send(b.fetching(max_wait_ms=25_000))
    node.world.run_for(LOCK_MS - 1000)
    assert not b.is_answered
    node.wait(lambda: b.is_answered)
    assert acquired_in(b.last_answer) == [(0, 0, 2)]
    assert ack_code(a.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.INVALID_RECORD_STATE


def test_a_fetch_waits_for_records(node: Guarded) -> None:
    member = Member(node, "waits", share_topic(node, "waits", "waits"))
    member.fetch()
    member.send(member.fetching(max_wait_ms=20_000))
    node.world.run_for(1000)
    assert not member.is_answered
    node.write("waits", b"a")
    node.wait(lambda: member.is_answered)
    assert acquired_in(member.last_answer) == [(0, 0, 1)]


def test_a_fetch_waits_for_its_least_bytes_until_its_longest_wait(node: Guarded) -> None:
    member = Member(node, "bytes", share_topic(node, "bytes", "bytes"))
    member.fetch()
    node.write("bytes", b"a")
    member.send(member.fetching(max_wait_ms=5000, min_bytes=1000))
    node.world.run_for(4000)
    assert not member.is_answered
    node.write("bytes", bytes(2000))
    node.wait(lambda: member.is_answered)
    assert acquired_in(member.last_answer) == [(0, 1, 1)]


def test_a_wait_without_records_ends_in_time_with_an_empty_answer(node: Guarded) -> None:
    member = Member(node, "empty", share_topic(node, "empty", "empty"))
    assert acquired_in(member.fetch(max_wait_ms=100)) == []
    answer = member.fetch(max_wait_ms=100)
    assert (answer.error_code, answer.responses) == (ErrorCode.NONE, [])


def test_requests_of_a_session_have_its_epochs(node: Guarded) -> None:
    member = Member(node, "epochs", share_topic(node, "epochs", "epochs"))
    member.epoch = 1
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.epoch = 0
    assert member.fetch((0, 0, [ACCEPT])).error_code == ErrorCode.INVALID_REQUEST
    member.fetch()
    member.fetch()
    member.epoch = 1
    assert member.fetch().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    member.epoch = 0
    assert member.fetch().error_code == ErrorCode.NONE


def test_closing_a_session_stores_acknowledgements_and_gives_the_rest_back(node: Guarded) -> None:
    topic = share_topic(node, "close", "close")
    node.write("close", b"a", b"b", b"c")
    a, b = Member(node, "close", topic, "a"), Member(node, "close", topic, "b")
    a.fetch()
    b.fetch(max_wait_ms=0)
    a.epoch = -1
    assert ack_code(a.fetch((0, 0, [ACCEPT]))) == ErrorCode.NONE
    assert acquired_in(b.fetch()) == [(1, 2, 2)]
    a.epoch = 1
    assert a.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_lost_connection_gives_back_what_it_held(node: Guarded) -> None:
    topic = share_topic(node, "gone", "gone")
    node.write("gone", b"a")
    a, b = Member(node, "gone", topic, "a"), Member(node, "gone", topic, "b")
    a.fetch()
    b.fetch(max_wait_ms=0)
    b.send(b.fetching(max_wait_ms=20_000))
    evictions = node.node.broker.shares.sessions.evictions
    a.connection.closed()
    node.wait(lambda: b.is_answered)
    assert acquired_in(b.last_answer) == [(0, 0, 2)]
    assert node.node.broker.shares.sessions.evictions == evictions + 1


def test_a_waiting_fetch_whose_connection_is_lost_acquires_nothing(node: Guarded) -> None:
    topic = share_topic(node, "abandoned", "abandoned")
    a, b = Member(node, "abandoned", topic, "a"), Member(node, "abandoned", topic, "b")
    a.fetch(max_wait_ms=0)
    a.send(a.fetching(max_wait_ms=20_000))
    a.connection.closed()
    node.write("abandoned", b"a")
    assert acquired_in(b.fetch()) == [(0, 0, 1)]


def test_a_waiting_fetch_whose_session_is_closed_acquires_nothing(node: Guarded) -> None:
    topic = share_topic(node, "closing", "closing")
    a, b = Member(node, "closing", topic, "a"), Member(node, "closing", topic, "b")
    a.fetch()
    b.fetch()
    a.send(a.fetching(max_wait_ms=25_000))
    a.epoch = -1
    a.send(a.acknowledging())
    node.write("closing", b"x")
    assert acquired_in(b.fetch()) == [(0, 0, 1)]


def test_the_state_outlives_the_last_session_of_the_group(node: Guarded) -> None:
    topic = share_topic(node, "memory", "memory")
    node.write("memory", b"a", b"b", b"c")
    a = Member(node, "memory", topic, "a")
    a.fetch()
    a.fetch((0, 1, [ACCEPT, RELEASE]), max_wait_ms=0)
    a.connection.closed()
    node.world.run_for(1000)
    key = SharePartitionKey("memory", Uuid(topic), 0)
    assert node.node.broker.shares.partitions.get(key) is None, "a group without sessions does not stay in memory"
    assert acquired_in(Member(node, "memory", topic, "b").fetch()) == [(1, 1, 3), (2, 2, 2)]


def test_a_forgotten_partition_is_not_fetched(node: Guarded) -> None:
    topic = share_topic(node, "forget", "forget")
    member = Member(node, "forget", topic)
    member.fetch(max_wait_ms=0)
    forget = ShareFetchRequest.ForgottenTopic(topic_id=topic, partitions=[0])
    request = member.fetching(max_wait_ms=0, forgotten_topics_data=[forget])
    request.topics = []
    member.ask(request)
    member.epoch += 1
    node.write("forget", b"a")
    request = member.fetching(max_wait_ms=0)
    request.topics = []
    assert member.ask(request).responses == []


def test_a_group_begins_where_its_configuration_says(node: Guarded) -> None:
    for reset, first in (("latest", 2), ("earliest", 0), ("by_duration:PT1S", 1)):
        name = f"reset-{reset.partition(':')[0]}"
        configure(node, name, share_auto_offset_reset=reset)
        topic = share_topic(node, name, name, start=-1)
        node.write(name, b"old")
        node.world.run_for(2000)
        newer = produce(name)
        timestamp_ms = node.node.env.wall_ms()
        newer.topic_data[0].partition_data[0].records = encode_batch([(None, b"newer", (), timestamp_ms)])
        node.ask(newer, 12, ADMIN)
        member = Member(node, name, topic)
        member.send(member.fetching(max_wait_ms=5000))
        node.world.run_for(500)
        if reset == "latest":
            node.write(name, b"newest")
        node.wait(lambda member=member: member.is_answered)  # type: ignore[misc]
        assert acquired_in(member.last_answer)[0][0] == first, reset


def test_a_group_begins_at_the_end_where_no_record_is_new_enough(node: Guarded) -> None:
    configure(node, "aged", share_auto_offset_reset="by_duration:PT1S")
    topic = share_topic(node, "aged", "aged", start=-1)
    node.write("aged", b"old")
    node.world.run_for(2000)
    member = Member(node, "aged", topic)
    assert acquired_in(member.fetch()) == []
    newer = produce("aged")
    newer.topic_data[0].partition_data[0].records = encode_batch([(None, b"newer", (), node.node.env.wall_ms())])
    node.ask(newer, 12, ADMIN)
    assert acquired_in(member.fetch()) == [(1, 1, 1)]


def test_records_below_the_log_start_are_not_delivered(node: Guarded) -> None:
    topic = share_topic(node, "start", "start")
    for value in (b"a", b"b", b"c"):
        node.write("start", value)
    member = Member(node, "start", topic)
    member.fetch(max_records=1)
    D = DeleteRecordsRequest
    part = D.DeleteRecordsPartition(partition_index=0, offset=2)
    node.ask(D(topics=[D.DeleteRecordsTopic(name="start", partitions=[part])], timeout_ms=1000), principal=ADMIN)
    assert acquired_in(member.fetch()) == [(2, 2, 1)]
    assert ack_code(member.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.NONE


def test_a_deleted_topic_is_answered_at_once(node: Guarded) -> None:
    member = Member(node, "deleted", share_topic(node, "deleted", "deleted"))
    member.fetch(max_wait_ms=0)
    member.send(member.fetching(max_wait_ms=20_000))
    Topic = DeleteTopicsRequest.DeleteTopicState
    node.ask(DeleteTopicsRequest(topics=[Topic(name="deleted")], timeout_ms=5000), principal=ADMIN)
    node.wait(lambda: member.is_answered)
    assert partition_of(member.last_answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    member.epoch += 1
    assert partition_of(member.fetch()).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_unknown_topics_get_an_error_each(node: Guarded) -> None:
    share_topic(node, "known", "known")
    assert partition_of(Member(node, "known", NO_TOPIC).fetch()).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_session_is_refused_thousands_of_partitions_that_do_not_exist_or_may_not_be_read(node: Guarded) -> None:
    topic = share_topic(node, "flooded", "flooded")
    node.allow(AclOperation.READ, GROUP, "flooded")
    R = ShareFetchRequest
    for name_of, principal, first in ((NO_TOPIC, ADMIN, 0), (topic, ADMIN, 1), (topic, ALICE, 0)):
        member = Member(node, "flooded", name_of, principal=principal)
        request = member.fetching(max_wait_ms=0)
        parts = [R.FetchPartition(partition_index=index) for index in range(first, UNREADABLE_MAX + 1 + first)]
        request.topics = [R.FetchTopic(topic_id=name_of, partitions=parts)]
        assert member.ask(request).error_code == ErrorCode.INVALID_REQUEST


def test_a_group_without_state_gets_an_error(node: Guarded) -> None:
    topic = share_topic(node, "stateless", "initialized")
    assert partition_of(Member(node, "other", topic).fetch()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    "wrong",
    [{"group_id": ""}, {"group_id": None}, {"member_id": ""}, {"member_id": "m" * 37}, {"share_acquire_mode": 2}],
)
def test_a_malformed_request_is_refused(node: Guarded, wrong: dict[str, Any]) -> None:
    topic = share_topic(node, "malformed", "malformed")
    request = Member(node, "malformed", topic).fetching()
    for name, value in wrong.items():
        setattr(request, name, value)
    assert node.ask(request, principal=ADMIN).error_code == ErrorCode.INVALID_REQUEST


def test_a_member_must_be_allowed_to_read_the_group_and_each_topic(node: Guarded) -> None:
    topic = share_topic(node, "acl", "acl")
    node.write("acl", b"a")
    member = Member(node, "acl", topic, principal=ALICE)
    assert member.fetch().error_code == G_DENIED
    node.allow(AclOperation.READ, GROUP, "acl")
    assert partition_of(member.fetch()).error_code == T_DENIED
    node.allow(AclOperation.READ, TOPIC, "acl")
    assert acquired_in(member.fetch()) == [(0, 0, 1)]


@pytest.mark.parametrize("denied", ["all", "group"])
def test_a_permission_that_is_removed_during_a_wait_delivers_nothing_and_locks_nothing(
    node: Guarded, denied: str
) -> None:
    name = f"revoked-{denied}"
    topic = share_topic(node, name, name)

    def allow() -> None:
        node.allow(AclOperation.READ, GROUP, name)
        node.allow(AclOperation.READ, TOPIC, name)

    allow()
    member = Member(node, name, topic, principal=ALICE)
    assert acquired_in(member.fetch()) == []
    member.send(member.fetching(max_wait_ms=20_000))
    node.world.run_for(1000)
    assert not member.is_answered
    if denied == "all":
        node.forget_acls()
    else:
        node.allow(AclOperation.READ, GROUP, name, permission=AclPermissionType.DENY)
    node.write(name, b"a")
    node.wait(lambda: member.is_answered)
    answer = partition_of(member.last_answer)
    assert (answer.error_code, answer.acquired_records, bytes(answer.records or b"")) == (T_DENIED, [], b"")
    node.forget_acls()
    allow()
    member.epoch += 1
    assert acquired_in(member.fetch()) == [(0, 0, 1)], "its first delivery"


def test_a_broker_has_only_so_many_sessions() -> None:
    node = Guarded(group_share_max_share_sessions="1", group_share_max_size="1")
    topic = share_topic(node, "t", "g")
    a, b = Member(node, "g", topic, "a"), Member(node, "g", topic, "b")
    a.fetch(max_wait_ms=0)
    b.send(b.fetching(max_wait_ms=3000))
    node.world.run_for(2000)
    assert not b.is_answered, "otherwise the client would try again at once"
    node.wait(lambda: b.is_answered)
    assert b.last_answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    a.connection.closed()
    assert b.fetch(max_wait_ms=0).error_code == ErrorCode.NONE


def test_without_the_feature_there_are_no_share_groups() -> None:
    node = Guarded()
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=SHARE_VERSION, max_version_level=0, upgrade_type=2)
    node.ask(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=5000), principal=ADMIN)
    node.wait(lambda: node.node.image.share_version == 0)
    answer = node.ask(ShareFetchRequest(group_id="g", member_id="m"), principal=ADMIN)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_member_above_its_quota_gets_the_records_that_are_locked_for_it_and_then_waits(node: Guarded) -> None:
    member = Member(node, "quota", share_topic(node, "quota", "quota"))
    values = [b"1" * 1024, b"2" * 1024]
    for value in values:
        node.write("quota", value)
    R = AlterClientQuotasRequest
    entity = [R.EntityData(entity_type="user", entity_name="admin")]
    ops = [R.OpData(key="consumer_byte_rate", value=10.0)]
    node.ask(R(entries=[R.EntryData(entity=entity, ops=ops)]), principal=ADMIN)
    first, second = member.fetch(), member.fetch()
    assert values_in(first) + values_in(second) == values
    assert second.throttle_time_ms > first.throttle_time_ms > 0
    ops[0].remove = True
    node.ask(R(entries=[R.EntryData(entity=entity, ops=ops)]), principal=ADMIN)
