"""The partition comes and goes: what a new coordinator loads, and what the old one forgets."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.broker.groups import admin
from heirlog.broker.groups.offsets import OffsetAndMetadata
from heirlog.broker.groups.records import offset_record
from heirlog.broker.internal_topic_loader import LOAD_SLICE_BYTES
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteGroupsRequest, ListGroupsRequest, SyncGroupRequest
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.storage.unchecked_bytes import UncheckedBytes

from ..fakes import answer_of, context, state
from .coordinating import OFFSETS, Coordinating, codes


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
