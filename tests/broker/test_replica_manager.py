"""Partitions as the image makes them: created, led, followed, deleted, found again after a restart."""

from __future__ import annotations

import pytest

from heirlog.broker.isr import CommittedPartitionState
from heirlog.broker.partition import ReplicaRole
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionResponse, BrokerHeartbeatResponse

from .fakes import TOPIC_IDS, Rig, ids, restarted, state


def test_a_partition_is_created_led_and_followed_as_the_image_says() -> None:
    rig = Rig().started()
    assert rig.show(state([1, 2])).role is ReplicaRole.LEADER
    assert rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2)).role is ReplicaRole.FOLLOWER
    assert rig.show(state([1, 2], leader=-1, leader_epoch=7, partition_epoch=3)).leader == -1


def test_a_new_log_of_a_partition_that_had_a_leader_may_lack_records_until_it_is_in_an_isr() -> None:
    """Its disk was replaced, and the answers of other replicas cannot show what was on it."""
    rig = Rig().started()
    assert not rig.show(state([1, 2], leader=-1, leader_epoch=0)).log.may_lack_records
    rig = Rig().started()
    assert rig.show(state([1, 2], leader=-1, leader_epoch=7)).log.may_lack_records
    followed = rig.show(state([1, 2], leader=2, leader_epoch=8, partition_epoch=2))
    assert not followed.log.may_lack_records


def test_partitions_of_other_brokers_are_left_alone() -> None:
    rig = Rig().started()
    rig.set_partition(state([2, 3], leader=2))
    rig.publish()
    assert rig.broker.replicas.partition((TOPIC_IDS["foo"], 0)) is None


def test_a_deleted_topic_is_gone_at_once_and_its_bytes_later() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.delete_topic()
    rig.publish()
    assert not rig.broker.replicas.partitions_named("foo")
    names = rig.env.files.list("/data")
    assert "foo-0" not in names and any(name.endswith("-delete") for name in names)
    rig.env.advance(60_000)
    assert not any(name.endswith("-delete") for name in rig.env.files.list("/data"))


def test_a_topic_created_anew_under_its_old_name_is_empty() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1)
    rig.delete_topic()
    TOPIC_IDS["foo"], old = TOPIC_IDS["bar"], TOPIC_IDS["foo"]
    try:
        assert rig.show(state([1])).log.log_end_offset == 0
    finally:
        TOPIC_IDS["foo"] = old


def test_logs_and_watermarks_are_found_again_after_a_restart() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1)
    again = restarted(rig)
    again.set_partition(state([1, 2], leader=2, leader_epoch=6))
    again.started()
    partition = again.partition()
    assert (partition.log.log_end_offset, partition.high_watermark) == (1, 1)


def test_a_broker_whose_log_lost_records_while_it_was_stopped_does_not_claim_a_clean_stop() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1)
    again = restarted(rig)
    file = again.env.files.open(f"/data/foo-0/{0:020d}.log")
    file.truncate(file.size // 2)
    again.broker.start()
    again.env.advance(10)
    assert again.env.take("heartbeat").request.previous_broker_epoch == -1


def test_an_isr_change_is_asked_for_and_its_answer_taken_in() -> None:
    rig = Rig().started()
    rig.show(state([1, 2], [1]))
    rig.fetch(0, replica=2)
    sent = rig.env.take("alter-partition")
    members = sent.request.topics[0].partitions[0].new_isr_with_epochs
    assert [(member.broker_id, member.broker_epoch) for member in members] == [(1, 101), (2, 102)]
    answer = AlterPartitionResponse.PartitionData(
        partition_index=0, leader_id=1, leader_epoch=5, isr=[1, 2], partition_epoch=2, committed_offset=10**6
    )
    topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_IDS["foo"], partitions=[answer])
    sent.on_result(AlterPartitionResponse(topics=[topic]))
    assert rig.partition().isr == CommittedPartitionState(ids([1, 2]))
    assert rig.partition().image_isr == ids([1])


