from __future__ import annotations

from heirlog.testing.drill.stage import below


def test_who_comes_from_a_process_is_found_though_numbers_started_over() -> None:
    parents = {1: 0, 32_700: 1, 32_760: 32_700, 12: 32_760, 11: 12, 40: 1, 41: 40}
    assert below(32_700, parents) == {32_760, 12, 11}
    assert below(41, parents) == set()
