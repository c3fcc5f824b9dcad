"""What the oracle knows of a partition: up to where a log holds what was committed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from heirlog.sim.partition_model import Entries, PartitionModel


@dataclass
class Epochs:
    entries: list[tuple[int, int]]

    def epoch_for_offset(self, offset: int) -> int:
        return next((epoch for epoch, start in reversed(self.entries) if start <= offset), -1)


@dataclass
class Log:
    log_end_offset: int
    epochs: Epochs
    log_start_offset: int = field(default=0)


def log(end: int, *entries: tuple[int, int]) -> Log:
    return Log(end, Epochs(list(entries)))


def model(end: int, *entries: tuple[int, int]) -> PartitionModel:
    made = PartitionModel("t-0")
    made.expose(end, entries)
    return made


COMMITTED: Entries = ((0, 0), (2, 10), (5, 30))


@pytest.mark.parametrize(
    ("replica", "common"),
    [
        (log(40, *COMMITTED), 40),
        (log(50, *COMMITTED), 40),
        (log(35, *COMMITTED), 35),
        (log(30, (0, 0), (2, 10)), 30),
        (log(60, (0, 0), (2, 10)), 30),
        (log(60, (0, 0), (2, 10), (4, 20)), 20),
        (log(60, (0, 0), (1, 5), (2, 10)), 40 - 10),
        (log(25, (0, 0), (3, 8)), 8),
        (log(12, (1, 0)), 0),
        (log(0), 0),
    ],
)
def test_a_log_holds_what_was_committed_up_to_where_epochs_part(replica: Log, common: int) -> None:
    assert model(40, *COMMITTED).common_end(replica) == common


def test_epochs_that_begin_at_the_watermark_are_not_yet_of_the_lineage() -> None:
    known = model(30, *COMMITTED)
    assert known.true.epoch == 2
    assert [known.epoch_at(offset) for offset in (0, 9, 10, 29)] == [0, 0, 2, 2]


def begun(end: int, *entries: tuple[int, int]) -> tuple[int, PartitionModel]:
    """After the election of a winner whose log ends there; it has begun epoch 7 since."""
    known = model(40, *COMMITTED)
    known.begins_at_epoch = 7
    return known.begin(end, log(end, *entries, (7, end))), known


def test_a_new_lineage_begins_at_the_winners_end() -> None:
    start, known = begun(35, *COMMITTED)
    assert (start, known.true.offset, known.true.epoch) == (35, 35, 5)
    assert (known.began_at_epoch, known.begins_at_epoch) == (7, None)
    assert known.common_end(log(40, *COMMITTED)) == 35


def test_it_begins_where_a_longer_log_of_the_winner_has_left_the_one_before() -> None:
    start, known = begun(60, (0, 0), (2, 10))
    assert (start, known.true.offset) == (30, 30)


def test_a_winner_with_everything_and_more_exposes_nothing_new() -> None:
    start, known = begun(50, *COMMITTED)
    assert (start, known.true.offset) == (50, 40)
