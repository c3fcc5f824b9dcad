"""A whole broker that coordinates groups: loading, committing, losing the partition, forgetting."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.broker.groups import admin, offset_requests
from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.broker.groups.records import offset_record
from heirlog.broker.groups.shard import GroupCoordinatorShard
from heirlog.broker.internal_topic_loader import LOAD_SLICE_BYTES
from heirlog.broker.internal_topic_shards import partition_for
from heirlog.metadata.image import TopicImage
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.protocol.types import Uuid
from heirlog.storage.unchecked_bytes import UncheckedBytes
from heirlog.storage.verification import UNVERIFIED

from ..fakes import TOPIC_IDS, Rig, answer_of, context, state

OFFSETS = "__consumer_offsets"
READS_FOO = struct.pack(">hih3s", 1, 1, 3, b"foo")


class Coordinating(Rig):
    """Broker 1 leads the only partition of `__consumer_offsets`; foo has two partitions."""

    def __init__(self, replicas: list[int] | None = None, **properties: str) -> None:
        super().__init__(group_initial_rebalance_delay_ms="0", **properties)
        self.started()
        self.replicas = replicas or [1]
        for index in range(2):
            self.set_partition(state([1], leader_epoch=0), "foo", index)
        self.lead(5)

    def lead(self, epoch: int, leader: int = 1, isr: list[int] | None = None) -> None:
        self.set_partition(state(self.replicas, isr, leader=leader, leader_epoch=epoch, partition_epoch=epoch), OFFSETS)
        self.publish()
        self.env.advance(1)

    def followed(self) -> None:
        """Broker 2 has fetched everything."""
        end = self.partition(OFFSETS).log.log_end_offset
        self.fetch(end, replica=2, leader_epoch=5, last_fetched_epoch=5, topic=OFFSETS)

    def commit(self, offset: int, group: str = "g", *, topic: str = "foo", index: int = 0, **more: Any) -> Any:
        version = more.pop("version", 9)
        metadata = more.pop("metadata", None)
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=more.pop("topic_id", bytes(16)),
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata=metadata
                        )
                    ],
                )
            ],
            **more,
        )
        return offset_requests.commit(self.broker.groups, self.env, request, context(version))

    def committed(self, group: str = "g", index: int = 0) -> Any:
        """The offset, or the name of the error."""
        request = OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name="foo", partition_indexes=[index])],
        )
        answer = offset_requests.fetch(self.broker.groups, request, context(7))
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        return answer.topics[0].partitions[0].committed_offset

    def join(self, group: str = "g", version: int = 3, **more: Any) -> Any:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=READS_FOO)
        request = JoinGroupRequest(
            group_id=group,
            **{"session_timeout_ms": 10_000, "protocol_type": "consumer", "protocols": [protocol], **more},
        )
        pending = self.broker.groups.join_group(request, context(version))
        self.env.advance(1)
        return pending

    def member(self, group: str = "g") -> tuple[str, int]:
        """The only member of a stable group: its id and generation."""
        joined = answer_of(self.join(group))
        part = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        request = SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[part]
        )
        assert answer_of(self.broker.groups.sync_group(request, context(3))).assignment == b"all"
        return joined.member_id, joined.generation_id

    def heartbeat(self, member: tuple[str, int], group: str = "g") -> str:
        request = HeartbeatRequest(group_id=group, member_id=member[0], generation_id=member[1])
        return ErrorCode(self.broker.groups.heartbeat(request, context(3)).error_code).name

    def described(self, group: str = "g", version: int = 5) -> Any:
        request = DescribeGroupsRequest(groups=[group])
        return admin.describe_groups(self.broker.groups, request, context(version)).groups[0]


def codes(answer: Any) -> list[str]:
    return [ErrorCode(p.error_code).name for topic in answer_of(answer).topics for p in topic.partitions]


@pytest.mark.parametrize(
    ("group", "java_hash"),
    [
        ("", 0),
        ("g", 103),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("ß漢😀", None),
        ("consumer-1", None),
        ("ß漢😀" * 200, None),
    ],
)
def test_a_group_belongs_to_the_partition_of_javas_hash(group: str, java_hash: int | None) -> None:
    if java_hash is None:
        java_hash = 0
        data = group.encode("utf-16-be")
        for (unit,) in struct.iter_unpack(">H", data):
            java_hash = (java_hash * 31 + unit + 2**31) % 2**32 - 2**31
    expected = 0 if java_hash == -(2**31) else abs(java_hash) % 50
    assert partition_for(group, 50) == expected


# -- commits ----------------------------------------------------------------------------------------------------------


def test_below_min_isr_a_new_coordinator_answers_what_is_committed() -> None:
    rig = Coordinating([1, 2], min_insync_replicas="2")
    rig.commit(5)
    rig.followed()
    assert rig.committed() == 5
    rig.commit(9, "g2")  # not committed: broker 2 has not fetched it
    rig.lead(7, isr=[1])
    assert rig.committed() == 5
    assert rig.committed("another") == "COORDINATOR_LOAD_IN_PROGRESS", "its first commit may be in what is not loaded"
    stable = OffsetFetchRequest(
        group_id="g",
        topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name="foo", partition_indexes=[0])],
        require_stable=True,
    )
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert offset_requests.fetch(rig.broker.groups, stable, context(7)).error_code == loading
    answer = answer_of(rig.commit(6))
    assert answer.topics[0].partitions[0].error_code == loading
    rig.lead(8, isr=[1, 2])
    assert rig.committed() == "COORDINATOR_LOAD_IN_PROGRESS", "the newest commit is about to be known"
    end = rig.partition(OFFSETS).log.log_end_offset
    rig.fetch(end, replica=2, leader_epoch=8, last_fetched_epoch=5, topic=OFFSETS)
    rig.env.advance(1)
    assert (rig.committed(), rig.committed("g2")) == (5, 9)


def test_below_min_isr_a_commit_that_an_earlier_leader_may_have_committed_is_waited_for() -> None:
    rig = Coordinating([1, 2], min_insync_replicas="2")
    rig.commit(5)
    rig.followed()
    rig.commit(9)  # broker 2 has not fetched it
    rig.lead(7, isr=[1])
    assert rig.committed() == "COORDINATOR_LOAD_IN_PROGRESS", "with 5 a consumer might read records again"


def test_a_commit_is_answered_and_seen_when_it_is_replicated() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    pending = rig.commit(7)
    assert (answer_of(pending), rig.committed()) == (None, -1)
    rig.followed()
    assert (codes(pending), rig.committed()) == (["NONE"], 7)


def test_a_commit_that_takes_too_long_is_given_up_but_counts_when_it_is_replicated() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    first = rig.commit(7)
    rig.env.advance(3000)
    second = rig.commit(8)
    rig.env.advance(2001)
    assert (codes(first), answer_of(second)) == (["COORDINATOR_NOT_AVAILABLE"], None)
    rig.followed()
    assert (codes(second), rig.committed()) == (["NONE"], 8)


def test_below_min_isr_nothing_is_committed() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    rig.set_config("min.insync.replicas", "2", OFFSETS)
    rig.lead(5, isr=[1])
    rig.set_partition(state([1, 2], [1], leader_epoch=5, partition_epoch=6), OFFSETS)
    rig.publish()
    assert codes(rig.commit(7)) == ["COORDINATOR_NOT_AVAILABLE"]
    assert rig.committed() == -1


def test_each_partition_of_a_commit_is_judged_alone() -> None:
    rig = Coordinating()
    assert codes(rig.commit(1, index=9)) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert codes(rig.commit(1, topic="bar")) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert codes(rig.commit(1, metadata="x" * 4097)) == ["OFFSET_METADATA_TOO_LARGE"]
    assert codes(rig.commit(1, topic="", topic_id=b"nobody knows it!", version=10)) == ["UNKNOWN_TOPIC_ID"]
    assert codes(rig.commit(4, topic="", topic_id=TOPIC_IDS["foo"], version=10)) == ["NONE"]
    assert rig.committed() == 4


def test_only_members_of_this_generation_commit_for_a_group_that_has_members() -> None:
    rig = Coordinating()
    gone = {"generation_id_or_member_epoch": 3, "member_id": "m"}
    assert codes(rig.commit(1, **gone, version=8)) == ["ILLEGAL_GENERATION"]
    assert codes(rig.commit(1, **gone)) == ["GROUP_ID_NOT_FOUND"]
    assert codes(rig.commit(1, **gone, topic="bar")) == ["UNKNOWN_TOPIC_OR_PARTITION"], "that comes before the group"
    member_id, generation = rig.member()
    assert codes(rig.commit(2)) == ["UNKNOWN_MEMBER_ID"]
    assert codes(rig.commit(2, generation_id_or_member_epoch=generation, member_id="m")) == ["UNKNOWN_MEMBER_ID"]
    mine = {"member_id": member_id}
    assert codes(rig.commit(2, generation_id_or_member_epoch=generation - 1, **mine)) == ["ILLEGAL_GENERATION"]
    assert codes(rig.commit(2, generation_id_or_member_epoch=generation, **mine)) == ["NONE"]
    assert rig.committed() == 2


def test_a_commit_keeps_the_session_of_its_member() -> None:
    rig = Coordinating()
    member = rig.member()
    for _ in range(4):
        rig.env.advance(9000)
        rig.commit(1, generation_id_or_member_epoch=member[1], member_id=member[0])
    assert rig.heartbeat(member) == "NONE"
    rig.env.advance(10_001)
    assert rig.heartbeat(member) == "UNKNOWN_MEMBER_ID"


# -- the partition comes and goes -------------------------------------------------------------------------------------


def test_who_does_not_lead_the_partition_is_not_the_coordinator() -> None:
    rig = Coordinating([1, 2])
    rig.lead(6, leader=2)
    assert rig.committed() == "NOT_COORDINATOR"
    assert codes(rig.commit(1)) == ["NOT_COORDINATOR"]
    assert answer_of(rig.join()).error_code == ErrorCode.NOT_COORDINATOR
    assert rig.described().error_code == ErrorCode.NOT_COORDINATOR


def test_losing_the_partition_loses_everything_and_tells_whoever_waits() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    joining, committing = rig.join(version=0, session_timeout_ms=10_000, group="other"), rig.commit(3)
    again = rig.join("other", version=0)
    shard = rig.broker.groups.shards()[0]
    rig.lead(6, leader=2)
    assert answer_of(again).error_code == ErrorCode.NOT_COORDINATOR
    assert answer_of(joining) is not None
    assert codes(committing) == ["NOT_COORDINATOR"]
    assert (shard.groups, rig.broker.groups.shards()) == ({}, [])
    rig.env.advance(60_000)


def test_a_new_coordinator_waits_until_what_it_reads_is_below_the_watermark() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    pending = rig.commit(7)
    # re-elected before the follower has it: the record is in the log, and not known to be committed
    rig.lead(6)
    assert codes(pending) == ["NOT_COORDINATOR"]
    assert rig.committed() == "COORDINATOR_LOAD_IN_PROGRESS"
    member = ("m", 1)
    assert rig.heartbeat(member) == "NONE", "nobody loses a session because a coordinator loads"
    sync = SyncGroupRequest(group_id="g", member_id="m")
    assert answer_of(rig.broker.groups.sync_group(sync, context(3))).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert admin.list_groups(rig.broker.groups, ListGroupsRequest()).error_code == (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    end = rig.partition(OFFSETS).log.log_end_offset
    rig.fetch(end, replica=2, leader_epoch=6, last_fetched_epoch=5, topic=OFFSETS)
    rig.env.advance(1)
    assert rig.committed() == 7


@pytest.mark.parametrize("named", [{}, {"protocol_type": "consumer"}, {"protocol_name": "range"}])
def test_who_syncs_without_the_protocol_that_its_version_names_is_refused(named: dict[str, str]) -> None:
    groups = Coordinating().broker.groups
    request = SyncGroupRequest(group_id="g", member_id="m", **{"protocol_type": None, "protocol_name": None} | named)
    assert answer_of(groups.sync_group(request, context(5))).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert answer_of(groups.sync_group(request, context(4))).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_loaded_group_is_as_it_was() -> None:
    rig = Coordinating()
    member = rig.member()
    rig.commit(5, generation_id_or_member_epoch=member[1], member_id=member[0], metadata="m")
    rig.commit(6, "simple", index=1)
    before = rig.described()
    rig.lead(6)
    assert rig.described().members == before.members or [
        (m.member_id, m.member_assignment, m.member_metadata) for m in rig.described().members
    ] == [(m.member_id, m.member_assignment, m.member_metadata) for m in before.members]
    assert (rig.committed(), rig.committed("simple", 1)) == (5, 6)
    assert rig.heartbeat(member) == "NONE"
    rig.env.advance(10_001)
    assert rig.described().group_state == "Empty", "a member that has not found the new coordinator is out"


def test_offsets_of_a_transaction_are_loaded_only_if_it_was_committed() -> None:
    rig = Coordinating()
    log = rig.partition(OFFSETS).log
    committed, aborted = TransactionMarker(True, 0), TransactionMarker(False, 0)

    def commit_in_transaction(producer_id: int, group: str, offset: int) -> None:
        key, value = offset_record(group, ("foo", 0), OffsetAndMetadata(offset, -1, "", rig.env.wall_ms()))
        at = log.log_end_offset
        log.append_as_follower(encode_batch([(key, value, (), 0)], at, 5, 0, producer_id, 0, 0, transactional=True), 5)

    commit_in_transaction(7, "committed", 10)
    commit_in_transaction(8, "aborted", 20)
    commit_in_transaction(7, "overtaken", 30)
    rig.commit(31, "overtaken")
    log.append_marker(committed, 7, 0, 0, 5, 0)
    log.append_marker(aborted, 8, 0, 0, 5, 0)
    commit_in_transaction(9, "open", 40)
    rig.lead(6)
    assert [rig.committed(group) for group in ("committed", "aborted", "overtaken", "open")] == [10, -1, 31, -1]


class InTransactions(Coordinating):
    """Producer 7 writes offsets of a group in a transaction, in the partition that this broker leads."""

    @property
    def shard(self) -> GroupCoordinatorShard:
        return self.broker.groups.shards()[0]

    def write(self, group: str, offset: int) -> None:
        codes: list[ErrorCode] = []
        foo_id = self.image.topic_ids["foo"]
        written = {("foo", 0): OffsetAndMetadata(offset, -1, "", self.env.wall_ms(), topic_id=foo_id)}
        self.shard.commit_transactional(group, written, (7, 0), UNVERIFIED, codes.append)
        assert codes == [ErrorCode.NONE]

    def end(self, *, commit: bool) -> None:
        codes: list[ErrorCode] = []
        self.shard.end_transaction(TransactionMarker(commit, 0), (7, 0), 0, codes.append)
        assert codes == [ErrorCode.NONE]

    def after_the_end(self, group: str) -> list[int]:
        """The committed offset once the transaction has committed, and what the next coordinator loads."""
        self.end(commit=True)
        now = self.committed(group)
        self.lead(6)
        return [now, self.committed(group)]


def test_a_group_is_deleted_with_the_offsets_of_open_transactions() -> None:
    rig = InTransactions()
    rig.commit(5, "both")
    rig.write("both", 6)
    request = DeleteGroupsRequest(groups_names=["both"])
    (result,) = answer_of(admin.delete_groups(rig.broker.groups, request)).results
    assert result.error_code == ErrorCode.NONE
    assert rig.after_the_end("both") == [-1, -1]


def test_an_offset_that_is_written_after_the_deletion_of_its_group_counts() -> None:
    rig = InTransactions()
    rig.commit(5, "both")
    rig.write("both", 6)
    answer_of(admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=["both"])))
    rig.write("both", 8)
    assert rig.after_the_end("both") == [8, 8]


@pytest.mark.parametrize("has_others", [True, False])
def test_offsets_of_a_deleted_topic_that_an_open_transaction_has_written_go_with_it(has_others: bool) -> None:
    rig = InTransactions()
    if has_others:
        rig.commit(5, "late")
    rig.write("late", 6)
    rig.delete_topic("foo")
    rig.publish()
    assert rig.after_the_end("late") == [-1, -1]


def test_an_open_transaction_keeps_the_offsets_of_a_group_that_expires() -> None:
    rig = InTransactions(offsets_retention_minutes="1")
    rig.commit(5, "both")
    rig.write("both", 6)
    rig.env.advance(3_600_000)
    assert rig.after_the_end("both") == [6, 6]


def test_a_damaged_batch_of_the_only_copy_is_skipped_and_the_rest_is_loaded() -> None:
    rig = Coordinating()
    rig.commit(1, "before")
    rig.commit(2, "damaged")
    rig.commit(3, "after")
    log = rig.partition(OFFSETS).log
    segment = log.segments[0]
    position = segment.position_of(1)
    segment.log.pwrite(b"\xff", position + segment.header_at(position).size - 1)
    segment.unchecked = UncheckedBytes(segment.size)
    rig.lead(6)
    rig.env.advance(10)
    assert (rig.committed("before"), rig.committed("after")) == (1, 3)


def test_a_long_log_is_loaded_in_slices() -> None:
    rig = Coordinating()
    for number in range(1500):
        rig.commit(number, metadata="x" * 50)
    assert rig.partition(OFFSETS).log.size_bytes > 3 * LOAD_SLICE_BYTES
    rig.set_partition(state([1], leader_epoch=6, partition_epoch=6), OFFSETS)
    rig.publish()
    assert rig.committed() == "COORDINATOR_LOAD_IN_PROGRESS"
    rig.env.advance(1)
    assert rig.committed() == 1499


def test_a_failed_disk_sends_the_clients_away() -> None:
    rig = Coordinating()
    rig.commit(1)
    rig.broker.replicas.directories.failed(rig.directories[0], OSError("gone"))
    assert rig.committed() == "NOT_COORDINATOR"


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from("gh"), st.integers(0, 1), st.integers(0, 99)),
    st.tuples(st.just("delete"), st.sampled_from("gh")),
    st.tuples(st.just("join"), st.sampled_from("gh")),
    st.tuples(st.just("silence")),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("replicate")),
)


@given(st.lists(STEPS, max_size=25))
@settings(max_examples=40, deadline=None)
def test_what_is_loaded_is_what_was_answered_for(steps: list[Any]) -> None:
    rig = Coordinating([1, 2], offsets_retention_minutes="1")
    rig.followed()
    for step, *arguments in steps:
        match step, arguments:
            case "commit", (group, index, offset):
                rig.commit(offset, group, index=index)
            case "delete", (group,):
                admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=[group]))
            case "join", (group,):
                joined = answer_of(rig.join(group))
                if joined is not None:
                    request = SyncGroupRequest(
                        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
                    )
                    rig.broker.groups.sync_group(request, context(3))
            case "silence", ():
                rig.env.advance(10_001)
            case "sweep", ():
                rig.env.advance(600_001)
            case "replicate", ():
                rig.followed()
    # nobody speaks any more; what is left settles, and everything is replicated
    rig.env.advance(310_000)
    rig.followed()
    rig.env.advance(70_000)
    rig.followed()
    before = contents(rig)
    rig.lead(6)
    end = rig.partition(OFFSETS).log.log_end_offset
    rig.fetch(end, replica=2, leader_epoch=6, last_fetched_epoch=5, topic=OFFSETS)
    rig.env.advance(10)
    assert contents(rig) == before


def contents(rig: Coordinating) -> dict[str, Any]:
    (shard,) = rig.broker.groups.shards()
    assert shard.loaded
    return {
        group_id: (group.state, group.generation, list(group.members), group.offsets.committed)
        for group_id, group in shard.groups.items()
        # a group that never was stored and holds nothing is nothing
        if not (group.is_unused and not group.generation)
    }


# -- forgetting -------------------------------------------------------------------------------------------------------


def test_offsets_and_groups_that_nobody_needs_expire_for_good() -> None:
    rig = Coordinating(offsets_retention_minutes="60")
    rig.commit(5)
    member = rig.member("left")
    leaving = LeaveGroupRequest(group_id="left", members=[LeaveGroupRequest.MemberIdentity(member_id=member[0])])
    assert answer_of(rig.broker.groups.leave_group(leaving, context(3))).members[0].error_code == 0
    rig.env.advance(600_001)
    assert (rig.committed(), rig.described("left").group_state) == (5, "Dead"), "a group with neither is nothing"
    rig.env.advance(3_600_000)
    assert rig.committed() == -1
    assert admin.list_groups(rig.broker.groups, ListGroupsRequest()).groups == []
    rig.lead(6)
    assert rig.committed() == -1, "the tombstones are in the log"
    assert rig.broker.groups.shards()[0].groups == {}


def test_the_offsets_of_a_deleted_topic_go_with_it() -> None:
    rig = Coordinating()
    rig.commit(5)
    rig.delete_topic("foo")
    rig.publish()
    assert rig.committed() == -1


class WhileAway(InTransactions):
    """Another broker coordinates while foo is deleted, and created again under its name; then this one does."""

    def foo_is_recreated(self) -> None:
        self.lead(6, leader=2)
        self.delete_topic("foo")
        self.publish()
        other = Uuid(b"the new foo".ljust(16, b"-"))
        self.image.set_topic(other, TopicImage("foo", other), self.journal)
        for index in range(2):
            self.image.set_partition(other, index, state([1], leader_epoch=0), self.journal)
        self.publish()
        self.lead(7)


def test_offsets_of_a_topic_that_was_recreated_while_the_coordinator_was_away_do_not_count() -> None:
    rig = WhileAway([1, 2])
    rig.commit(5)
    rig.commit(9, index=1)
    rig.followed()
    assert (rig.committed(), rig.committed(index=1)) == (5, 9)
    rig.foo_is_recreated()
    rig.fetch(rig.partition(OFFSETS).log.log_end_offset, replica=2, leader_epoch=7, topic=OFFSETS)
    assert (rig.committed(), rig.committed(index=1)) == (-1, -1), "a group would skip records of the new topic"
    everything = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert offset_requests.fetch(rig.broker.groups, everything, context(9)).groups[0].topics == []
    rig.commit(2)
    rig.fetch(rig.partition(OFFSETS).log.log_end_offset, replica=2, leader_epoch=7, topic=OFFSETS)
    assert (rig.committed(), rig.committed(index=1)) == (2, -1)


def test_offsets_that_a_transaction_has_written_for_the_topic_before_do_not_count_either() -> None:
    rig = WhileAway()
    rig.write("late", 6)
    rig.foo_is_recreated()
    assert rig.after_the_end("late") == [-1, -1]


def test_offsets_stay_when_the_metadata_come_as_a_snapshot() -> None:
    rig = Coordinating()
    rig.commit(5)
    rig.broker.on_image(rig.image, None)
    assert rig.committed() == 5


def test_a_group_is_deleted_when_nobody_is_in_it() -> None:
    rig = Coordinating()
    member = rig.member()
    rig.commit(5, generation_id_or_member_epoch=member[1], member_id=member[0])

    def delete(*groups: str) -> list[str]:
        answer = admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=list(groups)))
        return [ErrorCode(result.error_code).name for result in answer_of(answer).results]

    assert delete("g", "nobody") == ["NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"]
    rig.env.advance(10_001)
    assert delete("g") == ["NONE"]
    assert (rig.committed(), rig.described().group_state) == (-1, "Dead")
    assert rig.described(version=6).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    rig.lead(6)
    assert rig.broker.groups.shards()[0].groups == {}


def test_a_group_is_deleted_whose_sessions_ended_while_the_process_was_paused() -> None:
    rig = Coordinating()
    member = rig.member()
    rig.commit(5, generation_id_or_member_epoch=member[1], member_id=member[0])
    # the clock has moved, and the request is handled before the timers
    rig.env.world.now_us += 10_001_000
    answer = admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=["g"]))
    assert [result.error_code for result in answer_of(answer).results] == [ErrorCode.NONE]


def test_an_operator_deletes_offsets_that_no_member_reads() -> None:
    rig = Coordinating()
    rig.set_partition(state([1], leader_epoch=0), "bar")
    rig.publish()
    rig.commit(5)
    rig.commit(6, topic="bar")
    rig.member()

    def delete(topic: str) -> list[str]:
        partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
        request = OffsetDeleteRequest(
            group_id="g", topics=[OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=[partition])]
        )
        return codes(offset_requests.delete(rig.broker.groups, request))

    nameless = offset_requests.delete(rig.broker.groups, OffsetDeleteRequest())
    assert answer_of(nameless).error_code == ErrorCode.INVALID_GROUP_ID
    assert [delete("foo"), delete("bar"), delete("baz")] == [
        ["GROUP_SUBSCRIBED_TO_TOPIC"],
        ["NONE"],
        ["UNKNOWN_TOPIC_OR_PARTITION"],
    ]
    everything = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)])
    answer = offset_requests.fetch(rig.broker.groups, everything, context(8))
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in answer.groups[0].topics] == [("foo", 5)]


# -- what is asked of groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"session_timeout_ms": 5999}, "INVALID_SESSION_TIMEOUT"),
        ({"session_timeout_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT"),
        ({"member_id": "m"}, "UNKNOWN_MEMBER_ID"),
        ({"protocols": []}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"group": ""}, "INVALID_GROUP_ID"),
    ],
)
def test_a_join_that_cannot_be_leaves_no_group_behind(more: dict[str, Any], code: str) -> None:
    rig = Coordinating()
    assert ErrorCode(answer_of(rig.join(**more)).error_code).name == code
    assert rig.broker.groups.shards()[0].groups == {}


def test_leaving_is_answered_when_the_empty_group_is_stored() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    joined = answer_of(rig.join())
    request = LeaveGroupRequest(group_id="g", member_id=joined.member_id)
    pending = rig.broker.groups.leave_group(request, context(2))
    assert answer_of(pending) is None
    rig.followed()
    assert answer_of(pending).error_code == ErrorCode.NONE
    assert answer_of(rig.broker.groups.leave_group(request, context(2))).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_are_listed_by_state_and_type() -> None:
    rig = Coordinating()
    rig.commit(1, "simple")
    rig.member("full")

    def listed(**filters: list[str]) -> list[tuple[str, str, str]]:
        found = admin.list_groups(rig.broker.groups, ListGroupsRequest(**filters)).groups
        return [(group.group_id, group.protocol_type, group.group_state) for group in found]

    assert listed() == [("simple", "", "Empty"), ("full", "consumer", "Stable")]
    assert listed(states_filter=["stable"]) == [("full", "consumer", "Stable")]
    assert listed(types_filter=["Classic"], states_filter=["Empty"]) == [("simple", "", "Empty")]
    assert listed(types_filter=["share"]) == []
