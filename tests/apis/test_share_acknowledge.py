"""ShareAcknowledge through a node: versions, what is refused, what a failing coordinator means, and permissions."""

from __future__ import annotations

from apis.guarded import ADMIN, ALICE, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded
from apis.share_members import ACCEPT, GAP, REJECT, RELEASE, RENEW, Member, ack_code, acquired_in, share_topic
from apis.shares import initializing

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ShareAcknowledgeRequest

EXAMPLE = ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1), None


def holding(node: Guarded, name: str, version: int = 2) -> Member:
    """A member that holds four records."""
    topic = share_topic(node, name, name)
    node.write(name, b"a", b"b", b"c", b"d")
    member = Member(node, name, topic, version=version)
    assert acquired_in(member.fetch()) == [(0, 3, 1)]
    return member


def test_each_offset_may_have_a_type_of_its_own(node: Guarded) -> None:
    member = holding(node, "types")
    assert ack_code(member.acknowledge((0, 3, [ACCEPT, RELEASE, REJECT, GAP]))) == ErrorCode.NONE
    assert acquired_in(member.fetch()) == [(1, 1, 2)]


def test_version_2_says_how_long_locks_are_and_renews_them(node: Guarded) -> None:
    member = holding(node, "renewing")
    answer = member.acknowledge((0, 0, [RENEW]), is_renew_ack=True)
    assert (ack_code(answer), answer.acquisition_lock_timeout_ms) == (ErrorCode.NONE, 30_000)
    old = holding(node, "renewing-old", version=1)
    assert ack_code(old.acknowledge((0, 0, [RENEW]))) == ErrorCode.INVALID_REQUEST


def test_a_partition_takes_all_acknowledgements_or_none(node: Guarded) -> None:
    member = holding(node, "whole")
    assert ack_code(member.acknowledge((0, 1, [ACCEPT]), (3, 4, [ACCEPT]))) == ErrorCode.INVALID_REQUEST
    assert ack_code(member.acknowledge((0, 3, [ACCEPT]))) == ErrorCode.NONE
    assert ack_code(member.acknowledge((0, 3, [ACCEPT]))) == ErrorCode.NONE, "below the start offset they are ignored"


def test_ranges_that_have_one_offset_in_common_find_it_changed(node: Guarded) -> None:
    member = holding(node, "common")
    assert ack_code(member.acknowledge((0, 1, [ACCEPT]), (1, 3, [ACCEPT]))) == ErrorCode.INVALID_RECORD_STATE
    assert ack_code(member.acknowledge((0, 2, [ACCEPT]), (1, 3, [ACCEPT]))) == ErrorCode.INVALID_REQUEST
    assert ack_code(member.acknowledge((-1, 3, [ACCEPT]))) == ErrorCode.NONE, "what is below the start is ignored"


def test_a_partition_without_acknowledgements_is_answered_beside_one_that_has_some(node: Guarded) -> None:
    member = holding(node, "beside")
    assert member.acknowledge().responses == []
    request = member.acknowledging((0, 3, [ACCEPT]))
    R = ShareAcknowledgeRequest
    request.topics.append(R.AcknowledgeTopic(topic_id=node.topic_id("t"), partitions=[R.AcknowledgePartition()]))
    unknown = [R.AcknowledgePartition(partition_index=7)]
    request.topics.append(R.AcknowledgeTopic(topic_id=bytes(15) + b"x", partitions=unknown))
    answer = member.ask(request)
    assert {
        (bytes(topic.topic_id), part.partition_index): part.error_code
        for topic in answer.responses
        for part in topic.partitions
    } == {
        (member.topic, 0): ErrorCode.NONE,
        (node.topic_id("t"), 0): ErrorCode.NONE,
        (bytes(15) + b"x", 7): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_it_cannot_open_a_session(node: Guarded) -> None:
    member = holding(node, "opening")
    assert member.acknowledge((0, 0, [1]), share_session_epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge((0, 0, [1]), share_session_epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    other = Member(node, "opening", member.topic, "other")
    assert other.acknowledge((0, 0, [1]), share_session_epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_it_may_end_the_session(node: Guarded) -> None:
    member = holding(node, "ending")
    assert ack_code(member.acknowledge((0, 1, [ACCEPT]), share_session_epoch=-1)) == ErrorCode.NONE
    assert acquired_in(Member(node, "ending", member.topic, "next").fetch()) == [(2, 3, 2)]


def test_what_was_given_back_cannot_be_acknowledged(node: Guarded) -> None:
    member = holding(node, "given-back")
    member.connection.closed()
    again = Member(node, "given-back", member.topic, "m")
    again.fetch(max_records=1, share_acquire_mode=1)
    assert ack_code(again.acknowledge((1, 1, [ACCEPT]))) == ErrorCode.INVALID_RECORD_STATE


def test_nothing_can_be_acknowledged_where_the_group_has_fetched_nothing(node: Guarded) -> None:
    member = holding(node, "elsewhere")
    member.topic = share_topic(node, "untouched", "elsewhere")
    assert ack_code(member.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_new_state_epoch_makes_the_leader_load_again(node: Guarded) -> None:
    member = holding(node, "moved")
    node.ask(initializing(member.topic, "moved", epoch=2, start=2), principal=ADMIN)
    assert ack_code(member.acknowledge((0, 3, [ACCEPT]))) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert acquired_in(member.fetch()) == [(2, 3, 1)]


def test_a_member_must_be_allowed_to_read_the_group_and_each_topic(node: Guarded) -> None:
    topic = share_topic(node, "ack-acl", "ack-acl")
    member = Member(node, "ack-acl", topic, principal=ALICE)
    node.write("ack-acl", b"a")
    assert member.acknowledge((0, 0, [ACCEPT])).error_code == G_DENIED
    node.allow(AclOperation.READ, GROUP, "ack-acl")
    member.fetch(max_wait_ms=0)
    assert ack_code(member.acknowledge((0, 0, [ACCEPT]))) == T_DENIED
    node.allow(AclOperation.READ, TOPIC, "ack-acl")
    member.fetch()
    assert ack_code(member.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.NONE
