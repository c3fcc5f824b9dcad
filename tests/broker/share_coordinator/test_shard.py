"""The share coordinator of a whole broker: answers and commits, loading, pruning, and topics that are deleted."""

from __future__ import annotations

from typing import Any

from heirlog.broker.share_coordinator.shard import COLD_INTERVAL_MS, PRUNE_INTERVAL_MS, ShareCoordinatorShard
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from heirlog.protocol.types import LeaderEpoch

from ..fakes import TOPIC_IDS, Rig, answer_of, state

STATES = "__share_group_state"
FOO = TOPIC_IDS["foo"]


class Coordinating(Rig):
    """Broker 1 leads the only partition of `__share_group_state`; foo has two partitions."""

    def __init__(self, replicas: list[int] | None = None, **properties: str) -> None:
        super().__init__(**properties)
        self.started()
        self.replicas = replicas or [1]
        for index in range(2):
            self.set_partition(state([3], leader=3, leader_epoch=0), "foo", index)
        self.lead(5)

    def lead(self, epoch: int, leader: int = 1, isr: list[int] | None = None) -> None:
        to = state(self.replicas, isr, leader=leader, leader_epoch=epoch, partition_epoch=epoch)
        self.set_partition(to, STATES)
        self.publish()
        self.env.advance(1)

    def follow(self) -> None:
        """Broker 2 has fetched everything."""
        end = self.log.log_end_offset
        self.fetch(end, replica=2, leader_epoch=5, last_fetched_epoch=5, topic=STATES)

    @property
    def log(self) -> Any:
        return self.partition(STATES).log

    @property
    def shard(self) -> ShareCoordinatorShard:
        (shard,) = self.broker.share_coordinator.shards()
        return shard

    def initialize(
        self, epoch: int = 1, start: int = -1, partition: int = 0, topic: Any = FOO, group: str = "g"
    ) -> Any:
        R = InitializeShareGroupStateRequest
        asked = R.PartitionData(partition=partition, state_epoch=epoch, start_offset=start)
        return self.broker.share_coordinator.initialize(
            R(group_id=group, topics=[R.InitializeStateData(topic_id=topic, partitions=[asked])])
        )

    def begin(self, partition: int = 0) -> None:
        """A state that its first leader has read."""
        assert code(self.initialize(partition=partition)) is ErrorCode.NONE
        assert code(self.read(leader=0, partition=partition)) is ErrorCode.NONE

    def write(self, leader: int = 1, epoch: int = 1, start: int = -1, batches: Any = (), partition: int = 0) -> Any:
        R = WriteShareGroupStateRequest
        asked = R.PartitionData(
            partition=partition,
            state_epoch=epoch,
            leader_epoch=leader,
            start_offset=start,
            delivery_complete_count=7,
            state_batches=[
                R.StateBatch(first_offset=a, last_offset=b, delivery_state=c, delivery_count=d)
                for a, b, c, d in batches
            ],
        )
        return self.broker.share_coordinator.write(
            R(group_id="g", topics=[R.WriteStateData(topic_id=FOO, partitions=[asked])])
        )

    def read(self, leader: int = 1, partition: int = 0) -> Any:
        R = ReadShareGroupStateRequest
        asked = R.PartitionData(partition=partition, leader_epoch=leader)
        return self.broker.share_coordinator.read(
            R(group_id="g", topics=[R.ReadStateData(topic_id=FOO, partitions=[asked])])
        )

    def summary(self, partition: int = 0) -> Any:
        R = ReadShareGroupStateSummaryRequest
        asked = R.PartitionData(partition=partition, leader_epoch=0)
        return self.broker.share_coordinator.read_summary(
            R(group_id="g", topics=[R.ReadStateSummaryData(topic_id=FOO, partitions=[asked])])
        )

    def delete(self, partition: int = 0) -> Any:
        R = DeleteShareGroupStateRequest
        topics = [R.DeleteStateData(topic_id=FOO, partitions=[R.PartitionData(partition=partition)])]
        return self.broker.share_coordinator.delete(R(group_id="g", topics=topics))


