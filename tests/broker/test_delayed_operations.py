"""Who is woken by what happens to a partition."""

from __future__ import annotations

from heirlog.broker.delayed_operations import DelayedOperations
from heirlog.protocol.types import PartitionKey

from .fakes import FakeEnv, fill, partition_on


class Note:
    """Never satisfied."""

    def __init__(self, key: PartitionKey) -> None:
        self.number = -1
        self.keys = (key,)
        self.woken_times = 0

    def try_complete(self, key: PartitionKey) -> bool:
        self.woken_times += 1
        return False

    def on_expiration(self) -> None:
        raise AssertionError("nothing expires here")


def test_growth_is_told_to_followers_once_per_turn_and_to_nobody_else() -> None:
    env = FakeEnv()
    partition, waits = partition_on(env), DelayedOperations(env)
    follower, consumer = Note(partition.key), Note(partition.key)
    waits.follower_fetch.watch(follower, 1000)
    waits.consumer_fetch.watch(consumer, 1000)
    for _ in range(2):
        waits.log_grew(partition, partition.high_watermark)
    assert follower.woken_times == 0, "not before the turn is over"
    env.advance(1)
    assert (follower.woken_times, consumer.woken_times) == (1, 0)
    waits.log_grew(partition, partition.high_watermark)
    env.advance(1)
    assert follower.woken_times == 2


def test_a_moved_watermark_wakes_producers_and_consumers() -> None:
    env = FakeEnv()
    partition, waits = partition_on(env), DelayedOperations(env)
    notes = {name: Note(partition.key) for name in ("produce", "consumer_fetch", "follower_fetch", "delete_records")}
    for name, note in notes.items():
        getattr(waits, name).watch(note, 1000)
    waits.watermark_may_have_moved(partition, partition.high_watermark)
    assert not any(note.woken_times for note in notes.values()), "it has not moved"
    fill(partition.log, 2, 0)
    partition.high_watermark = 2
    waits.watermark_may_have_moved(partition, 0)
    assert [name for name, note in notes.items() if note.woken_times] == ["produce", "consumer_fetch"]
    waits.leadership_changed(partition.key)
    assert [note.woken_times for note in notes.values()] == [2, 2, 1, 1]
