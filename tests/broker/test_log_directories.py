"""Log directories: strays, disks that fail, and replicas that are placed in one that is offline."""

from __future__ import annotations

import pytest

from heirlog.broker.partition import Role
from heirlog.protocol.errors import ErrorCode

from .fakes import TOPIC_IDS, Rig, restarted, state


def test_the_log_of_a_topic_deleted_meanwhile_is_a_stray() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    again = restarted(rig)
    again.started()
    assert "foo-0" not in again.env.files.list("/data")


def test_a_failed_disk_takes_its_partitions_offline_and_the_controller_hears_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(log_dirs="/data,/more", metadata_log_dir="/metadata").started()
    partition = rig.show(state([1]))

    def fail(*_: object) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(partition.log, "append_as_leader", fail)
    response = rig.produce(1)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.offline and partition.role is Role.IDLE
    assert len(rig.env.take("heartbeat").request.offline_log_dirs) == 1
    assert rig.env.stopped is None


def test_a_node_ends_with_the_directory_of_its_metadata_log() -> None:
    rig = Rig(log_dirs="/data,/more").started()
    rig.show(state([1]))
    rig.broker.replicas.directories.file_failed("/data/t-0/00000000000000000000.log", OSError("input/output error"))
    assert rig.env.stopped == (1, "the directory of the metadata log, /data, has failed with: input/output error")


def test_a_replica_of_an_offline_directory_is_not_begun_anew_in_another_one() -> None:
    rig = Rig(log_dirs="/data,/more", metadata_log_dir="/metadata").started()
    directory = rig.broker.replicas.directories.online[0]
    rig.broker.replicas.directories.failed(directory, OSError("input/output error"))
    rig.set_partition(state([1], directories=(directory.directory_id,)))
    rig.publish()
    assert rig.broker.replicas.partition((TOPIC_IDS["foo"], 0)) is None
    response = rig.produce(1)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