def result(answer: Any) -> Any:
    answer = answer_of(answer)
    assert answer is not None, "it waits for the high watermark"
    return answer.results[0].partitions[0]


def code(answer: Any) -> ErrorCode:
    return ErrorCode(result(answer).error_code)


def shown(answer: Any) -> str:
    found = result(answer)
    if found.error_code:
        return ErrorCode(found.error_code).name
    batches = [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in found.state_batches]
    return f"epoch {found.state_epoch} start {found.start_offset} {batches}"


def test_what_is_written_is_read_and_summarized() -> None:
    rig = Coordinating()
    assert code(rig.read()) is ErrorCode.INVALID_REQUEST, "not initialized"
    assert (result(rig.summary()).start_offset, code(rig.summary())) == (-1, ErrorCode.NONE)
    assert code(rig.initialize()) is ErrorCode.NONE
    assert shown(rig.read()) == "epoch 1 start -1 []"
    assert code(rig.write(start=3, batches=[(3, 5, 0, 1), (6, 6, 2, 1)])) is ErrorCode.NONE
    assert shown(rig.read()) == "epoch 1 start 3 [(3, 5, 0, 1), (6, 6, 2, 1)]"
    summary = result(rig.summary())
    assert (summary.start_offset, summary.leader_epoch, summary.delivery_complete_count) == (3, 1, 7)
    assert code(rig.delete()) is ErrorCode.NONE
    assert code(rig.read()) is ErrorCode.INVALID_REQUEST
    assert code(rig.delete()) is ErrorCode.NONE, "deleting nothing succeeds"


def test_an_initialization_that_arrives_once_more_takes_nothing_back() -> None:
    """A group coordinator that was paused sends it again on waking, when its successor has assigned the partition."""
    rig = Coordinating()
    rig.begin()
    rig.write(start=3, batches=[(3, 5, 2, 1)])
    assert code(rig.initialize()) is ErrorCode.NONE
    assert shown(rig.read()) == "epoch 1 start 3 [(3, 5, 2, 1)]"


