"""Layer `controller_kip`: rules of the KIP that Apache Kafka never shipped, on the same controller, manager on.

The setup is one partition, foo-0. Its brokers are unfenced if it has a leader, else fenced: a leaderless partition with
live eligible replicas would elect a leader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heirlog.controller.recovery.sender import CHANNEL
from heirlog.metadata.image import ELR_VERSION, METADATA_VERSION
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.messages import GetReplicaLogInfoResponse
from heirlog.protocol.types import BrokerId
from heirlog.testing.conformance.controller_layer import ControllerScenario, Observed
from heirlog.testing.conformance.setup_records import Members
from heirlog.testing.conformance.vocabulary import UnknownName

MIN_ISR: Final = "min.insync.replicas"
RECOVERED: Final = "unclean_recovery_elects"
_LEADER_EPOCH: Final = 10
_PARTITION_EPOCH: Final = 20


class KipScenario:
    def __init__(self, setup: Members, *, manager: bool = True) -> None:
        state = "fenced" if setup["leader"] == -1 else "unfenced"
        partition = {
            name: setup[name]
            for name in ("replicas", "isr", "elr", "lastKnownElr", "leader", "adding", "removing")
            if name in setup
        }
        self._controller = ControllerScenario(
            {
                "features": {METADATA_VERSION: 29, ELR_VERSION: 1},
                "config": {"topic": {"foo": {MIN_ISR: str(setup.get("minInsyncReplicas", 1))}}},
                "brokers": [{"id": broker, "state": state} for broker in sorted(setup["replicas"])],
                "partitions": [{**partition, "leaderEpoch": _LEADER_EPOCH, "partitionEpoch": _PARTITION_EPOCH}],
            },
            manager=manager,
        )

    def play(self, event: Members) -> Observed:
        translate = _TRANSLATIONS.get(event["type"])
        if translate is None:
            raise UnknownName(f"event {event['type']} is not implemented")
        if event["type"] == RECOVERED:
            # all replicas come back, so that there is none to wait for
            for replica in self._state().replicas:
                if replica != event["leader"]:
                    self._controller.play({"type": "heartbeat", "broker": replica})
        before = self._state()
        seen = self._controller.play(translate(event))
        if event["type"] == RECOVERED:
            _answers(self._controller, event["leader"])
        after = self._state()
        observed = {
            "error": seen["error"],
            "replicas": list(after.replicas),
            "isr": list(after.isr),
            "elr": list(after.elr),
            "lastKnownElr": list(after.last_known_elr),
            "leaderEpochDelta": after.leader_epoch - before.leader_epoch,
            "partitionEpochDelta": after.partition_epoch - before.partition_epoch,
        }
        ended = before.is_reassigning and not after.is_reassigning
        if event["type"] == "alter_reassignment":
            observed["cancelled"] = ended
        elif before.is_reassigning:
            observed["reassignmentCompleted"] = ended
        return observed

    def _state(self) -> PartitionRegistration:
        state = self._controller.image.partition_named("foo", 0)
        assert state is not None, "nothing here deletes the topic"
        return state


def _register(event: Members) -> Members:
    """A new process; clean means that it names the epoch of the one before."""
    clean = {} if event.get("unclean", False) else {"previousBrokerEpoch": 100 + event["broker"]}
    return {"type": "register_broker", "broker": event["broker"], **clean}


def _alter_config(event: Members) -> Members:
    where = {"resourceType": "topic", "resourceName": "foo"}
    return {"type": "alter_config", **where, "op": "SET", "name": MIN_ISR, "value": str(event["value"])}


def _answers(scenario: ControllerScenario, winner: int) -> None:
    """Every replica that is asked answers; the winner has the longest log."""
    env = scenario.env
    while waiting := [sent for sent in env.sent if sent.channel == CHANNEL]:
        sent = waiting[0]
        env.sent.remove(sent)
        broker = BrokerId(sent.request.broker_id)
        sent.on_result(
            GetReplicaLogInfoResponse(
                broker_epoch=scenario.image.brokers[broker].epoch,
                topic_partition_log_info_list=[
                    GetReplicaLogInfoResponse.TopicPartitionLogInfo(
                        topic_id=topic.topic_id,
                        partition_log_info=[
                            GetReplicaLogInfoResponse.PartitionLogInfo(
                                partition=partition,
                                last_written_leader_epoch=0,
                                current_leader_epoch=scenario.image.partitions[topic.topic_id][partition].leader_epoch,
                                log_end_offset=100 if broker == winner else 10,
                                error_message=None,
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in sent.request.topic_partitions
                ],
            )
        )
        scenario.commit()


_TRANSLATIONS: Final[Mapping[str, Callable[[Members], Members]]] = {
    "alter_partition": lambda event: event,
    "alter_reassignment": lambda event: {"type": "alter_reassignment", "replicas": event.get("replicas")},
    "alter_config": _alter_config,
    "register_broker": _register,
    RECOVERED: lambda event: {"type": "heartbeat", "broker": event["leader"]},
}
