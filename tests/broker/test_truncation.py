"""Where a follower cuts its log: each line of the table."""

from __future__ import annotations

import pytest

from heirlog.broker.truncation import TruncationPoint, cut_for

from .fakes import FakeEnv, fill, open_log


@pytest.mark.parametrize(
    ("leader_epoch", "leader_end", "cut"),
    [
        pytest.param(5, -1, TruncationPoint(7, True), id="the leader has no end for it"),
        pytest.param(-1, 15, TruncationPoint(15, True), id="the leader has no epoch"),
        pytest.param(5, 15, TruncationPoint(15, True), id="known, the leader ends earlier"),
        pytest.param(2, 15, TruncationPoint(10, True), id="known, our own part ends earlier"),
        pytest.param(5, 99, TruncationPoint(20, True), id="known, the leader is longer than we are"),
        pytest.param(4, 15, TruncationPoint(10, False), id="unknown: the end of our largest lower epoch"),
        pytest.param(1, 0, TruncationPoint(0, True), id="our log has only newer ones"),
    ],
)
def test_the_cut(leader_epoch: int, leader_end: int, cut: TruncationPoint) -> None:
    log = open_log(FakeEnv())
    fill(log, 10, 2)
    fill(log, 20, 5)
    assert cut_for(log, leader_epoch, leader_end, initial_offset=7) == cut
