"""AssignReplicasToDirs: a broker with several log directories reports which of its replicas are in which of them.

The record that creates a replica on a broker with one log directory names that directory. On a broker with several
directories it says UNASSIGNED, because only the broker knows where there is room. The broker chooses a directory and
reports it. A replica that is UNASSIGNED may lead.

    the directory is online     the record names it
    it is not (any more)        the record names it and also removes the replica from ISR and ELR: the disk failed
                                before the broker reported the assignment, so the controller did not know that the
                                replica was on it

Each partition has its own result. A request from a registration that is not the current one is refused as a whole.

Source: KIP-858.
"""

from __future__ import annotations

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.leadership import Changes, Leadership, without
from heirlog.controller.partition_change import ChangeCause, TargetState
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import BrokerRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from heirlog.protocol.types import BrokerId, Uuid

Directory = AssignReplicasToDirsResponse.DirectoryData
Topic = AssignReplicasToDirsResponse.TopicData
Partition = AssignReplicasToDirsResponse.PartitionData


def assign_directories(
    image: Image, static: StaticConfig, request: AssignReplicasToDirsRequest
) -> ControllerResult[AssignReplicasToDirsResponse]:
    """Records and answer of one report."""
    broker = image.brokers.get(BrokerId(request.broker_id))
    if broker is None or broker.epoch != request.broker_epoch:
        return answer(AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    handling = _Handling(image, static, broker)
    response = AssignReplicasToDirsResponse(
        directories=[
            Directory(
                id=directory.id,
                topics=[
                    Topic(
                        topic_id=topic.topic_id,
                        partitions=[
                            Partition(
                                partition_index=asked.partition_index,
                                error_code=handling.assign(
                                    Uuid(topic.topic_id), asked.partition_index, Uuid(directory.id)
                                ),
                            )
                            for asked in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
    return ControllerResult(lambda base_offset: response, [*handling.changes.records], handling.changes.elections)


class _Handling:
    """The state of one report while it is handled."""

    def __init__(self, image: Image, static: StaticConfig, broker: BrokerRegistration) -> None:
        self._image = image
        self._broker = broker
        self._leadership = Leadership(image, static)
        self.changes = Changes()

    def assign(self, topic_id: Uuid, partition: int, directory: Uuid) -> ErrorCode:
        if topic_id not in self._image.topics:
            return ErrorCode.UNKNOWN_TOPIC_ID
        state = self._image.partition(topic_id, partition)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        me = self._broker.id
        if me not in state.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        directories = tuple(directory if each == me else state.directory_of(each) for each in state.replicas)
        if self._broker.has_online(directory):
            built = self._leadership.change(topic_id, partition, TargetState(directories=directories))
        else:
            built = self._leadership.change(
                topic_id,
                partition,
                TargetState(directories=directories, isr=without(state.isr, me)),
                ChangeCause(lost=(me,), leaving=me),
            )
        self.changes.add(built)
        return ErrorCode.NONE
