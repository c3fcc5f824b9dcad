from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from heirlog.sim.history import History, partition_name


def test_topics_that_had_one_name_in_turn_are_different_ones() -> None:
    assert partition_name("r", 0, b"\1" * 16) != partition_name("r", 0, b"\2" * 16)


def test_every_moment_has_a_number_of_its_own_also_between_threads() -> None:
    history = History(lambda: 0)
    with ThreadPoolExecutor(4) as threads:
        ticks = list(threads.map(lambda _: history.tick(), range(2000)))
    assert len(set(ticks)) == 2000
    assert history.tick() > max(ticks)
