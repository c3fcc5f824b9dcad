"""Leaders and followers on one virtual clock: how long acks=all waits, and that logs become equal."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest, ListOffsetsRequest, ProduceRequest

from .fakes import FakeEnv, Rig, Sent, answer_of, batch, context, state

NETWORK_MS = 1


class Pair:
    """Brokers 1 and 2 see the same image. A request or an answer takes `NETWORK_MS`, in order."""

    def __init__(self) -> None:
        self.env = FakeEnv()
        self.rigs = {n: Rig(n, self.env, log_dirs=f"/data{n}").started() for n in (1, 2)}
        self.fetches = 0
        self._deliver()

    def _deliver(self) -> None:
        for sent in list(self.env.sent):
            if sent.channel.startswith("replica-fetch"):
                self.env.sent.remove(sent)
                self.env.call_later(NETWORK_MS, lambda sent=sent: self._arrived(sent))
        self.env.call_later(1, self._deliver)

    def _arrived(self, sent: Sent) -> None:
        broker = self.rigs[int(sent.to.host.removeprefix("broker"))].broker
        result: Any
        if isinstance(sent.request, ListOffsetsRequest):
            result = broker.list_offsets(sent.request, context(10))
        else:
            assert isinstance(sent.request, FetchRequest)
            self.fetches += 1
            result = broker.fetch(sent.request, context(17))

        def answered(response: Any) -> None:
            self.env.call_later(NETWORK_MS, lambda: sent.on_result(response))

        if isinstance(result, Pending):
            result.then(answered)
        else:
            answered(result)

    def show(self, index: int, leader: int, epoch: int = 5, late_ms: int = 0) -> None:
        """`late_ms`: the leader sees it that much later than the follower."""
        for n, rig in self.rigs.items():
            rig.set_partition(state([1, 2], leader=leader, leader_epoch=epoch, partition_epoch=epoch), index=index)
            if n != leader:
                rig.publish()
        self.env.advance(late_ms)
        self.rigs[leader].publish()

    def acknowledged_after_ms(self, leader: int, index: int) -> int:
        """How long a produce with acks=all waits."""
        began_ms = self.env.now_ms()
        answer = self.produce(leader, index)
        while answer_of(answer) is None:
            self.env.advance(1)
        assert answer_of(answer).responses[0].partition_responses[0].error_code == ErrorCode.NONE
        return self.env.now_ms() - began_ms

    def produce(self, leader: int, index: int) -> Any:
        data = [ProduceRequest.PartitionProduceData(index=index, records=memoryview(batch()))]
        request = ProduceRequest(
            acks=-1, timeout_ms=5000, topic_data=[ProduceRequest.TopicProduceData(name="foo", partition_data=data)]
        )
        return self.rigs[leader].broker.produce(request, context(12))

    def ends(self, index: int) -> list[int]:
        return [rig.partition(index=index).log.log_end_offset for rig in self.rigs.values()]


def test_the_first_record_of_a_new_partition_does_not_wait_for_a_long_poll() -> None:
    pair = Pair()
    pair.show(0, leader=1)
    pair.env.advance(100)
    pair.show(1, leader=1)
    assert pair.acknowledged_after_ms(1, 1) <= 10


def test_nor_does_it_where_the_leader_hears_of_the_partition_after_its_follower() -> None:
    pair = Pair()
    pair.show(0, leader=1)
    pair.env.advance(100)
    pair.show(1, leader=1, late_ms=15)
    assert pair.acknowledged_after_ms(1, 1) <= 40


def test_nor_does_the_first_record_of_a_new_leader() -> None:
    pair = Pair()
    pair.show(0, leader=1)
    pair.show(1, leader=2)
    pair.env.advance(100)
    pair.show(0, leader=2, epoch=6)
    assert pair.acknowledged_after_ms(2, 0) <= 10


def test_an_idle_follower_asks_twice_a_second() -> None:
    pair = Pair()
    pair.show(0, leader=1)
    pair.env.advance(1000)
    before = pair.fetches
    pair.env.advance(10_000)
    assert pair.fetches - before <= 21


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(0, 2)),
        st.tuples(st.just("lead"), st.integers(0, 2)),
        st.tuples(st.just("wait"), st.sampled_from([0, 1, 2, 3, 30, 600])),
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(EVENTS)
@example([("produce", 0), ("produce", 1), *[("lead", 0)] * 5, ("lead", 1)])  # an answer with the watermark is dropped
def test_followers_end_up_with_what_their_leaders_have(events: list[tuple[str, int]]) -> None:
    pair = Pair()
    leaders = dict.fromkeys(range(3), 1)
    epoch = 5
    for index in leaders:
        pair.show(index, leader=1)
    for event, value in events:
        if event == "produce":
            pair.produce(leaders[value], value)
        elif event == "lead":
            epoch += 1
            leaders[value] = 3 - leaders[value]
            pair.show(value, leaders[value], epoch, late_ms=epoch % 3)
        else:
            pair.env.advance(value)
    pair.env.advance(3000)
    for index, leader in leaders.items():
        assert len(set(pair.ends(index))) == 1
        partition = pair.rigs[leader].partition(index=index)
        assert partition.high_watermark == partition.log.log_end_offset
        assert pair.rigs[3 - leader].partition(index=index).high_watermark == partition.high_watermark
