"""What a seed draws."""

from __future__ import annotations

from heirlog.drill.chaos_plan import (
    CHANGES,
    FIRST_S,
    GAP_S,
    HARMLESS_CHANGES,
    LAST_REPLICA_STANDING,
    LONG_FAULTS,
    changes,
    durations,
    faults,
)

MINUTE_S = 60.0


def test_a_seed_is_a_plan() -> None:
    for draw in (faults, changes):
        plans = [draw(seed, MINUTE_S) for seed in (1, 1, 2)]
        assert plans[0] == plans[1] != plans[2]


def test_a_longer_drill_begins_like_a_shorter_one() -> None:
    assert faults(5, 3 * MINUTE_S)[: len(faults(5, MINUTE_S))] == faults(5, MINUTE_S)


def test_every_seed_plays_last_replica_standing_before_anything_can_excuse_a_loss() -> None:
    for seed in range(100):
        planned = faults(seed, MINUTE_S)
        assert planned[1].kind == LAST_REPLICA_STANDING and planned[1].at_s <= FIRST_S + GAP_S[1]
        before = [change.kind for change in changes(seed, MINUTE_S) if change.at_s <= planned[1].at_s]
        assert set(before) <= set(HARMLESS_CHANGES)


def test_faults_come_in_order_and_last_as_long_as_their_kind_may() -> None:
    for seed in range(50):
        planned = faults(seed, MINUTE_S)
        assert [fault.at_s for fault in planned] == sorted(fault.at_s for fault in planned)
        assert len(planned) >= MINUTE_S / GAP_S[1] - 2
        for fault in planned:
            low_s, high_s = durations().get(fault.kind, (0.0, 0.0))
            assert low_s <= fault.lasts_s <= high_s


def test_every_kind_is_drawn_by_some_seed() -> None:
    played = {fault.kind for seed in range(60) for fault in faults(seed, MINUTE_S)}
    assert played == {*durations(), *LONG_FAULTS}
    assert {change.kind for seed in range(20) for change in changes(seed, MINUTE_S)} == set(CHANGES)
