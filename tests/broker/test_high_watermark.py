"""The high watermark's rule as a function of what the leader knows."""

from __future__ import annotations

import pytest

from heirlog.broker import high_watermark
from heirlog.broker.followers import NEVER_MS, Follower, RegisteredBrokers
from heirlog.protocol.types import BrokerId, PartitionEpoch, Uuid

from .fakes import FakeEnv, batch, ids, partition_on, registered, state


def moved(
    offsets: dict[int, int],
    image_isr: list[int],
    min_isr: int,
    maximal_isr: list[int] | None = None,
    caught_up: tuple[int, ...] = (),
) -> int:
    """Leader 1 ends at 20, its watermark is 10; `offsets` of its followers."""
    followers = {}
    for broker, offset in offsets.items():
        follower = followers[BrokerId(broker)] = Follower(BrokerId(broker))
        follower.log_end_offset, follower.broker_epoch = offset, 100 + broker
        follower.last_caught_up_ms = 0 if broker in caught_up else NEVER_MS
    return high_watermark.next_high_watermark(
        10,
        leader_end_offset=20,
        committed_isrs=[ids(image_isr)],
        image_min_isr=min_isr,
        maximal_isr=ids(image_isr if maximal_isr is None else maximal_isr),
        followers=followers,
        registered_brokers=RegisteredBrokers(BrokerId(1), {BrokerId(b): registered(b) for b in (1, 2, 3)}),
        lag_limit_ms=1000 - 30_000,
    )


def test_it_is_the_lowest_end_among_the_members() -> None:
    assert moved({2: 15, 3: 12}, [1, 2, 3], 2) == 12


def test_a_member_without_a_known_offset_holds_it() -> None:
    assert moved({2: -1}, [1, 2], 1) == 10


def test_it_never_goes_back() -> None:
    assert moved({2: 4}, [1, 2], 1) == 10


def test_below_min_isr_it_stands_still() -> None:
    assert moved({2: 15}, [1], 2, maximal_isr=[1, 2]) == 10


def test_a_pending_member_counts_for_the_minimum() -> None:
    assert moved({2: 15}, [1], 1, maximal_isr=[1, 2]) == 15


def test_a_member_of_the_image_counts_although_the_answer_removed_it() -> None:
    assert moved({2: 15}, [1, 2], 1, maximal_isr=[1]) == 15


def test_an_outsider_that_is_about_to_join_holds_it() -> None:
    assert moved({2: 15}, [1], 1, caught_up=(2,)) == 15
    assert moved({2: 15}, [1], 1) == 20


def test_the_guard_is_looked_up_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(high_watermark, "committed_isr_is_large_enough", lambda *_: True)
    assert moved({}, [1], 2) == 20


def test_a_caught_up_outsider_holds_it_only_while_the_log_directory_of_its_replica_is_online() -> None:
    """Otherwise acks=all waits `replica.lag.time.max.ms` for a replica that cannot fetch (KIP-112)."""
    env, mine, failing, other = FakeEnv(), Uuid(b"m" * 16), Uuid(b"f" * 16), Uuid(b"o" * 16)
    partition = partition_on(env, end_offset=10)
    led = state([1, 2, 3], directories=(mine, failing, other))
    brokers = {**partition._registered_brokers.brokers, BrokerId(2): registered(2, directories=(failing, other))}
    partition._registered_brokers.brokers = brokers
    partition.become_leader(led, 2, env.now_ms())
    for broker in (2, 3):
        partition.follower_fetched(BrokerId(broker), 10, 0, 100 + broker, env.now_ms())
    partition.log.append_as_leader(batch(), 5, env.wall_ms())
    partition.follower_fetched(BrokerId(3), 11, 0, 103, env.now_ms())
    partition.become_leader(led._replace(isr=ids([1, 3]), partition_epoch=PartitionEpoch(2)), 2, env.now_ms())
    assert partition.high_watermark == 10, "2 is caught up, and may join"
    partition._registered_brokers.brokers = {**brokers, BrokerId(2): registered(2, directories=(other,))}
    partition.advance_high_watermark(env.now_ms())
    assert partition.high_watermark == 11
    assert partition.follower_fetched(BrokerId(2), 11, 0, 102, env.now_ms()) is None, "nor is it proposed for the ISR"
