"""A broker with several log directories tells the controller where its replicas lie."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.env import SendFailure
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AssignReplicasToDirsResponse
from heirlog.protocol.types import Uuid
from heirlog.storage.log_directory import LogDirectory

from .fakes import TOPIC_IDS, Rig, Sent, state

SEVERAL = {"log_dirs": "/data,/more", "metadata_log_dir": "/metadata"}


def reports(rig: Rig) -> list[Sent]:
    rig.env.advance(1)
    return [sent for sent in rig.env.sent if sent.channel == "assign-directories"]


def received(sent: Sent) -> dict[tuple[bytes, int], Uuid]:
    return {
        (topic.topic_id, partition.partition_index): directory.id
        for directory in sent.request.directories
        for topic in directory.topics
        for partition in topic.partitions
    }


def answer(rig: Rig, code: ErrorCode = ErrorCode.NONE) -> dict[tuple[bytes, int], Uuid]:
    """Take the one report there is, and answer each replica with this code."""
    (sent,) = reports(rig)
    rig.env.sent.remove(sent)
    response = AssignReplicasToDirsResponse
    sent.on_result(
        response(
            directories=[
                response.DirectoryData(
                    id=directory.id,
                    topics=[
                        response.TopicData(
                            topic_id=topic.topic_id,
                            partitions=[
                                response.PartitionData(partition_index=each.partition_index, error_code=code)
                                for each in topic.partitions
                            ],
                        )
                        for topic in directory.topics
                    ],
                )
                for directory in sent.request.directories
            ]
        )
    )
    return received(sent)


def where(rig: Rig, topic: str = "foo", index: int = 0) -> Uuid:
    directory = rig.broker.replicas.directory_of(rig.partition(topic, index))
    assert directory is not None
    return directory.directory_id


def test_new_replicas_are_spread_and_reported_in_one_request() -> None:
    rig = Rig(**SEVERAL).started()
    for topic, index in (("foo", 0), ("foo", 1), ("bar", 0)):
        rig.set_partition(state([1, 2]), topic, index)
    rig.publish()
    assert answer(rig) == {(TOPIC_IDS[t], i): where(rig, t, i) for t, i in (("foo", 0), ("foo", 1), ("bar", 0))}
    assert len({where(rig, "foo", 0), where(rig, "foo", 1)}) == 2
    assert reports(rig) == []


def test_a_replica_whose_directory_the_image_names_is_not_reported() -> None:
    rig = Rig(**SEVERAL).started()
    second = rig.directories[1].directory_id
    rig.show(state([1], directories=(second,)))
    assert where(rig) == second
    assert reports(rig) == []


def test_a_change_that_does_not_name_the_directory_yet_asks_for_another_report() -> None:
    rig = Rig(**SEVERAL).started()
    rig.show(state([1, 2]))
    answer(rig)
    rig.show(state([1, 2], isr=[1], partition_epoch=2))
    answer(rig)
    rig.show(state([1, 2], isr=[1], partition_epoch=3, directories=(where(rig), Uuid(bytes(16)))))
    assert reports(rig) == []


@pytest.mark.parametrize(
    "failure", [SendFailure("timeout"), AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)]
)
def test_a_report_that_failed_is_sent_again_with_the_epoch_of_then(failure: Any) -> None:
    rig = Rig(**SEVERAL).started()
    rig.show(state([1, 2]))
    (first,) = reports(rig)
    rig.env.sent.remove(first)
    first.on_result(failure)
    assert reports(rig) == []
    rig.broker.registered_brokers.broker_epoch = rig.broker.registered_brokers.broker_epoch + 7  # type: ignore[assignment]
    rig.env.advance(100)
    (second,) = reports(rig)
    assert second.request.broker_epoch == first.request.broker_epoch + 7
    assert received(second) == received(first)


@pytest.mark.parametrize(
    ("code", "again"),
    [(ErrorCode.UNKNOWN_TOPIC_ID, 0), (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0), (ErrorCode.UNKNOWN_SERVER_ERROR, 1)],
)
def test_what_the_controller_does_not_know_is_not_reported_again(code: ErrorCode, again: int) -> None:
    rig = Rig(**SEVERAL).started()
    rig.show(state([1, 2]))
    answer(rig, code)
    rig.env.advance(1000)
    assert len(reports(rig)) == again


def test_a_replica_that_is_gone_is_not_reported_any_more() -> None:
    rig = Rig(**SEVERAL).started()
    rig.show(state([1, 2]))
    rig.delete_topic()
    rig.publish()
    assert reports(rig) == []


def test_a_replica_on_a_disk_that_fails_before_it_was_reported_is_reported_all_the_same() -> None:
    rig = Rig(**SEVERAL).started()
    rig.show(state([1, 2]))
    failed = where(rig)
    directory = next(each for each in rig.directories if each.directory_id == failed)
    rig.broker.replicas.directories.failed(directory, OSError("input/output error"))
    assert answer(rig) == {(TOPIC_IDS["foo"], 0): failed}
    assert list(rig.env.take("heartbeat").request.offline_log_dirs) == [failed]


def test_a_new_replica_goes_to_the_next_directory_where_one_cannot_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(**SEVERAL).started()
    create = LogDirectory.create_log

    def fail(self: LogDirectory, *args: Any, **more: Any) -> Any:
        if self is rig.directories[0]:
            raise OSError("no space left on device")
        return create(self, *args, **more)

    monkeypatch.setattr(LogDirectory, "create_log", fail)
    rig.show(state([1, 2]))
    assert where(rig) == rig.directories[1].directory_id
    assert answer(rig) == {(TOPIC_IDS["foo"], 0): rig.directories[1].directory_id}
    assert list(rig.broker.replicas.directories.offline_ids) == [rig.directories[0].directory_id]


def test_thousands_of_replicas_are_reported_bit_by_bit() -> None:
    rig = Rig(**SEVERAL).started()
    reported: dict[tuple[bytes, int], Uuid] = {}
    manager = rig.broker.replicas._reports
    wanted = {(TOPIC_IDS["foo"], index): rig.directories[0].directory_id for index in range(4500)}
    for key, directory in wanted.items():
        manager.report(key, directory)
    for size in (2000, 2000, 500):
        part = answer(rig)
        assert len(part) == size
        reported |= part
    assert reported == wanted
    assert reports(rig) == []
