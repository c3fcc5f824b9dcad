"""What the soak drill plans; the drill itself runs in `.ci/run`."""

from __future__ import annotations

from random import Random

from cli.json_shapes import mistakes_of

from heirlog.drill.resource_usage import ProcessSamples, ResourceUsage
from heirlog.drill.soak import Verdict, faults

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


def test_its_verdict_has_the_keys_of_the_reference() -> None:
    samples = [(float(at_s), 50_000_000, 100) for at_s in range(200)]
    resources = ResourceUsage([ProcessSamples(1, 4711, samples)])
    assert resources.as_json(), "it ran for long enough to be in the verdict"
    verdict = Verdict(1, 1, resources=resources.as_json()).as_json()
    assert not mistakes_of("drill soak", {**verdict, "picture": "timeline.svg"})