def test_a_request_to_the_controller_that_failed_is_sent_again() -> None:
    rig = Rig().started()
    rig.show(state([1, 2], [1]))
    rig.fetch(0, replica=2)
    rig.env.take("alter-partition").on_result(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    rig.env.advance(49)
    assert not [sent for sent in rig.env.sent if sent.channel == "alter-partition"]
    rig.env.advance(1)
    assert rig.env.take("alter-partition")


def test_one_request_to_the_controller_carries_all_that_waits() -> None:
    rig = Rig().started()
    for index in range(3):
        rig.show(state([1, 2], [1]), index=index)
        rig.fetch(0, replica=2, partitions=[index])
    first = rig.env.take("alter-partition")
    assert not [sent for sent in rig.env.sent if sent.channel == "alter-partition"]
    answer = AlterPartitionResponse.PartitionData(
        partition_index=0, leader_id=1, leader_epoch=5, isr=[1, 2], partition_epoch=2
    )
    topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_IDS["foo"], partitions=[answer])
    first.on_result(AlterPartitionResponse(topics=[topic]))
    request = rig.env.take("alter-partition").request
    assert [partition.partition_index for partition in request.topics[0].partitions] == [1, 2]


def test_a_min_isr_that_is_lowered_wakes_who_waits_for_the_watermark() -> None:
    rig = Rig().started()
    rig.set_config("min.insync.replicas", "2")
    rig.show(state([1, 2], [1]))
    rig.produce(1)
    result = rig.fetch(0, max_wait_ms=500)
    rig.set_config("min.insync.replicas", "1")
    rig.publish()
    assert result.done


@pytest.mark.parametrize("leader", [1, 2], ids=["it still leads", "it has lost the leadership"])
def test_a_min_isr_is_never_judged_beside_an_older_isr(leader: int) -> None:
    rig = Rig().started()
    rig.set_config("min.insync.replicas", "3")
    rig.show(state([1, 2, 3], [1, 3]))
    rig.produce(1)
    rig.fetch(1, replica=3)
    assert rig.partition().high_watermark == 0
    rig.set_config("min.insync.replicas", "1")
    epoch = 5 if leader == 1 else 6
    # replica 2 was elected, or joined, without the record
    rig.show(state([1, 2, 3], [1, 2, 3], leader=leader, leader_epoch=epoch, partition_epoch=2))
    assert rig.partition().high_watermark == 0


def test_a_fenced_follower_no_longer_holds_the_watermark_back() -> None:
    rig = Rig().started()
    rig.show(state([1, 2]))
    rig.fetch(0, replica=2)
    rig.produce(1)
    rig.show(state([1, 2], [1], partition_epoch=2))
    assert rig.partition().high_watermark == 0
    rig.set_broker(2, fenced=True)
    rig.publish()
    assert rig.partition().high_watermark == 1


def test_topic_configs_reach_the_log() -> None:
    rig = Rig().started()
    rig.set_config("segment.bytes", "1048576")
    assert rig.show(state([1])).log.config.segment_bytes == 1_048_576
    rig.set_config("max.message.bytes", "1000")
    rig.publish()
    assert rig.partition().log.config.max_message_bytes == 1000


def test_gauges_count_what_is_below_and_at_min_isr() -> None:
    rig = Rig().started()
    rig.set_config("min.insync.replicas", "2")
    rig.show(state([1, 2, 3], [1]))
    rig.show(state([1, 2, 3], [1, 2]), index=1)
    metrics = rig.broker.metrics()
    assert (metrics.leader_count, metrics.under_min_isr_partition_count, metrics.at_min_isr_partition_count) == (
        2,
        1,
        1,
    )
    assert metrics.under_replicated_partitions == 2


@pytest.mark.parametrize("controlled", [True, False])
def test_metadata_that_comes_while_the_logs_are_closed_makes_nobody_serve_again(controlled: bool) -> None:
    rig = Rig(controlled_shutdown_enable=str(controlled).lower()).started()
    partition = rig.show(state([1, 2]))
    rig.broker.shutdown(lambda: None)
    if controlled:
        rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(should_shut_down=True))
    # records appended from here on would not be flushed, and the clean-shutdown file would vouch for them
    rig.show(state([1, 2], leader=1, leader_epoch=6, partition_epoch=2))
    rig.set_partition(state([1, 2], leader=2), topic="bar")
    rig.publish()
    assert partition.role is ReplicaRole.IDLE
    assert not rig.broker.replicas.partitions_named("bar")
    assert not [sent for sent in rig.env.sent if sent.channel.startswith("replica-fetch")]
