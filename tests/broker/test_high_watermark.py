"""The high watermark's rule as a function of what the leader knows."""

from __future__ import annotations

import pytest

from heirlog.broker import high_watermark
from heirlog.broker.followers import NEVER_MS, Follower, Peers
from heirlog.protocol.types import BrokerId

from .fakes import ids, registered


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
        peers=Peers(BrokerId(1), {BrokerId(b): registered(b) for b in (1, 2, 3)}),
        now_ms=1000,
        lag_max_ms=30_000,
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
