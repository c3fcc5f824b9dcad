"""Cells are scenarios: each has one name, and the name says everything."""

from __future__ import annotations

import re
from random import Random

import pytest

from heirlog.sim.durability.cell import Cell, Policy, cell_of
from heirlog.sim.scenarios import scenario_named


@pytest.mark.parametrize("policy", Policy)
def test_a_cell_is_found_by_the_name_of_its_scenario(policy: Policy) -> None:
    cell = Cell(3, 2, policy, 20)
    assert cell.scenario == f"durability:rf=3,min-isr=2,strategy={policy.value},mtbf=20"
    assert cell_of(cell.scenario) == cell
    assert scenario_named(cell.scenario).plan(Random(1)) == cell.plan(Random(2)), "a plan draws nothing"


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ("", "is not durability:rf=R"),
        ("rf=3,min-isr=2,strategy=unknown,mtbf=20", "elr-off, last-known-leader, balanced, aggressive, none"),
        ("rf=3,min-isr=2,strategy=none", "is not durability:rf=R"),
        ("rf=6,min-isr=2,strategy=none,mtbf=20", "a replication factor is between 1 and 5"),
        ("rf=2,min-isr=3,strategy=none,mtbf=20", "min ISR is between 1 and the replication factor"),
        ("rf=2,min-isr=0,strategy=none,mtbf=20", "min ISR is between 1 and the replication factor"),
        ("rf=2,min-isr=1,strategy=none,mtbf=0", "the mean time between failures is between 1 and 3600 seconds"),
    ],
)
def test_a_name_that_is_not_a_cell_is_refused_with_a_sentence(parameters: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        scenario_named(f"durability:{parameters}")
