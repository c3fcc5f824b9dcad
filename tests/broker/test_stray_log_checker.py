"""A log that was set aside is read in slices before it comes back; the broker answers meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationResponse
from heirlog.storage import recovery

from .fakes import Rig, batch, restarted, state
from .test_log_directories import strays

BATCHES = 50


def with_stray(monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A stopped broker with a log of `BATCHES` batches that was set aside; each batch is a slice."""
    monkeypatch.setattr(recovery, "SLICE_BYTES", 1)
    rig = Rig().started()
    rig.show(state([1]))
    for _ in range(BATCHES):
        rig.produce(1, batch(1))
    return restarted(restarted(rig).started())


def caught_up(rig: Rig) -> list[int]:
    """Start up to the answer that the broker has caught up; how often it has let other work in between since."""
    pauses: list[int] = []
    call_later = rig.env.call_later

    def counted(delay_ms: int, fn: Any) -> Any:
        if delay_ms == 0:
            pauses.append(rig.caught_up)
        return call_later(delay_ms, fn)

    rig.env.call_later = counted  # type: ignore[method-assign]
    rig.set_partition(state([1]))
    rig.broker.start()
    rig.env.advance(10)
    rig.env.take("heartbeat").on_result(BrokerRegistrationResponse(broker_epoch=101))
    rig.set_broker(1)
    pauses.clear()
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True))
    return pauses


def test_other_work_comes_between_the_slices_and_the_broker_serves_after_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = with_stray(monkeypatch)
    pauses = caught_up(rig)
    rig.env.advance(100)
    assert rig.caught_up == 1
    assert pauses.count(0) >= BATCHES, "none of these while the image was published already"
    rig.publish()
    assert (rig.partition().log.log_end_offset, strays(rig)) == (BATCHES, [])


def test_heartbeats_that_ask_to_stay_fenced_continue_while_a_log_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = with_stray(monkeypatch)
    call_later = rig.env.call_later
    rig.env.call_later = lambda delay_ms, fn: call_later(delay_ms or 1_000, fn)  # type: ignore[method-assign]
    rig.set_partition(state([1]))
    rig.broker.start()
    rig.env.advance(3_000)
    rig.env.take("heartbeat").on_result(BrokerRegistrationResponse(broker_epoch=101))
    rig.set_broker(1)
    answered = 0
    while not rig.caught_up:
        for sent in [sent for sent in rig.env.sent if isinstance(sent.request, BrokerHeartbeatRequest)]:
            assert sent.request.want_fence
            rig.env.sent.remove(sent)
            sent.on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True))
            answered += 1
        rig.env.advance(1_000)
    assert answered > 10, "a second for each slice, a heartbeat every two"


def test_a_stop_while_a_log_is_read_leaves_it_aside_and_the_next_start_reads_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = with_stray(monkeypatch)
    caught_up(rig)
    before = strays(rig)
    stopped: list[None] = []
    rig.broker.stop_at_once(lambda: stopped.append(None))
    rig.env.advance(1_000)
    assert (len(stopped), rig.caught_up, strays(rig)) == (1, 0, before)
    rig.env.sent.clear()
    again = Rig(1, rig.env)
    caught_up(again)
    again.env.advance(100)
    again.publish()
    assert (again.partition().log.log_end_offset, strays(again)) == (BATCHES, [])


def test_what_is_damaged_at_the_end_of_a_log_that_comes_back_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = with_stray(monkeypatch)
    (stray,) = strays(rig)
    file = rig.env.files.open(f"/data/{stray}/{0:020d}.log")
    file.truncate(file.size - 1)
    file.append(b"?")
    file.close()
    caught_up(rig)
    rig.env.advance(100)
    rig.publish()
    assert rig.partition().log.log_end_offset == BATCHES - 1


@pytest.mark.parametrize(("count", "value_bytes"), [(24, 1_000_000), (10_000, 1)], ids=["large", "many"])
def test_a_slice_ends_after_some_bytes_or_batches(count: int, value_bytes: int) -> None:
    rig = Rig().started()
    rig.show(state([1]))
    log = rig.partition().log
    for _ in range(count):
        log.append_as_leader(batch(1, value=b"x" * value_bytes), 5, rig.env.wall_ms())
    again = restarted(restarted(rig).started())
    again.set_partition(state([1]))
    ((directory, stray),) = list(_loaded(again))
    slices = sum(1 for _ in directory.check_stray(stray, "foo", log.config, 0))
    assert 2 <= slices < 100


def _loaded(rig: Rig) -> Any:
    rig.broker.start()
    return rig.broker.replicas.directories.assigned_strays(rig.image)
