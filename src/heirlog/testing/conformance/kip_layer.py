"""Layer `controller_kip`: rules of the KIP that Apache Kafka never shipped, on the same controller, manager on.

The setup is one partition, foo-0. Its brokers are unfenced if somebody leads it, else fenced: a leaderless partition
with live eligible replicas would not stay one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heirlog.metadata.image import ELR_VERSION, METADATA_VERSION
from heirlog.metadata.state import PartitionState
from heirlog.testing.conformance.controller_layer import ControllerScenario, Members, Observed
from heirlog.testing.conformance.vocabulary import UnknownName

MIN_ISR: Final = "min.insync.replicas"
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
        before = self._state()
        seen = self._controller.play(translate(event))
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

    def _state(self) -> PartitionState:
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


_TRANSLATIONS: Final[Mapping[str, Callable[[Members], Members]]] = {
    "alter_partition": lambda event: event,
    "alter_reassignment": lambda event: {"type": "alter_reassignment", "replicas": event.get("replicas")},
    "alter_config": _alter_config,
    "register_broker": _register,
}
