"""Fetch sessions: refusals, what incremental answers hold, who is evicted; and that they lose nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.broker.fetch_session import EVICTION_MS, LAST_EPOCH, FetchSessionCache
from heirlog.broker.partition_listeners import PartitionListeners
from heirlog.metadata.state import TopicImage
from heirlog.pending import Pending
from heirlog.protocol.batch import decode_records, read_header
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import BrokerId

from .fakes import TOPIC_IDS, FakeEnv, Rig, answer_of, batch, context, state

FOO, BAR = TOPIC_IDS["foo"], TOPIC_IDS["bar"]


def leader(replicas: list[int] | None = None, partitions: int = 3, isr: list[int] | None = None, **kwargs: Any) -> Rig:
    rig = Rig(**kwargs).started()
    for index in range(partitions):
        rig.show(state(replicas or [1], isr), index=index)
    return rig


def topics_of(asked: dict[int, int], topic: str = "foo", log_start_offset: int = -1) -> list[FetchRequest.FetchTopic]:
    if not asked:
        return []
    partitions = [
        FetchRequest.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=log_start_offset
        )
        for index, offset in asked.items()
    ]
    return [FetchRequest.FetchTopic(topic_id=TOPIC_IDS[topic], topic=topic, partitions=partitions)]


class Client:
    """One that keeps a session: `full` begins it, `more` goes on."""

    def __init__(self, rig: Rig, *, replica: int = -1, version: int = 17) -> None:
        self.rig = rig
        self.replica = replica
        self.version = version
        self.session_id = 0
        self.epoch = 0

    def send(self, topics: list[FetchRequest.FetchTopic], **kwargs: Any) -> Any:
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=self.replica, replica_epoch=100 + self.replica),
            replica_id=self.replica if self.version < 15 else -1,
            topics=topics,
            session_id=kwargs.pop("session_id", self.session_id),
            session_epoch=kwargs.pop("session_epoch", self.epoch),
            max_wait_ms=kwargs.pop("max_wait_ms", 0),
            min_bytes=1,
            max_bytes=kwargs.pop("max_bytes", 1 << 20),
            **kwargs,
        )
        return self.rig.broker.fetch(request, context(self.version))

    def full(self, asked: dict[int, int], **kwargs: Any) -> Any:
        answer = answer_of(self.send(topics_of(asked), session_epoch=0, **kwargs))
        self.session_id, self.epoch = answer.session_id, 1
        return answer

    def more(self, asked: dict[int, int] | None = None, forget: list[int] | None = None, **kwargs: Any) -> Any:
        """The answer, or the `Pending` of one that waits."""
        forgotten = [FetchRequest.ForgottenTopic(topic_id=FOO, topic="foo", partitions=forget)] if forget else []
        result = self.send(topics_of(asked or {}), forgotten_topics_data=forgotten, **kwargs)
        self.epoch += 1
        return result


def shown(result: Any) -> dict[int, Any]:
    """What an answer holds, by partition of topic foo."""
    answer = answer_of(result)
    assert answer.error_code == ErrorCode.NONE
    return {data.partition_index: data for topic in answer.responses for data in topic.partitions}


def offsets(data: Any) -> list[int]:
    view, found, position = records_view(data.records), [], 0
    while position < len(view):
        found += [record.offset for record in decode_records(view, position)]
        position += read_header(view, position).size
    return found


# what an incremental answer holds


def test_a_full_request_is_answered_in_full_and_begins_a_session() -> None:
    client = Client(leader())
    assert list(shown(client.full({0: 0, 1: 0}))) == [0, 1]
    assert client.session_id > 0


def test_an_incremental_answer_holds_only_partitions_with_records() -> None:
    rig = leader()
    client = Client(rig)
    client.full({0: 0, 1: 0, 2: 0})
    assert shown(client.more()) == {}
    rig.produce(1, batch(), batch())
    found = shown(client.more())
    assert {index: offsets(data) for index, data in found.items()} == {0: [0], 1: [0]}


def test_records_are_answered_again_until_the_offset_moves_on() -> None:
    rig = leader()
    client = Client(rig)
    client.full({0: 0})
    rig.produce(1)
    assert offsets(shown(client.more())[0]) == [0]
    assert offsets(shown(client.more())[0]) == [0]
    assert shown(client.more({0: 1})) == {}


def test_a_watermark_that_moved_is_told_once_and_does_not_end_a_followers_wait() -> None:
    rig = leader([1, 2, 3], partitions=1)
    two, three = Client(rig, replica=2), Client(rig, replica=3)
    two.full({0: 0}, max_wait_ms=0)
    three.full({0: 0}, max_wait_ms=0)
    rig.produce(1)
    assert offsets(shown(two.more())[0]) == [0]
    waiting = two.more({0: 1}, max_wait_ms=500)
    three.more({0: 1})
    assert isinstance(waiting, Pending) and not waiting.done
    rig.env.advance(500)
    assert shown(waiting)[0].high_watermark == 1
    assert shown(two.more()) == {}


def test_a_log_start_that_moved_is_told() -> None:
    rig = leader()
    client = Client(rig)
    rig.produce(1, batch(3))
    client.full({0: 3})
    assert shown(client.more()) == {}
    rig.partition().log.increment_log_start(2)
    assert shown(client.more())[0].log_start_offset == 2


def test_an_error_is_answered_every_time_and_everything_when_it_has_gone() -> None:
    rig = leader(partitions=1)
    client = Client(rig)
    client.full({0: 0, 1: 0})
    for _ in range(2):
        assert shown(client.more())[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    rig.show(state([1]), index=1)
    assert shown(client.more())[1].error_code == ErrorCode.NONE
    assert shown(client.more()) == {}


def test_an_unknown_topic_id_is_named_until_the_topic_appears() -> None:
    rig = leader(partitions=1)
    client = Client(rig)
    answer = answer_of(client.send([*topics_of({0: 0}), *topics_of({0: 0}, "bar")], session_epoch=0))
    client.session_id, client.epoch = answer.session_id, 1
    (topic,) = answer_of(client.more()).responses
    assert (topic.topic_id, topic.partitions[0].error_code) == (BAR, ErrorCode.UNKNOWN_TOPIC_ID)
    rig.show(state([1]), topic="bar")
    (topic,) = answer_of(client.more()).responses
    assert (topic.topic_id, topic.partitions[0].error_code) == (BAR, ErrorCode.NONE)
    assert answer_of(client.more()).responses == []


@pytest.mark.parametrize("is_here", [True, False])
def test_a_session_remembers_the_name_of_a_topic_that_is_deleted_and_made_again(is_here: bool) -> None:
    rig = Rig().started()
    rig.set_partition(state([1 if is_here else 2]))
    rig.publish()
    client = Client(rig)
    client.full({0: 0})
    rig.delete_topic()
    rig.publish()
    assert shown(client.more())[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    rig.image.set_topic(BAR, TopicImage("foo", BAR), rig.journal)
    rig.publish()
    assert shown(client.more())[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert shown(Client(rig).full({0: 0}))[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID, "another session never knew it"


def test_a_session_by_name_follows_the_name_to_a_new_topic() -> None:
    rig = leader(partitions=1)
    client = Client(rig, version=12)
    client.full({0: 0})
    rig.delete_topic()
    rig.publish()
    assert shown(client.more())[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    rig.show(state([1]))
    assert shown(client.more())[0].error_code == ErrorCode.NONE


def test_a_divergence_is_answered() -> None:
    rig = leader([1, 2], partitions=1)
    rig.produce(1, batch(3))
    follower = Client(rig, replica=2)
    follower.full({0: 3})
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=3, last_fetched_epoch=4, partition_max_bytes=9)
    topic = FetchRequest.FetchTopic(topic_id=FOO, topic="foo", partitions=[asked])
    (data,) = shown(follower.send([topic])).values()
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (4, 0)


def test_a_lost_leadership_ends_the_wait() -> None:
    rig = leader([1, 2], partitions=2)
    client = Client(rig)
    client.full({0: 0, 1: 0})
    waiting = client.more(max_wait_ms=500)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2), index=1)
    found = shown(waiting)
    assert list(found) == [1]
    assert found[1].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found[1].current_leader.leader_id == 2


def test_appends_to_several_partitions_reach_a_waiting_follower_in_one_answer() -> None:
    rig = leader([1, 2])
    follower = Client(rig, replica=2)
    follower.full({0: 0, 1: 0, 2: 0})
    waiting = follower.more(max_wait_ms=500)
    rig.produce(1, batch(), batch(), batch())
    rig.env.advance(0)
    assert {index: offsets(data) for index, data in shown(waiting).items()} == {0: [0], 1: [0], 2: [0]}


def test_a_fetch_that_comes_in_the_turn_of_an_append_brings_its_records() -> None:
    rig = leader([1, 2])
    follower = Client(rig, replica=2)
    follower.full({0: 0})
    assert shown(follower.more()) == {}
    rig.produce(1)
    assert {index: offsets(data) for index, data in shown(follower.more()).items()} == {0: [0]}


def test_a_consumer_hears_of_all_partitions_that_one_fetch_of_a_follower_commits() -> None:
    rig = leader([1, 2])
    rig.produce(1, batch(), batch(), batch())
    consumer = Client(rig)
    consumer.full({0: 0, 1: 0, 2: 0})
    waiting = consumer.more(max_wait_ms=500)
    Client(rig, replica=2).full({0: 1, 1: 1, 2: 1})
    assert sorted(shown(waiting)) == [0, 1, 2]


def test_a_busy_partition_does_not_starve_the_others() -> None:
    rig = leader()
    client = Client(rig)
    rig.produce(1, batch(), batch(), batch())
    client.full({0: 1, 1: 1, 2: 1})
    given: list[int] = []
    for round_ in range(1, 7):
        rig.produce(1, batch(), batch(), batch())
        found = shown(client.more({}, max_bytes=len(batch())))
        given += [index for index, data in found.items() if offsets(data)]
        assert round_ == len(given)
    assert sorted(given) == [0, 0, 1, 1, 2, 2]


def test_a_forgotten_partition_is_not_answered_any_more_and_nobody_listens_for_it() -> None:
    rig = leader()
    client = Client(rig)
    client.full({0: 0, 1: 0})
    client.more(forget=[0])
    rig.produce(1, batch(), batch())
    assert list(shown(client.more())) == [1]
    assert (FOO, 0) not in rig.broker.replicas.delayed.partition_listeners._listeners


def test_a_session_that_forgets_everything_ends() -> None:
    client = Client(leader())
    client.full({0: 0})
    answer = client.more(forget=[0], max_wait_ms=500)
    assert (answer.session_id, answer.responses) == (0, [])
    assert client.more().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# what is refused


def test_a_session_that_is_not_there_is_not_found() -> None:
    answer = Client(leader()).send([], session_id=9, session_epoch=1)
    assert (answer.error_code, answer.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


def test_an_epoch_that_is_not_the_next_one_is_invalid() -> None:
    client = Client(leader())
    client.full({0: 0})
    client.more()
    for epoch in (1, 3, -2):
        assert client.send([], session_epoch=epoch).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert shown(client.send([], session_epoch=2)) == {}


def test_a_session_by_id_is_not_continued_by_name() -> None:
    client = Client(leader())
    client.full({0: 0})
    client.version = 12
    assert client.more().error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_after_the_last_epoch_comes_the_first() -> None:
    rig = leader()
    client = Client(rig)
    client.full({0: 0})
    (session,) = rig.broker._fetch._sessions._by_id.values()
    session.epoch = client.epoch = LAST_EPOCH
    client.more()
    client.epoch = 1
    assert shown(client.more()) == {}


def test_a_full_request_ends_the_session_that_it_names() -> None:
    rig = leader()
    client = Client(rig)
    client.full({0: 0})
    first = client.session_id
    client.full({0: 0})
    assert client.session_id != first
    assert client.send([], session_id=first, session_epoch=1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert client.send(topics_of({0: 0}), session_epoch=-1).session_id == 0
    assert client.more().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not rig.broker.replicas.delayed.partition_listeners._listeners


# waiting


def test_a_newer_request_ends_the_wait_of_the_older_one() -> None:
    rig = leader()
    client = Client(rig)
    client.full({0: 0})
    older = client.more(max_wait_ms=500)
    newer = client.more({1: 0}, max_wait_ms=500)
    assert shown(older) == {}
    assert not newer.done
    rig.produce(1, batch(), batch())
    assert offsets(shown(newer)[1]) == [0]


def test_a_waiting_request_whose_connection_closed_is_forgotten_and_its_session_lives() -> None:
    rig = leader()
    client = Client(rig)
    client.full({0: 0})
    client.more(max_wait_ms=500).abandon()
    assert len(rig.broker.replicas.delayed.consumer_fetch) == 0
    rig.produce(1)
    assert offsets(shown(client.more())[0]) == [0]


def test_an_idle_wait_costs_nothing_per_partition() -> None:
    rig = leader([1, 2], partitions=20)
    follower = Client(rig, replica=2)
    follower.full(dict.fromkeys(range(20), 0))
    follower.more(max_wait_ms=500)
    (session,) = rig.broker._fetch._sessions._by_id.values()
    assert not session.active
    assert not rig.broker.replicas.delayed.follower_fetch._watchers


# what a follower's session says of partitions without news


def test_an_idle_follower_stays_in_sync_although_its_partitions_are_not_touched() -> None:
    rig = leader([1, 2], partitions=1)
    follower = Client(rig, replica=2)
    follower.full({0: 0})
    for _ in range(100):
        rig.env.advance(1000)
        follower.more()
    rig.produce(1)
    rig.env.advance(1000)
    rig.broker.replicas.check_isr_lag()
    assert rig.partition().isr.maximal == rig.partition().isr.committed
    rig.env.advance(30_000)
    rig.broker.replicas.check_isr_lag()
    assert [sent for sent in rig.env.sent if sent.channel == "alter-partition"]


def test_a_follower_outside_the_isr_asks_to_join_with_every_fetch() -> None:
    rig = leader([1, 2], partitions=1, isr=[1])
    rig.set_broker(2, fenced=True)
    rig.publish()
    follower = Client(rig, replica=2)
    follower.full({0: 0})
    follower.more()
    assert rig.partition().isr.maximal == (1,)
    rig.set_broker(2)
    rig.publish()
    follower.more()
    assert rig.partition().isr.maximal == (1, 2)


def test_a_session_of_a_former_incarnation_is_told_so() -> None:
    rig = leader([1, 2], partitions=1)
    follower = Client(rig, replica=2)
    follower.full({0: 0})
    rig.set_broker(2, epoch=500)
    rig.publish()
    assert shown(follower.more())[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# eviction


class Cache:
    """A cache of few slots; sessions are known by the number of their partitions."""

    def __init__(self, slots: int) -> None:
        self.env = FakeEnv()
        self.cache = FetchSessionCache(self.env, slots, PartitionListeners())

    def begin(self, size: int, replica: int = -1) -> int:
        request = FetchRequest(session_epoch=0, topics=topics_of(dict.fromkeys(range(size), 0)))
        session = self.cache.open(
            request, uses_topic_ids=True, replica_id=replica, replica_epoch=-1, now_ms=self.env.now_ms()
        )
        return 0 if session is None else session.id

    def go_on(self, session_id: int) -> None:
        session = self.cache._by_id[session_id]
        request = FetchRequest(session_id=session_id, session_epoch=session.epoch)
        self.cache.open(
            request, uses_topic_ids=True, replica_id=session.replica_id, replica_epoch=-1, now_ms=self.env.now_ms()
        )

    @property
    def living(self) -> list[int]:
        return list(self.cache._by_id)


def test_without_slots_there_are_no_sessions() -> None:
    assert Cache(0).begin(1) == 0


def test_a_young_session_of_a_consumer_is_not_displaced_by_another_consumer() -> None:
    cache = Cache(1)
    first = cache.begin(1)
    assert cache.begin(9) == 0
    assert cache.living == [first]


def test_an_old_session_is_displaced_by_a_larger_one_only() -> None:
    cache = Cache(2)
    small, large = cache.begin(2), cache.begin(5)
    cache.env.advance(EVICTION_MS + 1)
    cache.go_on(small)
    cache.go_on(large)
    assert cache.begin(1) == 0
    newcomer = cache.begin(3)
    assert cache.living == [large, newcomer]


def test_a_session_that_was_unused_for_two_minutes_gives_way_to_any() -> None:
    cache = Cache(2)
    unused, used = cache.begin(9, replica=2), cache.begin(9)
    cache.env.advance(EVICTION_MS)
    cache.go_on(used)
    assert cache.begin(1) == 0
    cache.env.advance(1)
    assert unused not in [cache.begin(1), *cache.living]
    assert used in cache.living


def test_a_follower_displaces_the_smallest_session_of_a_consumer_however_young() -> None:
    cache = Cache(2)
    cache.begin(2)
    large = cache.begin(5)
    follower = cache.begin(1, replica=2)
    assert cache.living == [large, follower]


def test_a_consumer_never_displaces_a_follower_in_use() -> None:
    cache = Cache(1)
    follower = cache.begin(1, replica=2)
    cache.env.advance(EVICTION_MS + 1)
    cache.go_on(follower)
    assert cache.begin(9) == 0


def test_an_old_follower_gives_way_to_a_larger_follower() -> None:
    cache = Cache(1)
    follower = cache.begin(2, replica=2)
    assert cache.begin(9, replica=3) == 0
    cache.env.advance(EVICTION_MS + 1)
    cache.go_on(follower)
    assert cache.begin(1, replica=3) == 0
    newcomer = cache.begin(9, replica=3)
    assert cache.living == [newcomer]


def test_a_displaced_session_answers_its_waiting_request_and_listens_no_more() -> None:
    rig = leader(max_incremental_fetch_session_cache_slots="1", replicas=[1, 2])
    client = Client(rig)
    client.full({0: 0})
    waiting = client.more(max_wait_ms=500)
    Client(rig, replica=2).full({1: 0})
    assert shown(waiting) == {}
    assert list(rig.broker.replicas.delayed.partition_listeners._listeners) == [(FOO, 1)]
    assert client.more().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_who_comes_when_all_slots_are_taken_is_answered_in_full_without_a_session() -> None:
    rig = leader([1, 2])
    slots = rig.broker._fetch._sessions._slots
    clients = [Client(rig) for _ in range(slots)]
    assert all(client.full({0: 0}) and client.session_id for client in clients)
    late = Client(rig)
    for _ in range(3):
        answer = answer_of(late.send(topics_of({0: 0, 1: 0}), session_epoch=0, session_id=0))
        assert answer.session_id == 0
        assert list(shown(answer)) == [0, 1]
    assert len(rig.broker._fetch._sessions) == slots == 1000
    assert len(rig.broker.replicas.delayed.partition_listeners._listeners[FOO, 0]) == slots, (
        "the others left nobody behind that listens"
    )
    assert shown(clients[0].more()) == {}, "and nobody lost a session"


# a session says what full requests would say

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("fetch"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("start"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("lead"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("wait"), st.sampled_from([1, 500, 20_000, 40_000]), st.just(0)),
        st.tuples(st.just("lag"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


def without_records(data: Any) -> tuple[int, ...]:
    return data.error_code, data.high_watermark, data.log_start_offset


@given(EVENTS, st.sampled_from([12, 17]))
def test_what_a_consumer_knows_by_a_session_is_what_full_requests_tell(events: list[Any], version: int) -> None:
    rig = leader()
    client = Client(rig, version=version)
    asked = dict.fromkeys(range(3), 0)
    known = {index: without_records(data) for index, data in shown(client.full(asked)).items()}
    changed: dict[int, int] = {}
    epoch = 5
    for event, index, how in events:
        if event == "append":
            rig.produce(1, batch(how)) if index == 0 else append(rig, index, how)
        elif event == "start":
            rig.partition(index=index).log.increment_log_start(rig.partition(index=index).high_watermark)
        elif event == "lead":
            epoch += 1
            rig.show(state([1, 2], [1], 1 if how else 2, leader_epoch=epoch, partition_epoch=epoch), index=index)
        elif event == "fetch":
            full = shown(client.send(topics_of(asked), session_id=0, session_epoch=-1))
            news = shown(client.more(changed))
            changed = {}
            for number, data in full.items():
                if number in news:
                    known[number] = without_records(news[number])
                assert known[number] == without_records(data)
                assert (offsets(news[number]) if number in news else []) == offsets(data)
                if how and offsets(data):
                    asked[number] = changed[number] = offsets(data)[-1] + 1


def append(rig: Rig, index: int, count: int) -> None:
    partition = rig.partition(index=index)
    if partition.role.value == "leader":
        watermark = partition.high_watermark
        partition.append(batch(count), 1, rig.env.wall_ms(), rig.env.now_ms())
        rig.broker.replicas.log_grew(partition, watermark, rig.env.wall_ms())


@given(EVENTS)
def test_what_a_leader_knows_of_a_follower_by_a_session_is_what_full_requests_tell(events: list[Any]) -> None:
    by_session, by_full = leader([1, 2, 3]), leader([1, 2, 3])
    follower = Client(by_session, replica=2)
    asked = dict.fromkeys(range(3), 0)
    follower.full(asked)
    Client(by_full, replica=2).send(topics_of(asked), session_epoch=-1)
    changed: dict[int, int] = {}
    for event, index, how in events:
        for rig in (by_session, by_full):
            if event == "append":
                append(rig, index, how)
            elif event == "wait":
                rig.env.advance(index)
            elif event == "lag":
                rig.broker.replicas.check_isr_lag()
        if event == "fetch":
            ends = {n: by_full.partition(index=n).log.log_end_offset for n in range(3)}
            full = shown(Client(by_full, replica=2).send(topics_of(asked), session_epoch=-1))
            news = shown(follower.more(changed))
            changed = {}
            for number, data in full.items():
                assert (offsets(news[number]) if number in news else []) == offsets(data)
            if how:
                changed = {n: end for n, end in ends.items() if end != asked[n]}
                asked |= changed
        for number in range(3):
            assert judged(by_session, number) == judged(by_full, number)


def judged(rig: Rig, index: int) -> tuple[Any, ...]:
    partition, now_ms = rig.partition(index=index), rig.env.now_ms()
    follower = partition.followers[BrokerId(2)]
    lags = [follower.is_caught_up(-2, now_ms - lag_ms) for lag_ms in (0, 1, 500, 10_000, 30_000, 60_000)]
    return partition.high_watermark, partition.isr, follower.log_end_offset, lags