def test_what_no_share_partition_can_be_is_refused_and_what_does_not_exist() -> None:
    rig = Coordinating()
    assert code(rig.initialize(topic=bytes(16))) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(rig.initialize(partition=-1)) is ErrorCode.INVALID_REQUEST
    assert rig.initialize(group="").results == []
    assert code(rig.initialize(partition=2)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(rig.initialize()) is ErrorCode.NONE
    assert code(rig.write(batches=[(5, 4, 0, 1)])) is ErrorCode.INVALID_REQUEST
    assert (
        rig.shard.states and rig.broker.share_coordinator.read(ReadShareGroupStateRequest(group_id="g")).results == []
    )


def test_an_answer_waits_until_everything_that_it_knows_of_is_committed() -> None:
    rig = Coordinating(replicas=[1, 2])
    waiting = [rig.initialize(), rig.read(leader=0), rig.read(leader=4), rig.write(leader=3), rig.summary()]
    assert [answer_of(each) for each in waiting] == [None] * 5
    rig.follow()
    assert [code(each).name for each in waiting] == ["NONE", "NONE", "NONE", "FENCED_LEADER_EPOCH", "NONE"]


def test_a_broker_that_lost_the_partition_answers_what_waited_and_knows_nothing() -> None:
    rig = Coordinating(replicas=[1, 2])
    waiting = [rig.initialize(), rig.summary()]
    rig.lead(6, leader=2)
    assert [code(each) for each in waiting] == [ErrorCode.NOT_COORDINATOR] * 2
    assert code(rig.read()) is ErrorCode.NOT_COORDINATOR
    rig.lead(7)
    rig.fetch(rig.log.log_end_offset, replica=2, leader_epoch=7, last_fetched_epoch=5, topic=STATES)
    rig.env.advance(1)
    read = rig.read(leader=0)
    rig.fetch(rig.log.log_end_offset, replica=2, leader_epoch=7, last_fetched_epoch=7, topic=STATES)
    assert code(read) is ErrorCode.NONE, "its record was in the log of the new leader, too"


def test_the_next_coordinator_loads_the_same_state() -> None:
    rig = Coordinating(share_coordinator_snapshot_update_records_per_snapshot="3")
    rig.begin()
    for number in range(10):
        assert code(rig.write(leader=2, start=number, batches=[(number + 5, number + 9, 2, 1)])) is ErrorCode.NONE
        before, snapshots = dict(rig.shard.states), dict(rig.shard.snapshots)
        rig.lead(6 + number)
        rig.env.advance(10)
        assert rig.shard.states == before
        assert rig.shard.snapshots == snapshots
        assert code(rig.write(leader=1)) is ErrorCode.FENCED_LEADER_EPOCH


def test_the_log_is_pruned_up_to_the_oldest_of_the_newest_snapshots() -> None:
    rig = Coordinating(share_coordinator_snapshot_update_records_per_snapshot="3")
    rig.begin(partition=0)
    rig.begin(partition=1)
    for _ in range(8):
        rig.write(partition=0)
    rig.env.advance(PRUNE_INTERVAL_MS - 1000)
    assert rig.log.log_start_offset == 0
    rig.env.advance(2000)
    assert rig.log.log_start_offset == 2, "the snapshot of partition 1 is still needed"
    before = dict(rig.shard.states)
    rig.lead(6)
    rig.env.advance(10)
    assert rig.shard.states == before
    rig.env.advance(max(COLD_INTERVAL_MS, PRUNE_INTERVAL_MS) + 1000)
    rig.env.advance(PRUNE_INTERVAL_MS)
    end = rig.log.log_end_offset
    assert rig.log.log_start_offset == end - 2, "both got a snapshot while nothing was written"
    rig.env.advance(3 * COLD_INTERVAL_MS)
    assert rig.log.log_end_offset == end, "one is enough"


def test_what_is_not_committed_is_not_pruned_for() -> None:
    rig = Coordinating(replicas=[1, 2])
    rig.initialize()
    rig.follow()
    rig.initialize(epoch=2)
    rig.shard.prune()
    assert (rig.log.log_start_offset, rig.log.log_end_offset) == (0, 2)
    rig.follow()
    rig.shard.prune()
    assert rig.log.log_start_offset == 1


def test_the_state_of_a_deleted_topic_goes_with_it() -> None:
    rig = Coordinating()
    rig.initialize()
    rig.delete_topic("foo")
    rig.publish()
    assert rig.shard.states == {}
    rig.lead(6)
    rig.env.advance(10)
    assert rig.shard.states == {}


def test_a_topic_that_was_deleted_while_nobody_coordinated_is_noticed_after_loading() -> None:
    rig = Coordinating()
    rig.initialize()
    rig.lead(6, leader=2)
    rig.delete_topic("foo")
    rig.publish()
    rig.lead(7)
    rig.env.advance(10)
    assert rig.shard.loaded and rig.shard.states == {}


def test_below_min_isr_a_write_is_refused_and_changes_nothing() -> None:
    rig = Coordinating(replicas=[1, 2], min_insync_replicas="2")
    rig.initialize()
    rig.read()
    rig.follow()
    rig.lead(6, isr=[1])
    rig.env.advance(10)
    end = rig.log.log_end_offset
    assert code(rig.write()) in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert rig.log.log_end_offset == end


def test_an_answer_that_takes_too_long_says_so_and_its_change_stays() -> None:
    rig = Coordinating(replicas=[1, 2])
    waiting = rig.initialize()
    rig.env.advance(6000)
    assert code(waiting) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    read = rig.read(leader=0)
    rig.follow()
    assert code(read) is ErrorCode.NONE


def test_a_record_that_cannot_be_read_closes_the_partition_to_clients() -> None:
    rig = Coordinating()
    rig.initialize()
    broken = encode_batch([(b"\0\0", b"\0\0", (), 0)], base_offset=rig.log.log_end_offset, leader_epoch=5)
    rig.partition(STATES).log.append_as_follower(broken, LeaderEpoch(5))
    rig.lead(6)
    rig.env.advance(10)
    assert code(rig.read()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "share-state-record-unreadable" in [event for event, _ in rig.env.events]
