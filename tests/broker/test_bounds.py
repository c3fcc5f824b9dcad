"""Every queue of a broker has a bound: what happens when it is reached."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.purgatory import Purgatory
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode

from .fakes import Rig, answer_of, batch, state


@pytest.fixture
def rig() -> Rig:
    rig = Rig().started()
    rig.show(state([1, 2], isr=[1, 2]))
    return rig


def fill(purgatory: Purgatory[Any], room: int) -> None:
    purgatory._limit = room


def test_a_produce_request_that_finds_no_place_to_wait_is_answered_as_if_its_time_were_up(rig: Rig) -> None:
    fill(rig.broker.replicas.produce_waits, 3)
    waiting = [rig.produce(-1, batch(), timeout_ms=60_000) for _ in range(3)]
    assert not any(one.done for one in waiting)
    response = answer_of(rig.produce(-1, batch(), timeout_ms=60_000))
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    rig.fetch(4, replica=2)
    assert all(one.done for one in waiting)
    assert isinstance(rig.produce(-1, batch(), timeout_ms=60_000), Pending), "there is room again"


@pytest.mark.parametrize("replica", [-1, 2], ids=["consumer", "follower"])
def test_a_fetch_that_finds_no_place_to_wait_is_answered_empty(rig: Rig, replica: int) -> None:
    replicas = rig.broker.replicas
    fill(replicas.follower_fetch_waits if replica == 2 else replicas.consumer_fetch_waits, 2)
    waiting = [rig.fetch(0, replica=replica, max_wait_ms=60_000) for _ in range(2)]
    assert not any(answer_of(one) for one in waiting)
    assert answer_of(rig.fetch(0, replica=replica, max_wait_ms=60_000)) is not None
