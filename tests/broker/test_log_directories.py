"""Log directories: strays, disks that fail, and replicas that are placed in one that is offline."""

from __future__ import annotations

import pytest

from heirlog.broker.partition import ReplicaRole
from heirlog.metadata.state import TopicImage
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import Uuid

from .fakes import TOPIC_IDS, Rig, batch, restarted, state

OTHER_ID = Uuid(b"another-foo-----")


def strays(rig: Rig) -> list[str]:
    return [name for name in rig.env.files.list("/data") if name.endswith("-stray")]


def test_a_log_that_the_metadata_do_not_know_at_start_is_set_aside_and_never_deleted() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1, batch(3))
    again = restarted(rig)
    again.started()
    again.env.advance(10_000_000)
    (stray,) = strays(again)
    assert "foo-0" not in again.env.files.list("/data")
    assert again.env.files.open(f"/data/{stray}/{0:020d}.log").size == len(batch(3))
    received = [values for event, values in again.env.events if event == "stray-log-set-aside"]
    assert received == [{"topic": "foo", "partition": 0, "path": f"/data/{stray}"}]
    assert again.directories[0].removed.kept == [stray]


def test_a_log_that_was_set_aside_comes_back_at_the_start_at_which_the_metadata_know_its_topic_id_again() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1, batch(3))
    without = restarted(rig).started()
    assert strays(without)
    again = restarted(without)
    again.set_partition(state([1]))
    (stray,) = strays(again)
    again.started()
    assert (again.partition().log.log_end_offset, strays(again)) == (3, [])
    said = [values for event, values in again.env.events if event == "stray-logs-kept"]
    assert said == [{"directory": "/data", "count": 1, "names": [stray]}]
    assert again.directories[0].removed.kept == []


def test_a_log_that_was_set_aside_stays_aside_where_another_topic_has_its_name_or_the_partition_has_a_log() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    without = restarted(rig).started()
    other = restarted(without)
    other.image.set_topic(OTHER_ID, TopicImage("foo", OTHER_ID), other.journal)
    other.image.set_partition(OTHER_ID, 0, state([1]), other.journal)
    other.started()
    assert len(strays(other)) == 1
    both = restarted(other)
    both.set_partition(state([1]))
    both.started()
    assert len(strays(both)) == 1, "foo's first log is back, and that of the other topic is aside now"
    assert both.partition().log.topic_id == TOPIC_IDS["foo"]


def test_a_log_that_a_snapshot_no_longer_names_is_set_aside_and_one_that_a_record_removes_is_deleted() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.show(state([1]), index=1)
    rig.image.set_partition(TOPIC_IDS["foo"], 1, None, rig.journal)
    rig.publish()
    rig.delete_topic()
    rig.journal.is_of_snapshot = True
    rig.publish()
    rig.env.advance(10_000_000)
    assert [name for name in rig.env.files.list("/data") if name.startswith("foo-")] == strays(rig)
    assert strays(rig)[0].startswith("foo-0.")


def test_a_failed_disk_takes_its_partitions_offline_and_the_controller_hears_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(log_dirs="/data,/more", metadata_log_dir="/metadata").started()
    partition = rig.show(state([1]))

    def fail(*_: object, **more: object) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(partition.log, "append_as_leader", fail)
    response = rig.produce(1)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.offline and partition.role is ReplicaRole.IDLE
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
