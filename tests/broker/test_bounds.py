"""Every queue of a broker has a bound: what happens when it is reached."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker import producer_id_manager
from heirlog.broker.purgatory import Purgatory
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionResponse, DeleteRecordsRequest, InitProducerIdRequest

from .fakes import TOPIC_IDS, Rig, answer_of, batch, context, state


@pytest.fixture
def rig() -> Rig:
    rig = Rig().started()
    rig.show(state([1, 2], isr=[1, 2]))
    return rig


def fill(purgatory: Purgatory[Any], room: int) -> None:
    purgatory._limit = room


def test_a_produce_request_that_finds_no_place_to_wait_is_answered_as_if_its_time_were_up(rig: Rig) -> None:
    fill(rig.broker.replicas.delayed.produce, 3)
    waiting = [rig.produce(-1, batch(), timeout_ms=60_000) for _ in range(3)]
    assert not any(one.done for one in waiting)
    response = answer_of(rig.produce(-1, batch(), timeout_ms=60_000))
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    rig.fetch(4, replica=2)
    assert all(one.done for one in waiting)
    assert isinstance(rig.produce(-1, batch(), timeout_ms=60_000), Pending), "there is room again"


@pytest.mark.parametrize("replica", [-1, 2], ids=["consumer", "follower"])
def test_a_fetch_that_finds_no_place_to_wait_is_answered_empty(rig: Rig, replica: int) -> None:
    replicas = rig.broker.replicas
    fill(replicas.delayed.follower_fetch if replica == 2 else replicas.delayed.consumer_fetch, 2)
    waiting = [rig.fetch(0, replica=replica, max_wait_ms=60_000) for _ in range(2)]
    assert not any(answer_of(one) for one in waiting)
    assert answer_of(rig.fetch(0, replica=replica, max_wait_ms=60_000)) is not None


def test_a_delete_records_request_that_finds_no_place_to_wait_is_answered_as_if_its_time_were_up(rig: Rig) -> None:
    waits = rig.broker.replicas.delayed.delete_records
    fill(waits, 3)
    rig.produce(1, batch(9))
    rig.fetch(9, replica=2)
    waiting = [delete_records(rig, offset) for offset in (1, 2, 3)]
    assert not any(one.done for one in waiting)
    refused = answer_of(delete_records(rig, 4)).topics[0].partitions[0]
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    waiting[0].abandon()
    assert not delete_records(rig, 5).done, "there is room again: a client went away"
    rig.env.advance(60_000)
    assert all(one.done for one in waiting)
    assert (len(waits), waits._watchers) == (0, {})


def delete_records(rig: Rig, offset: int) -> Any:
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [DeleteRecordsRequest.DeleteRecordsTopic(name="foo", partitions=[partition])]
    return rig.broker.delete_records(DeleteRecordsRequest(topics=topics, timeout_ms=60_000))


def test_proposals_to_the_controller_are_one_per_partition_and_one_request_at_a_time(rig: Rig) -> None:
    rig.show(state([1, 2], isr=[1]), index=1)
    sender = rig.broker._sender
    for _ in range(50):
        rig.fetch(0, replica=2, partitions=[1])
        rig.env.advance(10)
    (sent,) = [each for each in rig.env.sent if each.channel == "alter-partition"]
    (proposal,) = sender._slots.values()
    assert not sender.submit(proposal), "a second one of the partition waits for the answer to the first"
    answer = AlterPartitionResponse.PartitionData(
        partition_index=1, leader_id=1, leader_epoch=5, isr=[1, 2], partition_epoch=2
    )
    topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_IDS["foo"], partitions=[answer])
    sent.on_result(AlterPartitionResponse(topics=[topic]))
    assert sender._slots == {}


def test_of_producers_that_wait_for_an_id_a_thousand_wait(rig: Rig) -> None:
    def init() -> Any:
        return rig.broker.init_producer_id(InitProducerIdRequest(transactional_id=None), context(4))

    waiting = [init() for _ in range(producer_id_manager.WAITING_MAX)]
    assert not any(answer_of(one) for one in waiting)
    assert answer_of(init()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    timers = timers_of(rig)
    for one in waiting:
        one.abandon()
    assert timers_of(rig) == timers - producer_id_manager.WAITING_MAX
    assert not init().done, "there is room again: clients went away"


def timers_of(rig: Rig) -> int:
    return sum(event is None or not event.is_cancelled for *_, event in rig.env.world._heap)
