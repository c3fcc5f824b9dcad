"""Registration, heartbeats and controlled shutdown, with the test as the controller."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heirlog.broker.broker_lifecycle_manager import BrokerState
from heirlog.broker.partition import ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.env import SendFailure
from heirlog.metadata.apply import image_of_snapshot
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import BrokerHeartbeatResponse, BrokerRegistrationResponse
from heirlog.protocol.types import ZERO_UUID, Uuid

from .fakes import TOPIC_IDS, Rig, restarted, state


def loaded() -> Rig:
    rig = Rig()
    rig.broker.start()
    rig.env.advance(10)
    return rig


def test_a_broker_registers_listeners_features_and_directories() -> None:
    request = loaded().env.take("heartbeat").request
    assert [(li.name, li.host, li.port) for li in request.listeners] == [("PLAINTEXT", "broker1", 9092)]
    assert {feature.name for feature in request.features} >= {"metadata.version", "eligible.leader.replicas.version"}
    assert len(request.log_dirs) == 1 and request.previous_broker_epoch == -1


def test_registration_is_repeated_with_the_same_incarnation() -> None:
    rig = loaded()
    first = rig.env.take("heartbeat")
    first.on_result(SendFailure("disconnected"))
    rig.env.advance(100)
    second = rig.env.take("heartbeat")
    assert second.request.incarnation_id == first.request.incarnation_id


def test_a_broker_that_cannot_register_ends_with_the_reason() -> None:
    rig = loaded()
    for _ in range(200):
        if rig.env.stopped:
            break
        rig.env.take("heartbeat").on_result(
            BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        )
        rig.env.advance(1000)
    assert rig.env.stopped is not None and "DUPLICATE_BROKER_REGISTRATION" in rig.env.stopped[1]


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("_controller_endpoint", None, "no controller is known to be active"),
        ("_trusts_controller", False, "as new as this broker's copy"),
    ],
)
def test_a_broker_that_may_ask_no_controller_says_which_is_missing(
    monkeypatch: pytest.MonkeyPatch, part: str, value: object, why: str
) -> None:
    rig = Rig()
    monkeypatch.setattr(rig.broker.lifecycle, part, lambda: value)
    rig.broker.start()
    for _ in range(200):
        rig.env.advance(1000)
    assert rig.env.stopped is not None and why in rig.env.stopped[1]


def test_another_clusters_controllers_end_it_at_once() -> None:
    rig = loaded()
    rig.env.take("heartbeat").on_result(BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert rig.env.stopped is not None and rig.env.stopped[0] == 1


def test_an_answer_for_an_earlier_incarnation_is_not_taken_and_one_of_apache_kafka_names_none() -> None:
    rig = loaded()
    asked = rig.env.take("heartbeat")
    asked.on_result(BrokerRegistrationResponse(broker_epoch=7, incarnation_id=b"x" * 16))
    assert not rig.broker.lifecycle.was_registered
    rig.env.advance(1000)
    again = rig.env.take("heartbeat")
    assert again.request.incarnation_id == asked.request.incarnation_id
    again.on_result(BrokerRegistrationResponse(broker_epoch=8))
    assert rig.broker.lifecycle.was_registered


def test_it_wants_to_stay_fenced_until_the_first_image_is_applied() -> None:
    rig = loaded()
    rig.env.take("heartbeat").on_result(BrokerRegistrationResponse(broker_epoch=7))
    first = rig.env.take("heartbeat")
    assert first.request.want_fence and first.request.broker_epoch == 7
    first.on_result(BrokerHeartbeatResponse(is_caught_up=False))
    rig.env.advance(10)
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True))
    assert (rig.broker.state, rig.caught_up) == (BrokerState.RECOVERY, 1)
    rig.publish()
    unfencing = rig.env.take("heartbeat")
    assert not unfencing.request.want_fence
    unfencing.on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert rig.broker.state is BrokerState.RUNNING


def test_one_heartbeat_per_interval() -> None:
    rig = Rig().started()
    rig.env.advance(1999)
    assert not [sent for sent in rig.env.sent if sent.channel == "heartbeat"]
    rig.env.advance(1)
    assert rig.env.take("heartbeat").request.want_shut_down is False


@pytest.mark.parametrize(("interval_ms", "limit_ms"), [(500, 1800), (2000, 2000)])
def test_however_short_the_interval_a_busy_controller_has_a_fifth_of_a_session_to_answer(
    monkeypatch: pytest.MonkeyPatch, interval_ms: int, limit_ms: int
) -> None:
    """A call that is given up closes its connection, which the controller would take for the end of the broker."""
    rig = Rig(broker_heartbeat_interval_ms=str(interval_ms)).started()
    limits: list[int] = []
    monkeypatch.setattr(rig.env, "send", lambda to, channel, request, on_result, limit: limits.append(limit))
    rig.env.advance(interval_ms)
    assert limits == [limit_ms]


def test_a_broker_that_the_controller_does_not_know_registers_again_and_claims_nothing() -> None:
    rig = Rig().started()
    rig.env.advance(2000)
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    again = rig.env.take("heartbeat")
    assert again.request.previous_broker_epoch == -1
    again.on_result(BrokerRegistrationResponse(broker_epoch=300))
    assert rig.env.take("heartbeat").request.broker_epoch == 300


@pytest.mark.parametrize("as_snapshot", [False, True])
def test_a_process_whose_place_another_one_has_taken_ends_and_leads_nothing(as_snapshot: bool) -> None:
    rig = Rig().started()
    assert rig.show(state([1], leader_epoch=1)).leader_epoch == 1
    if as_snapshot:
        # a new image: what was looked up in the one before does not change
        rig.image = image_of_snapshot(list(rig.image.records()), rig.image.offset + 5, 1)
        rig.journal = rig.image.journal()
    rig.set_broker(1, epoch=300, incarnation_id=Uuid(b"the other one".ljust(16)))
    rig.set_partition(state([1], leader_epoch=2, partition_epoch=1))
    rig.publish()
    assert rig.env.stopped is not None
    code, reason = rig.env.stopped
    assert code == 1 and "another process has registered as broker 1 (PLAINTEXT://broker1:9092)" in reason
    assert rig.partition().leader_epoch == 1, "the leadership is the other process's"


def starting() -> Rig:
    """Registered with epoch 200, fenced, and with its first image."""
    rig = loaded()
    rig.env.take("heartbeat").on_result(BrokerRegistrationResponse(broker_epoch=200))
    rig.set_broker(1, 200, fenced=True, incarnation_id=rig.broker.lifecycle.incarnation_id)
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True))
    rig.env.advance(10)
    rig.publish()
    assert (rig.caught_up, rig.broker.state) == (1, BrokerState.RECOVERY)
    return rig


THE_OTHER = Uuid(b"the other one".ljust(16))


def test_a_late_registration_of_the_process_before_it_does_not_end_a_start() -> None:
    """That process was killed while it registered; its request arrives after this one was answered."""
    rig = starting()
    rig.set_broker(1, 300, fenced=True, incarnation_id=THE_OTHER)
    rig.set_partition(state([1, 2], leader=2))
    rig.publish()
    assert rig.env.stopped is None
    under_way = rig.env.take("heartbeat")
    again = rig.env.take("heartbeat")
    assert again.request.incarnation_id == rig.broker.lifecycle.incarnation_id
    assert again.request.previous_broker_epoch == -1
    under_way.on_result(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assert not [sent for sent in rig.env.sent if sent.channel == "heartbeat"], "one registration is on its way"
    again.on_result(BrokerRegistrationResponse(broker_epoch=301))
    rig.set_broker(1, 301, incarnation_id=rig.broker.lifecycle.incarnation_id)
    rig.publish()
    heartbeat = rig.env.take("heartbeat")
    assert (heartbeat.request.broker_epoch, heartbeat.request.want_fence) == (301, False)
    heartbeat.on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
    assert rig.broker.state is BrokerState.RUNNING
    assert rig.partition().role is ReplicaRole.FOLLOWER, "what changed while the place was another's is applied, too"


def test_a_start_applies_no_metadata_that_are_of_another_process_and_ends_once_that_one_may_lead() -> None:
    rig = starting()
    rig.set_broker(1, 300, fenced=True, incarnation_id=THE_OTHER)
    rig.set_partition(state([1], leader=1))
    rig.publish()
    assert rig.env.stopped is None
    assert rig.broker.replicas.partition((TOPIC_IDS["foo"], 0)) is None
    rig.set_broker(1, 300, fenced=False, incarnation_id=THE_OTHER)
    rig.publish()
    assert rig.env.stopped is not None and "another process has registered" in rig.env.stopped[1]
    assert rig.broker.replicas.partition((TOPIC_IDS["foo"], 0)) is None


def test_a_process_that_was_unfenced_ends_even_if_the_other_one_is_still_fenced() -> None:
    rig = Rig().started()
    rig.set_broker(1, 300, fenced=True, incarnation_id=THE_OTHER)
    rig.publish()
    assert rig.env.stopped is not None and rig.env.stopped[0] == 1


def test_a_process_that_registers_again_is_not_another_one() -> None:
    rig = Rig().started()
    rig.env.advance(2000)
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    again = rig.env.take("heartbeat")
    rig.set_broker(1, epoch=300, incarnation_id=again.request.incarnation_id)
    rig.publish()
    again.on_result(BrokerRegistrationResponse(broker_epoch=300))
    rig.publish()
    assert rig.env.stopped is None


def test_a_registration_that_a_seeded_controller_has_renewed_is_of_no_other_process() -> None:
    rig = Rig().started()
    rig.set_broker(1, epoch=300, incarnation_id=ZERO_UUID)
    rig.publish()
    assert rig.env.stopped is None


def test_a_process_that_has_just_registered_may_see_the_one_before_it_in_its_metadata() -> None:
    rig = Rig().started(epoch=300)
    rig.set_broker(1, epoch=200, incarnation_id=Uuid(b"the one before".ljust(16)))
    rig.publish()
    assert rig.env.stopped is None


def test_a_second_registration_does_not_double_the_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[ReplicaManager] = []
    monkeypatch.setattr(ReplicaManager, "check_isr_lag", lambda replicas: checks.append(replicas))
    rig = Rig().started()
    rig.env.advance(2000)
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    rig.env.take("heartbeat").on_result(BrokerRegistrationResponse(broker_epoch=300))
    rig.env.advance(60_000)
    assert len(checks) == 4, "every replica.lag.time.max.ms / 2"


def test_controlled_shutdown_asks_until_the_controller_lets_go() -> None:
    rig = Rig().started()
    done: list[bool] = []
    rig.broker.shutdown(lambda: done.append(True))
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_fenced=False))
    rig.env.advance(50)
    asked = rig.env.take("heartbeat")
    assert asked.request.want_shut_down and rig.broker.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    asked.on_result(BrokerHeartbeatResponse(should_shut_down=True))
    rig.env.advance(100)
    assert done == [True]


def test_a_broker_stops_without_a_controller_that_stays_silent_for_a_session() -> None:
    rig = Rig().started()
    done: list[bool] = []
    rig.broker.shutdown(lambda: done.append(True))
    for _ in range(200):
        if done:
            break
        for sent in [sent for sent in rig.env.sent if sent.channel == "heartbeat"]:
            rig.env.sent.remove(sent)
            sent.on_result(SendFailure("timed-out"))
        rig.env.advance(100)
    assert done == [True]
    assert rig.env.now_ms() >= 9000


def test_during_controlled_shutdown_a_follower_outside_the_isr_stops_fetching() -> None:
    rig = Rig().started()
    rig.show(state([1, 2], leader=2))
    assert len(rig.broker.fetchers.fetched_partitions) == 1
    rig.broker.shutdown(lambda: None)
    assert len(rig.broker.fetchers.fetched_partitions) == 1
    rig.show(state([1, 2], [2], leader=2, partition_epoch=2))
    assert len(rig.broker.fetchers.fetched_partitions) == 0


CLEAN_FILE = "/data/.kafka_cleanshutdown"


def clean_file(rig: Rig) -> bytes | None:
    files = rig.env.files
    if not files.exists(CLEAN_FILE):
        return None
    file = files.open(CLEAN_FILE)
    return bytes(file.pread(file.size, 0))


def stopped_cleanly() -> Rig:
    """The next incarnation of a broker with one log, not started yet."""
    rig = Rig().started(epoch=7)
    rig.show(state([1]))
    rig.produce(1)
    again = restarted(rig)
    again.set_partition(state([1]))
    assert clean_file(again) == b'{"version":0,"brokerEpoch":7}'
    return again


def test_a_start_that_gives_up_leaves_the_clean_stop_before_it_as_it_was() -> None:
    rig = stopped_cleanly()
    rig.broker.start()
    while not rig.env.stopped:
        rig.env.take("heartbeat").on_result(SendFailure("refused"))
        rig.env.advance(1000)
    assert clean_file(rig) == b'{"version":0,"brokerEpoch":7}'
    again = Rig(1, rig.env)
    again.broker.start()
    assert again.env.take("heartbeat").request.previous_broker_epoch == 7


def test_a_stop_before_the_registration_leaves_the_clean_stop_before_it_as_it_was() -> None:
    rig = stopped_cleanly()
    for _ in range(3):
        rig.broker.start()
        rig.env.take("heartbeat").on_result(SendFailure("refused"))
        done: list[bool] = []
        rig.broker.shutdown(lambda done=done: done.append(True))  # type: ignore[misc]
        rig.env.advance(200)
        assert (done, clean_file(rig)) == ([True], b'{"version":0,"brokerEpoch":7}')
        rig = Rig(1, rig.env)
    assert rig.directories[0].clean_broker_epoch == 7


def test_a_stop_while_the_registration_is_on_its_way_ends_with_the_epoch_that_the_controller_has_given() -> None:
    rig = stopped_cleanly()
    rig.broker.start()
    registration = rig.env.take("heartbeat")
    done: list[bool] = []
    rig.broker.shutdown(lambda: done.append(True))
    rig.env.advance(100)
    assert (done, clean_file(rig)) == ([], b'{"version":0,"brokerEpoch":7}')
    registration.on_result(BrokerRegistrationResponse(broker_epoch=300))
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(should_shut_down=True))
    rig.env.advance(100)
    assert (done, clean_file(rig)) == ([True], b'{"version":0,"brokerEpoch":300}')


def test_no_image_is_asked_for_before_the_clean_shutdown_file_is_removed_durably(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = stopped_cleanly()
    synced: list[Callable[[], None]] = []
    rig.broker.start()
    monkeypatch.setattr(
        type(rig.env.files), "sync_dir", lambda files, path, on_synced: synced.append(lambda: on_synced(None))
    )
    rig.env.take("heartbeat").on_result(BrokerRegistrationResponse(broker_epoch=300))
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True))
    assert (clean_file(rig), rig.caught_up, len(synced)) == (None, 0, 1)
    synced[0]()
    assert rig.caught_up == 1


def test_a_broker_registered_again_with_a_controller_that_forgot_it_claims_no_clean_stop() -> None:
    rig = stopped_cleanly()
    rig.broker.start()
    first = rig.env.take("heartbeat")
    assert first.request.previous_broker_epoch == 7
    first.on_result(BrokerRegistrationResponse(broker_epoch=300))
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))
    assert rig.env.take("heartbeat").request.previous_broker_epoch == -1


def test_a_directory_that_fails_while_a_heartbeat_is_on_its_way_is_reported_right_after_its_answer() -> None:
    rig = Rig(log_dirs="/data,/more", metadata_log_dir="/metadata").started()
    rig.env.advance(2000)
    under_way = rig.env.take("heartbeat")
    directory = rig.broker.replicas.directories.online[0]
    rig.broker.replicas.directories.failed(directory, OSError("input/output error"))
    under_way.on_result(BrokerHeartbeatResponse(is_fenced=False))
    rig.env.advance(1)
    assert rig.env.take("heartbeat").request.offline_log_dirs == [directory.directory_id]
