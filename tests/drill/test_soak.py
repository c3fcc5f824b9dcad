"""What the soak drill plans; the drill itself runs in `.ci/run`."""

from __future__ import annotations

from random import Random

from heirlog.drill.soak import faults

BROKERS, CONTROLLERS = [1, 2, 3], [100]


def test_every_round_kills_a_broker_and_brings_it_back_before_the_next() -> None:
    for seed in range(50):
        planned = faults(BROKERS, CONTROLLERS, 600, 30, Random(seed))
        up = {1, 2, 3, 100}
        for fault in planned:
            if fault.start:
                up.add(fault.node)
            else:
                assert fault.node in up
                up.remove(fault.node)
                # one broker at a time: with two of three gone nothing could be acknowledged
                assert len(up & {1, 2, 3}) >= 2
        assert sum(not fault.start and fault.node != 100 for fault in planned) == 20
        assert sum(not fault.start and fault.node == 100 for fault in planned) == 5


def test_the_second_half_spares_one_broker() -> None:
    late = {fault.node for fault in faults(BROKERS, CONTROLLERS, 600, 30, Random(1)) if fault.at_s > 310}
    assert len(late & {1, 2, 3}) == 2


def test_a_minute_kills_two_brokers_and_the_controller() -> None:
    killed = [fault.node for fault in faults(BROKERS, CONTROLLERS, 60, 30, Random(1)) if not fault.start]
    assert len(killed) == 3 and 100 in killed


def test_a_seed_is_a_plan() -> None:
    plans = [faults(BROKERS, CONTROLLERS, 600, 30, Random(seed)) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
