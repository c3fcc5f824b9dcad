"""Which answers about logs count, and what the record of the election keeps of them."""

from __future__ import annotations

import pytest
from controller.cluster import state_of
from controller.recovering import back, lost

from heirlog.controller.recovery.sender import MAX_BACKOFF_MS
from heirlog.metadata.basis import Basis


def test_an_answer_of_an_earlier_life_is_asked_for_again() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000)
    cluster.reply(2)
    cluster.reboot(1)
    assert cluster.described().state == "WaitingForQuorum"
    back(cluster, 1)
    cluster.reply(3)
    assert cluster.leader() == -1 and 1 in cluster.asked()
    cluster.reply(1, 0, 4)
    assert cluster.leader() == 2
    basis = state_of(cluster.harness).basis
    assert basis is not None and basis.all_answered


@pytest.mark.parametrize("epoch", [0, 1_000])
def test_an_answer_of_another_leader_epoch_is_refused(epoch: int) -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000, current_leader_epoch=epoch)
    cluster.reply(2)
    cluster.reply(3, 0, 50)
    assert cluster.leader() == -1
    cluster.advance(MAX_BACKOFF_MS * 2)
    cluster.reply(1, 0, 7)
    assert cluster.leader() == 3


def test_the_record_of_the_election_says_what_was_known() -> None:
    cluster = back(lost(), 1, 2, 3)
    for broker, end in ((1, 10), (2, 20), (3, 5)):
        cluster.reply(broker, broker, end, may_lack_records=broker == 2)
    basis = state_of(cluster.harness).basis
    assert basis is not None
    assert (basis.basis, basis.leader, basis.end_offset) == (Basis.RECOVERED, 3, 5)
    assert basis.leader_epoch == state_of(cluster.harness).leader_epoch
    assert basis.controller_epoch == cluster.harness.controller.epoch
    assert basis.timestamp_ms == cluster.env.wall_ms()
    assert [(a.broker, a.answered, *a[2:]) for a in basis.replicas] == [
        (1, True, 1, 10, False),
        (2, True, 2, 20, True),
        (3, True, 3, 5, False),
    ]
