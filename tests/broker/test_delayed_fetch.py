"""How long a Fetch waits, and what ends its wait."""

from __future__ import annotations

import pytest

from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode

from .fakes import TOPIC_IDS, batch, state
from .fetches import data_of, leader, records_of


def test_a_long_poll_ends_when_records_become_visible() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500)
    assert isinstance(result, Pending)
    rig.produce(1)
    assert records_of(result) == [0]


def test_a_long_poll_ends_empty_when_its_time_is_up() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500)
    rig.env.advance(500)
    assert records_of(result) == []


@pytest.mark.parametrize("session_epoch", [-1, 0])
@pytest.mark.parametrize("min_bytes", [1, 10_000])
def test_a_long_poll_whose_look_finds_the_disk_broken_is_answered_once(
    monkeypatch: pytest.MonkeyPatch, session_epoch: int, min_bytes: int
) -> None:
    rig = leader(log_dirs="/data,/more", metadata_log_dir="/metadata")
    partition = rig.broker.replicas.partition((TOPIC_IDS["foo"], 0))
    assert partition is not None
    result = rig.fetch(0, max_wait_ms=500, min_bytes=min_bytes, session_epoch=session_epoch)
    assert isinstance(result, Pending)

    def fail(*_: object) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(partition.log, "read_for_client", fail)
    rig.produce(1)
    assert data_of(result).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_long_poll_waits_for_min_bytes() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500, min_bytes=len(batch()) + 1)
    rig.produce(1)
    assert not result.done
    rig.produce(1)
    assert records_of(result) == [0, 1]


def test_a_followers_long_poll_ends_as_soon_as_the_leader_appends() -> None:
    rig = leader([1, 2])
    result = rig.fetch(0, replica=2, max_wait_ms=500)
    rig.produce(1)
    rig.env.advance(0)
    assert records_of(result) == [0]


def test_what_one_turn_of_the_loop_brings_reaches_a_waiting_follower_in_one_answer() -> None:
    rig = leader([1, 2])
    result = rig.fetch(0, replica=2, max_wait_ms=500)
    rig.produce(1)
    rig.produce(1)
    assert not result.done
    rig.env.advance(0)
    assert records_of(result) == [0, 1]


def test_appends_to_several_partitions_reach_a_waiting_follower_in_one_answer() -> None:
    rig = leader([1, 2])
    rig.show(state([1, 2]), index=1)
    result = rig.fetch(0, replica=2, max_wait_ms=500, partitions=[0, 1])
    rig.produce(1, batch(), batch())
    rig.env.advance(0)
    assert records_of(result, 0) == [0]
    assert records_of(result, 1) == [0]


def test_an_abandoned_long_poll_is_forgotten() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500)
    result.abandon()
    assert len(rig.broker.replicas.delayed.consumer_fetch) == 0


def test_a_long_poll_ends_when_leadership_is_lost() -> None:
    rig = leader([1, 2])
    result = rig.fetch(0, max_wait_ms=500)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    data = data_of(result)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 6)


def test_what_is_cut_away_while_a_request_waits_is_not_in_its_answer() -> None:
    rig = leader()
    result = rig.fetch(0, max_wait_ms=500, min_bytes=1 << 20)
    rig.produce(1)
    rig.produce(1)
    rig.partition().log.truncate_to(1)
    rig.partition().high_watermark = 1
    rig.env.advance(500)
    assert records_of(result) == [0]
