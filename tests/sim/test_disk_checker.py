"""Hand-made violations on the disks and in the answers of a cluster that is otherwise sound (T16, T17, T18)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heirlog.broker.produce import ProduceHandler
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import BrokerId
from heirlog.sim.cluster import LOG_DIR
from heirlog.sim.disk_files import SimFiles
from heirlog.sim.disk_logs import log_on_disk
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC
from heirlog.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE

LIMIT_MS = 20_000


@pytest.fixture
def simulation() -> Simulation:
    simulation = Simulation(1, RunPlan(partitions=1, idempotent=False, leader_acks=False))
    simulation.begin()
    simulation.cluster.run_for(1000)
    return simulation


def files_of(simulation: Simulation, name: str) -> SimFiles:
    process = simulation.cluster.machine(name).process
    assert process is not None
    return SimFiles(simulation.cluster.machines.disk(name), process)


def stop(simulation: Simulation, name: str) -> None:
    simulation.cluster.stop(name)
    assert simulation.cluster.run_until(lambda: not simulation.cluster.is_up(name), LIMIT_MS)


def delete_log(simulation: Simulation) -> None:
    files = files_of(simulation, "broker-1")
    files.rename(f"{LOG_DIR}/{TOPIC}-0", f"{LOG_DIR}/{TOPIC}-0.00-delete")
    files.rmdir(f"{LOG_DIR}/{TOPIC}-0.00-delete")


def test_a_log_that_is_deleted_by_nobody_s_order_breaks_t16(simulation: Simulation) -> None:
    with pytest.raises(Violation, match="T16: broker 1 deleted its log of t-0"):
        delete_log(simulation)


def test_a_log_may_be_deleted_after_the_topic_was_removed(simulation: Simulation) -> None:
    (topic_id,) = [
        topic_id for topic_id, topic in simulation.checker.committed.image.topics.items() if topic.name == TOPIC
    ]
    simulation.checker.disk_checker.topic_removed(topic_id)
    delete_log(simulation)


def test_a_cut_by_metadata_older_than_what_the_broker_has_applied_breaks_t16(simulation: Simulation) -> None:
    node = simulation.cluster.broker(BrokerId(1)).running
    assert node is not None
    node.env.log("info", "log-truncated", topic=TOPIC, partition=0)
    node.image.offset -= 1
    with pytest.raises(Violation, match="T16: broker 1 truncated t-0 by metadata up to"):
        node.env.log("info", "log-truncated", topic=TOPIC, partition=0)


def test_a_success_above_the_high_watermark_breaks_t17(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered_at_once(self: ProduceHandler, response: object, *_: object, **__: object) -> object:
        return response

    monkeypatch.setattr(ProduceHandler, "_wait", answered_at_once)
    with pytest.raises(Violation, match=r"T17: t-0.*its high watermark is"):
        simulation.cluster.run_for(1000)


def test_a_success_for_records_that_are_not_there_breaks_t17(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_written(
        self: ProduceHandler, response: object, waits: list[tuple[object, int, object]], *_: object, **__: object
    ) -> object:
        for _, _, answer in waits:
            answer.error_code, answer.base_offset = ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1  # type: ignore[attr-defined]
        for partition, _, _ in waits:
            partition.log.truncate_to(0)  # type: ignore[attr-defined]
        return response

    monkeypatch.setattr(ProduceHandler, "_wait", never_written)
    with pytest.raises(Violation, match=r"T17: t-0.*not in its log"):
        simulation.cluster.run_for(1000)


def unlink_the_clean_shutdown_file(files: SimFiles) -> None:
    files.unlink(f"{LOG_DIR}/{CLEAN_SHUTDOWN_FILE}")


def append_to_a_log(files: SimFiles) -> None:
    files.open(f"{LOG_DIR}/{TOPIC}-0/00000000000000000000.log").append(b"x")


def rename_a_log_that_was_not_deleted(files: SimFiles) -> None:
    files.rename(f"{LOG_DIR}/{TOPIC}-0", f"{LOG_DIR}/{TOPIC}-0.00-delete")


@pytest.mark.parametrize("change", [unlink_the_clean_shutdown_file, append_to_a_log, rename_a_log_that_was_not_deleted])
def test_a_start_that_fails_and_has_changed_a_file_breaks_t18(
    simulation: Simulation, change: Callable[[SimFiles], None]
) -> None:
    stop(simulation, "broker-1")
    simulation.cluster.start("broker-1")
    change(files_of(simulation, "broker-1"))
    with pytest.raises(Violation, match="T18: broker 1 stopped cleanly; 1 starts"):
        simulation.cluster.kill("broker-1")


def test_a_start_that_fails_may_lose_what_a_deleted_log_had_not_flushed(simulation: Simulation) -> None:
    files = files_of(simulation, "broker-1")
    stop(simulation, "broker-1")
    files.mkdirs(f"{LOG_DIR}/gone-0.00-delete")
    files.open(f"{LOG_DIR}/gone-0.00-delete/00000000000000000000.log", create=True).append(b"x")
    simulation.cluster.start("broker-1")
    files.unlink(f"{LOG_DIR}/gone-0.00-delete/00000000000000000000.log")
    simulation.cluster.kill("broker-1")
    assert simulation.world.counters["start.failed"] == 1


def test_what_a_registered_incarnation_changes_is_nobody_s_business(simulation: Simulation) -> None:
    stop(simulation, "broker-1")
    simulation.cluster.start("broker-1")
    simulation.wait("all brokers are unfenced", simulation.all_unfenced, LIMIT_MS)
    simulation.cluster.kill("broker-1", lose_unflushed=True)
    assert simulation.world.counters["start.failed"] == 0


def test_the_disk_of_a_node_that_is_down_tells_what_its_log_holds(simulation: Simulation) -> None:
    node = simulation.cluster.broker(BrokerId(1)).running
    assert node is not None
    log = node.broker.replicas.partitions_named(TOPIC)[0].log
    disk, topic_id = simulation.cluster.machines.disk("broker-1"), log.topic_id
    assert topic_id is not None
    simulation.cluster.kill("broker-1")
    held = log_on_disk(disk, [LOG_DIR], TOPIC, 0, topic_id)
    assert held is not None
    assert (held.log_start_offset, held.log_end_offset) == (0, log.log_end_offset)
    assert held.epochs.entries == log.epochs.entries
    assert log_on_disk(disk, [LOG_DIR], TOPIC, 1, topic_id) is None
    disk.power_cut()
    cut = log_on_disk(disk, [LOG_DIR], TOPIC, 0, topic_id)
    assert cut is not None and cut.log_end_offset <= held.log_end_offset
