from __future__ import annotations

import pytest

from heirlog.broker.groups import admin, offset_requests
from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.broker.groups.shard import GroupCoordinatorShard
from heirlog.metadata.image import TopicImage
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DeleteGroupsRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.protocol.types import Uuid
from heirlog.storage.verification import UNVERIFIED

from ..fakes import answer_of, context, state
from .coordinating import OFFSETS, Coordinating, codes


class InTransactions(Coordinating):
    """Producer 7 writes offsets of a group in a transaction, in the partition that this broker leads."""

    @property
    def shard(self) -> GroupCoordinatorShard:
        return self.broker.groups.shards()[0]

    def write(self, group: str, offset: int) -> None:
        codes: list[ErrorCode] = []
        foo_id = self.image.topic_ids["foo"]
        written = {("foo", 0): OffsetAndMetadata(offset, -1, "", self.env.wall_ms(), topic_id=foo_id)}
        self.shard.writer.commit_transactional(group, written, (7, 0), UNVERIFIED, codes.append)
        assert codes == [ErrorCode.NONE]

    def end(self, *, commit: bool) -> None:
        codes: list[ErrorCode] = []
        self.shard.writer.end_transaction(TransactionMarker(commit, 0), (7, 0), 0, codes.append)
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
